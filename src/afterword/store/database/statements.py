"""Statements that bypass the object mapper: rows are plain tuples, which takes a fifth of the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Executable, bindparam
from sqlmodel import Session, SQLModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowRange:
    """Which rows of a list are read: at most `most` after the row with the number `after`, without the first `offset`.

    The oldest rows come first, or the newest; 0 is no row to start after.
    """

    most: int | None = None
    after: int = 0
    offset: int = 0
    is_newest_first: bool = False

    def chosen_of(self, query: Any, number: Any) -> Any:
        """Return the query for these rows, in the order of their numbers."""
        if self.after:
            query = query.where(number < self.after if self.is_newest_first else number > self.after)
        return query.order_by(number.desc() if self.is_newest_first else number).limit(self.most).offset(self.offset)


CHUNK = 500
"""How many values one statement lists. Databases limit the parameters of a statement; this is below every limit."""


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in groups that are small enough for one statement."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def fetch_rows(transaction: Session, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
    """Execute a statement with these values and return its rows. Changed objects must be flushed before."""
    return transaction.connection().execute(statement, values).all()


def fetch_where_in(transaction: Session, table: type[SQLModel], column: str, values: Iterable[Any]) -> list[Any]:
    """Return the rows of a table in which a column has one of these values."""
    statement = _select_where_in(table, column)
    return [row for chunk in chunks(list(values)) for row in fetch_rows(transaction, statement, {"values": chunk})]


def select_columns(table: type[SQLModel]) -> Any:
    """Select the columns of a table as plain rows, which are read faster than objects that may be changed."""
    return sqlalchemy.select(sqlalchemy.inspect(table).local_table)


# Building a statement takes longer than executing it.
@cache
def _select_where_in(table: type[SQLModel], column: str) -> Any:
    selected = select_columns(table)
    return selected.where(selected.selected_columns[column].in_(bindparam("values", expanding=True)))
