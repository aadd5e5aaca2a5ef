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
"""The lock that is held while the tables of a PostgreSQL store are migrated."""


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


def tables_version(connection: Connection) -> str | None:
    """Return the version of the tables in this database, None if there are none yet."""
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def upgrade(connection: Connection) -> tuple[str | None, str]:
    """Bring the tables up to date inside the connection's transaction; return the versions before and after.

    Raises `StoreTooNew` if this program does not know the version.
    """
    before, target = tables_version(connection), newest_version()
    if before == target:
        return before, target
    _refuse_unknown(connection, before)
    if connection.dialect.name == "postgresql":
        # If two processes migrate at once, the second waits here and then has nothing left to do.
        connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
        before = tables_version(connection)
        if before == target:
            return before, target
        _refuse_unknown(connection, before)
    command.upgrade(_config(connection), "head")
    return before, target


def check_version(connection: Connection) -> None:
    """Raise `StoreOutdated` or `StoreTooNew` if the tables are not those of this program."""
    version, target = tables_version(connection), newest_version()
    if version != target:
        _refuse_unknown(connection, version)
        raise StoreOutdated(
            f"the store's tables are at version {version or 'none'}, this program uses {target}; "
            "run `afterword migrate`"
        )


def _refuse_unknown(connection: Connection, version: str | None) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_config(connection)).walk_revisions()}
    if version is not None and version not in known:
        raise StoreTooNew(
            f"the store was written by a newer afterword (tables {version}, "
            f"this program knows up to {newest_version()}); upgrade afterword, the store was left alone"
        )
