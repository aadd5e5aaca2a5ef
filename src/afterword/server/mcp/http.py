"""The MCP server as a part of the HTTP service: streamable HTTP without sessions, with the API keys of the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from urllib.parse import urlsplit

from fastapi import FastAPI
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from afterword import Afterword, ApiKey
from afterword import Scope as MemoryScope
from afterword.server.access import bearer, verify_key_and_count_request
from afterword.server.mcp.registration import memory_server
from afterword.server.mcp.server import NAMELESS_AGENT, ToolCaller
from afterword.server.problems import Refused

PATH = "/mcp"
MCP_HEADERS = ("MCP-Protocol-Version", "MCP-Method", "MCP-Name", "Mcp-Session-Id", "Last-Event-ID")
"""Headers that MCP clients send besides the key."""

_caller: ContextVar[ToolCaller] = ContextVar("afterword_mcp_caller")


def add_mcp(service: FastAPI, app: Afterword, *, origins: Collection[str], longest_body_bytes: int) -> None:
    """Add the MCP server to the service, at `/mcp`. Web pages from these origins may call it (CORS).

    The session manager in `state.mcp_sessions` must run while the service runs.
    """
    endpoint = McpEndpoint(app, origins, longest_body_bytes)
    service.router.routes.append(Route(PATH, endpoint))
    service.state.mcp_sessions = endpoint.sessions


class McpEndpoint:
    """The ASGI application at `/mcp`. Each request uses the memory of its API key."""

    def __init__(self, app: Afterword, origins: Collection[str], longest_body_bytes: int) -> None:
        self._app, self._origins = app, frozenset(origins)
        server = memory_server(_caller.get)
        server.streamable_http_app(
            streamable_http_path=PATH,
            stateless_http=True,
            json_response=True,
            max_request_body_size=longest_body_bytes,
            # The service checks the Host of every request itself.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self.sessions: StreamableHTTPSessionManager = server.session_manager
        self._answer = AuthContextMiddleware(self.sessions.handle_request)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. Raises `Refused` and `KeyInvalid`."""
        request = Request(scope, receive)
        key = await verify_key_and_count_request(request, await bearer(request))
        self._check_origin_and_method(request)
        if key.scope is None:
            raise Refused(403, "this key has no memory of its own; make one with `afterword keys create --user`")
        # State that the server gives to the client for its next request is valid for this key only.
        scope["user"] = AuthenticatedUser(AccessToken(token=key.id, client_id=key.id, scopes=[]))
        caller = ToolCaller(
            self._app.scope(key.scope).for_agent(),
            may_write=not key.is_read_only,
            agent=key.name or NAMELESS_AGENT,
            recording=partial(_recording_change, self._app, key, key.scope),
        )
        reset = _caller.set(caller)
        try:
            await self._answer(scope, receive, send)
        finally:
            _caller.reset(reset)

    def _check_origin_and_method(self, request: Request) -> None:
        origin = request.headers.get("origin")
        is_own = origin is not None and urlsplit(origin).netloc == request.headers.get("host")
        if origin is not None and not is_own and origin not in self._origins:
            raise Refused(403, "pages of this origin may not call the service")
        if request.method != "POST":
            # The server sends nothing without a request, so a stream would only occupy a connection.
            raise Refused(405, "the MCP server accepts only POST", headers={"Allow": "POST"})


@asynccontextmanager
async def _recording_change(app: Afterword, key: ApiKey, scope: MemoryScope, tool: str) -> AsyncIterator[None]:
    """Record in the audit log that a key asked for a change."""
    refusal = None
    async with app.requests.begin(key, f"mcp {tool}", scope=scope) as request:
        try:
            yield
        except ToolError as error:
            request.result, refusal = 400, error
    if refusal is not None:
        raise refusal
