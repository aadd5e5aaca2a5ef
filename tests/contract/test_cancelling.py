"""Who is cancelled leaves no connection behind, and none at work for a loop that is closed."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from autogen_core import CancellationToken
from sqlmodel import Session, select

from afterword.agents.memory import FactMemory
from afterword.agents.tools import NO_ANSWER, RememberTool
from afterword.facts.scopes import Scope
from afterword.store import scope_rows
from afterword.store.database.cancellation import was_committed
from afterword.store.database.engine import Store, open_store
from afterword.store.tables import ScopeRow
from running_time import running_time

MIRA, BO = Scope.user("mira"), Scope.user("bo")
WAIT_S = 60
MOMENTS = 50


@pytest.fixture
def died(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What threads died of meanwhile."""
    found: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: found.append(told.exc_value))
    return found


async def test_a_cancelled_transaction_is_rolled_back_and_says_so(store: Store) -> None:
    reached, free = threading.Event(), threading.Event()

    def work(transaction: Session) -> None:
        scope_rows.ensure_scope(transaction, MIRA)
        reached.set()
        free.wait(WAIT_S)

    asking = asyncio.create_task(store.write(work))
    await asyncio.to_thread(reached.wait, WAIT_S)
    asking.cancel()
    await asyncio.sleep(0.01)
    free.set()
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await asking
    assert not was_committed(cancelled.value)
    await store.write(lambda transaction: scope_rows.ensure_scope(transaction, BO))
    assert await store.read(scope_rows.read_scopes) == [BO]


async def test_nobody_gets_the_connection_of_a_cancelled_transaction(postgres_store_url: str) -> None:
    """The request to cancel may reach the server only when the next transaction uses the connection."""
    reached, free = threading.Event(), threading.Event()
    used: list[int] = []

    def work(transaction: Session) -> None:
        used.append(transaction.connection().exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
        reached.set()
        free.wait(WAIT_S)

    async with await open_store(postgres_store_url) as store:
        asking = asyncio.create_task(store.write(work))
        await asyncio.to_thread(reached.wait, WAIT_S)
        asking.cancel()
        await asyncio.sleep(0.01)
        free.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await store.write(work)
        await store.write(work)
    assert used[0] != used[1]
    assert used[1] == used[2], "a connection is used again otherwise"


async def test_a_timeout_around_a_transaction_is_a_timeout(store: Store) -> None:
    free = threading.Event()

    def work(transaction: Session) -> None:
        scope_rows.ensure_scope(transaction, MIRA)
        free.wait(WAIT_S)

    # The loop calls what is due in the order of the times, however late it is.
    asyncio.get_running_loop().call_later(0.2, free.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await store.write(work)


async def test_who_waits_for_the_write_lock_is_cancelled_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with await open_store(f"sqlite:///{path}") as store:
        with closing(sqlite3.connect(path, isolation_level=None)) as other, running_time() as elapsed_s:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(store.write(lambda transaction: scope_rows.ensure_scope(transaction, MIRA)), 0.1)
            assert elapsed_s() < 5
            other.execute("ROLLBACK")
        assert await store.read(scope_rows.read_scopes) == []


async def test_a_tool_waits_for_another_writer_no_longer_than_a_turn(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with await open_store(f"sqlite:///{path}") as store:
        memory = FactMemory(user="mira", store=store, timeout_s=0.3)
        remember = RememberTool(memory)
        with closing(sqlite3.connect(path, isolation_level=None)) as other, running_time() as elapsed_s:
            other.execute("BEGIN IMMEDIATE")
            arguments = {"statement": "I live in Oslo.", "quote": "Hello", "attribute": "home", "value": "Oslo"}
            answer = await remember.run_json(arguments, CancellationToken())
            assert elapsed_s() < 10, "it waited for the lock"
            assert remember.return_value_as_string(answer) == NO_ANSWER
            other.execute("ROLLBACK")
        assert await store.read(scope_rows.read_scopes) == []


def test_a_transaction_ends_where_the_loop_of_its_caller_is_closed(
    tmp_path: Path, died: list[BaseException | None]
) -> None:
    path, reached, free = tmp_path / "store.db", threading.Event(), threading.Event()

    def work(transaction: Session) -> None:
        scope_rows.ensure_scope(transaction, MIRA)
        reached.set()
        free.wait(WAIT_S)

    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(open_store(f"sqlite:///{path}"))
    asking = loop.create_task(store.write(work))
    loop.run_until_complete(asyncio.to_thread(reached.wait, WAIT_S))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    free.set()
    asyncio.run(store.close())
    assert died == []
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
    del asking


def cancelled(url: str, moment: int | None, *, writing: bool) -> int:
    """Cancel a transaction after that many steps of the loop, close store and loop at once; return the steps."""

    async def transaction(store: Store) -> None:
        await (store.write if writing else store.read)(lambda transaction: transaction.exec(select(ScopeRow.id)).all())

    async def cancel() -> int:
        steps = 0
        async with Store(url) as store:
            asking = asyncio.ensure_future(transaction(store))
            while not asking.done() and steps != moment:
                await asyncio.sleep(0)
                steps += 1
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
        return steps

    return asyncio.run(cancel())


@pytest.mark.parametrize("writing", [False, True])
async def test_a_transaction_cancelled_at_any_moment_leaves_no_connection(
    shared_url: str, died: list[BaseException | None], writing: bool
) -> None:
    before = set(threading.enumerate())
    steps = await asyncio.to_thread(cancelled, shared_url, None, writing=writing)
    for part in range(MOMENTS):
        await asyncio.to_thread(cancelled, shared_url, steps * part // MOMENTS, writing=writing)
    for one in set(threading.enumerate()) - before - {threading.current_thread()}:
        if not one.name.startswith("asyncio_"):
            one.join(WAIT_S)
            assert not one.is_alive()
    assert died == []
    if shared_url.startswith("postgresql"):
        gc.collect()  # psycopg leaves to it what is cancelled in the middle of connecting
        assert await asyncio.to_thread(others_left, shared_url) == 0


def others_left(url: str) -> int:
    """Return how many connections to the database stay open; the server notices a while later that one was closed."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(WAIT_S * 10):
            (count,) = connection.execute(others).fetchone() or (0,)
            if not count:
                break
            time.sleep(0.1)
    return int(count)
