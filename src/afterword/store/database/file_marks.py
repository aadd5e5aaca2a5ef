"""Marks of SQLite files. They show whether anybody has written to a database, and no statement is run for it.

A commit writes to the write-ahead log or to the database file. That changes the size or the times of the file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection

from afterword.errors import StoreUnreachable
from afterword.store.database.engine import Store
from afterword.store.database.sqlite_files import FileState, file_state

TICK_NS, COARSE_TICK_NS = 500_000_000, 2_500_000_000
"""How far apart two writes must be to get different file times: usually, and where these are whole seconds."""
_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FileMark:
    """The inodes, sizes and times of a database file and its write-ahead log. Reading them opens neither file."""

    path: str
    log_path: str
    state: FileState | None
    log_state: FileState | None

    @classmethod
    def of(cls, path: str) -> FileMark:
        """Return the mark of a file as it is now."""
        log_path = f"{os.path.realpath(path)}-wal"
        return cls(path, log_path, file_state(path), file_state(log_path))

    def is_unchanged(self) -> bool:
        """Return whether nobody has written to the database since the mark was taken."""
        return file_state(self.path) == self.state and file_state(self.log_path) == self.log_state

    def is_settled(self) -> bool:
        """Return whether the last write is so old that the file time of every later write will differ from it."""
        if os.name != "posix" or self.state is None:
            return False
        # A log of 0 bytes grows when something is written.
        log = self.log_state if self.log_state is not None and self.log_state[2] else self.state
        last_ns = max(*self.state[3:], *log[3:])
        return last_ns + (TICK_NS if last_ns % _SECOND_NS else COARSE_TICK_NS) < time.time_ns()


def settled_mark(store: Store, is_current: Callable[[Connection], bool]) -> FileMark | None:
    """Return a mark of the store's file that every later commit changes. It blocks, so it is not for event loops.

    Returns None in four cases: `is_current` returns False, the store is no file (in memory, PostgreSQL), the last write
    is only just over, or another process writes. A writer changes the file some time before others can read what it
    wrote. So this function holds the write lock for a moment, to be sure that no writer is in between.
    """
    if store.path is None or not FileMark.of(str(store.path)).is_settled():
        return None
    with suppress(StoreUnreachable), store.connecting(writing=True, patient=False) as connection:
        mark = FileMark.of(str(store.path))
        return mark if mark.is_settled() and is_current(connection) else None
    return None
