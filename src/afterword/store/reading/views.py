"""Which facts and turns of a scope may be served at an instant, and the search index over them. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property

from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact
from afterword.facts.timeline import facts_at
from afterword.facts.transcripts import SourceTurn
from afterword.recall.former_values import former_value, predecessors
from afterword.recall.index_units import turn_id, turn_unit
from afterword.recall.ranking import SearchIndex
from afterword.recall.vectors import Vectors
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.snapshots import Snapshot

STANDING = frozenset({Kind.PREFERENCE, Kind.DECISION})


class View:
    """What a snapshot says at one instant: which of its facts hold then, and which are past.

    It is valid from `since` until just before `until` (None: without end). `served` are the facts that hold, in order
    of saying; `past` are those that held once. `turns` are the turns on which only served facts rest. `vectors` holds
    the vectors of the index's units by model and dimension, `vectors_before` those of the former view, from which new
    ones are made.
    """

    def __init__(self, snapshot: Snapshot, at: datetime, before: View | None = None) -> None:
        self.snapshot = snapshot
        self.since, self.until = at, _next_change(snapshot.facts, at)
        self.served = [fact for fact in snapshot.facts if _is_served(fact, at)]
        self._before = before if before is not None and "index" in before.__dict__ else None
        # The tokens of a rendered line, by the id of its fact or turn.
        self.costs: dict[str, int] = {}
        self._facts: dict[str, Fact] = {}
        self.vectors: dict[tuple[str, int], Vectors] = {}
        stored = {**before.vectors_before, **before.vectors} if before is not None else {}
        self.vectors_before: dict[tuple[str, int], Vectors] = stored

    def is_valid_at(self, at: datetime) -> bool:
        """Return whether the same facts hold at `at`."""
        return self.since <= at and (self.until is None or at < self.until)

    @property
    def size(self) -> int:
        """The number of facts and turns in it."""
        return len(self.snapshot.facts) + len(self.snapshot.turns)

    @cached_property
    def facts_by_id(self) -> dict[str, StoredFact]:
        """Every fact of the scope, served or not."""
        return {fact.id: fact for fact in self.snapshot.facts}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {fact.id: place for place, fact in enumerate(self.snapshot.facts)}

    def place(self, fact: Fact) -> int:
        """Return where a fact stands in the order of saying."""
        return self._places[fact.id]

    @cached_property
    def standing(self) -> list[StoredFact]:
        """The preferences and decisions that hold, the latest first."""
        return [fact for fact in reversed(self.served) if fact.kind in STANDING]

    @cached_property
    def past(self) -> list[StoredFact]:
        """The facts that held once and do not hold now. What was wrong from the start never held."""
        served = {fact.id for fact in self.served}
        gone = (fact for fact in self.snapshot.facts if fact.id not in served and fact.said_at <= self.since)
        return [fact for fact in gone if not fact.may_be and any(start <= self.since for start, _, _ in fact.bounds)]

    @cached_property
    def _replaced(self) -> dict[str, list[StoredFact]]:
        return predecessors(self.past, lambda stored: stored.history(self.snapshot.scope).spans)

    def former(self, fact: Fact) -> str | None:
        """Return the value that a fact replaced, None if there is none or it may not be told."""
        return former_value(fact, self._replaced, self._once_held)

    def _once_held(self, stored: StoredFact) -> Fact | None:
        # If one person who said it was corrected, it was wrong, also if others who said it were not.
        return None if stored.history(self.snapshot.scope).undone_by else self.fact(stored)

    @cached_property
    def turns(self) -> dict[str, SourceTurn]:
        """The turns that may be served, by the id of their unit."""
        served = {fact.id for fact in self.served}
        stale = {place for fact in self.snapshot.facts if fact.id not in served for place in fact.sources}
        stale |= self.snapshot.unlinked
        current = {place for fact in self.served for place in fact.sources} - stale
        return {turn_id(turn.place): turn for turn in self.snapshot.turns if turn.place in current}

    @cached_property
    def index(self) -> SearchIndex:
        """The index over the served turns and facts, in this order."""
        before, self._before = self._before, None
        if before is None:
            return SearchIndex([*map(turn_unit, self.turns.values()), *[fact.unit for fact in self.served]])
        units = [
            before.index.unit(name) if before.turns.get(name) is turn else turn_unit(turn)
            for name, turn in self.turns.items()
        ]
        return SearchIndex([*units, *[fact.unit for fact in self.served]], before=before.index)

    @cached_property
    def characters(self) -> int:
        """The number of characters in the sentences of the served facts."""
        return sum(len(fact.statement) for fact in self.served)

    @cached_property
    def past_index(self) -> SearchIndex:
        """The index over facts that held once."""
        return SearchIndex([fact.unit for fact in self.past])

    def fact(self, stored: StoredFact) -> Fact:
        """Return the fact as it is at this instant."""
        if stored.id not in self._facts:
            rivals = [self.facts_by_id[rival] for rival in stored.contested_by if rival in self.facts_by_id]
            scope = self.snapshot.scope
            laid_out = facts_at([each.history(scope) for each in (stored, *rivals)], self.since)
            self._facts[stored.id] = next(fact for fact in laid_out if fact.id == stored.id)
        return self._facts[stored.id]


def _is_served(stored: StoredFact, at: datetime) -> bool:
    """Return whether the fact holds or is announced, as the timeline says, without laying it out."""
    if stored.may_be:
        return False
    ahead = False
    for start, end, is_last in stored.bounds:
        if start > at:
            ahead = True
        elif end is None or at < end or (is_last and at == end):
            return True
    if not ahead or stored.said_at > at:
        return False
    return not any(end is not None and end <= at for _, end, _ in stored.bounds)


def _next_change(stored: Iterable[StoredFact], at: datetime) -> datetime | None:
    """Return the next instant, `at` included, at which a fact begins, ends or is said."""
    ahead: set[datetime] = set()
    for fact in stored:
        if fact.said_at >= at:
            ahead.add(fact.said_at)
        for start, end, _ in fact.bounds:
            if start >= at:
                ahead.add(start)
            if end is not None and end >= at:
                ahead.add(end)
    return min(ahead, default=None)
