"""Read all that recall needs of one scope in one transaction, as plain rows, so that a large scope loads quickly.

The rows hold values as the driver returns them; `store.reading.views` makes facts of those that are served. If an
earlier snapshot is given and every change since is known, only the changed facts are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, String, bindparam, cast, select, type_coerce
from sqlalchemy.sql import Select
from sqlalchemy.types import JSON, NullType
from sqlmodel import SQLModel, col

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, SourceTurn, TurnPlace
from afterword.store.database.compiled_queries import Plain, Question
from afterword.store.ledger import session_source
from afterword.store.lookup import CHUNK, live_runs
from afterword.store.reading.fact_rows import COLUMNS, StoredFact, moment_or_none, stored_facts
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RunWindowRow,
    ScopeChangeRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    WindowAssertionRow,
)

MOST_CHANGED = 0.25
"""Where a larger share of the facts has changed, all are read."""
TURN_COLUMNS: tuple[tuple[type[SQLModel], str], ...] = (
    (SessionRow, "id"),
    (TurnRow, "number"),
    (SessionRow, "session_id"),
    (SessionRow, "humans"),
    (SessionRow, "assumed"),
    (TurnRow, "speaker"),
    (TurnRow, "said_at"),
    (TurnRow, "text"),
)
FEW_CHANGED = 200
"""So many are read by themselves in any case."""
_SESSION = session_source("")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that can be recalled of a scope at one revision: its facts in order of saying, and their turns.

    `stamp` tells this state from another one of the same revision. `unlinked` are the turns on which live statements
    rest that belong to no fact: withdrawals, and requests to forget.
    """

    scope: Scope
    revision: int
    facts: tuple[StoredFact, ...] = ()
    turns: tuple[SourceTurn, ...] = ()
    unlinked: frozenset[TurnPlace] = frozenset()
    rows: Mapping[Plain, SourceTurn] = field(default_factory=dict, repr=False)
    """The turns by the rows that they were read from."""
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class _Version:
    """A scope's key, None where nothing is kept of it, and which state of it is there."""

    key: int | None
    revision: int
    stamp: str

    def is_of(self, snapshot: Snapshot) -> bool:
        return (self.revision, self.stamp) == (snapshot.revision, snapshot.stamp)


def version(connection: Connection, scope: Scope) -> _Version:
    """Return which state of the scope is there."""
    rows = _VERSION.ask(connection, tenant=scope.tenant, kind=str(scope.kind), name=scope.id)
    return _Version(*rows[0]) if rows else _Version(None, 0, "")


def read(connection: Connection, scope: Scope, before: Snapshot | None = None) -> Snapshot:
    """Return what the scope holds; the connection is in a transaction, so that all of it is of one revision.

    `before` is what it held once: where every change since then is known, only what changed is read.
    """
    now = version(connection, scope)
    if now.key is None:
        return Snapshot(scope, 0)
    if before is not None and now.is_of(before):
        return before
    changes = _changes_since(connection, now, before) if before is not None else None
    if before is None or changes is None:
        facts = stored_facts(_FACTS.ask(connection, scope=now.key))
        turns = _turns(_TURNS.ask(connection, scope=now.key, role=str(Role.HUMAN)), {})
        unlinked = _unlinked_places(connection, now.key)
    else:
        facts = _changed_facts(connection, now.key, before.facts, changes)
        turns = _changed_turns(connection, now.key, before, facts, changes)
        unlinked = before.unlinked
        if any(change.is_unlinked for change in changes):
            unlinked = _unlinked_places(connection, now.key)
    facts.sort(key=lambda fact: fact.order)
    return Snapshot(scope, now.revision, tuple(facts), tuple(turns.values()), unlinked, turns, now.stamp)


@dataclass(frozen=True, slots=True)
class _Change:
    revision: int
    stamp: str
    source: str
    fact_ids: Sequence[str]
    is_unlinked: bool


def _changes_since(connection: Connection, now: _Version, before: Snapshot) -> list[_Change] | None:
    """Return what has changed since `before`, None where that is not known: too long ago, or another history."""
    rows = _CHANGES.ask(connection, scope=now.key, revision=before.revision)
    changes = [_Change(row[0], row[1], row[2], json.loads(row[3]), bool(row[4])) for row in rows]
    known = [(change.revision, change.stamp) for change in changes]
    wanted = range(before.revision, now.revision + 1)
    if not known or [revision for revision, _ in known] != list(wanted):
        return None
    if known[0] != (before.revision, before.stamp) or known[-1] != (now.revision, now.stamp):
        return None
    changes = changes[1:]
    changed = sum(len(change.fact_ids) for change in changes)
    return changes if changed <= max(MOST_CHANGED * len(before.facts), FEW_CHANGED) else None


def _changed_facts(
    connection: Connection, key: int, before: Sequence[StoredFact], changes: Sequence[_Change]
) -> list[StoredFact]:
    changed = list(dict.fromkeys(fact_id for change in changes for fact_id in change.fact_ids))
    gone = set(changed)
    facts = [fact for fact in before if fact.id not in gone]
    for start in range(0, len(changed), CHUNK):
        facts += stored_facts(_SOME_FACTS.ask_listed(connection, scope=key, names=changed[start : start + CHUNK]))
    return facts


