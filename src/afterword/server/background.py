"""Background work of the service: processing queued sessions, sending webhook posts, and garbage collection."""

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
SECONDS_BETWEEN_COLLECTIONS = 5.0
BUSY_AFTER_S = 0.2
MOST_THREADS = 4
FULL_COLLECTION_EVERY = 720
"""One of this many garbage collections looks at all objects."""


class _WorkThread:
    """A thread whose event loop runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._probe: Future[None] | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread, with the caller's context variables, and return its result.

        Cancelling this call cancels the coroutine. Raises `RuntimeError` outside of a `running_until_block_ends` block.
        """
        if self._loop is None:
            work.close()
            raise RuntimeError("the thread does not run")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @asynccontextmanager
    async def running_until_block_ends(self) -> AsyncIterator[None]:
        """Run the thread until the end of the block, then cancel what is unfinished."""
        loop = self._loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="afterword-work", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._loop = None
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_cancel_other_tasks(), loop))
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)
            loop.close()

    async def is_responsive(self) -> bool:
        """Return whether the thread begins new work within `BUSY_AFTER_S`.

        While an earlier check is still unanswered, return False at once.
        """
        if self._loop is not None and (self._probe is None or self._probe.done()):
            self._probe = asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self._loop)
            await asyncio.wait([asyncio.wrap_future(self._probe)], timeout=BUSY_AFTER_S)
        return self._probe is not None and self._probe.done()


class WorkThreads:
    """A pool of threads that run coroutines. All work in progress for one owner runs in the same thread.

    Every busy thread delays the responses of the service. So another thread starts only when all others are busy.
    Then nobody has to wait for a long session of somebody else.
    """

    def __init__(self) -> None:
        self._threads: list[_WorkThread] = []
        self._running: dict[str, list[_WorkThread]] = {}
        self._stack = AsyncExitStack()
        self._choosing = asyncio.Lock()

    async def run(self, owner: str, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine for an owner, and return its result. Cancelling this call cancels the coroutine."""
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
    async def running_until_block_ends(self) -> AsyncIterator[None]:
        """Run the threads until the end of the block, then cancel what is unfinished."""
        async with self._stack:
            yield
        self._threads.clear()

    async def _free_thread(self) -> _WorkThread:
        for thread in self._threads:
            if await thread.is_responsive():
                return thread
        if len(self._threads) < MOST_THREADS:
            self._threads.append(_WorkThread())
            await self._stack.enter_async_context(self._threads[-1].running_until_block_ends())
            return self._threads[-1]
        owners = Counter(id(threads[0]) for threads in self._running.values())
        return min(self._threads, key=lambda thread: owners[id(thread)])


async def _cancel_other_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


@asynccontextmanager
async def running_tasks_until_block_ends(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines as tasks, and cancel them at the end of the block."""
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
async def shortening_gc_pauses(
    seconds_between: float = SECONDS_BETWEEN_COLLECTIONS, full_collection_every: int = FULL_COLLECTION_EVERY
) -> AsyncIterator[None]:
    """Keep the pauses of Python's garbage collector short until the end of the block.

    A full collection looks at every object. With the facts of a thousand memories, these are a million objects, and it
    takes more than a second. So objects that survive a collection are frozen (`gc.freeze`), and Python's own
    collections skip them. Once an hour they are unfrozen and looked at again. If the caller had frozen objects before
    the block, the objects in use are frozen again after it.
    """
    had_frozen = gc.get_freeze_count() > 0
    try:
        async with running_tasks_until_block_ends(_freeze_surviving_objects(seconds_between, full_collection_every)):
            yield
    finally:
        gc.unfreeze()
        if had_frozen:
            # Python does not say which objects the caller had frozen. So all objects that are still in use are frozen.
            gc.collect()
            gc.freeze()


async def _freeze_surviving_objects(seconds_between: float, full_collection_every: int) -> None:
    for turn in itertools.count(1):
        if turn % full_collection_every == 0:
            gc.unfreeze()
        # Collect before freezing: garbage that is frozen is freed only by the next full collection. All generations are
        # collected, because what a smaller collection visits differs between versions of Python. They are small:
        # they hold only objects that were made since the last freeze.
        gc.collect()
        gc.freeze()
        await asyncio.sleep(seconds_between)


class BackgroundWork:
    """The background work of the service.

    Queued sessions of one memory are processed one after the other, and those of several memories at the same time.
    Each is stored as pending before its request is answered, so that after a crash `afterword schedule` or `afterword
    run` processes it.
    """

    def __init__(self, app: Afterword) -> None:
        self._app = app
        self._waiting: dict[Scope, list[str]] = {}
        self._ready: asyncio.Queue[Scope] = asyncio.Queue()
        self._threads = WorkThreads()

    def enqueue_session(self, scope: Scope, session_id: str) -> None:
        """Queue a session that is stored as pending."""
        sessions = self._waiting.setdefault(scope, [])
        sessions.append(session_id)
        if len(sessions) == 1:
            self._ready.put_nowait(scope)

    async def run_in_thread(self, owner: str, work: Coroutine[Any, Any, T]) -> T:
        """Run long work in a work thread, and return its result. `owner` is a key, a memory or a task."""
        return await self._threads.run(owner, work)

    @asynccontextmanager
    async def running_until_block_ends(self) -> AsyncIterator[None]:
        """Do the background work until the end of the block."""
        work = (
            *(
                self._repeat(0, self._process_next_session, "a queued session was not processed")
                for _ in range(MOST_THREADS)
            ),
            self._repeat(HOUR_S, self._app.requests.discard_old_answers, "old answers were not discarded"),
            self._repeat(SECONDS_BETWEEN_POSTS, self._send_webhook_posts, "posts to webhooks were not sent"),
        )
        async with self._threads.running_until_block_ends(), running_tasks_until_block_ends(*work):
            yield

    async def _repeat(self, pause_s: float, work: Callable[[], Awaitable[None]], failure: str) -> None:
        while True:
            await asyncio.sleep(pause_s)
            try:
                await work()
            except AfterwordError as error:
                # A session stays pending in the store, and the schedule tries it again.
                _log.warning("%s (%s)", failure, type(error).__name__)

    async def _process_next_session(self) -> None:
        scope = await self._ready.get()
        try:
            await self.run_in_thread(str(scope), self._process_session(scope, self._waiting[scope][0]))
        finally:
            self._waiting[scope].pop(0)
            if self._waiting[scope]:
                self._ready.put_nowait(scope)
            else:
                del self._waiting[scope]

    async def _process_session(self, scope: Scope, session_id: str) -> None:
        async with announcing_failures(self._app.resources, [scope]) as reports:
            reports.append(await self._app.scope(scope).process(session_id=session_id))

    async def _send_webhook_posts(self) -> None:
        await self.run_in_thread("webhooks", self._app.webhooks.send())
