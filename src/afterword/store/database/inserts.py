"""Writing many rows in one statement, on either database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Insert, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

from afterword.store.database.statements import connection_of

Values = Mapping[str, Any]


def insert_rows(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> None:
    """Insert the rows."""
    if rows:
        connection_of(transaction).execute(_inserting(table), list(rows))


def insert_numbered(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> list[int]:
    """Insert the rows, which the database numbers; return their numbers in the order of the rows."""
    if not rows:
        return []
    key = SQLModel.metadata.tables[str(table.__tablename__)].c.id
    numbered = insert(table).returning(key, sort_by_parameter_order=True)
    return list(transaction.connection().execute(numbered, list(rows)).scalars())


def insert_missing(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> None:
    """Insert the rows whose key is not there yet."""
    if rows:
        connection_of(transaction).execute(insert_new(transaction, table), list(rows))


def insert_new(transaction: Session, table: type[SQLModel]) -> Any:
    """Return the statement that inserts a row whose key is not there yet, in the database's own dialect."""
    return _inserting_new(table, connection_of(transaction).dialect.name)


@cache
def _inserting(table: type[SQLModel]) -> Insert:
    return insert(table)


@cache
def _inserting_new(table: type[SQLModel], name: str) -> Any:
    dialect: Any = postgresql if name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()
