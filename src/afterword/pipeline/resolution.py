"""Which pairs of assertions a judge must see, and what a run changes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afterword.extractors.judge import Pair
from afterword.store.assertions import OWNER, Act, Assertion, Verdict, folded
from afterword.store.facts import Fact, Status
from afterword.store.likeness import likeness, wording
from afterword.store.lookup import Known
from afterword.store.timeline import erased, timeline

ALIKE, MARKED_ALIKE, ALIKE_IN_SESSION = 0.5, 0.4, 2.0
"""How alike two assertions must be to be judged: at all; where the later one is marked as a change or correction, or
takes something back; and within one session, whose extractor has seen both. Measured on recorded extractions."""

SLOT, FORGETTING = 10.0, 1.0
"""What the same slot adds to likeness (more than any words do), and a request to forget to the rank of its pairs: it names
things loosely, and what it may mean is judged before what is only worded alike."""


def required_pairs(new: Sequence[Assertion], known: Iterable[Assertion]) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that bear on the new assertions, the likeliest conflicts first.

    A statement meets its slot and whatever is worded alike, retired values too; a retraction all that was said before
    of what it names. Whether a pair is required depends on the two alone, so that the order of arrival decides
    nothing; but of restatements of one value, only the ones said next before and after are met.
    """
    everything = sorted({one.id: one for one in (*known, *new)}.values(), key=lambda one: one.order)
    fresh = {one.id for one in new}
    index = _Index(everything)
    found: dict[tuple[int, int], float] = {}
    for place, one in enumerate(everything):
        if one.id in fresh:
            for other in _thinned(place, index.required(place), everything):
                pair = min(place, other), max(place, other)
                found[pair] = index.urgency(*pair)
    ranked = sorted(found, key=lambda pair: (-found[pair], pair))
    return [(everything[earlier], everything[later]) for earlier, later in ranked]


class _Index:
    """Where to look for what an assertion bears on, and how alike two are. Each goes by its place in `everything`."""

    def __init__(self, everything: Sequence[Assertion]) -> None:
        self._everything = everything
        self._wordings = [wording(one) for one in everything]
        self._slots = [one.slot for one in everything]
        self._places: dict[object, list[int]] = defaultdict(list)
        for place in range(len(everything)):
            for key in self._keys(place):
                self._places[key].append(place)
            if self._is_vague(place):
                self._places["vague", self._slots[place][0]].append(place)

    def required(self, place: int) -> list[int]:
        """Return the places of what must be judged with the one at `place`, in the order of saying."""
        near: Iterable[int] = range(len(self._everything))
        if not self._is_vague(place):
            keys = (*self._keys(place), ("vague", self._slots[place][0]))
            near = sorted({other for key in keys for other in self._places[key]})
        return [other for other in near if self._is_required(min(place, other), max(place, other))]

    def likeness(self, one: int, other: int) -> float:
        """Return how alike the two are; the same slot outweighs every likeness of words."""
        same_slot = SLOT if self._slots[one] == self._slots[other] else 0.0
        return same_slot + likeness(self._wordings[one], self._wordings[other])

    def urgency(self, one: int, other: int) -> float:
        """Return what ranks a pair before others: how alike the two are, and whether something is to be forgotten."""
        forgets = Act.ERASE in (self._everything[one].act, self._everything[other].act)
        return self.likeness(one, other) + (FORGETTING if forgets else 0.0)

    def _keys(self, place: int) -> tuple[object, ...]:
        slot = self._slots[place]
        keys: tuple[object, ...] = (slot, *self._wordings[place].said)
        return keys if slot[0] == OWNER else (*keys, ("about", slot[0]))

    def _is_vague(self, place: int) -> bool:
        """Whether it may take back anything that was said of its subject."""
        act = self._everything[place].act
        return act is Act.ERASE or (act is not Act.STATE and self._wordings[place].names_little)

    def _is_required(self, earlier: int, later: int) -> bool:
        # Nothing said after a retraction is touched by it.
        if earlier == later or self._everything[earlier].act is not Act.STATE:
            return False
        least = self._least(earlier, later)
        return least == 0.0 or self.likeness(earlier, later) >= least

    def _least(self, earlier: int, later: int) -> float:
        """Return how alike the two must be; 0 where they are judged whatever their words."""
        one, other = self._everything[earlier], self._everything[later]
        subject = self._slots[later][0]
        one_subject = self._slots[earlier][0] == subject
        if self._slots[earlier] == self._slots[later]:
            return 0.0
        if other.act is not Act.STATE:
            return 0.0 if one_subject and self._names(later, earlier) else MARKED_ALIKE
        if other.session_id is not None and one.session_id == other.session_id:
            return ALIKE_IN_SESSION
        if other.cue is None:
            return ALIKE
        is_marked_anew = one_subject and subject != OWNER and one.kind is other.kind
        return 0.0 if is_marked_anew else MARKED_ALIKE

    def _names(self, retraction: int, statement: int) -> bool:
        """Whether a retraction takes back that statement by its words, or is too vague to tell."""
        value = self._wordings[retraction].value
        return self._is_vague(retraction) or value <= self._wordings[statement].said


