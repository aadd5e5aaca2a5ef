"""Sessions that were sent with `queue`: processed one after the other, while the service goes on answering.

They are stored as pending before they are acknowledged, so that after a crash `afterword schedule` or the next start
processes them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from afterword import Afterword, Scope
from afterword.errors import AfterwordError
from afterword.server.work_thread import WorkThread

_log = logging.getLogger(__name__)

T = TypeVar("T")

HOUR_S = 3600.0
SECONDS_BETWEEN_POSTS = 5.0


class Background:
    """The work that the service does beside its answers."""

    def __init__(self, app: Afterword) -> None:
        self._app = app
        self._queue: asyncio.Queue[tuple[Scope, str]] = asyncio.Queue()
        self._thread = WorkThread()

    def wake(self, scope: Scope, session_id: str) -> None:
        """Process a pending session soon."""
        self._queue.put_nowait((scope, session_id))

    async def in_thread(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that takes long. It is done in the work thread."""
        return await self._thread.run(work)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work until the end of the block."""
        async with self._thread.running(), self._tasks():
            yield

    @asynccontextmanager
    async def _tasks(self) -> AsyncIterator[None]:
        work = self._process_queue(), self._discard_old_answers(), self._send_posts()
        tasks = [asyncio.create_task(part) for part in work]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    async def _process_queue(self) -> None:
        while True:
            scope, session_id = await self._queue.get()
            try:
                await self.in_thread(self._app.scope(scope).process(session_id=session_id))
            except AfterwordError as error:
                # The session stays as it is, and the schedule tries it again.
                _log.warning("a queued session was not processed (%s)", type(error).__name__)

    async def _discard_old_answers(self) -> None:
        while True:
            await asyncio.sleep(HOUR_S)
            try:
                await self._app.requests.discard_old_answers()
            except AfterwordError as error:
                _log.warning("old answers were not discarded (%s)", type(error).__name__)

    async def _send_posts(self) -> None:
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_POSTS)
            try:
                await self.in_thread(self._app.webhooks.send())
            except AfterwordError as error:
                _log.warning("posts to webhooks were not sent (%s)", type(error).__name__)
