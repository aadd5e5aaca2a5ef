"""SQL statements that bypass SQLAlchemy's object mapper. Their rows are plain tuples, which are five times as fast.

Building and compiling a statement takes longer than executing it. So frequent statements are built once, and engines
share the compiled ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import Connection, Engine, Executable, Select, String, bindparam, event, insert
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm.util import identity_key
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.util import LRUCache
from sqlmodel import Session, SQLModel

T = TypeVar("T")


CHUNK = 500
"""How many values one statement lists. Databases limit the parameters of a statement; this is below every limit."""
Values = Mapping[str, Any]
cached_insert: Any = cache(insert)
UnconvertedRow = tuple[Any, ...]
CAPACITY = 1000
_shared: dict[tuple[object, ...], tuple[Dialect, LRUCache[Any, Any]]] = {}
"""By server: its SQL dialect, and the cache of the statements that were compiled for it."""


@dataclass(frozen=True, slots=True)
class RowRange:
    """Which page of a list is read: at most `most` of the rows that follow the row with the number `after`.

    The first `offset` of them are skipped. With `after` 0 the page starts at the beginning of the list. The oldest rows
    come first, unless `is_newest_first`.
    """

    most: int | None = None
    after: int = 0
    offset: int = 0
    is_newest_first: bool = False

    def limit_query(self, query: Any, number: Any) -> Any:
        """Return a query limited to this page. `number` is the column with the numbers of the rows."""
        if self.after:
            query = query.where(number < self.after if self.is_newest_first else number > self.after)
        return query.order_by(number.desc() if self.is_newest_first else number).limit(self.most).offset(self.offset)


def chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the values in groups that are small enough for one statement."""
    return (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))


