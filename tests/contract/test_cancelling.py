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
from sqlmodel import select

from afterword.store.database import driver
from afterword.store.database.engine import Store
from afterword.store.tables import ScopeRow

WAIT_S = 60
MOMENTS = 50


@pytest.fixture
def died(monkeypatch: pytest.MonkeyPatch) -> list[BaseException | None]:
    """What threads died of meanwhile."""
    found: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda told: found.append(told.exc_value))
    return found


def test_a_connection_goes_on_when_the_loop_of_whoever_asked_is_closed(
    tmp_path: Path, died: list[BaseException | None]
) -> None:
    path, reached, free = tmp_path / "store.db", threading.Event(), threading.Event()

    def wait() -> int:
        reached.set()
        return int(free.wait(WAIT_S))

    async def ask() -> driver.Connection:
        connection = driver.connect(str(path), isolation_level=None)
        await connection
        await connection.create_function("wait", 0, wait)
        await connection.asked(driver.BEGIN_WRITING, ())
        asking = asyncio.ensure_future(connection.asked("SELECT wait()", ()))
        await asyncio.to_thread(reached.wait, WAIT_S)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        return connection

    connection = asyncio.run(ask())
    free.set()
    connection.stop()
    connection._thread.join(WAIT_S)
    assert (died, connection._thread.is_alive()) == ([], False)
    with closing(sqlite3.connect(path, timeout=0)) as other:
        other.execute(driver.BEGIN_WRITING)


def cancelled(url: str, moment: int | None, *, writing: bool) -> int:
    """Cancel a transaction after that many steps of the loop, close store and loop at once; return the steps."""

    async def transaction(store: Store) -> None:
        async with store.write() if writing else store.read() as db:
            await db.exec(select(ScopeRow.id))

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
