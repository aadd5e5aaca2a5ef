"""SQLite for SQLAlchemy's asyncio: the aiosqlite driver with far fewer changes of threads.

aiosqlite asks its thread to make a cursor, to execute, to fetch and to close: four changes of threads a statement, each
of which costs more than most statements do. Here the thread does all of it at once; and a connection that works in
place needs its thread only for what may wait, for the write lock or for the disk.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Self

import aiosqlite
from aiosqlite import core

from afterword.errors import StoreUnreachable

BEGIN_WRITING = "BEGIN IMMEDIATE"
BUSY_TIMEOUT_MS = 30_000
_CHUNK = 64


class Connection(aiosqlite.Connection):
    """A connection whose cursors fetch all rows as they execute; one that is `in_place` executes in the event loop."""

    def __init__(self, path: str, *, in_place: bool, **options: Any) -> None:
        super().__init__(lambda: sqlite3.connect(path, **{**options, "check_same_thread": False}), _CHUNK)
        self._thread = Thread(target=_serve, args=(self._tx,))
        self._in_place = in_place
        self._is_asked = self._is_writing = False
        self.is_lasting = True
        """Whether what is written is on the disk once it is committed."""

    def cursor(self) -> Cursor:  # type: ignore[override]  # another cursor, not a kind of theirs
        """Return a cursor; nothing is asked before it executes."""
        return Cursor(self)

    async def asked(self, sql: str, parameters: Any, *, many: bool = False) -> tuple[sqlite3.Cursor, list[Any]]:
        """Execute a statement, and return its cursor and all of its rows."""
        if self._in_place and not self._is_asked and (sql != BEGIN_WRITING or self._begun()):
            return _executed(self._conn, sql, parameters, many) if sql != BEGIN_WRITING else (self._conn.cursor(), [])
        # Stays so where the caller is cancelled: then the thread is still at work.
        self._is_asked = True
        work = partial(_executed, self._conn, sql, parameters, many)
        found: tuple[sqlite3.Cursor, list[Any]] = await self._execute(work)  # type: ignore[no-untyped-call]  # theirs has none
        self._is_asked, self._is_writing = False, self._is_writing or sql == BEGIN_WRITING
        return found

    def _begun(self) -> bool:
        """Begin to write, unless another process is at it: who waits for that must not do so in the event loop."""
        self._conn.execute("PRAGMA busy_timeout=0")
        try:
            self._conn.execute(BEGIN_WRITING)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        finally:
            self._conn.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        self._is_writing = True
        return True

    async def commit(self) -> None:
        """Commit; only what was written to last waits for the disk."""
        if self._in_place and not self._is_asked and not (self._is_writing and self.is_lasting):
            self._conn.commit()
            self._is_writing = False
            return
        self._is_asked = True
        await super().commit()
        self._is_asked = self._is_writing = False

    async def rollback(self) -> None:
        """Roll back what is open."""
        if not self._is_asked and not self._conn.in_transaction:
            return
        await super().rollback()
        self._is_asked = self._is_writing = False


class Cursor:
    """What SQLAlchemy uses of a cursor. Its rows are fetched already; there is nothing to close."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows: list[Any] = []
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Self:
        """Execute a statement."""
        self._take(*await self._connection.asked(sql, parameters))
        return self

    async def executemany(self, sql: str, parameters: Iterable[Sequence[Any]]) -> Self:
        """Execute a statement once for each of these parameters."""
        self._take(*await self._connection.asked(sql, parameters, many=True))
        return self

    async def fetchall(self) -> list[Any]:
        """Return the rows."""
        rows, self._rows = self._rows, []
        return rows

    async def close(self) -> None:
        """Let go of the rows."""
        self._rows = []

    def _take(self, cursor: sqlite3.Cursor, rows: list[Any]) -> None:
        self._rows, self.description = rows, cursor.description
        self.rowcount, self.lastrowid = cursor.rowcount, cursor.lastrowid


def _serve(asked: SimpleQueue[tuple[asyncio.Future[Any] | None, Callable[[], Any]]]) -> None:
    """Do what a connection asks of its thread, and go on where nobody waits for the outcome any more.

    aiosqlite's own thread dies of a loop that was closed meanwhile, as that of a cancelled program is; what was still
    to be done then, the closing of the file included, is never done.
    """
    outcome: object = None
    while outcome is not core._STOP_RUNNING_SENTINEL:
        waiting, work = asked.get()
        failure: BaseException | None = None
        try:
            outcome = work()
        except BaseException as error:  # noqa: BLE001 - whoever asked has it raised
            outcome, failure = None, error
        if waiting is not None:
            tell = (
                partial(core.set_exception, waiting, failure) if failure else partial(core.set_result, waiting, outcome)
            )
            with suppress(RuntimeError):  # the loop is closed
                waiting.get_loop().call_soon_threadsafe(tell)
            del tell
        del waiting, work, failure


def connect(path: str, *, in_place: bool = False, **options: Any) -> Connection:
    """Return a connection to the file, or to ":memory:"; await it to open it."""
    return Connection(path, in_place=in_place, **options)


def _executed(
    connection: sqlite3.Connection, sql: str, parameters: Any, many: bool
) -> tuple[sqlite3.Cursor, list[Any]]:
    cursor = connection.cursor()
    if many:
        return cursor.executemany(sql, parameters), []
    cursor.execute(sql, parameters)
    return cursor, cursor.fetchall() if cursor.description else []


def create_private(path: Path) -> None:
    """Create the file readable by its owner alone, before SQLite would create it with the usual mode.

    A file that is there is left alone: whoever closes a database file drops every lock that its process has on it
    (https://sqlite.org/howtocorrupt.html, 2.2), and others then take away the write-ahead log that is in use.
    """
    path = path.resolve()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if path.is_file() and os.access(path, os.R_OK | os.W_OK):
            return
        raise _not_opened(path, "it is no file that may be written") from None
    except OSError as error:
        raise _not_opened(path, str(error.strerror)) from None


def _not_opened(path: Path, reason: str) -> StoreUnreachable:
    return StoreUnreachable(f"{path} cannot be opened ({reason}); choose another place with AFTERWORD_STORE__URL")


PRAGMAS = f"""
    PRAGMA journal_mode=WAL;
    PRAGMA foreign_keys=ON;
    PRAGMA secure_delete=ON;
    PRAGMA busy_timeout={BUSY_TIMEOUT_MS};
"""
"""A live agent must be able to recall while the batch job commits; only WAL lets a reader pass a writer."""


def set_pragmas(connection: Any, _record: object) -> None:
    """Set up a connection that was opened."""
    # At once: each statement of its own costs a change of threads and back.
    connection.run_async(lambda opened: opened.executescript(PRAGMAS))


def begin(connection: Any) -> None:
    """Begin a transaction of SQLAlchemy's connection: one that writes takes the lock, and waits for the disk or not."""
    # A transaction that reads first and writes later loses updates of others unless it takes the lock at once.
    options = connection.get_execution_options()
    writing, lasting = options.get("afterword_writing", False), options.get("afterword_lasting", True)
    if writing and lasting is connection.info.get("afterword_is_lax", False):
        connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if lasting else 'NORMAL'}")
        connection.info["afterword_is_lax"] = not lasting
    connection.connection.driver_connection.is_lasting = lasting
    connection.exec_driver_sql(BEGIN_WRITING if writing else "BEGIN")
