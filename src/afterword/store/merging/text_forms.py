"""Bringing stored texts into NFC, with the places of quotes. Written for the tables of version 0017 and later ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

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


def compose_stored_texts(connection: Connection, scope_id: int | None = None) -> None:
    """Bring the texts of a scope, by default of all, into NFC. Changed scopes are marked to be derived again."""
    of_assertions = sa.true() if scope_id is None else _ASSERTIONS.c.scope_id == scope_id
    of_sessions = sa.true() if scope_id is None else _SESSIONS.c.scope_id == scope_id
    _compose_evidence(connection, of_assertions)
    _compose_turns(connection, of_sessions)
    _compose_people(connection, of_sessions)
    _compose_assertions(connection, of_assertions)


def _compose_evidence(connection: Connection, of_assertions: Any) -> None:
    """Compose the quotes, and find the place of each in the composed text of its turn."""
    columns = (_EVIDENCE.c.assertion_id, _EVIDENCE.c.ordinal, _EVIDENCE.c.quote, _EVIDENCE.c.speaker, _EVIDENCE.c.start)
    query = (
        sa.select(*columns, _TURNS.c.text)
        .join_from(_EVIDENCE, _ASSERTIONS, _ASSERTIONS.c.id == _EVIDENCE.c.assertion_id)
        .outerjoin(
            _SESSIONS,
            (_SESSIONS.c.scope_id == _ASSERTIONS.c.scope_id) & (_SESSIONS.c.session_id == _EVIDENCE.c.session_id),
        )
        .outerjoin(_TURNS, (_TURNS.c.session_pk == _SESSIONS.c.id) & (_TURNS.c.number == _EVIDENCE.c.turn))
        .where(of_assertions)
    )
    for assertion_id, ordinal, quote, speaker, start, text in _rows(connection, query, *columns[:2]):
        before = (text or "")[: start or 0]
        place = start if start is None else start - len(before) + len(composed(before))
        values = {"quote": composed(quote), "speaker": speaker and composed(speaker), "start": place}
        if values != {"quote": quote, "speaker": speaker, "start": start}:
            key = (_EVIDENCE.c.assertion_id == assertion_id) & (_EVIDENCE.c.ordinal == ordinal)
            connection.execute(sa.update(_EVIDENCE).where(key).values(values))


def _compose_turns(connection: Connection, of_sessions: Any) -> None:
    columns = (_TURNS.c.session_pk, _TURNS.c.number, _TURNS.c.speaker, _TURNS.c.text)
    query = sa.select(*columns).join_from(_TURNS, _SESSIONS, _SESSIONS.c.id == _TURNS.c.session_pk).where(of_sessions)
    for session, number, speaker, text in _rows(connection, query, *columns[:2]):
        if (composed(speaker), composed(text)) != (speaker, text):
            key = (_TURNS.c.session_pk == session) & (_TURNS.c.number == number)
            # What an agent is shown of it is found out when it is read.
            values = {"speaker": composed(speaker), "text": composed(text), "shown": None}
            connection.execute(sa.update(_TURNS).where(key).values(values))


def _compose_people(connection: Connection, of_sessions: Any) -> None:
    query = sa.select(_SESSIONS.c.id, _SESSIONS.c.humans, _SESSIONS.c.assumed).where(of_sessions)
    for session, humans, assumed in _rows(connection, query, _SESSIONS.c.id):
        values = {"humans": composed_value(humans), "assumed": composed_value(assumed)}
        if values != {"humans": humans, "assumed": assumed}:
            connection.execute(sa.update(_SESSIONS).where(_SESSIONS.c.id == session).values(values))


def _compose_assertions(connection: Connection, of_assertions: Any) -> None:
    query = sa.select(_ASSERTIONS.c.id, _ASSERTIONS.c.scope_id, *(_ASSERTIONS.c[name] for name in _TEXTS))
    for assertion_id, scope_id, *texts in _rows(connection, query.where(of_assertions), _ASSERTIONS.c.id):
        before: Mapping[str, Any] = dict(zip(_TEXTS, texts, strict=True))
        after = {name: text and composed(text) for name, text in before.items()}
        if after != before:
            keys = {"subject_key": folded(after["subject"]), "attribute_key": folded(after["attribute"])}
            change = sa.update(_ASSERTIONS).where(_ASSERTIONS.c.id == assertion_id)
            connection.execute(change.values({**after, **keys}))
            connection.execute(sa.update(_SCOPES).where(_SCOPES.c.id == scope_id).values(derivation=0))


def _rows(connection: Connection, query: Any, *key: Any) -> Iterator[Sequence[Any]]:
    """Yield the rows of a query in the order of their key, read in batches, so that they may be changed meanwhile."""
    ordered = query.order_by(*key).limit(BATCH)
    places = [list(query.selected_columns.keys()).index(column.name) for column in key]
    rows = connection.execute(ordered).all()
    while rows:
        yield from rows
        last = sa.tuple_(*key) > sa.tuple_(*(sa.literal(rows[-1][place]) for place in places))
        rows = connection.execute(ordered.where(last)).all()
