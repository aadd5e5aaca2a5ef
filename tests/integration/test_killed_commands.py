"""Commands that are killed at a random moment: files are whole or absent, and a forgetting can be run again."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from afterword.facts.scopes import Scope
from afterword.store import entries
from afterword.store.database.engine import open_store
from afterword.store.entered_statements import Entry
from afterword.store.transfer import export_lines
from batches import ended, killed, start

pytestmark = pytest.mark.begun_first

MIRA, AT = Scope.user("mira"), datetime(2026, 3, 1, tzinfo=UTC)
SECRET = "Gnarlsburg"
KILLS, SOAK_KILLS = 1, 100
LONGEST_S = 2.5
"""A command ends after about this time on a small machine; a kill comes at any moment before."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with some facts."""
    path = tmp_path_factory.mktemp("filled") / "store.db"

    async def fill() -> None:
        async with await open_store(f"sqlite:///{path}") as store:
            for number in range(40):
                entry = Entry(f"Has seen {SECRET} {number} times.", value=f"{SECRET} {number}")
                await entries.add_entry(store, MIRA, entry, at=AT + timedelta(minutes=number))

    asyncio.run(fill())
    return path


def _copied(filled: Path, folder: Path) -> Path:
    folder.mkdir()
    with closing(sqlite3.connect(filled)) as source, closing(sqlite3.connect(folder / "store.db")) as target:
        source.backup(target)
    return folder / "store.db"


def _killed(store: Path, arguments: Sequence[str], after_s: float) -> None:
    killed(start(f"sqlite:///{store}", _logs(store), *arguments), lambda: True, after_s)


def _logs(store: Path) -> Path:
    folder = store.parent / "logs"
    folder.mkdir(exist_ok=True)
    return folder


def _moments(count: int) -> list[float]:
    chance = random.Random(20261122)
    return [chance.uniform(0.0, LONGEST_S) for _ in range(count)]


def _check_kills(filled: Path, tmp_path: Path, kills: int) -> None:
    for number, moment in enumerate(_moments(kills)):
        store = _copied(filled, tmp_path / str(number))
        backup, export = store.parent / "backup.db", store.parent / "export.jsonl"
        _killed(store, ["backup", str(backup)], moment)
        if backup.exists():
            with closing(sqlite3.connect(backup)) as copy:
                assert copy.execute("SELECT count(*) FROM assertions").fetchone() == (40,)
        _killed(store, ["export", str(export)], moment)
        if export.exists():
            assert sum(len(lines) for _, lines in export_lines.read_groups(export)) > 40
        _killed(store, ["forget", "--user", "mira", "--yes"], moment)
        backup.unlink(missing_ok=True)
        export.unlink(missing_ok=True)
        # The next command of the same name removes what a killed one has left.
        url, folder = f"sqlite:///{store}", _logs(store)
        ended(start(url, folder, "forget", "--user", "mira", "--yes"))
        ended(start(url, folder, "backup", str(backup)))
        ended(start(url, folder, "export", str(export)))
        for file in store.parent.iterdir():
            assert file.is_dir() or SECRET.encode() not in file.read_bytes(), file.name
        assert not list(store.parent.glob(".*.part*"))


def test_commands_that_are_killed_leave_whole_files_or_none(filled: Path, tmp_path: Path) -> None:
    _check_kills(filled, tmp_path, KILLS)


@pytest.mark.soak
def test_a_hundred_kills_leave_whole_files_or_none(filled: Path, tmp_path: Path) -> None:
    _check_kills(filled, tmp_path, SOAK_KILLS)