def fetch_rows(transaction: Session, statement: Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
    """Execute a statement with these values and return its rows. Flush changed objects of the transaction before."""
    return transaction.connection().execute(statement, values).all()


def fetch_where_in(transaction: Session, table: type[SQLModel], column: str, values: Iterable[Any]) -> list[Any]:
    """Return the rows of a table in which a column has one of these values."""
    statement = _select_where_in(table, column)
    return [row for chunk in chunks(list(values)) for row in fetch_rows(transaction, statement, {"values": chunk})]


def select_columns(table: type[SQLModel]) -> Any:
    """Return a select of all columns of a table, whose rows are plain and faster to read than objects of the mapper."""
    return sqlalchemy.select(sqlalchemy.inspect(table).local_table)


# Statements that run often are built only once: building one takes longer than executing it.
@cache
def _select_where_in(table: type[SQLModel], column: str) -> Any:
    selected = select_columns(table)
    return selected.where(selected.selected_columns[column].in_(bindparam("values", expanding=True)))


def insert_rows(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> None:
    """Insert the rows."""
    if rows:
        transaction.connection().execute(cached_insert(table), list(rows))


def insert_numbered(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> list[int]:
    """Insert the rows and return the numbers that the database gives them, in the order of the rows."""
    if not rows:
        return []
    key = SQLModel.metadata.tables[str(table.__tablename__)].c.id
    statement = insert(table).returning(key, sort_by_parameter_order=True)
    return list(transaction.connection().execute(statement, list(rows)).scalars())


def expire_loaded_row(transaction: Session, table: type[SQLModel], key: int) -> None:
    """Expire the transaction's object of this row, if it has one, because a plain statement has changed the row."""
    loaded = transaction.identity_map.get(identity_key(table, key))
    if loaded is not None:
        transaction.expire(loaded)


def insert_missing(transaction: Session, table: type[SQLModel], rows: Sequence[Values]) -> int:
    """Insert the rows whose key is not in the table yet; return how many were inserted."""
    if not rows:
        return 0
    connection = transaction.connection()
    return connection.execute(insert_missing_statement(table, connection.dialect.name), list(rows)).rowcount


@cache
def insert_missing_statement(table: type[SQLModel], dialect_name: str, *, returning: str | None = None) -> Any:
    """Return the statement that inserts a row unless its key is in the table, in the dialect of a database."""
    dialect: Any = postgresql if dialect_name == "postgresql" else sqlite
    statement = dialect.insert(table).on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    return statement if returning is None else statement.returning(getattr(table, returning))


class ColumnsAsJson(FunctionElement[str]):
    """A JSON array of columns, as text. Reading it takes less time and memory than reading the columns themselves."""

    type: String = String()
    inherit_cache: bool = True


@compiles(ColumnsAsJson)
def _columns_as_json(element: ColumnsAsJson, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_array({compiler.process(element.clauses, **options)})"


@compiles(ColumnsAsJson, "postgresql")
def _columns_as_json_postgresql(element: ColumnsAsJson, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(json_build_array({compiler.process(element.clauses, **options)}) AS TEXT)"


class ListedNames(FunctionElement[str]):
    """The texts of a JSON array, as rows. The array is one parameter, so one compiled statement fits any number."""

    type: String = String()
    inherit_cache: bool = True


@compiles(ListedNames)
def _listed_names(element: ListedNames, compiler: SQLCompiler, **options: Any) -> str:
    return f"(SELECT value FROM json_each({compiler.process(element.clauses, **options)}))"


@compiles(ListedNames, "postgresql")
def _listed_names_postgresql(element: ListedNames, compiler: SQLCompiler, **options: Any) -> str:
    return f"(SELECT json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON)))"


def listed_name_condition(column: Any) -> Any:
    """Return the condition that a column has one of the names given to `CompiledQuery.ask_listed`."""
    return column.op("IN", is_comparison=True)(ListedNames(bindparam("names", type_=String())))


class CompiledQuery:
    """A query that is compiled only once, because that takes longer than executing it. `bindparam` names its values."""

    def __init__(self, statement: Select[*tuple[Any, ...]]) -> None:
        self._statement, self._compiled = statement, dict[str, tuple[str, Any]]()

    def ask(self, connection: Connection, **values: object) -> list[UnconvertedRow]:
        """Return all rows for these values."""
        dialect = connection.dialect
        if dialect.name not in self._compiled:
            compiled = self._statement.compile(dialect=dialect)
            self._compiled[dialect.name] = str(compiled), compiled
        text, compiled = self._compiled[dialect.name]
        named, positions = compiled.construct_params(values), compiled.positiontup
        values_in_order: Any = named if positions is None else tuple([named[name] for name in positions])
        result = connection.exec_driver_sql(text, values_in_order)
        cursor: Any = result.cursor
        rows: list[UnconvertedRow] = cursor.fetchall()
        result.close()
        return rows

    def ask_listed(self, connection: Connection, names: Sequence[str], **values: object) -> list[UnconvertedRow]:
        """Return all rows for these names. The query must have the condition `listed_name_condition`."""
        return self.ask(connection, names=json.dumps(names), **values) if names else []


def parse_stored_instant(value: Any) -> datetime:
    """Return a stored instant in UTC. SQLite stores it as text without a zone."""
    if isinstance(value, str):
        # Parsing a text with a zone is eight times as fast as adding the zone afterwards.
        value = datetime.fromisoformat(value if value[-6] in "+-" else f"{value}+00:00")
    instant: datetime = value if value.tzinfo else value.replace(tzinfo=UTC)
    return instant if instant.tzinfo is UTC else instant.astimezone(UTC)


def share_compiled_statements(engine: Engine) -> Engine:
    """Let a new engine share compiled statements with the other engines of the same server, and return the engine.

    A dialect is complete only after its first connection, so an engine shares its dialect and statements from then on.
    The listener here runs after SQLAlchemy's own, which initialises the dialect.
    """
    url = engine.url
    server = (url.drivername, url.host, url.port, url.query.get("host"))
    own = engine.dialect, LRUCache[Any, Any](CAPACITY)
    engine.dialect, compiled = _shared.get(server, own)
    if compiled is own[1]:
        event.listen(engine, "connect", lambda *_: _shared.setdefault(server, own))
    engine.update_execution_options(compiled_cache=compiled)
    return engine
