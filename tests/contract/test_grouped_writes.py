"""Writes of many tasks that are made in one transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from sqlmodel import Session

from afterword.errors import StoreError
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.grouped_writes import GroupedWrites
from afterword.store import scope_rows
from afterword.store.database.cancellation import was_committed
from afterword.store.database.engine import Store


def adding(name: str) -> Callable[[Session], int]:
    return lambda transaction: scope_rows.ensure_scope(transaction, Scope.user(name))


async def names(store: Store) -> set[str]:
    return {scope.id for scope in await store.read(scope_rows.read_scopes)}


class Held:
    """A write that keeps its transaction open until it is let go."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self, transaction: Session) -> int:
        key = adding("first")(transaction)
        self.begun.set()
        assert self.let_go.wait(30)
        return key


async def test_writes_that_come_meanwhile_are_made_in_one_transaction(store: Store) -> None:
    writes, first, transactions = GroupedWrites(BudgetReached), Held(), set[int]()

    def noting(name: str) -> Callable[[Session], int]:
        def work(transaction: Session) -> int:
            transactions.add(id(transaction))
            return adding(name)(transaction)

        return work

    beginning = asyncio.create_task(writes.write(store, first))
    await asyncio.to_thread(first.begun.wait, 30)
    later = [asyncio.create_task(writes.write(store, noting(name))) for name in ("a", "b", "c")]
    await asyncio.sleep(0)
    first.let_go.set()
    keys = await asyncio.gather(beginning, *later)
    assert len(set(keys)) == 4
    assert len(transactions) == 1
    assert await names(store) == {"first", "a", "b", "c"}


async def test_a_refused_write_leaves_the_others(store: Store) -> None:
    def refused(_: Session) -> None:
        raise BudgetReached("no room")

    writes = GroupedWrites(BudgetReached)
    ended = await asyncio.gather(
        writes.write(store, adding("a")),
        writes.write(store, refused),
        writes.write(store, adding("b")),
        return_exceptions=True,
    )
    assert [type(result) for result in ended] == [int, BudgetReached, int]
    assert await names(store) == {"a", "b"}


async def test_an_error_of_the_store_ends_all_of_a_transaction_and_the_next_one_is_made(store: Store) -> None:
    def failing(_: Session) -> None:
        raise StoreError("broken")

    writes = GroupedWrites(BudgetReached)
    ended = await asyncio.gather(writes.write(store, adding("a")), writes.write(store, failing), return_exceptions=True)
    assert [type(result) for result in ended] == [StoreError, StoreError]
    assert await names(store) == set()
    await writes.write(store, adding("b"))
    assert await names(store) == {"b"}


async def test_a_cancelled_write_that_waits_is_not_made(store: Store) -> None:
    writes, first = GroupedWrites(BudgetReached), Held()
    beginning = asyncio.create_task(writes.write(store, first))
    await asyncio.to_thread(first.begun.wait, 30)
    waiting = asyncio.create_task(writes.write(store, adding("a")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await waiting
    first.let_go.set()
    await beginning
    assert not was_committed(caught.value)
    assert await names(store) == {"first"}


async def test_who_is_cancelled_in_a_transaction_learns_that_it_was_committed(store: Store) -> None:
    writes, first = GroupedWrites(BudgetReached), Held()
    writing = asyncio.create_task(writes.write(store, first))
    await asyncio.to_thread(first.begun.wait, 30)
    writing.cancel()
    await asyncio.sleep(0)
    writing.cancel()  # again: the transaction is under way all the same
    first.let_go.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await writing
    assert was_committed(caught.value)
    assert await names(store) == {"first"}
