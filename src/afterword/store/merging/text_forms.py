"""Converting stored texts into Unicode NFC, and adapting the positions of quotes. For tables since version 0017."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from afterword.facts.words import folded
from afterword.normal_form import composed, composed_value

BATCH = 1000

_TEXTS = ("subject", "attribute", "value", "statement", "speaker", "limited_to", "outcome", "tags", "former_name")
_ASSERTIONS = sa.table(
    "assertions", *map(sa.column, ("id", "scope_id", "session_id", "subject_key", "attribute_key", *_TEXTS))
)
_EVIDENCE = sa.table(
    "evidence", *map(sa.column, ("assertion_id", "ordinal", "session_id", "turn", "quote", "speaker", "start"))
)
_TURNS = sa.table("turns", *map(sa.column, ("session_pk", "number", "speaker", "text", "shown")))
_SESSIONS = sa.table(
    "sessions",
    *map(sa.column, ("id", "scope_id", "session_id")),
    *(sa.column(name, sa.JSON) for name in ("humans", "assumed")),
)
_SCOPES = sa.table("scopes", sa.column("id"), sa.column("derivation"))


def convert_stored_texts_to_nfc(connection: sa.Connection, scope_id: int | None = None) -> None:
    """Convert the texts of a scope (None for all scopes) into NFC, and mark changed scopes to be derived again."""
    assertion_clause = sa.true() if scope_id is None else _ASSERTIONS.c.scope_id == scope_id
    session_clause = sa.true() if scope_id is None else _SESSIONS.c.scope_id == scope_id
    _compose_evidence(connection, assertion_clause)
    _compose_turns(connection, session_clause)
    _compose_people(connection, session_clause)
    _compose_assertions(connection, assertion_clause)


def _compose_evidence(connection: sa.Connection, assertion_clause: Any) -> None:
    """Convert the quotes, and adapt the position of each to the converted text of its turn."""
    columns = (_EVIDENCE.c.assertion_id, _EVIDENCE.c.ordinal, _EVIDENCE.c.quote, _EVIDENCE.c.speaker, _EVIDENCE.c.start)
    query = (
        sa.select(*columns, _TURNS.c.text)
        .join_from(_EVIDENCE, _ASSERTIONS, _ASSERTIONS.c.id == _EVIDENCE.c.assertion_id)
        .outerjoin(
            _SESSIONS,
            (_SESSIONS.c.scope_id == _ASSERTIONS.c.scope_id) & (_SESSIONS.c.session_id == _EVIDENCE.c.session_id),
        )
        .outerjoin(_TURNS, (_TURNS.c.session_pk == _SESSIONS.c.id) & (_TURNS.c.number == _EVIDENCE.c.turn))
        .where(assertion_clause)
    )
    for row in _read_in_batches(connection, query, *columns[:2]):
        before = (row.text or "")[: row.start or 0]
        start = row.start if row.start is None else row.start - len(before) + len(composed(before))
        values = {"quote": composed(row.quote), "speaker": row.speaker and composed(row.speaker), "start": start}
        _update_if_changed(connection, _EVIDENCE, row, columns[:2], values)


def _compose_turns(connection: sa.Connection, session_clause: Any) -> None:
    columns = (_TURNS.c.session_pk, _TURNS.c.number, _TURNS.c.speaker, _TURNS.c.text)
    query = (
        sa.select(*columns).join_from(_TURNS, _SESSIONS, _SESSIONS.c.id == _TURNS.c.session_pk).where(session_clause)
    )
    for row in _read_in_batches(connection, query, *columns[:2]):
        # Without `shown`, what an agent is shown of the turn is computed when the turn is read.
        texts = {"speaker": composed(row.speaker), "text": composed(row.text)}
        _update_if_changed(connection, _TURNS, row, columns[:2], texts, {"shown": None})


def _compose_people(connection: sa.Connection, session_clause: Any) -> None:
    query = sa.select(_SESSIONS.c.id, _SESSIONS.c.humans, _SESSIONS.c.assumed).where(session_clause)
    for row in _read_in_batches(connection, query, _SESSIONS.c.id):
        people = {"humans": composed_value(row.humans), "assumed": composed_value(row.assumed)}
        _update_if_changed(connection, _SESSIONS, row, [_SESSIONS.c.id], people)


def _compose_assertions(connection: sa.Connection, assertion_clause: Any) -> None:
    query = sa.select(_ASSERTIONS.c.id, _ASSERTIONS.c.scope_id, *(_ASSERTIONS.c[name] for name in _TEXTS))
    for row in _read_in_batches(connection, query.where(assertion_clause), _ASSERTIONS.c.id):
        texts = {name: getattr(row, name) and composed(getattr(row, name)) for name in _TEXTS}
        keys = {"subject_key": folded(texts["subject"]), "attribute_key": folded(texts["attribute"])}
        if _update_if_changed(connection, _ASSERTIONS, row, [_ASSERTIONS.c.id], texts, keys):
            connection.execute(sa.update(_SCOPES).where(_SCOPES.c.id == row.scope_id).values(derivation=0))


def _update_if_changed(
    connection: sa.Connection,
    table: Any,
    row: Any,
    key: Sequence[Any],
    texts: Mapping[str, Any],
    dependent: Mapping[str, Any] = MappingProxyType({}),
) -> bool:
    """Store converted texts of a row if they differ, with the columns that depend on them (`dependent`).

    Returns whether they differed.
    """
    is_changed = any(getattr(row, name) != text for name, text in texts.items())
    if is_changed:
        is_row = (column == getattr(row, column.name) for column in key)
        connection.execute(sa.update(table).where(*is_row).values({**texts, **dependent}))
    return is_changed


def _read_in_batches(connection: sa.Connection, query: Any, *key: Any) -> Iterator[Any]:
    """Yield the rows of a query in the order of their key. They are read in batches, and may be changed meanwhile."""
    ordered = query.order_by(*key).limit(BATCH)
    places = [list(query.selected_columns.keys()).index(column.name) for column in key]
    rows = connection.execute(ordered).all()
    while rows:
        yield from rows
        last = sa.tuple_(*key) > sa.tuple_(*(sa.literal(rows[-1][place]) for place in places))
        rows = connection.execute(ordered.where(last)).all()
