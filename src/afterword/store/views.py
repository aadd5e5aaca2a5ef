"""What of a scope may be served at an instant, and the index over it. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from afterword.store.assertions import OWNER, Kind
from afterword.store.embedding import Vectors
from afterword.store.facts import Fact
from afterword.store.ranking import Index, Unit
from afterword.store.snapshots import Held, Snapshot
from afterword.store.timeline import facts_at
from afterword.store.transcripts import SourceTurn

STANDING = frozenset({Kind.PREFERENCE, Kind.DECISION})


class View:
    """A snapshot at one instant: it is right from `since` until just before `until` (None: for good).

    `served` are the facts that hold, in the order of saying, `past` those that held once; `turns` are the turns on
    which nothing rests but what is served. `known` holds the terms of texts that a former view has made, `vectors`
    those of the units of the index, by model and dimension.
    """

    def __init__(self, snapshot: Snapshot, at: datetime, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self.snapshot = snapshot
        self.since, self.until = at, _next_change(snapshot.held, at)
        self.served = [one for one in snapshot.held if _is_served(one, at)]
        self._known: dict[str, Sequence[str]] = dict(known or {})
        self._facts: dict[str, Fact] = {}
        self.vectors: dict[tuple[str, int], Vectors] = {}

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
        return [one for one in gone if not one.may_be and any(span.start <= self.since for span in one.spans)]

    @cached_property
    def turns(self) -> dict[str, SourceTurn]:
        """The turns that may be served, by the id of their unit."""
        served = {one.id for one in self.served}
        stale = {place for one in self.snapshot.held if one.id not in served for place in one.sources}
        stale |= self.snapshot.otherwise
        current = {place for one in self.served for place in one.sources} - stale
        return {turn_id(turn.place): turn for turn in self.snapshot.turns if turn.place in current}

    @cached_property
    def index(self) -> Index:
        """The index over what is served: turns, then facts."""
        index = Index([*map(_turn_unit, self.turns.values()), *map(_fact_unit, self.served)], known=self._known)
        self._known = dict(index.terms)
        return index

    @cached_property
    def past_index(self) -> Index:
        """The index over what held once."""
        return Index([_fact_unit(one) for one in self.past])

    @property
    def known(self) -> Mapping[str, Sequence[str]]:
        """The terms of the texts of this view, for the next one."""
        return self._known

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
    if any(span.holds_at(at) for span in held.spans):
        return True
    if held.said_at > at:
        return False
    ahead = any(span.start > at for span in held.spans)
    return ahead and not any(span.end is not None and span.end <= at for span in held.spans)


def _next_change(held: Iterable[Held], at: datetime) -> datetime | None:
    """Return when the next fact begins, ends or is said; at an instant that is such a moment itself, right then."""
    moments = {one.said_at for one in held}
    spans = [span for one in held for span in one.spans]
    moments.update([span.start for span in spans])
    moments.update([span.end for span in spans if span.end is not None])
    return at if at in moments else min((moment for moment in moments if moment > at), default=None)


def _fact_unit(held: Held) -> Unit:
    about = "" if held.subject == OWNER else held.subject
    text = f"{_date(held.said_at)} {about} {held.statement} {held.words}"
    return Unit(held.id, text, about, sources=tuple(map(turn_id, held.sources)))


def _turn_unit(turn: SourceTurn) -> Unit:
    name = turn.speaker if turn.in_company else ""
    day = _date(turn.said_at) if turn.said_at else ""
    asks = turn.in_company and "?" in turn.text
    return Unit(turn_id(turn.place), f"{day} {name} {turn.text}", name, turn.session_id, turn.number, asks)


def turn_id(place: tuple[str, int]) -> str:
    """Return the id of a turn among the units of an index."""
    return f"turn {place[1]} of {place[0]}"


_MONTHS = "January February March April May June July August September October November December".split()


def _date(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
