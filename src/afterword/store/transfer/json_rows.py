"""Converting lines of JSON to columns of tables."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any, get_type_hints

from sqlmodel import SQLModel

from afterword.errors import FileInvalid

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table: all names, the defaults and the required ones of a line, and how to parse values.

    A line need not hold foreign keys, which follow from its place in the file, nor numbers that the database assigns.
    """

    names: frozenset[str]
    defaults: Mapping[str, None]
    required: tuple[str, ...]
    parsers: tuple[tuple[str, Callable[[Any], Any]], ...]


def parse_columns(table: type[SQLModel], line: Line) -> Line:
    """Return the columns of a table that a line holds, as the database takes them. Raises `FileInvalid`."""
    columns = _columns(table)
    values: Line = {**columns.defaults, **{name: line[name] for name in columns.names & line.keys()}}
    for name in columns.required:
        if values.get(name) is None:
            raise FileInvalid(f"a line has no {table.__tablename__}.{name}; the file is damaged")
    for name, parse in columns.parsers:
        try:
            if values.get(name) is not None:
                values[name] = parse(values[name])
        except (TypeError, ValueError):
            raise FileInvalid(f"{table.__tablename__}.{name} of a line cannot be read; the file is damaged") from None
    return values


@cache
def _columns(table: type[SQLModel]) -> _Columns:
    hints = {name: str(hint) for name, hint in get_type_hints(table).items()}
    columns = list(SQLModel.metadata.tables[str(table.__tablename__)].columns)
    optional = {
        column.name for column in columns if column.foreign_keys or column.default is not None or column.name == "id"
    }
    return _Columns(
        names=frozenset(column.name for column in columns),
        defaults={column.name: None for column in columns if column.nullable},
        required=tuple(column.name for column in columns if not column.nullable and column.name not in optional),
        parsers=tuple((name, parse) for name, hint in hints.items() if (parse := _parser(hint)) is not None),
    )


def _parser(hint: str) -> Callable[[Any], Any] | None:
    if "datetime" in hint:
        return datetime.fromisoformat
    return partial(b64decode, validate=True) if "bytes" in hint else None
