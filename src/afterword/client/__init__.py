"""The one door for Python: `open` gives an `Afterword`, and that gives the memory of a scope.

The command line, the HTTP service, the MCP server and applications call it, and nothing below it. It imports every
package but those; models, APScheduler and Procrastinate are imported by the methods that need them.
"""
