"""An event loop in a thread of its own, which any thread may use."""

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

NOTICED_AFTER_S = 0.5
"""A caller that waits looks this often whether it was interrupted: a signal just before the wait does not end it."""


class Portal:
    """Runs coroutines in its thread and waits for them.

    The first call starts the thread, `close` ends it, and the next call starts another one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: _Running | None = None

    def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a coroutine. An interrupted caller (Ctrl-C) cancels it, and waits until it has ended."""
        ended = Event()

        async def run_to_end() -> T:
            try:
                return await call()
            finally:
                ended.set()

        future = self._started().start_task_soon(run_to_end)
        try:
            while not future.done():
                wait([future], timeout=NOTICED_AFTER_S)
            return future.result()
        finally:
            # It is not done only where the caller was interrupted.
            if not future.done() and future.cancel():
                ended.wait()

    def entered(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return an asynchronous context manager as one for a plain `with`."""
        return self._started().wrap_async_context_manager(manager)

    def close(self, last_call: Callable[[], Awaitable[None]]) -> None:
        """Run a last coroutine and end the thread, if it was started."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None and running.is_of_this_process:
            try:
                running.portal.call(last_call)
            finally:
                running.end()

    def _started(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                self._running = _Running()
            elif not self._running.is_of_this_process:
                raise AfterwordError(
                    f"this connection belongs to process {self._running.process_id}, from which this one was forked; "
                    "call `afterword.connect` in each process"
                )
            return self._running.portal


class _Running:
    def __init__(self) -> None:
        self.process_id = os.getpid()
        started = Future[BlockingPortal]()
        # At the end of the program it must not wait for a connection that nobody closed.
        self._thread = Thread(target=anyio.run, args=(_serve, started), name="afterword", daemon=True)
        self._thread.start()
        self.portal = started.result()
        atexit.register(self.end)

    @property
    def is_of_this_process(self) -> bool:
        """Whether the thread runs in this process: a fork does not copy it."""
        return self.process_id == os.getpid()

    def end(self) -> None:
        """Cancel what still runs, and end the thread."""
        atexit.unregister(self.end)
        if self.is_of_this_process:
            self.portal.call(self.portal.stop, True)
            self._thread.join()


async def _serve(started: Future[BlockingPortal]) -> None:
    async with BlockingPortal() as portal:
        started.set_result(portal)
        await portal.sleep_until_stopped()
