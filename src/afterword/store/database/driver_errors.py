"""Translation of the errors of database drivers into errors of afterword."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DatabaseError, DataError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from afterword.errors import ArgumentInvalid, Overtaken, StoreUnreachable

OVERTAKEN_STATES = frozenset({"40001", "40P01", "55P03"})
"""PostgreSQL's codes for two transactions that cannot both go on: serialisation failure, deadlock, and a lock that
is not given in time."""
UNIQUE_VIOLATION = "23505"
"""PostgreSQL's code for a row with a key that exists already, for example because another transaction inserted it."""
READ_ONLY = "25006"
"""PostgreSQL's code for a write to a server in recovery, or in a transaction that may only read."""
UNSTORABLE = "a text holds a character that the database cannot store, such as NUL; leave it out, then try again"
_PRIMARY_CODE = 0xFF
_DAMAGED = "the file is damaged or no SQLite database; put a backup in its place"
_SQLITE_HINTS = {
    sqlite3.SQLITE_FULL: "the disk is full; make room, then try again",
    sqlite3.SQLITE_BUSY: "another program holds a lock on the file; wait until it has ended, or end it",
    sqlite3.SQLITE_READONLY: "the file cannot be written; check its owner and its mode",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_IOERR: "the disk does not read or write the file; check the disk and its free space",
}


@contextmanager
def translate_driver_errors(shown_url: str, *, writing: bool) -> Iterator[None]:
    """Raise the errors of a database driver in this context as the errors of afterword."""
    try:
        yield
    except PoolTimeout:
        raise StoreUnreachable(f"{shown_url}: no free connection; raise AFTERWORD_STORE__POOL_SIZE") from None
    except DatabaseError as error:
        raise store_error_of(error, shown_url, writing=writing) from None
    except sqlite3.DatabaseError as error:  # raised by what bypasses SQLAlchemy, such as `_take_write_lock`
        raise unreachable_error(error, shown_url) from None
    except UnicodeEncodeError:
        raise ArgumentInvalid(UNSTORABLE) from None


def store_error_of(error: DatabaseError, shown_url: str, *, writing: bool) -> Exception:
    """Return the afterword error for a driver's error. An error in the SQL statement itself is returned unchanged."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate in OVERTAKEN_STATES or (sqlstate == UNIQUE_VIOLATION and writing):
        return Overtaken(f"another process changed the same rows of {shown_url} first; try again")
    if sqlstate == READ_ONLY:
        return StoreUnreachable(f"{shown_url} can only be read; name the primary server, or let this user write")
    if isinstance(error, DataError):
        return ArgumentInvalid(UNSTORABLE)  # the database's own message would repeat the text
    # The other subclasses of DatabaseError mean that a statement is wrong, not that the database fails.
    if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
        return error
    return unreachable_error(error.orig or error, shown_url)


def unreachable_error(error: BaseException, shown_url: str) -> StoreUnreachable:
    """Return the error for a database that does not answer. For an error of SQLite it says what to do."""
    if hint := _SQLITE_HINTS.get(getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE):
        return StoreUnreachable(f"{shown_url}: {hint}")
    # The type alone: the message may hold a password or a user's words.
    return StoreUnreachable(f"{shown_url} does not answer ({type(error).__name__}); see `afterword doctor`")