def _thinned(place: int, others: Iterable[int], everything: Sequence[Assertion]) -> Iterable[int]:
    """Yield, of every value, the ones said next to that at `place`, in its own session and in any."""
    one = everything[place]
    before: dict[object, int] = {}
    after: dict[object, int] = {}
    for at in others:
        other = everything[at]
        said = other.act, other.slot, folded(other.value), other.limited_to, other.valid_from, other.valid_to
        # Of statements, the others of a value inherit what is judged of one; of retractions each counts by itself.
        by_whom = (other.time_is_guess, other.authority, other.speaker) if other.act is not Act.STATE else ()
        value = (*said, *by_whom)
        is_own = other.session_id is not None and other.session_id == one.session_id
        for key in ((value, True), (value, False)) if is_own else ((value, False),):
            if at < place:
                before[key] = at
            else:
                after.setdefault(key, at)
    yield from {*before.values(), *after.values()}


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changes at an instant: facts learned, said again, and (fact before, what took its place or None).

    `hidden` counts facts that somebody asked to be gone: their words are told nowhere, here neither.
    """

    learned: tuple[Fact, ...] = ()
    repeated: tuple[Fact, ...] = ()
    retired: tuple[tuple[Fact, Fact | None], ...] = ()
    contested: tuple[Fact, ...] = ()
    hidden: int = 0


def changes(before: Sequence[Fact], after: Sequence[Fact]) -> Changes:
    """Compare what was held before a run with what is held after it."""
    held = {assertion_id: fact for fact in before for assertion_id in fact.assertion_ids}
    holder = {assertion_id: fact for fact in after for assertion_id in fact.assertion_ids}
    pairs = [(_former(fact, held), fact) for fact in after]
    return Changes(
        learned=tuple(fact for old, fact in pairs if old is None),
        repeated=tuple(fact for old, fact in pairs if old and set(fact.assertion_ids) - set(old.assertion_ids)),
        retired=tuple((fact, holder.get(fact.retired_by or "")) for old, fact in pairs if _is_retired(old, fact)),
        contested=tuple(fact for old, fact in pairs if _is_contested(fact) and not (old and _is_contested(old))),
    )


def _former(fact: Fact, held: Mapping[str, Fact]) -> Fact | None:
    """Return what was held of it before: the fact that any of its assertions belonged to."""
    return next((held[one] for one in fact.assertion_ids if one in held), None)


def _is_retired(old: Fact | None, fact: Fact) -> bool:
    is_over = not fact.is_served and fact.status not in (Status.EXPIRED, Status.PENDING)
    return (old is None or old.is_served) and is_over


def _is_contested(fact: Fact) -> bool:
    return fact.status is Status.CONTESTED


def moved_by(
    live: Sequence[Assertion],
    said: Sequence[Assertion],
    known: Known,
    verdicts: Sequence[Verdict],
    now: datetime,
) -> Changes:
    """Return what a session changes that says `said`: `live` is all that was known, `known` what the others say."""
    at = max((one.said_at for one in (*live, *said)), default=now)
    before = timeline(live, known.verdicts, max(at, now))
    everything, judged = (*known.assertions, *said), (*known.verdicts, *verdicts)
    hidden = erased(everything, judged)
    moved = changes(before, timeline(everything, judged, max(at, now)))
    return replace(moved, hidden=sum(hidden.issuperset(fact.assertion_ids) for fact in before))
