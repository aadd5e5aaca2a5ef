"""Register the tools, resources and the prompt of the MCP server, with their names and hints.

`serve_stdio` answers one client over standard input and output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated

from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, ToolAnnotations
from pydantic import Field

from afterword.client.scope_memory import ScopeMemory
from afterword.errors import AfterwordError
from afterword.server.mcp.answers import HistoryAnswer, TranscriptAnswer
from afterword.server.mcp.server import (
    NAMELESS_AGENT,
    CallerContext,
    MemoryServer,
    ToolCaller,
    converting_to_resource_errors,
    memory_of,
)
from afterword.server.mcp.tools import ASKING_TOOLS, READING_TOOLS, erase_after_asking

READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ASKS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ERASES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
JSON = "application/json"
NOTHING_KNOWN = "Nothing is known from earlier conversations yet."


def memory_server(caller: Callable[[], ToolCaller]) -> MemoryServer:
    """Return the server whose calls use the memory that `caller` returns."""
    server = MemoryServer(caller, _tools())
    server.resource("memory://facts/{fact_id}", name="fact", mime_type=JSON)(_fact_resource)
    # The id of a session is a key of the store and never a path.
    security = ResourceSecurity(exempt_params={"session_id"})
    server.resource("memory://sessions/{session_id}", name="session", mime_type=JSON, security=security)(
        _session_resource
    )
    server.prompt("memory", title="Load the memory")(_memory_prompt)
    return server


@cache
def _tools() -> tuple[Tool, ...]:
    """Return the tools. They are cached, because making their schemas takes longer than the rest of a server."""
    return (
        *(Tool.from_function(tool, name, annotations=READS) for name, tool in READING_TOOLS.items()),
        *(Tool.from_function(tool, name, annotations=ASKS) for name, tool in ASKING_TOOLS.items()),
        Tool.from_function(erase_after_asking, "forget", annotations=ERASES),
    )


async def _fact_resource(fact_id: str, ctx: CallerContext) -> str:
    """A fact with its evidence and its history."""
    with converting_to_resource_errors():
        return HistoryAnswer.of(await memory_of(ctx).history(fact_id)).model_dump_json()


async def _session_resource(session_id: str, ctx: CallerContext) -> str:
    """A session: what its person said, and the facts that it supports."""
    with converting_to_resource_errors():
        return TranscriptAnswer.of(await memory_of(ctx).session(session_id)).model_dump_json()


async def _memory_prompt(
    ctx: CallerContext, question: Annotated[str, Field(description="What the conversation will be about.")] = ""
) -> str:
    """Load what is known from earlier conversations into this one."""
    try:
        block = await memory_of(ctx).context(question, most_left_out=0)
    except AfterwordError as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from error
    return block.text or NOTHING_KNOWN


async def serve_stdio(memory: ScopeMemory, *, read_only: bool = False, agent: str = NAMELESS_AGENT) -> None:
    """Answer an MCP client until it closes standard input. Its findings are saved under the name `agent`."""
    caller = ToolCaller(memory.for_agent(), may_write=not read_only, agent=agent)
    await memory_server(lambda: caller).run_stdio_async()
