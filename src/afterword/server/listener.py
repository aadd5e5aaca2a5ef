"""Listening: the socket, the HTTP server on it, and connections on which a request has to arrive in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from typing import cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from afterword import Afterword
from afterword.errors import ArgumentInvalid
from afterword.server.app import create_app
from afterword.server.background import short_pauses
from afterword.server.pages.mount import one_time_link
from afterword.setting_sections import ServerOptions

HEADER_S = 10.0
"""How long a client may take for the head of a request, from the connection or from its first byte."""

MOST_CONNECTIONS = 1000
KEEP_ALIVE_S = 30
GRACE_S = 10


class TimedConnection(H11Protocol):
    """One connection. It is closed if the head of a request takes longer than `HEADER_S`.

    uvicorn itself bounds the size of a head, and the time without a request between two of them.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the first request."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._await_head()

    def data_received(self, received: bytes) -> None:
        """Take in what arrived. Without a request that is worked on, more has to arrive in time."""
        super().data_received(received)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_wait()
        elif self._deadline is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._end_wait()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._deadline = self.loop.call_later(HEADER_S, self.transport.close)

    def _end_wait(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def serve(
    app: Afterword,
    options: ServerOptions,
    *,
    on_begin: Callable[[str], None] = lambda _: None,
    opening: str | None = None,
) -> None:
    """Serve a store over HTTP until the process is told to stop. `on_begin` is told the address.

    With `opening`, a path below the pages, the address is a one-time link to it, which needs no key. Raises
    `ArgumentInvalid` if the address cannot be used. An address that other machines can reach needs a key, and gives no
    one-time link: otherwise it is raised too.
    """
    if opening is not None and not is_loopback(options.host):
        raise ArgumentInvalid(f"{options.host} can be reached from other machines; only 127.0.0.1 opens without a key")
    await app.store()  # a store that cannot be opened is told before anything listens
    if not is_loopback(options.host) and all(key.revoked_at is not None for key in await app.keys.list()):
        raise ArgumentInvalid(
            f"{options.host} can be reached from other machines, and there is no key; make one with `afterword keys "
            "create`, or serve 127.0.0.1"
        )
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    try:
        listening = socket.create_server((options.host, options.port), family=family, backlog=512)
        # Accepted connections inherit it. Otherwise the body of an answer waits 40 ms for the header's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise ArgumentInvalid(f"{options.host}:{options.port} cannot be used: {error.strerror}") from None
    service = create_app(app, options)
    config = uvicorn.Config(
        service,
        access_log=False,  # it would log paths and queries, which hold people's names and words
        log_config=None,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        http=TimedConnection,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS,
    )
    shown_host = f"[{options.host}]" if ":" in options.host else options.host
    with listening:
        link = "" if opening is None else one_time_link(service, opening)
        on_begin(f"http://{shown_host}:{listening.getsockname()[1]}{link}")
        async with short_pauses():
            await uvicorn.Server(config).serve(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine reach a host."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
