"""The memory of one scope for one client, which starts this process and speaks with it over its standard streams."""

from __future__ import annotations

from afterword.client.scope_memory import ScopeMemory
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import ToolCaller


async def serve_stdio(memory: ScopeMemory, *, read_only: bool = False) -> None:
    """Answer the client until it closes standard input."""
    caller = ToolCaller(memory.for_agent(), may_write=not read_only)
    await memory_server(lambda: caller).run_stdio_async()
