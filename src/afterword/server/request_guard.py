"""The middleware around the application: it checks the host and the size of each request, adds headers, and logs.

The log contains no words of a request.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterword.errors import AfterwordError
from afterword.server.problems import RETRY_AFTER_S, Refused, answer_error, problem_response
from afterword.server.request_paths import routable_path

INTERNAL_ERROR = "internal error; the log of the service names it with the id in X-Request-ID"
_log = logging.getLogger("afterword.server")
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
MOST_PLACES = 3
"""How many lines of code the log names for a request that failed."""
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
"""Headers that are added to every response that does not set them itself."""
SHORT_BODY_BYTES = 16_384
"""A longer body is read only if its sender has a key or is signed in."""
READ_AT_MOST = 4
"""A body that is too long is refused only after so many times the accepted size was received, because many clients do
not read an answer while they send."""
MOST_LONG_BODIES = 8
"""How many requests with longer bodies one sender may have in progress."""


class RequestGuard:
    """ASGI middleware that checks the host and the size of each request, adds headers to its response, and logs it.

    `sender_key_id` returns the id of the sender's key, or raises an error if the sender is unknown. It is called before
    a long body is read.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        longest_body_bytes: int,
        body_timeout_s: float,
        sender_key_id: Callable[[Request], Awaitable[str]],
    ) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)
        self._longest_body_bytes, self._body_timeout_s = longest_body_bytes, body_timeout_s
        self._sender_key_id, self._long_bodies = sender_key_id, Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, headers = time.perf_counter(), Headers(scope=scope)
        request_id = _request_id(headers)
        response = _GuardedResponse(send, request_id)
        try:
            await self._answer(scope, headers, receive, response.send)
        except Exception as error:  # noqa: BLE001 - the client gets a response without the reason, whatever fails
            _log_failure(request_id, error)
            if not response.status:
                await problem_response(500, INTERNAL_ERROR)(scope, receive, response.send)
        finally:
            took_ms = (time.perf_counter() - began) * 1000
            route = getattr(scope.get("route"), "path", "-")
            key = scope.get("state", {}).get("key_id", "-")
            # Path and query are not logged, because they name people.
            _log.info("%s %s %s %.0f ms %s %s", scope["method"], route, response.status, took_ms, key, request_id)

    async def _answer(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        if "*" not in self._hosts and _host_name(headers.get("host", "")) not in self._hosts:
            await problem_response(421, "this service does not answer for this host")(scope, receive, send)
            return
        scope["path"] = routable_path(scope)
        async with AsyncExitStack() as stack:
            answer = self._app
            try:
                most_bytes = await stack.enter_async_context(self._accepted_bytes(scope, headers))
                receive = await self._receive_body(headers, receive, most_bytes)
            except (AfterwordError, Refused) as error:
                answer = refusal = await answer_error(Request(scope), error)
                refusal.headers["Connection"] = "close"
            await answer(scope, receive, send)

    @asynccontextmanager
    async def _accepted_bytes(self, scope: Scope, headers: Headers) -> AsyncIterator[int]:
        """Yield the largest size of the body that is accepted of this request.

        Until the block ends, a long body counts towards `MOST_LONG_BODIES` of its sender. Raises `Refused` if there are
        too many, and `AfterwordError` if the sender is unknown.
        """
        length = headers.get("content-length", "0")
        is_short = length.isdecimal() and int(length) <= SHORT_BODY_BYTES
        if is_short and "transfer-encoding" not in headers:
            yield SHORT_BODY_BYTES
            return
        sender = await self._sender_key_id(Request(scope))
        if self._long_bodies[sender] >= MOST_LONG_BODIES:
            raise Refused(429, "too many long requests at once with this key", headers={"Retry-After": RETRY_AFTER_S})
        self._long_bodies[sender] += 1
        try:
            yield self._longest_body_bytes
        finally:
            self._long_bodies -= Counter([sender])

    async def _receive_body(self, headers: Headers, receive: Receive, most_bytes: int) -> Receive:
        """Read the whole body, and return a `receive` function that delivers it once, then what follows it.

        Raises `Refused` if the body is longer than `most_bytes`, or arrives too slowly.
        """
        announced = _announced_bytes(headers)
        # A client that expects to be asked for the body does not send it before.
        if announced > READ_AT_MOST * most_bytes or (announced > most_bytes and "expect" in headers):
            raise self._body_is_too_long()
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return receive
        body = _ReceivedBody(most_bytes)
        try:
            async with asyncio.timeout(self._body_timeout_s):
                await body.receive_from(receive)
        except TimeoutError:
            if max(announced, body.size) <= most_bytes:
                raise Refused(408, "the body arrived too slowly") from None
        if max(announced, body.size) > most_bytes:
            raise self._body_is_too_long()
        waiting = [body.as_message()]

        async def receive_again() -> Message:
            return waiting.pop() if waiting else await receive()

        return receive_again

    def _body_is_too_long(self) -> Refused:
        return Refused(413, f"the body is too long; at most {self._longest_body_bytes} bytes are accepted")


class _GuardedResponse:
    """A response to which headers are added. `status` is 0 until it begins."""

    def __init__(self, send: Send, request_id: str) -> None:
        self.status = 0
        self._send, self._request_id = send, request_id

    async def send(self, message: Message) -> None:
        """Send a message of the response, with the added headers if it is the first."""
        if message["type"] == "http.response.start":
            self.status, headers = message["status"], MutableHeaders(scope=message)
            headers["X-Request-ID"] = self._request_id
            for name, text in SECURITY_HEADERS.items():
                headers.setdefault(name, text)
        await self._send(message)


class _ReceivedBody:
    """What was received of the body of a request. What exceeds `most_bytes` is counted, but not kept."""

    def __init__(self, most_bytes: int) -> None:
        self.size = 0
        self._most_bytes, self._content = most_bytes, bytearray()
        self._last_message: Message = {"more_body": True}

    async def receive_from(self, receive: Receive) -> None:
        """Receive the body to its end, but not much more than `READ_AT_MOST` times the accepted size."""
        while self._last_message.get("more_body", False) and self.size <= READ_AT_MOST * self._most_bytes:
            self._last_message = await receive()
            part = self._last_message.get("body", b"")
            self.size += len(part)
            if self.size <= self._most_bytes:
                self._content += part

    def as_message(self) -> Message:
        """Return the message that delivers the whole body, or that the client has disconnected."""
        if self._last_message["type"] == "http.disconnect":
            return self._last_message
        return {"type": "http.request", "body": bytes(self._content), "more_body": False}


def _request_id(headers: Headers) -> str:
    """Return the id that the client gave to the request, or a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


def _announced_bytes(headers: Headers) -> int:
    length = headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _log_failure(request_id: str, error: Exception) -> None:
    # The message is not logged, because it may contain a user's words. The lines are those of afterword, not those of a
    # library that it called.
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename.startswith(_PACKAGE)]
    places = ", ".join(place.removeprefix(_PACKAGE) for place in own[-MOST_PLACES:])
    _log.error("request %s failed (%s, %s)", request_id, type(error).__name__, places)


def _host_name(host: str) -> str:
    return (host[1:].partition("]") if host.startswith("[") else host.partition(":"))[0].lower()
