"""The sources of saved sessions and memories: folders, databases, exports of other libraries."""
