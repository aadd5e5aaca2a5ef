"""The Python interface: `open` returns an `Afterword`, whose methods return the memory of a scope.

The command line, the HTTP service, the MCP server and applications call it, and nothing below it. It may import every
package except those. Clients of models, APScheduler and Procrastinate are imported by the methods that need them.
"""
