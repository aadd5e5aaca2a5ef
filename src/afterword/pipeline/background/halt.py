"""A flag that asks long work to stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Halt:
    """A flag that asks long work to stop. Calling it returns the reason, or None if no stop was requested."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._asked = asyncio.Event()
        self._loops = set[asyncio.AbstractEventLoop]()

    def __call__(self) -> str | None:
        """Return the reason to stop, if there is one. Long work calls this between its steps."""
        return self._reason

    def stop(self, reason: str) -> None:
        """Request a stop, from any thread."""
        self._reason = reason
        self._asked.set()
        for loop in tuple(self._loops):
            # Set from another thread, the event alone does not wake an event loop that is idle.
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(self._asked.set)

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until a stop is requested or the timeout is over. Return whether a stop was requested."""
        self._loops.add(asyncio.get_running_loop())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), timeout_s)
        return self._asked.is_set()
