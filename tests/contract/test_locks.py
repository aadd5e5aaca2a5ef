"""A database file stays locked by who uses it, whatever else the same process does with that file."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.pipeline.sources.databases import is_sqlite_database
from afterword.store import lookup
from afterword.store.database.engine import Store, open_store

LENA = Scope.user("lena")
TIMES = 40


async def opens_another(store: Store) -> None:
    async with Store(f"sqlite:///{store.path}") as other:
        with other.reading() as transaction:
            lookup.read_facts(transaction, LENA, at=datetime.now(UTC))


async def looks_what_it_is(store: Store) -> None:
    assert store.path is not None
    assert is_sqlite_database(store.path)


def _open_and_close(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM sessions").fetchone()


@pytest.mark.parametrize("act", [opens_another, looks_what_it_is])
async def test_another_process_leaves_the_log_that_is_in_use(
    tmp_path: Path, act: Callable[[Store], Awaitable[None]]
) -> None:
    """Who closes a file as its last user takes its write-ahead log away; locks say who is the last."""
    path = tmp_path / "store.db"
    async with await open_store(f"sqlite:///{path}") as store:
        with store.reading() as transaction:
            lookup.read_facts(transaction, LENA, at=datetime.now(UTC))
            await act(store)
            other = multiprocessing.get_context("forkserver").Process(target=_open_and_close, args=(path,))
            other.start()
            await asyncio.to_thread(other.join)
            assert other.exitcode == 0
            assert path.with_name("store.db-wal").exists()


def _add(transaction: Session) -> None:
    transaction.connection().exec_driver_sql("UPDATE counter SET n = n + 1")


async def _counted(url: str) -> None:
    async def often() -> None:
        for _ in range(TIMES):
            async with Store(url) as store:
                await store.write(_add)

    await asyncio.gather(often(), often())


def _count(url: str) -> None:
    asyncio.run(_counted(url))


async def test_what_was_written_is_there_however_many_open_and_close_the_store(tmp_path: Path) -> None:
    """Three processes, each with two stores that come and go: nothing that was acknowledged is lost."""
    url = f"sqlite:///{tmp_path}/store.db"
    async with await open_store(url) as store:
        with store.writing() as transaction:
            plain = transaction.connection()
            plain.exec_driver_sql("CREATE TABLE counter (n INTEGER)")
            plain.exec_driver_sql("INSERT INTO counter VALUES (0)")
    context = multiprocessing.get_context("forkserver")
    others = [context.Process(target=_count, args=(url,)) for _ in range(3)]
    for one in others:
        one.start()
    for one in others:
        await asyncio.to_thread(one.join)
    assert [one.exitcode for one in others] == [0, 0, 0]
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("SELECT n FROM counter").fetchone() == (len(others) * 2 * TIMES,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
