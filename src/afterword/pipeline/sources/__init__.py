"""The sources of saved sessions and memories: folders, databases, exports of other libraries.

The pipeline, clients and the command line import it. It imports the readers and `Saved` of the pipeline.
"""
