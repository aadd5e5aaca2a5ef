"""Recall runs no statement while nobody writes to a SQLite file, and sees whatever anybody has written."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from afterword.store.database.file_marks import COARSE_TICK_NS, TICK_NS, FileMark, settled_mark
from afterword.store.entered_statements import Entry
from afterword.store.entries import add_entry
from afterword.store.reading.recall import search
from afterword.store.reading.view_cache import MOST_UNASKED
from asked_statements import asked_statements

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 2, tzinfo=UTC)


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return Path(shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "afterword.db"))


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """The statements of every store."""
    with asked_statements() as asked:
        yield asked


async def served(store: Store) -> list[str]:
    return sorted(fact.statement for fact in (await search(store, LENA, "", at=LATER)).facts)


async def say(store: Store, sentence: str) -> None:
    await add_entry(store, LENA, Entry(sentence), at=NOON)


async def read_until_settled(store: Store, statements: list[str]) -> list[str]:
    """Recall until it needs no statement, and return what it serves then."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        statements.clear()
        facts = await served(store)
        if not statements:
            return facts
        await asyncio.sleep(0.05)
    raise AssertionError("it asks the database again and again")


async def test_no_statement_is_run_while_nobody_writes(file: Path, statements: list[str]) -> None:
    async with Store(f"sqlite:///{file}") as store:
        await say(store, "Lena likes tea.")
        assert await read_until_settled(store, statements) == ["Lena likes tea."]
        for _ in range(MOST_UNASKED - 1):
            await served(store)
        assert statements == []
        await served(store)
        assert statements, "its memory is measured again at times"


async def test_what_anybody_writes_is_served_at_once(file: Path, statements: list[str]) -> None:
    async with Store(f"sqlite:///{file}") as store, Store(f"sqlite:///{file}") as other:
        expected: list[str] = []
        for number, writer in enumerate((store, other, other, store)):
            await say(writer, f"Lena likes tea number {number}.")
            expected.append(f"Lena likes tea number {number}.")
            assert await served(store) == expected
            assert await read_until_settled(store, statements) == expected


async def test_a_file_that_took_its_place_is_another_store(file: Path, statements: list[str], tmp_path: Path) -> None:
    second = tmp_path / "second.db"
    shutil.copy(file, second)
    async with Store(f"sqlite:///{second}") as other:
        await say(other, "Lena likes rain.")
    async with Store(f"sqlite:///{file}") as store:
        await say(store, "Lena likes tea.")
        assert await read_until_settled(store, statements) == ["Lena likes tea."]
        for suffix in ("-wal", "-shm"):
            file.with_name(file.name + suffix).unlink()
        second.replace(file)
        assert await served(store) == ["Lena likes rain."]


async def test_a_mark_is_taken_only_while_nobody_writes(file: Path) -> None:
    """A writer first writes to the log, and others may read it later: maybe much later, if the disk is slow."""
    async with Store(f"sqlite:///{file}") as store:
        begun_ns = time.time_ns()
        await say(store, "Lena likes tea.")
        is_settled = settled_mark(store, lambda _: True) is not None
        assert not is_settled or time.time_ns() - begun_ns > TICK_NS, "soon after a write"
        await asyncio.sleep(2 * TICK_NS / 1e9)
        assert settled_mark(store, lambda _: False) is None
        mark = settled_mark(store, lambda _: True)
        assert mark is not None
        assert mark.is_unchanged(), "taking it is no write"
        with closing(sqlite3.connect(file, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            assert settled_mark(store, lambda _: True) is None
            writer.execute("UPDATE scopes SET policy = 'hold'")
            writer.execute("COMMIT")
            assert not mark.is_unchanged()


def test_where_files_have_times_in_whole_seconds_it_takes_longer_to_settle(tmp_path: Path) -> None:
    now = time.time_ns()

    def mark(written_ns: int, log_size: int | None) -> FileMark:
        old = (1, 1, 9, 1_000, 1_001)
        log = None if log_size is None else (1, 2, log_size, written_ns, written_ns)
        return FileMark(str(tmp_path), "log", old, log)

    coarse = (now - TICK_NS * 2) // 1_000_000_000 * 1_000_000_000
    assert mark(now - TICK_NS * 2 | 1, 9).is_settled()
    assert not mark(now - TICK_NS // 2 | 1, 9).is_settled()
    assert not mark(coarse, 9).is_settled()
    assert mark(coarse - COARSE_TICK_NS // 10**9 * 10**9 - 10**9, 9).is_settled()
    assert mark(now, None).is_settled(), "there is no log"
    assert mark(now, 0).is_settled(), "whoever writes to it makes it larger"
    assert not FileMark.of(str(tmp_path / "missing.db")).is_settled()


async def test_a_store_in_memory_has_no_mark() -> None:
    async with Store("sqlite://") as store:
        await store.migrate()
        assert settled_mark(store, lambda _: True) is None
