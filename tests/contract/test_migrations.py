"""The tables come from the migrations, and from nothing else."""

from __future__ import annotations

import asyncio
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlmodel import SQLModel

from afterword.errors import StoreError, StoreOutdated, StoreTooNew, StoreUnreachable
from afterword.facts.scopes import Scope
from afterword.store import entries, lookup, migrations, scope_rows, tables
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import shown_url
from afterword.store.entered_statements import Entry
from nursery import Child
from programs import migrate

MIRA = Scope.user("mira")
NOW = datetime(2026, 4, 1, tzinfo=UTC)


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"version_table": migrations.VERSION_TABLE})
    return [one for one in compare_metadata(context, SQLModel.metadata) if migrations.VERSION_TABLE not in str(one)]


async def test_the_migrations_make_the_tables_that_the_code_uses(store: Store) -> None:
    assert tables.FactRow.__tablename__ in SQLModel.metadata.tables
    with store.connecting(writing=False) as connection:
        assert differences(connection) == []


def test_the_names_of_the_files_are_the_versions_in_their_order() -> None:
    scripts = migrations._scripts()
    assert migrations._versions() == tuple(script.revision for script in scripts.walk_revisions())[::-1]
    assert migrations.newest_version() == scripts.get_current_head()


async def test_migrating_again_does_nothing(store: Store) -> None:
    before, after = await store.migrate()
    assert before == after == migrations.newest_version()


async def test_many_stores_of_one_process_are_made_at_once(tmp_path: Path) -> None:
    """Each user of an application may open a store of their own at the same moment."""
    stores = [Store(f"sqlite:///{tmp_path}/{number}.db") for number in range(8)]
    made = await asyncio.gather(*(store.migrate() for store in stores))
    assert {after for _, after in made} == {migrations.newest_version()}
    for store in stores:
        await store.check()
        await store.close()


async def test_a_newer_store_is_refused_and_left_alone(store: Store) -> None:
    with store.connecting(writing=True) as connection:
        connection.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreTooNew, match="upgrade afterword"):
        await store.check()
    with pytest.raises(StoreTooNew):
        await store.migrate()


async def test_a_store_without_tables_asks_for_migrate(tmp_path: Path) -> None:
    async with Store(f"sqlite:///{tmp_path}/empty.db") as store:
        with pytest.raises(StoreOutdated, match="afterword migrate"):
            await store.check()


def _modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(one.stat().st_mode) for one in folder.glob("private.db*")}


async def test_the_sqlite_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "private.db"
    async with await open_store(f"sqlite:///{path}") as store:
        with store.connecting(writing=True) as connection:
            connection.execute(text("UPDATE scopes SET revision = 0"))
        modes = await asyncio.to_thread(_modes, tmp_path)
    assert modes == {0o600}


@pytest.mark.parametrize("url", ["mysql://u:secret@h/d", "nonsense secret", ""])
def test_other_databases_are_refused_without_repeating_a_password(url: str) -> None:
    with pytest.raises(StoreError) as refused:
        Store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@localhost/facts",
        "postgresql://h/facts?password=secret",
        "postgresql://h/facts?PASSWORD=secret&passwd=secret",
        "postgresql://h/facts?sslpassword=secret&sslmode=require",
        "postgresql://h/facts?options=-c%20password%3Dsecret",
        "postgresql://me:p%40secret@h/facts?user=me",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    store = Store(url)
    assert "secret" not in repr(store) + store.shown_url + shown_url(url)


async def test_a_database_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StoreUnreachable):
        await open_store(f"sqlite:///{blocked}/afterword.db")
    with pytest.raises(StoreUnreachable, match="doctor"):
        await open_store("postgresql://nobody@127.0.0.1:1/none")


@pytest.mark.begun_first
async def test_two_deployers_at_once_migrate_once(empty_postgres: str, tmp_path: Path) -> None:
    """Both wait at the door, so that they meet; the second finds nothing left to do."""
    with psycopg.connect(empty_postgres) as door:
        door.execute("SELECT pg_advisory_lock(%s)", (migrations.ADVISORY_LOCK,))
        deployers = [Child([empty_postgres], os.environ, tmp_path / f"{name}.txt", program=migrate) for name in "ab"]
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND datname = current_database()"
        async with asyncio.timeout(100):
            while door.execute(waiting).fetchone() != (2,):
                assert all(deployer.poll() is None for deployer in deployers)
                await asyncio.sleep(0.05)
                door.rollback()
    assert [deployer.wait() for deployer in deployers] == [0, 0], [deployer.printed() for deployer in deployers]
    newest = migrations.newest_version()
    assert sorted(deployer.printed().strip() for deployer in deployers) == [
        f"('{newest}', '{newest}')",
        f"(None, '{newest}')",
    ]


async def test_a_process_that_goes_on_does_not_write_into_a_newer_store(store: Store) -> None:
    await entries.add_entry(store, MIRA, Entry("Lives in Graz."), at=NOW)
    with store.connecting(writing=True) as connection:
        connection.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreTooNew, match="upgrade afterword"):
        await entries.add_entry(store, MIRA, Entry("Lives in Linz."), at=NOW)
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=NOW))
    assert [fact.statement for fact in facts] == ["Lives in Graz."]


async def test_a_writer_that_has_begun_ends_before_a_migration_and_the_next_one_sees_it(
    empty_postgres: str,
) -> None:
    async with Store(empty_postgres) as store, Store(empty_postgres) as other:
        await store.migrate()
        order: list[str] = []

        def migrate() -> None:
            with other.connecting(writing=True, isolation="READ COMMITTED") as connection:
                connection.execute(text(f"SELECT version_num FROM {migrations.VERSION_TABLE} FOR UPDATE"))
                connection.execute(text(f"UPDATE {migrations.VERSION_TABLE} SET version_num = '9999'"))
                order.append("migrated")

        with store.writing() as transaction:
            migration = asyncio.create_task(asyncio.to_thread(migrate))
            await asyncio.sleep(0.3)
            scope_rows.ensure_scope(transaction, MIRA)
            order.append("written")
        await migration
        assert order == ["written", "migrated"]
        with pytest.raises(StoreTooNew):
            await store.write(lambda transaction: scope_rows.ensure_scope(transaction, Scope.user("tom")))
