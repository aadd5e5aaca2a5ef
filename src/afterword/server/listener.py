"""Run the HTTP server. Connections whose requests arrive too slowly are closed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import cast

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from afterword import Afterword
from afterword.errors import ArgumentInvalid
from afterword.server.app import create_app
from afterword.server.background import shortening_gc_pauses
from afterword.server.pages.mount import one_time_link
from afterword.setting_sections import ServerOptions

HEADER_S = 10.0
"""How long a client may take to send the headers of a request, from the connection or from the first byte on."""

MOST_CONNECTIONS = 1000
KEEP_ALIVE_S = 30
GRACE_S = 10


class HeaderDeadlineConnection(H11Protocol):
    """A connection that is closed if the headers of a request take longer than `HEADER_S` to arrive.

    uvicorn itself limits the size of the headers, and the idle time between two requests.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline for the first request."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._start_deadline()

    def data_received(self, received: bytes) -> None:
        """Process received bytes. Start the deadline unless a request is being answered."""
        super().data_received(received)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_deadline()
        elif self._deadline is None:
            self._start_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._cancel_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEADER_S, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def serve(
    app: Afterword,
    options: ServerOptions,
    *,
    on_begin: Callable[[str], None] = lambda _: None,
    opened_page: str | None = None,
) -> None:
    """Serve a store over HTTP until the process is told to stop. `on_begin` is called with the URL.

    With `opened_page`, a path below `/pages`, this URL is a one-time link to that page and needs no key. Raises
    `ArgumentInvalid` if the address cannot be used. If other machines can reach the address, it is also raised with
    `opened_page`, and if all keys of the store were revoked.
    """
    await _check_access(app, options, opened_page)
    listening = _listening_socket(options)
    service = create_app(app, options)
    server = uvicorn.Server(_server_config(service))
    shown_host = f"[{options.host}]" if ":" in options.host else options.host
    with listening:
        link = "" if opened_page is None else one_time_link(service, opened_page)
        on_begin(f"http://{shown_host}:{listening.getsockname()[1]}{link}")
        async with shortening_gc_pauses():
            await server.serve(sockets=[listening])


async def _check_access(app: Afterword, options: ServerOptions, opened_page: str | None) -> None:
    """Raise `ArgumentInvalid` if other machines can reach an address where a page needs no key, or no key is left."""
    if opened_page is not None and not is_loopback(options.host):
        raise ArgumentInvalid(
            f"{options.host} can be reached from other machines; only 127.0.0.1 can be opened without a key"
        )
    await app.store()  # fail before listening if the store cannot be opened
    if not is_loopback(options.host) and all(key.revoked_at is not None for key in await app.keys.list()):
        raise ArgumentInvalid(
            f"{options.host} can be reached from other machines, and there is no key; make one with `afterword keys "
            "create`, or serve 127.0.0.1"
        )


def _listening_socket(options: ServerOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        listening = socket.create_server((options.host, options.port), family=family, backlog=512)
        # Accepted connections inherit this option. Without it, the body of a response would wait 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ArgumentInvalid(f"{options.host}:{options.port} cannot be used: {error.strerror}") from None
    return listening


def _server_config(service: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        service,
        access_log=False,  # it would contain paths and queries, which hold people's names and words
        log_config=None,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        http=HeaderDeadlineConnection,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS,
    )


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
