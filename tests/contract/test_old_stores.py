"""A store of any earlier version, with rows in every table: upgraded it answers as before, and the work goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import inspect, text

from afterword.facts.scopes import Scope
from afterword.store import entries, ledger, migrations
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from commands import Commands
from nursery import Child
from old_stores import GOLDEN, MADE_BY, alembic_config, answers, maker, postgres_at, sqlite_at
from programs import die_in_migration

Ask = Callable[..., Any]
USERS = ("mira", "jon")
NOW = datetime(2026, 8, 1, tzinfo=UTC)
RUNS = "SELECT id, scope_id, source, status, applied_revision, counts, caused_by FROM runs ORDER BY id"
OLDEST_AND_NEWEST = [
    version if version in (min(MADE_BY), max(MADE_BY)) else pytest.param(version, marks=pytest.mark.soak)
    for version in MADE_BY
]
HELD = ("kind", "subject", "attribute", "value", "statement", "status", "valid_from", "valid_to", "support")


OLDEST, NEWEST = min(MADE_BY), max(MADE_BY)
ON_EVERY_DATABASE = [
    *(pytest.param("file", version) for version in MADE_BY),
    *(pytest.param("postgres", version) for version in (OLDEST, NEWEST)),
    *(pytest.param("postgres", version, marks=pytest.mark.soak) for version in MADE_BY if OLDEST < version < NEWEST),
]
"""Every version on SQLite; on PostgreSQL the ones between the oldest and the newest belong to the soak."""


@pytest.fixture(params=["file", "postgres"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Make a store of a version, and return its address."""

    def at(version: str) -> str:
        path = tmp_path / f"{version}.db"
        if request.param == "file":
            return sqlite_at(version, path)
        return postgres_at(version, request.getfixturevalue("empty_postgres"), path)

    return at


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Ask:
    """Run a command on a store, and return what it prints as JSON."""
    commands = Commands(tmp_path, monkeypatch, capfd)

    def run(url: str, *arguments: str) -> Any:
        return json.loads(commands(*arguments, "--json", AFTERWORD_STORE__URL=url, expected=0))

    return run


def of_then(told: Any, version: str) -> Any:
    """What both programs can say: the first counted no spendings yet, and none of these flags, tags or effects.

    Earlier programs counted blocks of the memory among the turns.
    """
    if isinstance(told, list):
        return [of_then(one, version) for one in told]
    if not isinstance(told, dict):
        return told
    newer = {"flagged", "tags", "pasted", "held", "actor", "effect", "refused_because", "not_found", "turns"}
    newer |= {"spent"} if version == "0001" else set()
    return {name: of_then(one, version) for name, one in told.items() if name not in newer}


@pytest.mark.parametrize(("made", "version"), ON_EVERY_DATABASE, indirect=["made"])
def test_an_upgraded_store_answers_as_before(version: str, made: Callable[[str], str], ask: Ask) -> None:
    """Facts, runs, histories and what each session gave, word for word."""
    url = made(version)
    upgraded = {"before": version, "after": migrations.newest_version(), "changed": [], "merged": []}
    assert ask(url, "migrate") == upgraded
    told = maker().answers(lambda *arguments: ask(url, *arguments))
    assert of_then(told, version) == of_then(answers(version), version)


@pytest.mark.parametrize("version", MADE_BY)
def test_every_table_of_the_version_has_rows(version: str, tmp_path: Path) -> None:
    async def counted() -> dict[str, int]:
        async with Store(sqlite_at(version, tmp_path / "old.db")) as store:
            with store.connecting(writing=False) as transaction:
                names = inspect(transaction).get_table_names()
                return {name: transaction.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in names}

    assert [name for name, count in asyncio.run(counted()).items() if not count] == []


async def test_the_table_of_costs_comes_with_its_migration(made: Callable[[str], str]) -> None:
    async with Store(made("0001")) as store:
        with store.connecting(writing=False) as connection:
            assert "spendings" not in inspect(connection).get_table_names()
        assert await store.migrate() == ("0001", migrations.newest_version())
        with store.connecting(writing=False) as connection:
            assert "spendings" in inspect(connection).get_table_names()


@pytest.mark.parametrize(("made", "version"), ON_EVERY_DATABASE, indirect=["made"])
async def test_deriving_anew_changes_no_fact(version: str, made: Callable[[str], str]) -> None:
    async with Store(made(version)) as store:
        await store.migrate()

        async def rows() -> list[Any]:
            with store.connecting(writing=False) as transaction:
                return list(transaction.execute(text("SELECT * FROM facts ORDER BY id")))

        before = await rows()
        with store.writing() as transaction:
            for user in USERS:
                ledger.derive_and_store_facts(transaction, Scope.user(user))
        assert len(before) > 5
        assert [str(row) for row in await rows()] == [str(row) for row in before]


