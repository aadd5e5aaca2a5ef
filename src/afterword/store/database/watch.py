"""A held reading connection to a SQLite file: whether anybody has changed it costs microseconds to ask.

Opening a connection for every turn costs some ten milliseconds. This one only reads, and in WAL mode neither waits for
a writer nor keeps one waiting. It is given up where the file is another one by now, or the process forked.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

T = TypeVar("T")


class Watch:
    """One SQLite file, held open for reading. May be used from several threads; `None` says to read another way."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._plain: sqlite3.Connection | None = None
        self._connection: Connection | None = None
        self._identity: tuple[int, int, int] | None = None
        self._finalizer: weakref.finalize[[], Watch] | None = None

    def version(self) -> tuple[object, ...] | None:
        """Return what differs after any change of the file by anybody else than this connection, which never writes."""
        with self._lock:
            try:
                connection = self._opened()
                (version,) = connection.execute("PRAGMA data_version").fetchone()
            except (sqlite3.Error, OSError):
                self._give_up()
                return None
            return (self._identity, id(connection), version)

    def read(self, work: Callable[[Connection], T]) -> T | None:
        """Return what `work` reads in one transaction. It blocks: call it from a thread of its own."""
        with self._lock:
            try:
                plain = self._opened()
                if self._connection is None:
                    engine = create_engine(
                        "sqlite://", poolclass=StaticPool, creator=lambda: plain, pool_reset_on_return=None
                    )
                    self._connection = engine.connect()
                with self._connection.begin():
                    self._connection.exec_driver_sql("BEGIN")
                    return work(self._connection)
            except (sqlite3.Error, DBAPIError, OSError):
                self._give_up()
                return None

    def close(self) -> None:
        """Close the connection; it is opened again at the next use."""
        with self._lock:
            self._give_up()

    def _opened(self) -> sqlite3.Connection:
        status = os.stat(self._path)  # noqa: PTH116 - at every turn, and a third of the time
        identity = (status.st_dev, status.st_ino, os.getpid())
        if self._plain is None or identity != self._identity:
            self._give_up()
            address = f"file:{quote(os.path.abspath(self._path))}?mode=rw"  # noqa: PTH100
            opened = sqlite3.connect(address, uri=True, timeout=1, isolation_level=None, check_same_thread=False)
            self._plain, self._identity = opened, identity
            self._finalizer = weakref.finalize(self, opened.close)
            opened.execute("PRAGMA query_only=ON")
        return self._plain

    def _give_up(self) -> None:
        if self._finalizer is not None and self._identity is not None and self._identity[2] == os.getpid():
            self._finalizer()
        elif self._finalizer is not None:
            # A forked child must not touch a connection of its parent, not even to close it.
            self._finalizer.detach()
        self._plain = self._connection = self._identity = self._finalizer = None
