"""What the errors of the database drivers mean for a caller."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DatabaseError, DataError, OperationalError

from afterword.errors import ArgumentInvalid, Overtaken, StoreUnreachable

OVERTAKEN_STATES = frozenset({"40001", "40P01"})
"""What PostgreSQL answers where two transactions cannot both be had: serialisation failure, deadlock."""
UNIQUE_VIOLATION = "23505"
"""What PostgreSQL answers where another transaction made the same row, unseen by this one."""
UNSTORABLE = "a text holds a character that the database cannot store, such as NUL; leave it out, then try again"
_PRIMARY_CODE = 0xFF
_SQLITE_HINTS = {
    sqlite3.SQLITE_FULL: "the disk is full; make room, then try again",
    sqlite3.SQLITE_BUSY: "another program holds a lock on the file; wait until it has ended, or end it",
    sqlite3.SQLITE_READONLY: "the file cannot be written; check its owner and its mode",
    sqlite3.SQLITE_IOERR: "the disk does not read or write the file; check the disk and its free space",
}


def store_error_of(error: DatabaseError, shown_url: str, *, writing: bool) -> Exception:
    """Return the error of ours that says what a driver's error means; a fault of a statement is returned as it is."""
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate in OVERTAKEN_STATES or (sqlstate == UNIQUE_VIOLATION and writing):
        return Overtaken(f"another process changed the same rows of {shown_url} first; try again")
    if isinstance(error, DataError):
        return ArgumentInvalid(UNSTORABLE)  # the database's own message would repeat the text
    # Its other subclasses are faults of a statement, not of the database.
    if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
        return error
    return unreachable(error.orig or error, shown_url)


def unreachable(error: BaseException, shown_url: str) -> StoreUnreachable:
    """Return the error for a database that does not answer, with what helps against an error of SQLite."""
    if hint := _SQLITE_HINTS.get(getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE):
        return StoreUnreachable(f"{shown_url}: {hint}")
    # The type alone: the message may hold a password or a user's words.
    return StoreUnreachable(f"{shown_url} does not answer ({type(error).__name__}); see `afterword doctor`")