async def test_new_runs_get_numbers_above_those_of_erased_runs(made: Callable[[str], str]) -> None:
    """Before version 0025, SQLite gave them again, and the audit entry of the erased run refused the new one."""
    async with Store(made("0006")) as store:
        with store.connecting(writing=True) as connection:
            command.upgrade(alembic_config(connection), "0024")
            connection.execute(
                text("INSERT INTO audit_entries VALUES (7, '2026-03-01', 'key', 'forget', 't', NULL, 200)")
            )
            connection.execute(text("INSERT INTO audited_runs (run_id, entry_id) VALUES (500, 7)"))
            before = connection.execute(text(RUNS)).all()
        await store.migrate()
        with store.connecting(writing=False) as connection:
            assert connection.execute(text(RUNS)).all() == before
            if store.path is not None:
                assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
                effect = await entries.add_entry(store, Scope.user("mira"), Entry("Likes oolong."), at=NOW)
                assert effect.run.id == 501


def what_holds(fact: dict[str, Any]) -> list[str]:
    """A fact without its ids, and without the time at which a store was made: the sessions end in June."""
    told = {**fact, **{name: None for name in ("valid_from", "valid_to") if (fact[name] or "") > "2026-07"}}
    return [str(told[name]) for name in HELD]


def after_more_work(run: Ask, saved: Path) -> dict[str, list[list[str]]]:
    """What holds after a new session, the undoing of an old run, and a held run that is applied."""
    run("run", str(saved))
    runs = {one["source"]: one["id"] for user in USERS for one in run("runs", "--user", user)}
    run("undo", str(runs["session:move"]))
    run("apply", str(runs["session:held"]))
    facts = {user: run("facts", "--user", user, "--all", "--as-of", "2027-01-01") for user in USERS}
    return {user: sorted(what_holds(fact) for fact in held) for user, held in facts.items()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new session."""
    folder = tmp_path_factory.mktemp("saved") / "new"
    made: Path = maker().write(folder, "mira", {"new": "I moved to Villach. I prefer coffee."}, 6)
    return made


@pytest.mark.parametrize("version", OLDEST_AND_NEWEST)
def test_the_work_goes_on_in_an_upgraded_store(version: str, made: Callable[[str], str], ask: Ask, saved: Path) -> None:
    """The facts that were there stay as they were read then, whatever the present rules would make of their words."""
    url = made(version)
    ask(url, "migrate")
    if version < "0005":  # whose program could not forget
        ask(url, "forget", "--session", "job", "--user", "mira", "--yes")
    expected = json.loads((GOLDEN / "after_more_work.json").read_text(encoding="utf-8"))
    assert after_more_work(partial(ask, url), saved) == expected


@pytest.mark.parametrize("command", [["facts", "--user", "mira"], ["run"], ["status"], ["migrate"], ["undo", "1"]])
def test_a_store_of_a_newer_program_is_refused_by_every_command(
    command: list[str], made: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    url = made("0006")

    async def version(then: str | None = None) -> str:
        async with Store(url) as store:
            with store.connecting(writing=True) as transaction:
                if then:
                    transaction.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '{then}'"))
                found = transaction.execute(text(f"SELECT version_num FROM {migrations.VERSION_TABLE}"))
                return str(found.scalar_one())

    asyncio.run(version("9999"))
    told = Commands(tmp_path, monkeypatch, capfd)(*command, AFTERWORD_STORE__URL=url, expected=1)
    assert "written by a newer afterword (tables 9999" in told
    assert "upgrade afterword, the store was left alone" in told
    assert asyncio.run(version()) == "9999"


@pytest.mark.begun_first
@pytest.mark.parametrize("at", [1, 3, 8, 12])
async def test_a_migration_that_is_killed_leaves_the_store_as_it_was(
    at: int, made: Callable[[str], str], tmp_path: Path
) -> None:
    """Killed after its first statement, in the middle, or near its end: all or nothing, and it can be done again."""
    url = made("0001")

    async def state() -> tuple[str | None, list[str]]:
        async with Store(url) as store:
            with store.connecting(writing=False) as transaction:
                names = sorted(inspect(transaction).get_table_names())
                return migrations.tables_version(transaction), names

    before = await state()
    killed = Child([url, str(at)], os.environ, tmp_path / "killed.txt", program=die_in_migration)
    assert killed.wait() == -signal.SIGKILL, killed.printed()
    assert await state() == before
    async with Store(url) as store:
        assert await store.migrate() == ("0001", migrations.newest_version())
        await store.check()
