"""Reading what recall needs of one scope in one go: as plain rows, so that a large scope is read quickly.

The rows are values as the driver gives them; `store.reading.views` makes facts of those that are served. Where only
runs were applied since another reading, just what they changed is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, String, bindparam, cast, func, select, type_coerce
from sqlalchemy.sql import Select
from sqlalchemy.types import JSON, NullType
from sqlmodel import SQLModel, col

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, SourceTurn, TurnPlace
from afterword.store.database.compiled_queries import Plain, Question
from afterword.store.lookup import CHUNK, live_runs
from afterword.store.reading.fact_rows import COLUMNS, LIGHT, Held, gathered, held_of, moment_or_none
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RunRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    WindowAssertionRow,
)

MOST_CHANGED = 0.25
"""Where a larger share of the facts has changed, all are read."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that can be recalled of a scope at one revision: facts in the order of saying, and their turns.

    `otherwise` are the turns that something else rests on, live and no fact: what was withdrawn or is to be gone.
    """

    scope: Scope
    revision: int
    held: tuple[Held, ...] = ()
    turns: tuple[SourceTurn, ...] = ()
    otherwise: frozenset[TurnPlace] = frozenset()
    rows: Mapping[Plain, SourceTurn] = field(default_factory=dict, repr=False)
    """The turns by the rows that they were read from."""


def revision(connection: Connection, scope: Scope) -> tuple[int | None, int]:
    """Return the key of the scope, None where nothing is kept of it, and its revision."""
    found = _REVISION.ask(connection, tenant=scope.tenant, kind=str(scope.kind), name=scope.id)
    return (found[0][0], found[0][1]) if found else (None, 0)


def read(connection: Connection, scope: Scope, before: Snapshot | None = None) -> Snapshot:
    """Return what the scope holds; the connection is in a transaction, so that all of it is of one revision.

    `before` is what it held once: what is still the same is the same object.
    """
    key, number = revision(connection, scope)
    if key is None:
        return Snapshot(scope, 0)
    if before is not None and not _has_only_grown(connection, key, before.revision, number):
        before = None
    held = _held(connection, key, before.held if before else ())
    held.sort(key=lambda one: one.order)
    turns = _turns(connection, key, before.rows if before else {}) if any(one.sources for one in held) else {}
    otherwise = map(tuple, _OTHERWISE.ask(connection, scope=key))
    return Snapshot(scope, number, tuple(held), tuple(turns.values()), frozenset(otherwise), turns)


def _has_only_grown(connection: Connection, key: int, then: int, now: int) -> bool:
    """Whether every revision since then is that of an applied run. What is said changes only where things are
    forgotten, which has a revision of its own."""
    [(applied,)] = _APPLIED.ask(connection, scope=key, then=then, now=now)
    return then <= now and bool(applied == now - then)


def _held(connection: Connection, key: int, before: Sequence[Held]) -> list[Held]:
    if not before:
        return held_of(_FACTS.ask(connection, scope=key))
    known = {one.id: one for one in before}
    same: list[Held] = []
    changed: list[str] = []
    for name, rows in gathered(_LIGHT.ask(connection, scope=key)).items():
        one = known.get(name)
        if one is not None and one.light == tuple(rows):
            same.append(one)
        else:
            changed.append(name)
    if len(changed) > MOST_CHANGED * len(known):
        return held_of(_FACTS.ask(connection, scope=key))
    for start in range(0, len(changed), CHUNK):
        same += held_of(_SOME_FACTS.ask_listed(connection, scope=key, names=changed[start : start + CHUNK]))
    return same


def _turns(connection: Connection, key: int, known: Mapping[Plain, SourceTurn]) -> dict[Plain, SourceTurn]:
    """Return the turns, in order, by their rows."""
    rows = _TURNS.ask(connection, scope=key, role=str(Role.HUMAN))
    rows.sort(key=itemgetter(0, 1))
    return {row: known.get(row) or _turn(row) for row in rows}


def _turn(row: Plain) -> SourceTurn:
    _, number, session_id, humans, assumed, speaker, said_at, text = row
    in_company = _people(humans, assumed) > 1
    return SourceTurn(session_id, number, speaker, moment_or_none(said_at), text, in_company=in_company)


@lru_cache(maxsize=10_000)
def _people(humans: str, assumed: str) -> int:
    return len({*json.loads(humans), *json.loads(assumed)})


def _plain(columns: Iterable[tuple[type[SQLModel], str]]) -> list[Any]:
    """Return columns whose values are left as the driver gives them: what is never served is never converted."""
    tables = SQLModel.metadata.tables
    found = [(tables[str(table.__tablename__)].columns[name], f"column_{n}") for n, (table, name) in enumerate(columns)]
    return [
        (cast(column, String) if isinstance(column.type, JSON) else type_coerce(column, NullType())).label(name)
        for column, name in found
    ]


def _scope_revision() -> Any:
    return select(col(ScopeRow.id), col(ScopeRow.revision)).where(
        col(ScopeRow.tenant) == bindparam("tenant"),
        col(ScopeRow.kind) == bindparam("kind"),
        col(ScopeRow.name) == bindparam("name"),
    )


def _applied() -> Select[Any]:
    number = col(RunRow.applied_revision)
    since = (number > bindparam("then"), number <= bindparam("now"))
    return select(func.count()).select_from(RunRow).where(col(RunRow.scope_id) == bindparam("scope"), *since)


def _light() -> Select[Any]:
    return (
        select(*_plain(COLUMNS[:LIGHT]))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id))
        .where(col(FactRow.scope_id) == bindparam("scope"))
    )


def _facts() -> Select[Any]:
    return (
        select(*_plain(COLUMNS))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id))
        .outerjoin(EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id))
        .where(col(FactRow.scope_id) == bindparam("scope"))
    )


def _some_facts() -> Select[Any]:
    return _facts().where(col(FactRow.id).in_(bindparam("names", expanding=True)))


def _cited_turns() -> Select[Any]:
    """Select the turns of people that facts rest on, beginning with what is cited: a scope has many more turns."""
    cited = (
        select(col(EvidenceRow.session_id), col(EvidenceRow.turn))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(EvidenceRow, col(EvidenceRow.assertion_id) == col(FactAssertionRow.assertion_id))
        .where(col(FactRow.scope_id) == bindparam("scope"), col(EvidenceRow.turn).is_not(None))
        .distinct()
        .cte("cited")
    )
    names = ((SessionRow, "id"), (TurnRow, "number"), (SessionRow, "session_id"), (SessionRow, "humans"))
    said = ((SessionRow, "assumed"), (TurnRow, "speaker"), (TurnRow, "said_at"), (TurnRow, "text"))
    return (
        select(*_plain([*names, *said]))
        .join_from(cited, SessionRow, col(SessionRow.session_id) == cited.c.session_id)
        .join(TurnRow, (col(TurnRow.session_pk) == col(SessionRow.id)) & (col(TurnRow.number) == cited.c.turn))
        .where(col(SessionRow.scope_id) == bindparam("scope"), col(TurnRow.role) == bindparam("role"))
    )


def _otherwise() -> Select[Any]:
    """Select the turns of what is live and belongs to no fact: retractions, and what someone asked to be gone."""
    key: Any = bindparam("scope")
    windows = select(col(RunWindowRow.window_id)).where(col(RunWindowRow.run_id).in_(live_runs(key)))
    live = select(col(WindowAssertionRow.assertion_id)).where(col(WindowAssertionRow.window_id).in_(windows))
    told = select(col(FactAssertionRow.assertion_id)).where(col(FactAssertionRow.assertion_id) == col(AssertionRow.id))
    joined = select(*_plain([(EvidenceRow, "session_id"), (EvidenceRow, "turn")])).join_from(
        AssertionRow, EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id)
    )
    apart = joined.where(col(AssertionRow.scope_id) == key, ~told.exists(), col(AssertionRow.id).in_(live))
    return apart.where(col(EvidenceRow.turn).is_not(None))


_REVISION = Question(_scope_revision)
_APPLIED = Question(_applied)
_LIGHT = Question(_light)
_FACTS = Question(_facts)
_SOME_FACTS = Question(_some_facts)
_TURNS = Question(_cited_turns)
_OTHERWISE = Question(_otherwise)
