"""A thread with an event loop of its own for work that takes long, so that the service goes on answering."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class WorkThread:
    """Runs coroutines in one thread. Two busy threads would make the answers of the service wait longer."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, which sees the context variables of the caller. Cancelling it cancels the work.

        Raises `RuntimeError` outside of the block of `running`.
        """
        if self._loop is None:
            work.close()
            raise RuntimeError("the thread does not run")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the thread until the end of the block; what is not done by then is cancelled."""
        loop = self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="afterword-work", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._loop = None
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_others(), loop))
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)
            loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
