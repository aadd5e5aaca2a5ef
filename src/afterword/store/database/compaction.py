"""Rewriting a database so that its files hold no deleted words, and copying a SQLite file that is in use."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, text
from sqlmodel import SQLModel

from afterword.errors import StoreUnreachable
from afterword.store.database.cancellation import current_ticket, interrupter
from afterword.store.database.driver_errors import unreachable
from afterword.store.database.private_files import complete_file

_TIMEOUT_S = 30.0
_LOCK_ATTEMPT_S = 0.05
"""How long one attempt to lock the file waits. Between attempts it is checked whether the caller was cancelled."""
_PAGES_A_STEP = 1_000


def compact_file(path: Path) -> bool:
    """Rebuild a SQLite file and empty its write-ahead log; return False if another process prevented it."""
    ticket, deadline = current_ticket(), time.monotonic() + _TIMEOUT_S
    opened = closing(sqlite3.connect(path, timeout=_LOCK_ATTEMPT_S, isolation_level=None))
    with opened as connection, ticket.interruptible_by(connection.interrupt):
        try:
            for step in (_try_rebuild, _try_empty_log):
                while not step(connection):
                    ticket.check()
                    if time.monotonic() > deadline:
                        return False
        except sqlite3.OperationalError:
            ticket.check()
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


def vacuum(connection: Connection) -> None:
    """Make PostgreSQL remove deleted rows from every table, and their words from its statistics.

    The connection must not be in a transaction.
    """
    ticket = current_ticket()
    with ticket.interruptible_by(interrupter(connection)):
        for name in SQLModel.metadata.tables:
            ticket.check()
            connection.execute(text(f'VACUUM (ANALYZE) "{name}"'))


def analyze(connection: Connection) -> None:
    """Update the statistics of PostgreSQL at once, which it does by itself only minutes after many rows were written.

    With old statistics it may take a table for empty, and read the whole table to find the rows of one scope.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("ANALYZE"))


def copy_file(source: Path, target: Path) -> None:
    """Copy a SQLite database, even while it is in use. The copy is consistent, and only its owner can read it.

    The copy is checked before it gets its name. Raises `FileInvalid` if the target exists already, and
    `StoreUnreachable` if the copy cannot be written or checked.
    """
    try:
        with complete_file(target) as partial:
            with (
                closing(sqlite3.connect(source, timeout=_TIMEOUT_S)) as original,
                closing(sqlite3.connect(partial, isolation_level=None)) as copy,
            ):
                original.backup(copy, pages=_PAGES_A_STEP)
                copy.execute("PRAGMA journal_mode=DELETE")
                ((state,),) = copy.execute("PRAGMA quick_check(1)").fetchall()
            if state != "ok":
                raise StoreUnreachable(f"{source} could not be copied, since it is damaged; see `afterword doctor`")
    except sqlite3.Error as error:
        raise unreachable(error, str(source)) from None
