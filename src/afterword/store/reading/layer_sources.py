"""What the layers besides the facts that hold are made of: what held before, and what was said, at one instant."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import bindparam, exists, or_, select
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from afterword.facts.assertions import SpeechAct
from afterword.facts.fact import Fact, Status
from afterword.facts.owners import find_owners
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, SourceTurn, TurnPlace
from afterword.facts.validity.timeline import FactHistory
from afterword.facts.words import terms
from afterword.privacy.prompt_injection import is_instruction
from afterword.recall.block import FormerFact
from afterword.recall.named_values import NamedValues
from afterword.recall.said_index import SaidIndex
from afterword.store.database.compiled_queries import CompiledQuery, Plain, moment_or_none
from afterword.store.database.engine import Store
from afterword.store.lookup import live_runs
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.snapshots import plain_columns, stored_terms, version
from afterword.store.reading.turn_rows import TURN_COLUMNS, StoredTurn
from afterword.store.reading.views import View
from afterword.store.tables import (
    AssertionRow,
    FactAssertionRow,
    RunRow,
    RunWindowRow,
    SessionRow,
    TurnRow,
    WindowAssertionRow,
)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """The turns of a scope at one revision, and the values of statements that belong to no fact."""

    revision: int
    stamp: str
    rows: Sequence[Plain]
    index: SaidIndex
    unlinked_values: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hidden:
    """Which turns are not told: by their places, and by the values that they name.

    What is `superseded` may be told to a question about the past; what is `gone` never.
    """

    gone: NamedValues
    superseded: NamedValues
    gone_places: frozenset[TurnPlace] = frozenset()
    superseded_places: frozenset[TurnPlace] = frozenset()

    def covers(self, turn: SourceTurn, words: frozenset[str], *, is_about_the_past: bool) -> bool:
        """Return whether a turn with these words is not told."""
        if turn.place in self.gone_places or self.gone.are_named_in(words):
            return True
        if is_about_the_past:
            return False
        return turn.place in self.superseded_places or self.superseded.are_named_in(words)


@dataclass(frozen=True, slots=True)
class LayerSource:
    """What the layers are made of at an instant.

    `former` is what held before, the newest first. `said` are the turns that can be searched, and `hidden` says which
    of them are not told. `flagged` are the facts that hold and must never be missed, in the order of saying.
    """

    former: tuple[FormerFact, ...]
    said: SaidIndex
    hidden: Hidden
    flagged: tuple[StoredFact, ...]


@dataclass(slots=True)
class _Cache:
    spoken: dict[Scope, _Spoken] = field(default_factory=dict)
    marks: dict[str, tuple[StoredFact, str, bool]] = field(default_factory=dict)
    sources: WeakKeyDictionary[View, LayerSource] = field(default_factory=WeakKeyDictionary)


_caches: WeakKeyDictionary[Store, _Cache] = WeakKeyDictionary()


async def layer_source(store: Store, view: View) -> LayerSource:
    """Return what the layers of a view are made of. It is read and made once for each view."""
    cache = _caches.get(store)
    if cache is None:
        cache = _caches[store] = _Cache()
        store.on_close(cache.spoken.clear)
        store.on_close(cache.marks.clear)
    source = cache.sources.get(view)
    if source is None:

        def work(transaction: Session) -> LayerSource:
            return _source(view, _read_spoken(transaction, view.snapshot.scope, cache), cache)

        source = cache.sources[view] = await store.read(work)
    return source


def _read_spoken(transaction: Session, scope: Scope, cache: _Cache) -> _Spoken:
    connection = transaction.connection()
    now, known = version(connection, scope), cache.spoken.get(scope)
    if known is not None and (known.revision, known.stamp) == (now.revision, now.stamp):
        return known
    rows = _TURNS.ask(connection, scope=now.key, human=str(Role.HUMAN), agent=str(Role.AGENT))
    rows.sort(key=itemgetter(0, 4))
    unlinked = frozenset(value or statement for value, statement in _UNLINKED.ask(connection, scope=now.key))
    index = known.index if known is not None and known.rows == rows else _said_index(rows, scope)
    spoken = _Spoken(now.revision, now.stamp, rows, index, unlinked)
    cache.spoken[scope] = spoken
    return spoken


def _said_index(rows: Sequence[Plain], scope: Scope) -> SaidIndex:
    """Return the index over the turns of the owner."""
    turns: list[SourceTurn] = []
    words: list[str] = []
    before: dict[TurnPlace, SourceTurn] = {}
    former: Plain | None = None
    for row in rows:
        key, _, humans, assumed, number, speaker, _, _, _, role = row
        if role == Role.HUMAN and speaker in _owners(humans, assumed, scope):
            stored = StoredTurn(row[:-1])
            turns.append(stored.turn)
            words.append(stored.terms.strip())
            if former is not None and (former[0], former[4]) == (key, number - 1):
                before[stored.turn.place] = SourceTurn(
                    former[1], former[4], former[5], moment_or_none(former[6]), former[7]
                )
        former = row
    return SaidIndex(turns, words, before)


@lru_cache(maxsize=10_000)
def _owners(humans: str, assumed: str, scope: Scope) -> frozenset[str]:
    """Return who speaks for the scope in a session.

    Nobody owns the scope of a team or a project: where one person speaks, that person does.
    """
    stated, guessed = json.loads(humans), json.loads(assumed)
    people = list(dict.fromkeys([*stated, *guessed]))
    return frozenset(find_owners(people, guessed, scope) or (people if len(people) == 1 else ()))


def _source(view: View, spoken: _Spoken, cache: _Cache) -> LayerSource:
    scope, by_order = view.snapshot.scope, view.snapshot.table.by_order
    served: list[StoredFact] = [view.snapshot.table.unit(place) for place in view.served_places().tolist()]
    others = map(view.unit, by_order[~view.is_served[by_order]].tolist())
    gone_values, superseded_values = set(spoken.unlinked_values), set[str]()
    gone_places, superseded_places = set(view.snapshot.unlinked), set[TurnPlace]()
    former: list[Fact] = []
    for stored in others:
        if not isinstance(stored, StoredFact):
            continue
        history = stored.history(scope)
        value, is_gone = history.lead.value or history.lead.statement, _is_gone(history)
        (gone_places if is_gone else superseded_places).update(stored.sources)
        if is_gone and not history.may_be:
            gone_values.add(value)
        if is_gone or history.members[0].said_at > view.since:
            continue
        fact = view.fact(stored)
        if fact.status is Status.SUPERSEDED:
            superseded_values.add(value)
        is_held = fact.status in (Status.SUPERSEDED, Status.EXPIRED) and fact.valid_from is not None
        if is_held and not is_instruction(fact.statement, fact.value):
            former.append(fact)
    marks = [_marks(stored, cache) for stored in served]
    held = {value for value, _ in marks}
    gone = NamedValues(gone_values, held)
    remaining = [fact for fact in former if not _names(gone, fact)]
    hidden = Hidden(gone, NamedValues(superseded_values, held), frozenset(gone_places), frozenset(superseded_places))
    flagged = tuple(stored for stored, (_, is_flagged) in zip(served, marks, strict=True) if is_flagged)
    return LayerSource(_with_successors(view, remaining, served), spoken.index, hidden, flagged)


def _marks(stored: StoredFact, cache: _Cache) -> tuple[str, bool]:
    """Return the value of a fact, and whether it is flagged. Each is read once."""
    known = cache.marks.get(stored.id)
    if known is None or known[0] is not stored:
        known = cache.marks[stored.id] = stored, stored.value or stored.statement, stored.is_flagged
    return known[1], known[2]


def _is_gone(history: FactHistory) -> bool:
    """Return whether a fact was withdrawn or wrong from the start, in whole or in part, or whom it is about is open."""
    was_withdrawn = any(span.ending is Status.RETRACTED and span.by is not None for span in history.spans)
    return bool(history.may_be) or not history.spans or history.undone_by is not None or was_withdrawn


def _names(gone: NamedValues, fact: Fact) -> bool:
    return gone.are_named_in(frozenset(terms(f"{fact.statement} {fact.value}")))


def _with_successors(view: View, former: Sequence[Fact], served: Iterable[StoredFact]) -> tuple[FormerFact, ...]:
    """Return former facts with what took their place, the newest first."""
    table, scope = view.snapshot.table, view.snapshot.scope
    by_assertion: dict[str, Fact] = {name: fact for fact in former for name in fact.assertion_ids}
    missing = {fact.retired_by for fact in former if fact.retired_by} - set(by_assertion)
    for name in list(missing):
        place = table.place(name)
        if place is not None and view.is_served[place]:
            by_assertion[name] = view.fact(table.unit(place))
            missing.remove(name)
    for stored in served if missing else ():
        if stored.is_repeated and any(member.id in missing for member in stored.history(scope).members):
            fact = view.fact(stored)
            by_assertion |= dict.fromkeys(fact.assertion_ids, fact)
    entries = [FormerFact(fact, by_assertion.get(fact.retired_by or "")) for fact in former]
    return tuple(sorted(entries, key=lambda entry: entry.order, reverse=True))


def _all_turns() -> Any:
    """Select the turns of people and agents, but of no session of which every run was undone or waits."""
    run = aliased(RunRow)
    of_session = col(run.session_pk) == col(SessionRow.id)
    columns = *plain_columns(TURN_COLUMNS), stored_terms(TurnRow).label("terms"), col(TurnRow.role).label("role")
    return (
        select(*columns)
        .join_from(SessionRow, TurnRow, col(TurnRow.session_pk) == col(SessionRow.id))
        .where(
            col(SessionRow.scope_id) == bindparam("scope"),
            or_(col(TurnRow.role) == bindparam("human"), col(TurnRow.role) == bindparam("agent")),
            or_(~exists().where(of_session), exists().where(of_session, col(run.status) == "applied")),
        )
    )


def _unlinked_statements() -> Any:
    """Select the value and the sentence of live statements that belong to no fact.

    They are withdrawals, requests to forget, and what was asked to be forgotten.
    """
    key: Any = bindparam("scope")
    windows = select(col(RunWindowRow.window_id)).where(col(RunWindowRow.run_id).in_(live_runs(key)))
    live = select(col(WindowAssertionRow.assertion_id)).where(col(WindowAssertionRow.window_id).in_(windows))
    in_fact = select(col(FactAssertionRow.assertion_id)).where(
        col(FactAssertionRow.assertion_id) == col(AssertionRow.id)
    )
    is_named = or_(col(AssertionRow.value) != "", col(AssertionRow.act) == str(SpeechAct.STATE))
    return select(*plain_columns([(AssertionRow, "value"), (AssertionRow, "statement")])).where(
        col(AssertionRow.scope_id) == key, ~in_fact.exists(), col(AssertionRow.id).in_(live), is_named
    )


_TURNS = CompiledQuery(_all_turns)
_UNLINKED = CompiledQuery(_unlinked_statements)
