"""Reads everything that recall needs of a scope in one transaction, as plain rows, so that a large scope loads quickly.

The rows hold values as the database driver returns them. A fact is built from its rows when it is served. If there is
an earlier snapshot and all changes since then are known, only the changed facts are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, and_, bindparam, exists, func, select, type_coerce
from sqlalchemy.sql import Select
from sqlalchemy.types import NullType
from sqlmodel import col

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TurnPlace
from afterword.recall.unit_table import UnitTable
from afterword.store.database.statements import CompiledQuery, listed_name_condition, select_columns
from afterword.store.ledger import session_run_source
from afterword.store.lookup import select_live_assertion_ids
from afterword.store.reading.fact_rows import read_stored_facts
from afterword.store.reading.turn_rows import TURN_COLUMNS, StoredTurn
from afterword.store.rows import search_terms_column, unconverted_columns
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    ScopeChangeRow,
    ScopeRow,
    SessionRow,
    TurnRow,
)

MOST_CHANGED = 0.25
"""If a larger share of the facts has changed, all facts are read."""
FEW_CHANGED = 200
"""Up to this many changed facts, only these are read, however large their share is."""
_SESSION = session_run_source("")


@dataclass(frozen=True, slots=True)
class ScopeVersion:
    """One state of a scope: its primary key (None if nothing of it is stored), its revision and its stamp.

    The stamp distinguishes states with the same revision. `sessions` counts the sessions, and `sessions_changed_at` is
    when one was last stored: a session that waits to be processed changes no revision.
    """

    key: int | None = None
    revision: int = 0
    stamp: str = ""
    sessions: int = 0
    sessions_changed_at: Any = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that can be recalled of a scope in one state: a table of its facts and of the turns that they cite.

    `unlinked_turns` holds the turns that live statements cite which belong to no fact: withdrawals and requests to
    forget.
    """

    scope: Scope
    version: ScopeVersion = ScopeVersion()
    table: UnitTable = field(default_factory=UnitTable)
    unlinked_turns: frozenset[TurnPlace] = frozenset()


def read_version(connection: Connection, scope: Scope) -> ScopeVersion:
    """Return the present state of a scope."""
    rows = _VERSION.ask(connection, tenant=scope.tenant, kind=str(scope.kind), name=scope.id)
    return ScopeVersion(*rows[0]) if rows else ScopeVersion()


def read(connection: Connection, scope: Scope, before: Snapshot | None = None) -> Snapshot:
    """Return a snapshot of a scope. The connection must be in a transaction, so that all rows are of one revision.

    `before` is an earlier snapshot. If all changes since then are known, only what has changed is read.
    """
    now = read_version(connection, scope)
    if now.key is None:
        return Snapshot(scope)
    if before is not None and now == before.version:
        return before
    changes = _few_changes_since(connection, now, before) if before is not None else None
    if before is None or changes is None:
        facts = read_stored_facts(connection, now.key)
        turns = map(StoredTurn, TURN_ROWS.ask(connection, scope=now.key, role=str(Role.HUMAN)))
        table = UnitTable().revised((), [*facts, *turns])
        return Snapshot(scope, now, table, _read_unlinked_turns(connection, now.key))
    unlinked = before.unlinked_turns
    if any(change.is_unlinked for change in changes):
        unlinked = _read_unlinked_turns(connection, now.key)
    table = _updated_table(connection, now.key, before.table, changes)
    return Snapshot(scope, now, table, unlinked)


def read_fact_snapshot(connection: Connection, scope: Scope, now: ScopeVersion) -> Snapshot:
    """Return a snapshot for lists: the facts of a scope without its turns, in the present state `now`."""
    facts = read_stored_facts(connection, now.key) if now.key is not None else ()
    return Snapshot(scope, now, UnitTable().revised((), facts, is_searched=False))


def session_ids_of_changes(changes: Iterable[ScopeChangeRow]) -> set[str]:
    """Return the ids of the sessions whose runs made these changes."""
    return {change.source.removeprefix(_SESSION) for change in changes if change.source.startswith(_SESSION)}


def _few_changes_since(connection: Connection, now: ScopeVersion, before: Snapshot) -> Sequence[ScopeChangeRow] | None:
    """Return the changes since `before`, None if they are not all known or if there are too many."""
    changes = changes_between(connection, now, before.version)
    changed = sum(len(change.fact_ids) for change in changes or ())
    return changes if changed <= max(MOST_CHANGED * len(before.table.by_order), FEW_CHANGED) else None


def changes_between(connection: Connection, now: ScopeVersion, before: ScopeVersion) -> Sequence[ScopeChangeRow] | None:
    """Return the changes of a scope between two states.

    None if not all of them are stored, or if `before` was never a state of this scope.
    """
    changes: Sequence[Any] = connection.execute(_CHANGES, {"scope": now.key, "since": before.revision}).all()
    if [change.revision for change in changes] != list(range(before.revision, now.revision + 1)):
        return None
    is_known = changes and (changes[0].stamp, changes[-1].stamp) == (before.stamp, now.stamp)
    return changes[1:] if is_known else None


