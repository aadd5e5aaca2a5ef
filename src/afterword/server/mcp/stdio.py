"""The memory of one scope for one client, which starts this process and speaks with it over its standard streams."""

from __future__ import annotations

from afterword.client.scope_memory import ScopeMemory
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import NAMELESS_AGENT, ToolCaller


async def serve_stdio(memory: ScopeMemory, *, read_only: bool = False, agent: str = NAMELESS_AGENT) -> None:
    """Answer the client until it closes standard input. What it finds is saved under the name of `agent`."""
    caller = ToolCaller(memory.for_agent(), may_write=not read_only, agent=agent)
    await memory_server(lambda: caller).run_stdio_async()
