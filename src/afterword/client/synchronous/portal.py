"""An event loop in its own thread, in which any thread can run coroutines."""

from __future__ import annotations

import atexit
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from threading import Event, Lock, Thread
from typing import TypeVar

import anyio
from anyio.from_thread import BlockingPortal

from afterword.errors import AfterwordError

T = TypeVar("T")

WAKE_UP_INTERVAL_S = 0.5
"""A waiting caller wakes up at this interval: a signal that comes just before the wait does not interrupt it."""


class Portal:
    """Runs coroutines in an event loop in its own thread, and waits for their results.

    The first call starts the thread, and `close` ends it. A call after `close` starts a new one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: _Running | None = None

    def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine, and return its result. Ctrl-C cancels the coroutine, and waits until it has ended."""
        ended = Event()

        async def run_to_end() -> T:
            try:
                return await call()
            finally:
                ended.set()

        future = self._running_portal().start_task_soon(run_to_end)
        try:
            while not future.done():
                wait([future], timeout=WAKE_UP_INTERVAL_S)
            return future.result()
        finally:
            # If the future is not done here, the caller was interrupted.
            if not future.done() and future.cancel():
                ended.wait()

    def entered(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return a context manager for `with` that runs this asynchronous one."""
        return self._running_portal().wrap_async_context_manager(manager)

    def close(self, last_call: Callable[[], Awaitable[None]]) -> None:
        """If the thread was started, run a last coroutine in it, and end it."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None and running.is_of_this_process:
            try:
                running.portal.call(last_call)
            finally:
                running.end()

    def _running_portal(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                self._running = _Running()
            elif not self._running.is_of_this_process:
                raise AfterwordError(
                    f"this connection was opened in process {self._running.process_id}, before this process was forked "
                    "from it; call `afterword.connect` in each process"
                )
            return self._running.portal


class _Running:
    def __init__(self) -> None:
        self.process_id = os.getpid()
        started = Future[BlockingPortal]()
        # A daemon thread: the program can end even if nobody has closed the connection.
        self._thread = Thread(target=anyio.run, args=(_serve, started), name="afterword", daemon=True)
        self._thread.start()
        self.portal = started.result()
        atexit.register(self.end)

    @property
    def is_of_this_process(self) -> bool:
        """Whether the thread runs in this process. A forked process has no copy of it."""
        return self.process_id == os.getpid()

    def end(self) -> None:
        """Cancel all coroutines that still run, and end the thread."""
        atexit.unregister(self.end)
        if self.is_of_this_process:
            self.portal.call(self.portal.stop, True)
            self._thread.join()


async def _serve(started: Future[BlockingPortal]) -> None:
    async with BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()
