"""Where saved sessions come from: folders, databases, exports of other libraries."""