def _changed_turns(
    connection: Connection, key: int, before: Snapshot, facts: Sequence[StoredFact], changes: Sequence[_Change]
) -> dict[Plain, SourceTurn]:
    """Return the turns that facts rest on; those of sessions that were read again since are read anew."""
    cited = {place for fact in facts for place in fact.sources}
    read_again = {change.source.removeprefix(_SESSION) for change in changes if change.source.startswith(_SESSION)}
    unchanged = {
        row: turn for row, turn in before.rows.items() if turn.place in cited and turn.session_id not in read_again
    }
    wanted = {place[0] for place in cited - {turn.place for turn in unchanged.values()}}
    rows: list[Plain] = []
    names = sorted(wanted)
    for start in range(0, len(names), CHUNK):
        turns = _SESSION_TURNS.ask_listed(
            connection, scope=key, role=str(Role.HUMAN), names=names[start : start + CHUNK]
        )
        rows += [row for row in turns if (row[2], row[1]) in cited]
    return _turns([*unchanged, *rows], unchanged)


def _unlinked_places(connection: Connection, key: int) -> frozenset[TurnPlace]:
    return frozenset(map(tuple, _UNLINKED.ask(connection, scope=key)))


def _turns(rows: Iterable[Plain], known: Mapping[Plain, SourceTurn]) -> dict[Plain, SourceTurn]:
    """Return the turns, in order, by their rows."""
    ordered = sorted(set(rows), key=itemgetter(0, 1))
    return {row: known.get(row) or _turn(row) for row in ordered}


def _turn(row: Plain) -> SourceTurn:
    _, number, session_id, humans, assumed, speaker, said_at, text = row
    in_company = _people(humans, assumed) > 1
    return SourceTurn(session_id, number, speaker, moment_or_none(said_at), text, in_company=in_company)


@lru_cache(maxsize=10_000)
def _people(humans: str, assumed: str) -> int:
    return len({*json.loads(humans), *json.loads(assumed)})


def _plain(columns: Iterable[tuple[type[SQLModel], str]]) -> list[Any]:
    """Return columns whose values stay as the driver returns them: rows that are never served are never converted."""
    tables = SQLModel.metadata.tables
    named_columns = [
        (tables[str(table.__tablename__)].columns[name], f"column_{n}") for n, (table, name) in enumerate(columns)
    ]
    return [
        (cast(column, String) if isinstance(column.type, JSON) else type_coerce(column, NullType())).label(name)
        for column, name in named_columns
    ]


def _scope_version() -> Any:
    return select(col(ScopeRow.id), col(ScopeRow.revision), col(ScopeRow.stamp)).where(
        col(ScopeRow.tenant) == bindparam("tenant"),
        col(ScopeRow.kind) == bindparam("kind"),
        col(ScopeRow.name) == bindparam("name"),
    )


def _changes() -> Select[Any]:
    names = ("revision", "stamp", "source", "fact_ids", "is_unlinked")
    of_scope = col(ScopeChangeRow.scope_id) == bindparam("scope")
    since = select(*_plain([(ScopeChangeRow, name) for name in names])).where(
        of_scope, col(ScopeChangeRow.revision) >= bindparam("revision")
    )
    return since.order_by(col(ScopeChangeRow.revision))


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
    """Select the turns of people that facts rest on. It starts from the evidence, since a scope has many more turns."""
    cited = (
        select(col(EvidenceRow.session_id), col(EvidenceRow.turn))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(EvidenceRow, col(EvidenceRow.assertion_id) == col(FactAssertionRow.assertion_id))
        .where(col(FactRow.scope_id) == bindparam("scope"), col(EvidenceRow.turn).is_not(None))
        .distinct()
        .cte("cited")
    )
    return (
        select(*_plain(TURN_COLUMNS))
        .join_from(cited, SessionRow, col(SessionRow.session_id) == cited.c.session_id)
        .join(TurnRow, (col(TurnRow.session_pk) == col(SessionRow.id)) & (col(TurnRow.number) == cited.c.turn))
        .where(col(SessionRow.scope_id) == bindparam("scope"), col(TurnRow.role) == bindparam("role"))
    )


def _session_turns() -> Select[Any]:
    """Select the turns of people in some sessions."""
    return (
        select(*_plain(TURN_COLUMNS))
        .join_from(SessionRow, TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
        .where(
            col(SessionRow.scope_id) == bindparam("scope"),
            col(SessionRow.session_id).in_(bindparam("names", expanding=True)),
            col(TurnRow.role) == bindparam("role"),
        )
    )


def _unlinked_turns() -> Select[Any]:
    """Select the turns of live statements that belong to no fact: withdrawals, and requests to forget."""
    key: Any = bindparam("scope")
    windows = select(col(RunWindowRow.window_id)).where(col(RunWindowRow.run_id).in_(live_runs(key)))
    live = select(col(WindowAssertionRow.assertion_id)).where(col(WindowAssertionRow.window_id).in_(windows))
    in_fact = select(col(FactAssertionRow.assertion_id)).where(
        col(FactAssertionRow.assertion_id) == col(AssertionRow.id)
    )
    joined = select(*_plain([(EvidenceRow, "session_id"), (EvidenceRow, "turn")])).join_from(
        AssertionRow, EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id)
    )
    apart = joined.where(col(AssertionRow.scope_id) == key, ~in_fact.exists(), col(AssertionRow.id).in_(live))
    return apart.where(col(EvidenceRow.turn).is_not(None))


_VERSION = Question(_scope_version)
_CHANGES = Question(_changes)
_FACTS = Question(_facts)
_SOME_FACTS = Question(_some_facts)
_TURNS = Question(_cited_turns)
_SESSION_TURNS = Question(_session_turns)
_UNLINKED = Question(_unlinked_turns)
