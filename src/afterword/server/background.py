"""What the service does beside its answers: queued sessions, posts to webhooks, and garbage collection."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, TypeVar

from afterword import Afterword, Scope
from afterword.client.access.webhooks import announcing_failures
from afterword.errors import AfterwordError

_log = logging.getLogger(__name__)

T = TypeVar("T")

HOUR_S = 3600.0
SECONDS_BETWEEN_POSTS = 5.0
SECONDS_BETWEEN = 5.0
PATIENCE_S = 0.2
MOST_THREADS = 4
FULL_EVERY = 720
"""Each of so many times all objects are looked at."""


class _WorkThread:
    """Runs coroutines in one thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: Future[None] | None = None

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

    async def answers(self) -> bool:
        """Whether the thread takes up new work within `PATIENCE_S`; while it has not, it is not waited for again."""
        if self._loop is not None and (self._asked is None or self._asked.done()):
            self._asked = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
            await asyncio.wait([asyncio.wrap_future(self._asked)], timeout=PATIENCE_S)
        return self._asked is not None and self._asked.done()


class WorkThreads:
    """Runs coroutines in threads, all that is done for one owner at a time in the same one.

    Two busy threads make the answers of the service wait longer. So a further one begins only where those before it are
    held up by the work of others: nobody waits for a long session of somebody else.
    """

    def __init__(self) -> None:
        self._threads: list[_WorkThread] = []
        self._running: dict[str, list[_WorkThread]] = {}
        self._stack = AsyncExitStack()
        self._choosing = asyncio.Lock()

    async def run(self, owner: str, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of `work`, done for this owner. Cancelling it cancels the work."""
        async with self._choosing:
            thread = self._running[owner][0] if owner in self._running else await self._free_thread()
            self._running.setdefault(owner, []).append(thread)
        try:
            return await thread.run(work)
        finally:
            self._running[owner].remove(thread)
            if not self._running[owner]:
                del self._running[owner]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the threads until the end of the block; what is not done by then is cancelled."""
        async with self._stack:
            yield
        self._threads.clear()

    async def _free_thread(self) -> _WorkThread:
        for thread in self._threads:
            if await thread.answers():
                return thread
        if len(self._threads) < MOST_THREADS:
            self._threads.append(_WorkThread())
            await self._stack.enter_async_context(self._threads[-1].running())
            return self._threads[-1]
        owners = Counter(id(threads[0]) for threads in self._running.values())
        return min(self._threads, key=lambda thread: owners[id(thread)])


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


@asynccontextmanager
async def running_beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines until the end of the block."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def short_pauses(seconds_between: float = SECONDS_BETWEEN, full_every: int = FULL_EVERY) -> AsyncIterator[None]:
    """Keep the pauses of the garbage collection of this process short until the end of the block.

    A full collection looks at every object, and the facts of a thousand memories are a million objects: more than a
    second. Those are not garbage. So what has survived is taken out of the collections that Python starts by itself,
    and is looked at again once an hour. What the caller had frozen before is frozen afterwards.
    """
    had_frozen = gc.get_freeze_count() > 0
    try:
        async with running_beside(_set_survivors_apart(seconds_between, full_every)):
            yield
    finally:
        gc.unfreeze()
        if had_frozen:
            # Python does not tell who froze what. So whatever is still in use is frozen, not only what was before.
            gc.collect()
            gc.freeze()


async def _set_survivors_apart(seconds_between: float, full_every: int) -> None:
    for turn in itertools.count(1):
        await asyncio.sleep(seconds_between)
        if turn % full_every == 0:
            gc.unfreeze()
        # Collect before freezing: garbage that is frozen is freed only by the next full collection. All generations are
        # collected, because what a smaller collection visits differs between versions of Python. They are small:
        # they hold only objects that were made since the last freeze.
        gc.collect()
        gc.freeze()


class Background:
    """The work that the service does beside its answers.

    Sessions that were sent with `queue` are processed one after the other, those of several memories in turn and beside
    each other. They are stored as pending before they are acknowledged, so that after a crash `afterword schedule` or
    the next start processes them.
    """

    def __init__(self, app: Afterword) -> None:
        self._app = app
        self._waiting: dict[Scope, list[str]] = {}
        self._ready: asyncio.Queue[Scope] = asyncio.Queue()
        self._threads = WorkThreads()

    def wake(self, scope: Scope, session_id: str) -> None:
        """Process a pending session soon."""
        sessions = self._waiting.setdefault(scope, [])
        sessions.append(session_id)
        if len(sessions) == 1:
            self._ready.put_nowait(scope)

    async def in_thread(self, owner: str, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that takes long, for one key, memory or task. It is done in a work thread."""
        return await self._threads.run(owner, work)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Work until the end of the block."""
        work = (
            *(self._repeat(0, self._process_next, "a queued session was not processed") for _ in range(MOST_THREADS)),
            self._repeat(HOUR_S, self._app.requests.discard_old_answers, "old answers were not discarded"),
            self._repeat(SECONDS_BETWEEN_POSTS, self._send_webhook_posts, "posts to webhooks were not sent"),
        )
        async with self._threads.running(), running_beside(*work):
            yield

    async def _repeat(self, pause_s: float, work: Callable[[], Awaitable[None]], failure: str) -> None:
        while True:
            await asyncio.sleep(pause_s)
            try:
                await work()
            except AfterwordError as error:
                # A session stays as it is, and the schedule tries it again.
                _log.warning("%s (%s)", failure, type(error).__name__)

    async def _process_next(self) -> None:
        scope = await self._ready.get()
        try:
            await self.in_thread(str(scope), self._process(scope, self._waiting[scope][0]))
        finally:
            self._waiting[scope].pop(0)
            if self._waiting[scope]:
                self._ready.put_nowait(scope)
            else:
                del self._waiting[scope]

    async def _process(self, scope: Scope, session_id: str) -> None:
        async with announcing_failures(self._app.resources, [scope]) as reports:
            reports.append(await self._app.scope(scope).process(session_id=session_id))

    async def _send_webhook_posts(self) -> None:
        await self.in_thread("webhooks", self._app.webhooks.send())
