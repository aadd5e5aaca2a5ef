"""Rewriting a database so that its files hold no deleted words, and copying a SQLite file that is in use."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError
from sqlmodel import SQLModel

from afterword.errors import StoreUnreachable
from afterword.store.database.cancellation import current_transaction_handle, interrupter
from afterword.store.database.driver_errors import unreachable_error
from afterword.store.database.private_files import create_file_atomically

TIMEOUT_S = 30.0
"""How long to wait for others who use the database."""
_LOCK_ATTEMPT_S = 0.05
"""How long one attempt to lock the file waits. Between attempts it is checked whether the caller was cancelled."""
_PAGES_A_STEP = 1_000
_LOCK_WAIT_S, _LONGEST_VACUUM_S, _PAUSE_S = 5, 600, 0.2
"""How long one VACUUM of PostgreSQL may wait for a lock, and may take; the pause before it is tried again."""
_BEGIN = text(
    "SELECT CAST(pg_current_xact_id() AS xid)::text, set_config('lock_timeout', :lock, false), "
    "set_config('statement_timeout', :statement, false)"
)
_IS_CLEAN = text(
    "SELECT bool_and(age(part.relfrozenxid) <= age(CAST(:transaction_id AS xid))) FROM pg_class AS whole "
    "JOIN pg_class AS part ON part.oid IN (whole.oid, whole.reltoastrelid) WHERE whole.oid = CAST(:name AS regclass)"
)
"""Texts that are too long for the table itself are in a part of their own."""


def compact_file(path: Path) -> bool:
    """Rebuild a SQLite file and empty its write-ahead log; return False if another process prevented it."""
    handle, deadline = current_transaction_handle(), time.monotonic() + TIMEOUT_S
    opened = closing(sqlite3.connect(path, timeout=_LOCK_ATTEMPT_S, isolation_level=None))
    with opened as connection, handle.interruptible_by(connection.interrupt):
        try:
            for step in (_try_rebuild, _try_empty_log):
                while not step(connection):
                    handle.check_not_cancelled()
                    if time.monotonic() > deadline:
                        return False
        except sqlite3.OperationalError:
            handle.check_not_cancelled()
            return False
    return True


def _try_rebuild(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("VACUUM")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _try_empty_log(connection: sqlite3.Connection) -> bool:
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return bool(busy == 0)


def vacuum_postgres(connection: Connection) -> bool:
    """Make PostgreSQL remove deleted rows from every table, and their words from its indexes and statistics.

    Return False if not all could be removed: an older transaction may still see them, somebody may hold a lock, or a
    table may belong to another role. PostgreSQL does not overwrite the bytes of a removed row before it needs their
    place; VACUUM FULL would, but it locks out all readers. The connection must not be in a transaction, and is not
    given back to its pool.
    """
    handle, deadline = current_transaction_handle(), time.monotonic() + TIMEOUT_S
    with handle.interruptible_by(interrupter(connection)):
        warnings = _collect_warnings(connection)
        connection.detach()  # its limits are not those of other statements
        limits = {"lock": f"{_LOCK_WAIT_S}s", "statement": f"{_LONGEST_VACUUM_S}s"}
        transaction_id = connection.execute(_BEGIN, limits).scalar_one()
        unclean = list(SQLModel.metadata.tables)
        while unclean := [name for name in unclean if not _try_vacuum(connection, name, transaction_id)]:
            handle.check_not_cancelled()
            if warnings or time.monotonic() > deadline:
                return False
            handle.wait(_PAUSE_S)
    return True


def _collect_warnings(connection: Connection) -> list[str]:
    """Return a list to which the warnings of the server are added, for example that it may not clean a table."""
    warnings: list[str] = []

    def note(notice: Any) -> None:
        if notice.severity_nonlocalized == "WARNING":
            warnings.append(notice.sqlstate)

    raw: Any = connection.connection.driver_connection
    raw.add_notice_handler(note)
    return warnings


def _try_vacuum(connection: Connection, name: str, transaction_id: str) -> bool:
    """Vacuum a table; return whether it holds no more row that was deleted before the transaction with this id.

    A frozen table holds no trace of transactions before its `relfrozenxid`. VACUUM raises `relfrozenxid` only as far as
    it could clean everything. So the number shows whether rows were left, whatever kept them from being removed.
    """
    try:
        connection.execute(text(f'VACUUM (FREEZE, ANALYZE, INDEX_CLEANUP ON) "{name}"'))
    except OperationalError as error:  # somebody holds a lock, or the vacuum took too long
        current_transaction_handle().check_not_cancelled()
        if error.connection_invalidated:
            raise
        return False
    return bool(connection.execute(_IS_CLEAN, {"name": f'"{name}"', "transaction_id": transaction_id}).scalar_one())


def update_postgres_statistics(connection: Connection) -> None:
    """Let PostgreSQL update its statistics at once. By itself it does so only minutes after many rows were written.

    With old statistics it may take a table for empty, and read the whole table to find the rows of one scope.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def copy_database_file(source: Path, target: Path) -> None:
    """Copy a SQLite database, even while it is in use. The copy is consistent, and only its owner can read it.

    The copy is checked before it gets its name. Raises `FileInvalid` if the target exists already, and
    `StoreUnreachable` if the copy cannot be written or checked.
    """
    try:
        with create_file_atomically(target) as partial:
            with (
                closing(sqlite3.connect(source, timeout=TIMEOUT_S)) as original,
                closing(sqlite3.connect(partial, isolation_level=None)) as copy,
            ):
                original.backup(copy, pages=_PAGES_A_STEP)
                copy.execute("PRAGMA journal_mode=DELETE")
                ((state,),) = copy.execute("PRAGMA quick_check(1)").fetchall()
            if state != "ok":
                raise StoreUnreachable(f"{source} could not be copied, since it is damaged; see `afterword doctor`")
    except sqlite3.Error as error:
        raise unreachable_error(error, str(source)) from None
