"""The store's tables through its versions: one set of migrations for SQLite and PostgreSQL. Append only."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from afterword.errors import StoreOutdated, StoreTooNew

VERSION_TABLE = "afterword_version"
ADVISORY_LOCK = 4711240
"""What deployers of a PostgreSQL store hold while they migrate."""


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def newest_version() -> str:
    """Return the version of the tables that this program uses."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    head = ScriptDirectory.from_config(config).get_current_head()
    if head is None:
        raise RuntimeError("the package holds no migrations; install it again")
    return head


def version_of(connection: Connection) -> str | None:
    """Return the version of the tables in this database, None where there are none yet."""
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def upgrade(connection: Connection) -> tuple[str | None, str]:
    """Bring the tables up to date inside the connection's transaction; return the versions before and after.

    Raises `StoreTooNew` where the version is unknown to this program.
    """
    before, target = version_of(connection), newest_version()
    if before == target:
        return before, target
    _refuse_unknown(connection, before)
    if connection.dialect.name == "postgresql":
        # Two deployers at once: the second waits here, and then finds nothing left to do.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
        before = version_of(connection)
        if before == target:
            return before, target
        _refuse_unknown(connection, before)
    command.upgrade(_config(connection), "head")
    return before, target


def check(connection: Connection) -> None:
    """Raise `StoreOutdated` or `StoreTooNew` where the tables are not those of this program."""
    found, target = version_of(connection), newest_version()
    if found != target:
        _refuse_unknown(connection, found)
        raise StoreOutdated(
            f"the store's tables are at version {found or 'none'}, this program uses {target}; run `afterword migrate`"
        )


def _refuse_unknown(connection: Connection, found: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_config(connection)).walk_revisions()}
    if found is not None and found not in known:
        raise StoreTooNew(
            f"the store was written by a newer afterword (tables {found}, this program knows up to {newest_version()});"
            " upgrade afterword, the store was left alone"
        )
