"""Groups small writes of concurrent tasks into one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlmodel import Session

from afterword.store.database.cancellation import TransactionFate
from afterword.store.database.engine import Store

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class _Write:
    store: Store
    work: Callable[[Session], Any]
    strict: bool
    lasting: bool
    outcome: asyncio.Future[Any]


class GroupedWrites:
    """Groups the writes of one event loop. Writes that arrive during a transaction are made together in the next one.

    With a transaction for each write, the last of many tasks would wait for all of the others. A write that raises a
    `refusal` before it writes anything fails alone; the others of its group are committed.
    """

    def __init__(self, refusal: type[Exception]) -> None:
        self._refusal = refusal
        self._waiting_writes: list[_Write] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(
        self, store: Store, work: Callable[[Session], T], *, strict: bool = False, lasting: bool = True
    ) -> T:
        """Run `work` in a shared transaction, and return its result once the transaction is committed.

        Any error except the refusal rolls the transaction back, and is raised to the callers of all writes in it. A
        cancelled caller waits for the end of the transaction. Given its CancelledError, `cancellation.was_committed`
        returns whether the transaction was committed.
        """
        write = _Write(store, work, strict, lasting, asyncio.get_running_loop().create_future())
        self._waiting_writes.append(write)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_groups())
        try:
            result: T = await asyncio.shield(write.outcome)
        except asyncio.CancelledError:
            if write in self._waiting_writes:
                self._waiting_writes.remove(write)
            else:
                await _wait_for_end(write.outcome)
            raise asyncio.CancelledError(_fate_of(write.outcome)) from None
        return result

    async def _write_groups(self) -> None:
        try:
            while self._waiting_writes:
                store = self._waiting_writes[0].store
                group = [write for write in self._waiting_writes if write.store is store]
                self._waiting_writes = [write for write in self._waiting_writes if write.store is not store]
                await self._write_group(store, group)
        finally:
            self._writing = None

    async def _write_group(self, store: Store, group: Sequence[_Write]) -> None:
        """Make these writes in one transaction, and set the outcome of each."""
        writing = store.write(
            lambda transaction: [self._result_or_refusal(write, transaction) for write in group],
            strict=any(write.strict for write in group),
            lasting=any(write.lasting for write in group),
        )
        try:
            (outcome,) = await asyncio.gather(writing, return_exceptions=True)
        except asyncio.CancelledError:
            for write in group:
                write.outcome.cancel()
            raise
        results = [outcome] * len(group) if isinstance(outcome, BaseException) else outcome
        for write, result in zip(group, results, strict=True):
            if isinstance(result, BaseException):
                write.outcome.set_exception(result)
            else:
                write.outcome.set_result(result)

    def _result_or_refusal(self, write: _Write, transaction: Session) -> object:
        try:
            return write.work(transaction)
        except self._refusal as error:
            return error


async def _wait_for_end(outcome: asyncio.Future[Any]) -> None:
    while not outcome.done():  # however often the caller is cancelled again
        with suppress(asyncio.CancelledError):
            await asyncio.wait([outcome])


def _fate_of(outcome: asyncio.Future[Any]) -> TransactionFate:
    is_committed = outcome.done() and not outcome.cancelled() and outcome.exception() is None
    return TransactionFate.COMMITTED if is_committed else TransactionFate.NOT_COMMITTED