def _updated_table(connection: Connection, key: int, before: UnitTable, changes: Sequence[ScopeChangeRow]) -> UnitTable:
    """Return the table of a scope after these changes. Only the changed facts and sessions are read."""
    changed = list(dict.fromkeys(fact_id for change in changes for fact_id in change.fact_ids))
    facts = read_stored_facts(connection, key, changed)
    gone = {place for fact_id in changed if (place := before.place_of(fact_id)) is not None}
    cited = {place for fact in facts for place in fact.sources}

    def is_cited(turn_id: TurnPlace) -> bool:
        return turn_id in cited or any(place not in gone for place in before.places_supported_by(turn_id))

    sessions = session_ids_of_changes(changes)
    sessions |= {turn_id[0] for turn_id in cited if before.place_of(turn_id) is None}
    rows = _SESSION_TURNS.ask_listed(connection, sorted(sessions), scope=key, role=str(Role.HUMAN))
    turns = {turn.id: turn for turn in map(StoredTurn, rows) if is_cited(turn.id)}
    known = {turn_id for place in gone for turn_id in before.unit_at(place).sources}
    known |= {before.unit_at(place).id for session_id in sessions for place in before.turn_places(session_id)}
    for turn_id in known:
        place = before.place_of(turn_id)
        if place is None:
            continue
        if turn_id in turns and turns[turn_id].turn == before.unit_at(place).turn:
            del turns[turn_id]
        elif turn_id[0] in sessions or not is_cited(turn_id):
            gone.add(place)
    return before.revised(gone, [*facts, *turns.values()])


def _read_unlinked_turns(connection: Connection, key: int) -> frozenset[TurnPlace]:
    return frozenset(map(tuple, _UNLINKED.ask(connection, scope=key)))


def _select_cited_turns() -> Select[Any]:
    """Select the turns of people that facts cite. The query starts at the evidence, which has far fewer rows."""
    cited = (
        select(col(EvidenceRow.session_id), col(EvidenceRow.turn))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(EvidenceRow, col(EvidenceRow.assertion_id) == col(FactAssertionRow.assertion_id))
        .where(col(FactRow.scope_id) == bindparam("scope"), col(EvidenceRow.turn).is_not(None))
        .distinct()
        .cte("cited")
    )
    return (
        select(*unconverted_columns(TURN_COLUMNS), search_terms_column(TurnRow).label("terms"))
        .join_from(cited, SessionRow, col(SessionRow.session_id) == cited.c.session_id)
        .join(TurnRow, (col(TurnRow.session_pk) == col(SessionRow.id)) & (col(TurnRow.number) == cited.c.turn))
        .where(col(SessionRow.scope_id) == bindparam("scope"), col(TurnRow.role) == bindparam("role"))
    )


_OF_SCOPE = col(SessionRow.scope_id) == col(ScopeRow.id)
_LAST_CHANGE = func.max(type_coerce(col(SessionRow.updated_at), NullType()))
_VERSION = CompiledQuery(
    select(
        *(col(ScopeRow.id), col(ScopeRow.revision), col(ScopeRow.stamp)),
        *(select(number).where(_OF_SCOPE).scalar_subquery() for number in (func.count(), _LAST_CHANGE)),
    ).where(
        col(ScopeRow.tenant) == bindparam("tenant"),
        col(ScopeRow.kind) == bindparam("kind"),
        col(ScopeRow.name) == bindparam("name"),
    )
)
_CHANGES = (
    select_columns(ScopeChangeRow)
    .where(col(ScopeChangeRow.scope_id) == bindparam("scope"), col(ScopeChangeRow.revision) >= bindparam("since"))
    .order_by(col(ScopeChangeRow.revision))
)
TURN_ROWS = CompiledQuery(_select_cited_turns())
_SESSION_TURNS = CompiledQuery(
    select(*unconverted_columns(TURN_COLUMNS), search_terms_column(TurnRow).label("terms"))
    .join_from(SessionRow, TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
    .where(
        col(SessionRow.scope_id) == bindparam("scope"),
        listed_name_condition(col(SessionRow.session_id)),
        col(TurnRow.role) == bindparam("role"),
    )
)
IS_UNLINKED = and_(
    col(AssertionRow.scope_id) == bindparam("scope"),
    ~exists().where(col(FactAssertionRow.assertion_id) == col(AssertionRow.id)),
    col(AssertionRow.id).in_(select_live_assertion_ids(bindparam("scope"))),
)
"""The condition of live statements that belong to no fact: withdrawals, and what somebody asked to be forgotten."""
_UNLINKED = CompiledQuery(
    select(*unconverted_columns([(EvidenceRow, "session_id"), (EvidenceRow, "turn")]))
    .join_from(AssertionRow, EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id))
    .where(IS_UNLINKED, col(EvidenceRow.turn).is_not(None))
)
