"""Running transactions in threads for callers in event loops, who may be cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import Connection

T = TypeVar("T")


class TransactionFate(StrEnum):
    """Says whether the transaction of a cancelled caller was committed. It is the argument of the CancelledError."""

    COMMITTED = "the transaction was committed"
    NOT_COMMITTED = "the transaction was not committed"


def was_committed(error: asyncio.CancelledError) -> bool:
    """Return whether the transaction that was cancelled had been committed already."""
    return TransactionFate.COMMITTED in error.args


class TransactionCancelled(Exception):
    """Raised inside a transaction whose caller was cancelled. The caller gets a CancelledError instead."""


class TransactionHandle:
    """The handle of one transaction, by which another thread can cancel it until it is committed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interrupt: Callable[[], object] | None = None
        self._cancelled = threading.Event()
        self.is_committed = False

    def cancel(self) -> None:
        """Interrupt the running statement, and let no other begin."""
        self._cancelled.set()
        with self._lock:
            if self._interrupt is not None:
                self._interrupt()

    @property
    def is_cancelled(self) -> bool:
        """Whether the caller was cancelled."""
        return self._cancelled.is_set()

    def check_not_cancelled(self) -> None:
        """Raise `TransactionCancelled` if the caller was cancelled."""
        if self.is_cancelled:
            raise TransactionCancelled

    def wait(self, pause_s: float) -> None:
        """Wait for `pause_s` seconds. Raises `TransactionCancelled` as soon as the caller is cancelled."""
        if self._cancelled.wait(pause_s):
            raise TransactionCancelled

    @contextmanager
    def interruptible_by(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Let `cancel` call a function that interrupts the running statement, as long as the context is open."""
        with self._lock:
            self._interrupt = interrupt
        try:
            self.check_not_cancelled()
            yield
        finally:
            with self._lock:
                self._interrupt = None


_current: contextvars.ContextVar[TransactionHandle | None] = contextvars.ContextVar("transaction_handle", default=None)


def current_transaction_handle() -> TransactionHandle:
    """Return the handle of the transaction that runs in this thread.

    If none runs, the handle is a new one, which belongs to no transaction and is never cancelled.
    """
    return _current.get() or TransactionHandle()


@contextmanager
def interruptible_connection(connection: Connection, handle: TransactionHandle) -> Iterator[None]:
    """Let the handle interrupt the running statement of a connection, as long as the context is open."""
    try:
        with handle.interruptible_by(interrupter(connection)):
            yield
    finally:
        if handle.is_cancelled and connection.dialect.name == "postgresql":
            # The request may reach the server later. Then it would interrupt the next user of the connection.
            connection.invalidate()


def interrupter(connection: Connection) -> Callable[[], object]:
    """Return a function that interrupts the running statement of this connection from another thread."""
    raw: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        interrupt: Callable[[], object] = raw.interrupt
        return interrupt
    # psycopg opens another connection to cancel a statement. That would block the event loop.
    return lambda: threading.Thread(target=raw.cancel_safe, daemon=True).start()


async def run_in_thread(executor: Executor, work: Callable[[], T]) -> T:
    """Run a transaction in one of the executor's threads and return its result.

    If the caller is cancelled, the transaction is interrupted and has ended when the CancelledError is raised.
    `was_committed` tells from this error whether the transaction was committed.
    """
    handle = TransactionHandle()
    context = contextvars.copy_context()
    context.run(_current.set, handle)
    future = executor.submit(context.run, work)
    waiting = loop_future_of(future)
    # Otherwise asyncio would log the end of a transaction whose caller was cancelled.
    waiting.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if not future.cancel():
            handle.cancel()
            while not future.done():  # however often the caller is cancelled again
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([waiting])
        fate = TransactionFate.COMMITTED if handle.is_committed else TransactionFate.NOT_COMMITTED
        # No subclass is raised, because `asyncio.timeout` turns only CancelledError itself into a TimeoutError.
        raise asyncio.CancelledError(fate) from None


def loop_future_of(future: Future[T]) -> asyncio.Future[T]:
    """Return a future of the running event loop that gets the result of a thread's future, and cannot cancel it.

    `asyncio.wrap_future` would leave the result in a reference cycle, so that a large result would stay in memory until
    a garbage collection.
    """
    loop = asyncio.get_running_loop()
    loop_future: asyncio.Future[T] = loop.create_future()

    def end(ended: Future[T]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(_copy_result, ended, loop_future)

    future.add_done_callback(end)
    return loop_future


def _copy_result(thread_future: Future[T], loop_future: asyncio.Future[T]) -> None:
    if loop_future.done():
        return
    if thread_future.cancelled():
        loop_future.cancel()
    elif (error := thread_future.exception()) is not None:
        loop_future.set_exception(error)
    else:
        loop_future.set_result(thread_future.result())
