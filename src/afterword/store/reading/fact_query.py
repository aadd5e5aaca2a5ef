"""Reads facts as plain rows, with values as the database driver returns them. A fact is built when it is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, String, bindparam, case, cast, func, select, type_coerce
from sqlalchemy.sql import Select
from sqlalchemy.types import JSON, NullType
from sqlmodel import SQLModel, col

from afterword.facts.assertions import OWNER
from afterword.recall.index_units import TOKENIZER
from afterword.store.database.statements import ColumnsAsJson, CompiledQuery, Plain, has_listed_name
from afterword.store.fact_details import DETAILS
from afterword.store.reading.fact_rows import FACT, KINDS, StoredFact
from afterword.store.tables import AssertionRow, EvidenceRow, FactAssertionRow, FactRow


def read_stored_facts(connection: Connection, scope_key: int, ids: Sequence[str] | None = None) -> list[StoredFact]:
    """Return the facts of a scope, in no particular order: all of them, or those with these ids."""
    if ids is None:
        return stored_facts(FACT_ROWS.ask(connection, scope=scope_key))
    return stored_facts(_SOME_FACTS.ask_listed(connection, ids, scope=scope_key))


def stored_facts(rows: Sequence[Plain]) -> list[StoredFact]:
    """Return one `StoredFact` for all rows of the same fact."""
    # Most facts have one row. Then this takes a quarter of the time of the loop.
    by_fact = {row[FACT]: (row,) for row in rows}
    if len(by_fact) < len(rows):
        by_fact = {}
        for row in rows:
            by_fact[row[FACT]] = (*by_fact.get(row[FACT], ()), row)
    return list(map(StoredFact, by_fact.values()))


def plain_columns(columns: Iterable[tuple[type[SQLModel], str]]) -> list[Any]:
    """Return columns whose values stay as the driver returns them, since most rows are never converted."""
    return [_plain_column(table, name).label(f"column_{n}") for n, (table, name) in enumerate(columns)]


def _plain_column(table: type[SQLModel], name: str) -> Any:
    column = SQLModel.metadata.tables[str(table.__tablename__)].columns[name]
    return cast(column, String) if isinstance(column.type, JSON) else type_coerce(column, NullType())


def stored_terms(table: type[SQLModel]) -> Any:
    """Return the stored search words without the version of the tokenizer, null if another version made them."""
    words, length = _plain_column(table, "search_terms"), len(TOKENIZER)
    return case((func.substr(words, 1, length) == TOKENIZER, func.substr(words, length + 1)))


def _facts() -> Select[Any]:
    session_id = func.coalesce(_plain_column(AssertionRow, "session_id"), "")
    kind = case(*((col(AssertionRow.kind) == str(kind), number) for number, kind in enumerate(KINDS)))
    # The order is that of the column numbers in `fact_rows` and `store.fact_details`. To save memory, a column is null
    # if it has its usual value or equals another column.
    columns = (
        *(_plain_column(AssertionRow, "said_at"), session_id),
        *(func.coalesce(col(EvidenceRow.turn), 0), func.coalesce(col(EvidenceRow.start), 0)),
        *(col(FactRow.id), col(FactAssertionRow.ordinal), func.coalesce(col(EvidenceRow.ordinal), 0)),
        func.nullif(col(AssertionRow.id), col(FactRow.id)),
        *(case((col(AssertionRow.id) == col(FactRow.lead_id), 1), else_=0), kind),
        *(func.length(col(AssertionRow.statement)), _plain_column(FactRow, "spans")),
        *(func.nullif(_plain_column(FactRow, "may_be"), "[]"), stored_terms(FactRow)),
        *(func.nullif(col(EvidenceRow.session_id), session_id), col(EvidenceRow.turn)),
        case((col(AssertionRow.former_name).is_not(None), 1)),
        func.nullif(_plain_column(AssertionRow, "subject"), OWNER),
        _plain_column(AssertionRow, "recorded_at"),
        func.nullif(_plain_column(FactRow, "contested_by"), "[]"),
        ColumnsAsJson(*(_plain_column(table, name) for table, name in DETAILS)),
    )
    return (
        select(*(column.label(f"column_{number}") for number, column in enumerate(columns)))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id))
        .outerjoin(EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id))
    )


FACT_ROWS = CompiledQuery(_facts().where(col(FactRow.scope_id) == bindparam("scope")))
# The sum keeps SQLite from using the index on the scope, which would scan all facts of the scope.
_SOME_FACTS = CompiledQuery(
    _facts().where(has_listed_name(col(FactRow.id)), col(FactRow.scope_id) + 0 == bindparam("scope"))
)
