"""The one door for Python: `open` gives an `Afterword`, and that gives the memory of a scope.

The command line, the HTTP service, the MCP server and applications call it, and nothing below it. It imports every
package but those; models, APScheduler and Procrastinate are imported by the methods that need them.
"""

from afterword.client.app import Afterword
from afterword.client.opening import open  # noqa: A004 - as in gzip.open: called as afterword.open()
from afterword.client.scope_memory import ScopeMemory

__all__ = ["Afterword", "ScopeMemory", "open"]
