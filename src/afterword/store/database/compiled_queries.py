"""Frequent queries. Each is compiled once for each database, and returns the plain tuples of the driver."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Select, String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

Plain = tuple[Any, ...]


class JsonRow(FunctionElement[str]):
    """A JSON array of columns, as text. It takes less time and memory than as many columns."""

    type = String()
    inherit_cache = True


@compiles(JsonRow)
def _json_row(element: JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array({compiler.process(element.clauses, **options)})"


@compiles(JsonRow, "postgresql")
def _json_row_postgresql(element: JsonRow, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(json_build_array({compiler.process(element.clauses, **options)}) AS TEXT)"


class CompiledQuery:
    """A query whose values are named by `bindparam`. Building and compiling one costs more than most answers do."""

    def __init__(self, make: Callable[[], Select[Any]]) -> None:
        self._make = make
        self._compiled: dict[str, tuple[str, SQLCompiler]] = {}

    def ask(self, connection: Connection, **values: object) -> list[Plain]:
        """Return all rows for these values."""
        text, compiled = self._compiled.get(connection.dialect.name) or self._compile(connection)
        named = compiled.construct_params(values)
        positions = compiled.positiontup
        values_in_order: Any = named if positions is None else tuple([named[name] for name in positions])
        result = connection.exec_driver_sql(text, values_in_order)
        cursor: Any = result.cursor
        rows: list[Plain] = cursor.fetchall()
        result.close()
        return rows

    def ask_listed(self, connection: Connection, **values: object) -> list[Plain]:
        """Return all rows, where one of the values is a list (`bindparam(..., expanding=True)`)."""
        return [tuple(row) for row in connection.execute(self._statement, values)]

    @cached_property
    def _statement(self) -> Select[Any]:
        return self._make()

    def _compile(self, connection: Connection) -> tuple[str, SQLCompiler]:
        compiled: Any = self._statement.compile(dialect=connection.dialect)
        self._compiled[connection.dialect.name] = statement = (str(compiled), compiled)
        return statement


def moment(value: Any) -> datetime:
    """Return a stored instant. SQLite stores it as text without a zone."""
    instant: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
    if instant.tzinfo is None:
        return instant.replace(tzinfo=UTC)
    return instant if instant.tzinfo is UTC else instant.astimezone(UTC)
