"""Requests to stop long work."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Halt:
    """A request to stop. Calling it returns the reason, or None."""

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
            # An event wakes a loop of another thread only at its next step.
            with suppress(RuntimeError):  # that loop has ended
                loop.call_soon_threadsafe(self._asked.set)

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a request to stop, at most for the timeout; return whether there was one."""
        self._loops.add(asyncio.get_running_loop())
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), timeout_s)
        return self._asked.is_set()
