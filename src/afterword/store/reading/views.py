"""What of a scope may be served at an instant, and the index over it. No I/O."""

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
from afterword.store.reading.fact_rows import Held
from afterword.store.reading.snapshots import Snapshot

STANDING = frozenset({Kind.PREFERENCE, Kind.DECISION})


class View:
    """A snapshot at one instant: it is right from `since` until just before `until` (None: for good).

    `served` are the facts that hold, in the order of saying, `past` those that held once; `turns` are the turns on
    which nothing rests but what is served. `vectors` are
    those of the units of the index, by model and dimension, `vectors_before` those of the view before, as long as
    they are needed to make new ones.
    """

    def __init__(self, snapshot: Snapshot, at: datetime, before: View | None = None) -> None:
        self.snapshot = snapshot
        self.since, self.until = at, _next_change(snapshot.held, at)
        self.served = [one for one in snapshot.held if _is_served(one, at)]
        self._before = before if before is not None and "index" in before.__dict__ else None
        # What the lines of a block cost, by what they tell of.
        self.costs: dict[str, int] = {}
        self._facts: dict[str, Fact] = {}
        self.vectors: dict[tuple[str, int], Vectors] = {}
        held = {**before.vectors_before, **before.vectors} if before is not None else {}
        self.vectors_before: dict[tuple[str, int], Vectors] = held

    def is_right_at(self, at: datetime) -> bool:
        """Whether the same facts hold at `at`."""
        return self.since <= at and (self.until is None or at < self.until)

    @property
    def size(self) -> int:
        """How many facts and turns it holds."""
        return len(self.snapshot.held) + len(self.snapshot.turns)

    @cached_property
    def by_id(self) -> dict[str, Held]:
        """Every fact of the scope, served or not."""
        return {one.id: one for one in self.snapshot.held}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one.id: place for place, one in enumerate(self.snapshot.held)}

    def place(self, fact: Fact) -> int:
        """Return where a fact stands in the order of saying."""
        return self._places[fact.id]

    @cached_property
    def standing(self) -> list[Held]:
        """The preferences and decisions that hold, the last said first."""
        return [one for one in reversed(self.served) if one.kind in STANDING]

    @cached_property
    def past(self) -> list[Held]:
        """The facts that held once and do not now; what was wrong from the start never held."""
        served = {one.id for one in self.served}
        gone = (one for one in self.snapshot.held if one.id not in served and one.said_at <= self.since)
        return [one for one in gone if not one.may_be and any(start <= self.since for start, _, _ in one.bounds)]

    @cached_property
    def _replaced(self) -> dict[str, list[Held]]:
        return predecessors(self.past, lambda held: held.course(self.snapshot.scope).spans)

    def former(self, fact: Fact) -> str | None:
        """Return the value that a fact took the place of, where it may be told."""
        return former_value(fact, self._replaced, self._lived)

    def _lived(self, held: Held) -> Fact | None:
        # Where one who said it was corrected, it was wrong, also when others who said it were not.
        return None if held.course(self.snapshot.scope).undone_by else self.fact(held)

    @cached_property
    def turns(self) -> dict[str, SourceTurn]:
        """The turns that may be served, by the id of their unit."""
        served = {one.id for one in self.served}
        stale = {place for one in self.snapshot.held if one.id not in served for place in one.sources}
        stale |= self.snapshot.otherwise
        current = {place for one in self.served for place in one.sources} - stale
        return {turn_id(turn.place): turn for turn in self.snapshot.turns if turn.place in current}

    @cached_property
    def index(self) -> SearchIndex:
        """The index over what is served: turns, then facts."""
        before, self._before = self._before, None
        if before is None:
            return SearchIndex([*map(turn_unit, self.turns.values()), *[one.unit for one in self.served]])
        units = [
            before.index.unit(name) if before.turns.get(name) is turn else turn_unit(turn)
            for name, turn in self.turns.items()
        ]
        return SearchIndex([*units, *[one.unit for one in self.served]], before=before.index)

    @cached_property
    def letters(self) -> int:
        """How many letters the sentences of what is served have."""
        return sum(len(one.statement) for one in self.served)

    @cached_property
    def past_index(self) -> SearchIndex:
        """The index over what held once."""
        return SearchIndex([one.unit for one in self.past])

    def fact(self, held: Held) -> Fact:
        """Return the fact as it is at this instant."""
        if held.id not in self._facts:
            rivals = [self.by_id[rival] for rival in held.rivals if rival in self.by_id]
            scope = self.snapshot.scope
            laid_out = facts_at([one.course(scope) for one in (held, *rivals)], self.since)
            self._facts[held.id] = next(fact for fact in laid_out if fact.id == held.id)
        return self._facts[held.id]


def _is_served(held: Held, at: datetime) -> bool:
    """Whether the fact holds, or is announced: the light form of what the timeline says of its status."""
    if held.may_be:
        return False
    ahead = False
    for start, end, is_last in held.bounds:
        if start > at:
            ahead = True
        elif end is None or at < end or (is_last and at == end):
            return True
    if not ahead or held.said_at > at:
        return False
    return not any(end is not None and end <= at for _, end, _ in held.bounds)


def _next_change(held: Iterable[Held], at: datetime) -> datetime | None:
    """Return when the next fact begins, ends or is said; at an instant that is such a moment itself, right then."""
    ahead: set[datetime] = set()
    for one in held:
        if one.said_at >= at:
            ahead.add(one.said_at)
        for start, end, _ in one.bounds:
            if start >= at:
                ahead.add(start)
            if end is not None and end >= at:
                ahead.add(end)
    return min(ahead, default=None)
