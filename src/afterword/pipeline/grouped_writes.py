"""Small writes of concurrent tasks, made together in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlmodel import Session

from afterword.store.database.cancellation import Fate
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
    """Writes of one event loop. While a transaction is under way, further writes wait; the next one makes all of them.

    A transaction for each write is a queue: with many tasks the last one waits for all of the others. A `refusal` that
    a write raises, before it writes anything, concerns this write alone.
    """

    def __init__(self, refusal: type[Exception]) -> None:
        self._refusal = refusal
        self._waiting: list[_Write] = []
        self._writing: asyncio.Task[None] | None = None

    async def write(
        self, store: Store, work: Callable[[Session], T], *, strict: bool = False, lasting: bool = True
    ) -> T:
        """Return what `work` returns after its transaction was committed, as `Store.write` does.

        Any error but the refusal ends the transaction, and concerns all writes that are in it. A cancelled caller waits
        for the end of the transaction, and `cancellation.was_committed` tells of the CancelledError whether it was
        committed.
        """
        write = _Write(store, work, strict, lasting, asyncio.get_running_loop().create_future())
        self._waiting.append(write)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_waiting())
        try:
            result: T = await asyncio.shield(write.outcome)
        except asyncio.CancelledError:
            if write in self._waiting:
                self._waiting.remove(write)
            else:
                await _wait_for_end(write.outcome)
            raise asyncio.CancelledError(_fate(write.outcome)) from None
        return result

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                store = self._waiting[0].store
                group = [write for write in self._waiting if write.store is store]
                self._waiting = [write for write in self._waiting if write.store is not store]
                await self._write_group(store, group)
        finally:
            self._writing = None

    async def _write_group(self, store: Store, group: Sequence[_Write]) -> None:
        """Make these writes in one transaction, and set the outcome of each."""
        strict, lasting = any(write.strict for write in group), any(write.lasting for write in group)
        writing = store.write(partial(self._results, group), strict=strict, lasting=lasting)
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

    def _results(self, group: Sequence[_Write], transaction: Session) -> list[object]:
        return [self._result(write, transaction) for write in group]

    def _result(self, write: _Write, transaction: Session) -> object:
        try:
            result: object = write.work(transaction)
        except self._refusal as error:
            return error
        return result


async def _wait_for_end(outcome: asyncio.Future[Any]) -> None:
    while not outcome.done():  # however often the caller is cancelled again
        with suppress(asyncio.CancelledError):
            await asyncio.wait([outcome])


def _fate(outcome: asyncio.Future[Any]) -> Fate:
    is_committed = outcome.done() and not outcome.cancelled() and outcome.exception() is None
    return Fate.COMMITTED if is_committed else Fate.NOT_COMMITTED
