"""Files with what users said: never in the place of another, for their owner alone, and complete or not there."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from afterword.errors import FileInvalid, StoreInvalid, StoreUnreachable
from afterword.facts.scopes import Scope
from afterword.store import scope_rows
from afterword.store.database import compaction
from afterword.store.database.engine import Store, open_store
from afterword.store.database.private_files import open_private_file
from nursery import Child
from programs import write_private_for_ever

MIRA = Scope.user("mira")
WORDS = "I live in Gnarlsburg."


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def write_beside(path: Path) -> None:
    """Write a file privately, while somebody else makes one of that name."""
    with open_private_file(path) as file:
        file.write(WORDS)
        path.write_text("of somebody else")


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "facts.md"
    with pytest.raises(FileInvalid, match="there already"):
        write_beside(path)
    assert path.read_text() == "of somebody else"
    assert list(tmp_path.iterdir()) == [path]


def test_without_links_a_file_that_appears_meanwhile_is_not_replaced_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "facts.md"
    with open_private_file(path) as file:
        file.write(WORDS)
    assert path.read_text() == WORDS
    assert list(tmp_path.iterdir()) == [path]
    path.unlink()
    with pytest.raises(FileInvalid, match="there already"):
        write_beside(path)
    assert path.read_text() == "of somebody else"


def test_a_planted_file_or_link_is_neither_written_nor_followed(tmp_path: Path) -> None:
    planted, target = tmp_path / f"facts.md.{os.getpid()}.part", tmp_path / "elsewhere"
    planted.touch(0o666)
    planted.chmod(0o666)
    (tmp_path / "link.md").symlink_to(target)
    with open_private_file(tmp_path / "facts.md") as file:
        file.write(WORDS)
    assert stat.S_IMODE((tmp_path / "facts.md").stat().st_mode) == 0o600
    assert planted.read_text() == ""
    with pytest.raises(FileInvalid), open_private_file(tmp_path / "link.md"):
        pass
    assert not target.exists()


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError), open_private_file(tmp_path / "facts.md") as file:
        file.write(WORDS + "\ud800")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.begun_first
async def test_what_a_kill_leaves_is_private_and_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "out" / "facts.md"
    path.parent.mkdir()
    writer = Child([str(path), WORDS], os.environ, tmp_path / "log.txt", program=write_private_for_ever)
    async with asyncio.timeout(60):
        while "writing" not in writer.printed():  # noqa: ASYNC110 - another process does what is waited for
            await asyncio.sleep(0.02)
    with open_private_file(path.with_name("other.md")) as file:
        file.write(WORDS)
    (partial,) = [path.with_name(name) for name in names(path.parent) if name.endswith(".part")]
    assert stat.S_IMODE(partial.stat().st_mode) == 0o600
    with open_private_file(path.with_name("facts.md.too")):
        pass
    assert partial.exists(), "another process is writing it"
    writer.kill()
    assert writer.wait() == -signal.SIGKILL
    assert not path.exists()
    with open_private_file(path) as file:
        file.write("complete")
    assert not partial.exists()
    assert path.read_text() == "complete"


async def test_a_backup_is_checked_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await open_store(f"sqlite:///{tmp_path}/store.db") as store:
        await store.write(lambda transaction: scope_rows.ensure_scope(transaction, MIRA))
    compaction.copy_database_file(tmp_path / "store.db", tmp_path / "copy.db")
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    with pytest.raises(FileInvalid):
        compaction.copy_database_file(tmp_path / "store.db", tmp_path / "copy.db")
    async with await open_store(f"sqlite:///{tmp_path}/copy.db", create=False) as copy:
        assert await copy.read(scope_rows.read_scopes) == [MIRA]
    content = bytearray((tmp_path / "store.db").read_bytes())
    content[3 * 4096 : 9 * 4096] = b"\xff" * 6 * 4096
    (tmp_path / "damaged.db").write_bytes(content)
    with pytest.raises(StoreUnreachable):
        compaction.copy_database_file(tmp_path / "damaged.db", tmp_path / "of-damaged.db")
    assert not [name for name in names(tmp_path) if "of-damaged" in name]


async def test_a_store_that_was_cut_to_nothing_is_no_new_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with await open_store(f"sqlite:///{path}") as store:
        await store.write(lambda transaction: scope_rows.ensure_scope(transaction, MIRA))
        await store.close()
        os.truncate(path, 0)
        with pytest.raises(StoreInvalid, match="put a backup in its place"):
            await store.read(scope_rows.read_scopes)
    with pytest.raises(StoreInvalid, match="put a backup in its place"):
        await open_store(f"sqlite:///{path}")
    path.unlink()
    async with await open_store(f"sqlite:///{path}") as store:
        assert await store.read(scope_rows.read_scopes) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_many_who_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    stores = [Store(f"sqlite:///{tmp_path}/store.db") for _ in range(8)]
    await asyncio.gather(*(store.migrate() for store in stores))
    await asyncio.gather(*(store.close() for store in stores))
    assert names(tmp_path) == ["store.db"]
    with closing(sqlite3.connect(tmp_path / "store.db")) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
