"""Clients of the memory's MCP server, and people who answer its questions."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2
import uvicorn
from mcp import Client
from mcp.client.session import ClientRequestContext, ElicitationFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from afterword import Afterword, ScopeMemory
from afterword.server.app import create_app
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import MemoryServer, ToolCaller
from afterword.setting_sections import ServerOptions

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


def server_of(memory: ScopeMemory, *, read_only: bool = False, agent: str = "agent") -> MemoryServer:
    """Return a server in this process for one memory."""
    caller = ToolCaller(memory.for_agent(), may_write=not read_only, agent=agent)
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


@asynccontextmanager
async def serving_http(app: Afterword, **options: Any) -> AsyncIterator[str]:
    """Yield the address of a service of this store, in this process."""
    service = create_app(app, ServerOptions(requests_per_minute=100_000, **options))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(service, log_config=None, lifespan="on", ws="none"))
        running = asyncio.ensure_future(server.serve(sockets=[listening]))
        # A request waits in the socket until the server has started.
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await running


@asynccontextmanager
async def connected(
    address: str, secret: str, mode: str = "auto", person: Person | None = None
) -> AsyncIterator[Client]:
    """Yield a client with a key, over HTTP."""
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}) as http:
        transport = streamable_http_client(f"{address}/mcp", http_client=http)
        callback = person.answer if person is not None else None
        async with Client(transport, mode=mode, elicitation_callback=callback) as client:
            yield client
