"""Engines for SQLite: private files, pragmas, and a write lock for which a caller waits until it is cancelled."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import QueuePool, StaticPool

from afterword.errors import FileInvalid, StoreInvalid, StoreUnreachable
from afterword.store.database.cancellation import current_transaction_handle
from afterword.store.database.private_files import create_file_atomically
from afterword.store.database.statements import share_compiled_statements

BUSY_TIMEOUT_MS = 30_000
_LOCK_ATTEMPT_MS = 50
"""How long one attempt to take the write lock waits. Between attempts it is checked if the caller was cancelled."""

_PRAGMAS = f"""
    PRAGMA journal_mode=WAL;
    PRAGMA foreign_keys=ON;
    PRAGMA secure_delete=ON;
    PRAGMA busy_timeout={BUSY_TIMEOUT_MS};
"""
"""With a write-ahead log (WAL) a live agent can read while a batch commits."""

FileState = tuple[int, int, int, int, int]
"""The device, inode, size, and times of the last change of content and of metadata (ns) of a file."""


def create_database_file(path: Path) -> None:
    """Create the file, readable by its owner alone, unless it exists. Raises `StoreUnreachable` if that fails.

    An existing file is not opened. Closing any descriptor of a database file drops every lock that its process has on
    it (https://sqlite.org/howtocorrupt.html, 2.2). Another process could then delete the write-ahead log while it is in
    use.
    """
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The file gets its name when it is a database, so that no other process sees a store of 0 bytes.
        with create_file_atomically(path) as partial, closing(sqlite3.connect(partial)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except FileInvalid:
        _check_existing_file(path)
    except (OSError, StoreUnreachable) as error:
        raise _unopened_error(path, getattr(error, "strerror", None) or str(error)) from None


def _check_existing_file(path: Path) -> None:
    if not path.is_file():
        raise _unopened_error(path, "it is not a file")
    # Readers need the log beside the file as well, and create it unless another process has.
    has_log = path.with_name(f"{path.name}-shm").exists()
    if not os.access(path, os.R_OK | os.W_OK) or not (has_log or os.access(path.parent, os.W_OK | os.X_OK)):
        raise _unopened_error(path, "the file and its folder must be writable, even for a program that only reads")
    if not path.stat().st_size:
        raise StoreInvalid(
            f"{path} is empty, so what was in this store is lost: put a backup in its place, "
            "or move the file away to begin with a new store"
        )


def make_engine(url: URL, path: Path | None, pool_size: int) -> Engine:
    """Return the engine of a file, which is created if it is missing, or of a database in memory if `path` is None."""
    if path is None:
        engine = create_engine(url, creator=partial(_connect, None), poolclass=StaticPool)
    else:
        create_database_file(path)
        options: dict[str, Any] = {"poolclass": QueuePool, "pool_size": pool_size, "max_overflow": -1}
        engine = create_engine(url, creator=partial(_connect, path), **options)
    event.listen(engine, "begin", _begin_transaction)
    return share_compiled_statements(engine)


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open the file, which must exist, or a database in memory. Only `_begin_transaction` begins transactions."""
    name = ":memory:" if path is None else f"file:{quote(str(path.absolute()))}?mode=rw"
    connection = sqlite3.connect(
        name, uri=path is not None, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
    )
    connection.executescript(_PRAGMAS)
    return connection


def file_identity(path: Path | None) -> tuple[int, int] | None:
    """Return the device and inode of a file, which show whether it was replaced; None if it is missing or empty."""
    state = None if path is None else file_state(path)
    return state[:2] if state is not None and state[2] else None


def file_state(path: Path | str) -> FileState | None:
    """Return the state of a file, None if it is missing or cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116 - called for each transaction and recall, and three times as fast
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _begin_transaction(connection: Any) -> None:
    """Begin a transaction on SQLAlchemy's connection. A transaction that writes takes the write lock at once.

    If it took the lock only at its first write, another transaction could change what it has read before.
    """
    options = connection.get_execution_options()
    raw: sqlite3.Connection = connection.connection.driver_connection
    if not options.get("afterword_writing", False):
        raw.execute("BEGIN")
        return
    is_lasting = options.get("afterword_lasting", True)
    if is_lasting is connection.info.get("afterword_is_lax", False):
        raw.execute(f"PRAGMA synchronous={'FULL' if is_lasting else 'NORMAL'}")
        connection.info["afterword_is_lax"] = not is_lasting
    _take_write_lock(raw, is_patient=options.get("afterword_patient", True))


def _take_write_lock(raw: sqlite3.Connection, *, is_patient: bool) -> None:
    """Begin a transaction with the write lock.

    Raises sqlite3's OperationalError if another process holds the lock: for 30 seconds, or at all unless `is_patient`.
    """
    handle, deadline = current_transaction_handle(), time.monotonic() + (BUSY_TIMEOUT_MS / 1000 if is_patient else 0)
    raw.execute(f"PRAGMA busy_timeout={_LOCK_ATTEMPT_MS if is_patient else 0}")
    try:
        while True:
            try:
                raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                handle.check_not_cancelled()
            else:
                return
    finally:
        raw.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")


def _unopened_error(path: Path, reason: str) -> StoreUnreachable:
    return StoreUnreachable(f"{path} cannot be opened ({reason}); choose another place with AFTERWORD_STORE__URL")
