"""The Python interface: `open` returns an `Afterword`, and `Afterword.user` the memory of one user.

The command line, the HTTP service, the MCP server and applications call only this package, not the packages that it
uses. Methods import model clients, APScheduler and Procrastinate when they need them, so that loading is fast.
"""
