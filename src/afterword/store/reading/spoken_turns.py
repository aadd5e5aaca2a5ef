"""Reads all turns of a scope that its owner (or any person) spoke. Later, only changed sessions are read again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from sqlalchemy import Connection, bindparam, or_, select
from sqlmodel import col

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, SourceTurn, find_owners
from afterword.recall.said_index import SaidIndex
from afterword.recall.unit_table import UnitTable
from afterword.store.database.statements import CompiledQuery, UnconvertedRow, listed_name_condition
from afterword.store.reading.snapshots import ScopeVersion, session_ids_of_changes
from afterword.store.reading.turn_rows import TURN_COLUMNS, StoredTurn, local_said_at
from afterword.store.rows import search_terms_column, unconverted_columns
from afterword.store.tables import RunRow, ScopeChangeRow, SessionRow, TurnRow
from afterword.text_caches import text_cache


@dataclass(frozen=True, slots=True)
class SpokenTurns:
    """The spoken turns of a scope in one state, with a search index.

    `marks` holds columns of each session that differ whenever the session has changed. `includes_other_people` says
    whether turns of people who are not the owner are included.
    """

    version: ScopeVersion
    index: SaidIndex
    marks: Mapping[str, UnconvertedRow]
    includes_other_people: bool = False


def read_spoken_turns(
    connection: Connection,
    scope: Scope,
    now: ScopeVersion,
    before: SpokenTurns | None = None,
    changes: Sequence[ScopeChangeRow] | None = None,
    *,
    includes_other_people: bool = False,
) -> SpokenTurns:
    """Return the spoken turns of a scope in the state `now`.

    `before` holds the turns of an earlier state, and `changes` what has changed since. With both, only the sessions
    that changed are read. `includes_other_people` also includes the turns of people who do not own the scope.
    """
    marks = {mark[1]: mark for mark in _SESSIONS.ask(connection, scope=now.key)}
    if before is None or changes is None or before.includes_other_people != includes_other_people:
        before, changed = SpokenTurns(now, SaidIndex(UnitTable(), {}), {}), set(marks)
    else:
        changed = session_ids_of_changes(changes)
    changed |= {name for name in before.marks.keys() | marks.keys() if before.marks.get(name) != marks.get(name)}
    roles = {"human": str(Role.HUMAN), "agent": str(Role.AGENT)}
    rows = _TURNS.ask_listed(connection, sorted(changed & marks.keys()), scope=now.key, **roles)
    gone = [place for name in changed for place in before.index.table.turn_places(name)]
    turns, earlier = _turns_with_predecessors(
        sorted(rows, key=itemgetter(0, 4)), scope, includes_other_people=includes_other_people
    )
    if not gone and not turns and before.marks:
        return SpokenTurns(now, before.index, marks, includes_other_people)
    unchanged = {name: turn for name, turn in before.index.before.items() if name not in changed}
    index = SaidIndex(before.index.table.revised(gone, turns), unchanged | earlier)
    return SpokenTurns(now, index, marks, includes_other_people)


def _turns_with_predecessors(
    rows: Iterable[UnconvertedRow], scope: Scope, *, includes_other_people: bool
) -> tuple[list[StoredTurn], dict[str, dict[int, SourceTurn]]]:
    """Return the turns of the owner (or of all people), and the preceding turn of each, by session and number.

    A preceding turn is left out if it was spoken by a person whose turns are not returned.
    """
    turns: list[StoredTurn] = []
    before: dict[str, dict[int, SourceTurn]] = {}
    former: UnconvertedRow | None = None
    for row in rows:
        key, session_id, humans, assumed, number, speaker, *_, role = row
        is_of_person = role == Role.HUMAN
        if is_of_person and not (includes_other_people or speaker in _owner_names(humans, assumed, scope)):
            former = None
            continue
        if is_of_person:
            turns.append(StoredTurn(row[:-1]))
        if is_of_person and former is not None and (former[0], former[4]) == (key, number - 1):
            said_at = local_said_at(former[6], former[7])
            turn = SourceTurn(former[1], former[4], former[5], said_at, former[8], shown=former[9])
            before.setdefault(session_id, {})[number] = turn
        former = row
    return turns, before


@text_cache(10_000)
def _owner_names(humans: str, assumed: str, scope: Scope) -> frozenset[str]:
    """Return the names of the owner of the scope among the people of a session.

    Nobody owns the scope of a team or a project. There the only person of a session counts as the owner.
    """
    stated, guessed = json.loads(humans), json.loads(assumed)
    people = list(dict.fromkeys([*stated, *guessed]))
    return frozenset(find_owners(people, guessed, scope) or (people if len(people) == 1 else ()))


_RUNS_OF_SESSIONS = select(col(RunRow.session_pk)).where(
    col(RunRow.scope_id) == bindparam("scope"), col(RunRow.session_pk).is_not(None)
)
# Sessions without any run, and sessions with an applied run. No index finds the runs of one session, so they are found
# by their scope.
_SESSIONS = CompiledQuery(
    select(
        *unconverted_columns((SessionRow, name) for name in "id session_id humans assumed updated_at".split())
    ).where(
        col(SessionRow.scope_id) == bindparam("scope"),
        or_(
            col(SessionRow.id).not_in(_RUNS_OF_SESSIONS),
            col(SessionRow.id).in_(_RUNS_OF_SESSIONS.where(col(RunRow.status) == "applied")),
        ),
    )
)
_TURNS = CompiledQuery(
    select(
        *unconverted_columns(TURN_COLUMNS), search_terms_column(TurnRow).label("terms"), col(TurnRow.role).label("role")
    )
    .join_from(SessionRow, TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
    .where(
        col(SessionRow.scope_id) == bindparam("scope"),
        listed_name_condition(col(SessionRow.session_id)),
        or_(col(TurnRow.role) == bindparam("human"), col(TurnRow.role) == bindparam("agent")),
    )
)
