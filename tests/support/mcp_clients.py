"""Clients of the memory's MCP server, and people who answer its questions."""

from __future__ import annotations

from typing import Any, Literal

from mcp import Client
from mcp.client.session import ClientRequestContext, ElicitationFnT
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from afterword import ScopeMemory
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import Caller, MemoryServer

MODES = ("auto", "legacy")
"""The new protocol, and the one with a handshake."""


class Person:
    """Answers every question of the server in one way, and remembers the questions."""

    def __init__(self, action: Literal["accept", "decline", "cancel"], *, ticked: bool = True) -> None:
        self.questions: list[str] = []
        self._action, self._ticked = action, ticked

    async def answer(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        """Fill in the form, or not."""
        self.questions.append(params.message)
        if self._action != "accept":
            return ElicitResult(action=self._action)
        names = params.model_dump()["requested_schema"]["properties"]
        return ElicitResult(action="accept", content=dict.fromkeys(names, self._ticked))


def server_of(memory: ScopeMemory, *, read_only: bool = False) -> MemoryServer:
    """Return a server in this process for one memory."""
    caller = Caller(memory.for_agent(), may_write=not read_only)
    return memory_server(lambda: caller)


def client_of(server: Any, mode: str = "auto", person: Person | None = None) -> Client:
    """Return a client; without a person it cannot ask anybody."""
    callback: ElicitationFnT | None = person.answer if person is not None else None
    return Client(server, mode=mode, elicitation_callback=callback)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the structured result of a call that succeeds."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def error_of(client: Client, tool: str, **arguments: Any) -> str:
    """Return what the agent reads when a call fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))
