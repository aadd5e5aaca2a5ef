"""Writing many rows in one statement, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

Values = Mapping[str, Any]


def insert_rows(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> None:
    """Insert the rows."""
    if rows:
        transaction.connection().execute(_insert(table), list(rows))


def insert_numbered(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> list[int]:
    """Insert the rows and return the numbers that the database gives them, in the order of the rows."""
    if not rows:
        return []
    key = SQLModel.metadata.tables[str(table.__tablename__)].c.id
    statement = insert(table).returning(key, sort_by_parameter_order=True)
    return list(transaction.connection().execute(statement, list(rows)).scalars())


def insert_missing(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> None:
    """Insert the rows whose key is not in the table yet."""
    if rows:
        transaction.connection().execute(insert_if_missing(transaction, table), list(rows))


def insert_if_missing(transaction: Session, table: type[SQLModel]) -> Any:
    """Return the statement that inserts a row unless its key is in the table, in the dialect of the database."""
    return _insert_or_ignore(table, transaction.connection().dialect.name)


@cache
def _insert(table: type[SQLModel]) -> Any:
    return insert(table)


@cache
def _insert_or_ignore(table: type[SQLModel], dialect_name: str) -> Any:
    dialect: Any = postgresql if dialect_name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()
