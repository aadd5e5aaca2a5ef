"""Error responses as problem details (RFC 9457), and the middleware around the application.

No error response contains another caller's words, or the URL of the database.
"""

from __future__ import annotations

import asyncio
import http
import logging
import os
import re
import secrets
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from afterword.client import values
from afterword.errors import (
    AfterwordError,
    Ambiguous,
    KeyInvalid,
    NotFound,
    Overtaken,
    RequestPending,
    RequestReused,
    StateConflict,
)

MEDIA_TYPE = "application/problem+json"
UNAVAILABLE = "the service cannot do this now; try again later"
NO_DELETION = "a fact is not deleted by its address: POST .../withdraw ends it, POST .../forget erases it for good"
RETRY_AFTER_S = "1"

STATUSES: tuple[tuple[type[AfterwordError], int], ...] = (
    (KeyInvalid, 401),
    (RequestReused, 422),
    (RequestPending, 409),
    (NotFound, 404),
    (Ambiguous, 409),
    (StateConflict, 409),
    (values.ProposalOutdated, 409),
    (values.ReadError, 422),
    (Overtaken, 503),
)
"""The HTTP status of an error by its class. Of all others, usage errors have status 400, and the rest has 503."""

_log = logging.getLogger("afterword.server")
_FACT_PATH = re.compile(r"/facts/[^/]+/?$")
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
"""Of a body that is too long, this many times of what is accepted is received and discarded before it is refused. Many
clients do not read an answer while they send."""
MOST_LONG_BODIES = 8
"""How many requests with longer bodies one sender may have in progress."""


class Refused(HTTPException):
    """Refuses a request. The caller sees `detail`, which says why and what to do."""


def status_of(error: AfterwordError) -> int:
    """Return the HTTP status of an error."""
    known = next((status for kind, status in STATUSES if isinstance(error, kind)), None)
    return known or (400 if error.is_usage else 503)


def problem_response(
    status: int, detail: str, *, headers: Mapping[str, str] | None = None, **members: Any
) -> JSONResponse:
    """Return an error response. `members` are further fields of its JSON."""
    content = {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse({**content, **members}, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def add_error_handlers(app: FastAPI) -> None:
    """Make the application answer errors of afterword and HTTP, and invalid requests, with problem details."""
    for kind in (AfterwordError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _answer_error)


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    match error:
        case HTTPException(status_code=405) if request.method == "DELETE" and _FACT_PATH.search(request.url.path):
            return problem_response(405, NO_DELETION, headers=error.headers)
        case HTTPException():
            return problem_response(error.status_code, error.detail, headers=error.headers)
        case RequestValidationError():
            # The invalid input is left out, because the caller may log the response.
            faults = [{"field": _field_name(fault), "message": fault["msg"]} for fault in error.errors()]
            return problem_response(422, "the request is invalid; see errors", errors=faults)
        case AfterwordError():
            status = status_of(error)
            headers = {"WWW-Authenticate": 'Bearer error="invalid_token"'} if status == 401 else {}
            if status == 503 or isinstance(error, RequestPending):
                headers["Retry-After"] = RETRY_AFTER_S
            # The message of a database error contains the URL of the database.
            return problem_response(status, UNAVAILABLE if status == 503 else str(error), headers=headers)
    raise error


def _field_name(fault: Mapping[str, Any]) -> str:
    """Return the name of the invalid field, or "body" if the body is not JSON."""
    return "body" if fault["type"] == "json_invalid" else ".".join(map(str, fault["loc"]))


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
        began, status, headers = time.perf_counter(), 0, Headers(scope=scope)
        asked_id = headers.get("x-request-id", "")
        request_id = asked_id if REQUEST_ID.fullmatch(asked_id) else secrets.token_hex(8)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                nonlocal status
                status, answered = message["status"], MutableHeaders(scope=message)
                answered["X-Request-ID"] = request_id
                for name, text in SECURITY_HEADERS.items():
                    answered.setdefault(name, text)
            await send(message)

        try:
            await self._answer(scope, headers, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 - the client gets a response without the reason, whatever fails
            # The message is not logged, because it may contain a user's words. The lines are those of afterword, not
            # those of a library that it called.
            frames = traceback.extract_tb(error.__traceback__)
            own = [f"{frame.filename}:{frame.lineno}" for frame in frames if frame.filename.startswith(_PACKAGE)]
            places = ", ".join(place.removeprefix(_PACKAGE) for place in own[-MOST_PLACES:])
            _log.error("request %s failed (%s, %s)", request_id, type(error).__name__, places)
            if not status:
                fault = problem_response(
                    500, "internal error; the log of the service names it with the id in X-Request-ID"
                )
                await fault(scope, receive, send_with_headers)
        finally:
            took_ms = (time.perf_counter() - began) * 1000
            route = getattr(scope.get("route"), "path", "-")
            key = scope.get("state", {}).get("key_id", "-")
            # Path and query are not logged, because they name people.
            _log.info("%s %s %s %.0f ms %s %s", scope["method"], route, status, took_ms, key, request_id)

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
                answer = refusal = await _answer_error(Request(scope), error)
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
        too_long = Refused(413, f"the body is too long; at most {self._longest_body_bytes} bytes are accepted")
        length = headers.get("content-length", "0")
        announced = int(length) if length.isdecimal() else 0
        # A client that expects to be asked for the body does not send it before.
        if announced > READ_AT_MOST * most_bytes or (announced > most_bytes and "expect" in headers):
            raise too_long
        if length == "0" and "transfer-encoding" not in headers:
            return receive
        body, received = bytearray(), 0
        message: Message = {"more_body": True}
        try:
            async with asyncio.timeout(self._body_timeout_s):
                while message.get("more_body", False) and received <= READ_AT_MOST * most_bytes:
                    message = await receive()
                    received += len(message.get("body", b""))
                    if received <= most_bytes:
                        body += message.get("body", b"")
        except TimeoutError:
            if max(announced, received) <= most_bytes:
                raise Refused(408, "the body arrived too slowly") from None
        if max(announced, received) > most_bytes:
            raise too_long
        is_gone = message["type"] == "http.disconnect"
        waiting = [message if is_gone else {"type": "http.request", "body": bytes(body), "more_body": False}]

        async def receive_again() -> Message:
            return waiting.pop() if waiting else await receive()

        return receive_again


def _host_name(host: str) -> str:
    return (host[1:].partition("]") if host.startswith("[") else host.partition(":"))[0].lower()


def routable_path(scope: Scope) -> str:
    """Return the decoded path, in which encoded slashes and percent signs stay encoded.

    So an id may contain a slash, and the router still splits the path correctly. `decode_path_part` decodes the rest.
    """
    raw = scope.get("raw_path")
    if not raw:
        return str(scope["path"])
    still_encoded = re.sub(rb"%(2[fF]|25)", rb"%25\1", raw.split(b"?", 1)[0])
    with suppress(UnicodeDecodeError):
        return unquote_to_bytes(still_encoded).decode("utf-8")
    return "/not-utf-8"


def encoded_path(request: Request) -> str:
    """Return the path of a request as its client encoded it."""
    raw: bytes = request.scope["raw_path"]
    return quote(raw.partition(b"?")[0], safe="/%!$&'()*+,;=:@")
