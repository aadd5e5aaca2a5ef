"""Migrations of the store's tables, one set for SQLite and PostgreSQL. A released migration is never changed.

Alembic is imported only when tables must be created or changed. Most processes find the tables up to date.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, create_engine

from afterword.errors import StoreOutdated, StoreTooNew

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

VERSION_TABLE = "afterword_version"
_OWN_TABLES = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
ADVISORY_LOCK = 4711240
"""The lock that is held while the tables of a PostgreSQL store are migrated."""


@cache
def _scripts() -> ScriptDirectory:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return ScriptDirectory.from_config(config)


@cache
def _versions() -> tuple[str, ...]:
    """Return all versions, oldest first. The file name of a migration begins with the version that it leads to."""
    return tuple(sorted(path.name.partition("_")[0] for path in (Path(__file__).parent / "versions").glob("*_*.py")))


def newest_version() -> str:
    """Return the version of the tables that this program uses."""
    if not _versions():
        raise RuntimeError("the package holds no migrations; install it again")
    return _versions()[-1]


def tables_version(connection: Connection) -> str | None:
    """Return the version of the tables in this database, None if there are none yet."""
    if not connection.dialect.has_table(connection, VERSION_TABLE):
        return None
    version: str | None = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").scalar()
    return version


def _migration_context(connection: Connection) -> MigrationContext:
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})


def upgrade(connection: Connection) -> tuple[str | None, str]:
    """Bring the tables up to date inside the connection's transaction; return the versions before and after.

    Raises `StoreTooNew` if this program does not know the version.
    """
    is_postgres = connection.dialect.name == "postgresql"
    if is_postgres:
        # If two processes migrate at once, the second waits here and then has nothing left to do.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
    before, target = tables_version(connection), newest_version()
    if before == target:
        return before, target
    _refuse_unknown_version(before)
    if before is not None and is_postgres:
        # Every writer holds this row until its end, and none begins before the migration has ended.
        connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE} FOR UPDATE")
    if before is None and not is_postgres:
        for statement in _sqlite_table_statements():
            connection.exec_driver_sql(statement)
    else:
        _run_migrations(connection, before)
    _migration_context(connection).stamp(_scripts(), target)
    return before, target


def _run_migrations(connection: Connection, before: str | None) -> None:
    from alembic.operations import Operations

    # Alembic's command would read and compile every migration again.
    migrations = list(_scripts().iterate_revisions(newest_version(), before or "base"))
    with Operations.context(_migration_context(connection)):
        for migration in reversed(migrations):
            migration.module.upgrade()


@cache
def _sqlite_table_statements() -> tuple[str, ...]:
    """Return the statements that create all tables in an empty SQLite database, as all migrations together do.

    They are cached, so a process that opens many stores, like `afterword eval`, runs the migrations only once.
    """
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        _run_migrations(connection, None)
        made = connection.exec_driver_sql(_OWN_TABLES)
        statements = tuple(made.scalars())
    engine.dispose()
    return statements


def check_version(connection: Connection) -> None:
    """Raise `StoreOutdated` or `StoreTooNew` if the tables have another version than this program."""
    version, target = tables_version(connection), newest_version()
    if version != target:
        _refuse_unknown_version(version)
        raise StoreOutdated(
            f"the store's tables are at version {version or 'none'}, this program uses {target}; "
            "run `afterword migrate`"
        )


def check_and_lock_version(connection: Connection) -> None:
    """Raise the errors of `check_version`. Until the connection's transaction ends, nobody can migrate the tables."""
    is_postgres = connection.dialect.name == "postgresql"
    lock = " FOR KEY SHARE" if is_postgres else ""
    version = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}{lock}").scalar()
    if version != newest_version():
        check_version(connection)


def _refuse_unknown_version(version: str | None) -> None:
    if version is not None and version not in _versions():
        raise StoreTooNew(
            f"the store was written by a newer afterword (tables {version}, "
            f"this program knows up to {newest_version()}); upgrade afterword, the store was left alone"
        )
