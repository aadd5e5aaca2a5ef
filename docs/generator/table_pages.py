"""The reference of the tables of a store."""

from __future__ import annotations

import inspect
from collections.abc import Container, Iterator

from sqlalchemy import Column, Table
from sqlmodel import SQLModel

from afterword.store import tables  # noqa: F401 - its rows register the tables
from afterword.store.forgetting.erasable_tables import ERASABLE_TABLES
from generator.markup import code, prose, table


def store_tables() -> str:
    """Return a heading, a text and a table of columns for each table of the store."""
    return "\n\n".join(_parts())


def _parts() -> Iterator[str]:
    rows = {str(holding.table.__tablename__): holding for holding in ERASABLE_TABLES}
    for name, store_table in sorted(SQLModel.metadata.tables.items()):
        holding = rows[name]
        yield f"## {code(name)}"
        yield prose(inspect.cleandoc(holding.table.__doc__ or ""))
        yield table(
            ("column", "type", "key", "words"), (_row(column, holding.words) for column in _columns(store_table))
        )


def _columns(store_table: Table) -> Iterator[Column[object]]:
    yield from store_table.columns


def _row(column: Column[object], words: Container[str]) -> tuple[str, str, str, str]:
    references = ", ".join(key.target_fullname for key in column.foreign_keys)
    keys = [*(["primary"] if column.primary_key else []), *([f"of {code(references)}"] if references else [])]
    nullable = " or null" if column.nullable else ""
    return (
        code(column.name),
        f"{str(column.type).lower()}{nullable}",
        ", ".join(keys),
        "erased by `forget`" if column.name in words else "",
    )
