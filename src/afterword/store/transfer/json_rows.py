"""Rows as lines of JSON, and back."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, get_type_hints

from sqlmodel import SQLModel

from afterword.errors import FileInvalid

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a table: all names, what is empty where a line says nothing, what a line must say, what reads it.

    What ties a row to others is known by where its line stands, and numbers are given by the database.
    """

    names: frozenset[str]
    empty: Mapping[str, None]
    needed: tuple[str, ...]
    readers: tuple[tuple[str, Callable[[Any], Any]], ...]


def parse_columns(table: type[SQLModel], line: Line) -> Line:
    """Return the columns of a table that a line holds, as the database takes them. Raises `FileInvalid`."""
    columns = _columns(table)
    values: Line = {**columns.empty, **{name: line[name] for name in columns.names & line.keys()}}
    for name in columns.needed:
        if values.get(name) is None:
            raise FileInvalid(f"a line tells no {table.__tablename__}.{name}; the file is damaged")
    for name, read in columns.readers:
        try:
            if values.get(name) is not None:
                values[name] = read(values[name])
        except (TypeError, ValueError):
            raise FileInvalid(f"{table.__tablename__}.{name} of a line cannot be read; the file is damaged") from None
    return values


@cache
def _columns(table: type[SQLModel]) -> _Columns:
    hints = {name: str(hint) for name, hint in get_type_hints(table).items()}
    columns = list(SQLModel.metadata.tables[str(table.__tablename__)].columns)
    given = {one.name for one in columns if one.foreign_keys or one.default is not None or one.name == "id"}
    return _Columns(
        names=frozenset(one.name for one in columns),
        empty={one.name: None for one in columns if one.nullable},
        needed=tuple(one.name for one in columns if not one.nullable and one.name not in given),
        readers=tuple((name, read) for name in hints if (read := _reader(hints[name])) is not None),
    )


def _reader(hint: str) -> Callable[[Any], Any] | None:
    if "datetime" in hint:
        return datetime.fromisoformat
    return _bytes if "bytes" in hint else None


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)
