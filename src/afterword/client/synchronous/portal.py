"""An event loop in its own thread, in which any thread can run coroutines."""

from __future__ import annotations

import atexit
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from threading import Event, Lock
from typing import TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

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
        self._running: BlockingPortal | None = None
        self._thread = ExitStack()
        self._process_id = 0

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

    def synchronous_manager(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return a context manager for `with` that runs this asynchronous context manager in the thread."""
        return self._running_portal().wrap_async_context_manager(manager)

    def close(self, last_call: Callable[[], Awaitable[None]]) -> None:
        """If the thread was started, run a last coroutine in it, and end it."""
        with self._lock:
            running, self._running, thread = self._running, None, self._thread
        # A forked process has no copy of the thread.
        if running is not None and self._process_id == os.getpid():
            try:
                running.call(last_call)
            finally:
                atexit.unregister(self._end_thread)
                self._end_thread(running, thread)

    def _running_portal(self) -> BlockingPortal:
        with self._lock:
            if self._running is None:
                self._process_id, self._thread = os.getpid(), ExitStack()
                # It is a daemon thread: the program can end even if nobody has closed the connection.
                self._running = self._thread.enter_context(start_blocking_portal(name="afterword"))
                atexit.register(self._end_thread, self._running, self._thread)
            elif self._process_id != os.getpid():
                raise AfterwordError(
                    f"this connection was opened in process {self._process_id}, before this process was forked from "
                    "it; call `afterword.connect` in each process"
                )
            return self._running

    def _end_thread(self, running: BlockingPortal, thread: ExitStack) -> None:
        """Cancel all coroutines that still run, and end the thread."""
        if self._process_id == os.getpid():
            running.call(running.stop, True)
            thread.close()
