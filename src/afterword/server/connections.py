"""HTTP connections: a client has to send the head of a request in time."""

from __future__ import annotations

import asyncio
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_S = 10.0
"""How long a client may take for the head of a request, from the connection or from its first byte."""


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
