"""Which pairs of assertions a judge must see, and what a run changes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afterword.extractors.judge import Pair
from afterword.store.assertions import OWNER, Act, Assertion, folded
from afterword.store.facts import Fact, Status
from afterword.store.likeness import likeness, wording

ALIKE, MARKED_ALIKE, ALIKE_IN_SESSION = 0.5, 0.4, 2.0
"""How alike two assertions must be to be judged: at all; where the later one is marked as a change or correction, or
takes something back; and within one session, whose extractor has seen both. Measured on recorded extractions."""

SLOT = 10.0
"""What the same slot adds to likeness: more than any words do."""


def required_pairs(new: Sequence[Assertion], known: Iterable[Assertion]) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that bear on the new assertions, the likeliest conflicts first.

    A statement meets its slot and whatever is worded alike, retired values too; a retraction all that was said before
    of what it names. Whether a pair is required depends on the two alone, so that the order of arrival decides
    nothing; but of restatements of one value, only the ones said next before and after are met.
    """
    everything = sorted({one.id: one for one in (*known, *new)}.values(), key=lambda one: one.order)
    fresh = {one.id for one in new}
    index = _Index(everything)
    found: dict[tuple[str, str], tuple[float, Pair]] = {}
    for one in everything:
        if one.id in fresh:
            for other in _thinned(one, index.required(one)):
                earlier, later = sorted((one, other), key=lambda each: each.order)
                found[earlier.id, later.id] = (index.likeness(earlier, later), (earlier, later))
    ranked = sorted(found.values(), key=lambda item: (-item[0], item[1][0].order, item[1][1].order))
    return [pair for _, pair in ranked]


class _Index:
    """Where to look for what an assertion bears on, and how alike two are; `everything` in the order of saying."""

    def __init__(self, everything: Sequence[Assertion]) -> None:
        self._everything = everything
        self._wordings = {one.id: wording(one) for one in everything}
        self._places: dict[object, list[int]] = defaultdict(list)
        for place, one in enumerate(everything):
            for key in self._keys(one):
                self._places[key].append(place)
            if self._is_vague(one):
                self._places["vague", one.slot[0]].append(place)

    def required(self, one: Assertion) -> list[Assertion]:
        """Return what must be judged with it, in the order of saying."""
        near: Iterable[int] = range(len(self._everything))
        if not self._is_vague(one):
            keys = (*self._keys(one), ("vague", one.slot[0]))
            near = sorted({place for key in keys for place in self._places[key]})
        return [other for other in (self._everything[place] for place in near) if self._is_required(one, other)]

    def likeness(self, one: Assertion, other: Assertion) -> float:
        """Return how alike the two are; the same slot outweighs every likeness of words."""
        return (SLOT if one.slot == other.slot else 0.0) + likeness(self._wordings[one.id], self._wordings[other.id])

    def _keys(self, one: Assertion) -> tuple[object, ...]:
        subject = one.slot[0]
        keys: tuple[object, ...] = (one.slot, *self._wordings[one.id].said)
        return keys if subject == OWNER else (*keys, ("about", subject))

    def _is_vague(self, one: Assertion) -> bool:
        return one.act is not Act.STATE and self._wordings[one.id].names_little

    def _is_required(self, one: Assertion, other: Assertion) -> bool:
        earlier, later = sorted((one, other), key=lambda each: each.order)
        # Nothing said after a retraction is touched by it.
        if earlier.id == later.id or earlier.act is not Act.STATE:
            return False
        return self.likeness(earlier, later) >= self._least(earlier, later)

    def _least(self, earlier: Assertion, later: Assertion) -> float:
        """Return how alike the two must be; 0 where they are judged whatever their words."""
        one_subject = earlier.slot[0] == later.slot[0]
        if earlier.slot == later.slot:
            return 0.0
        if later.act is not Act.STATE:
            return 0.0 if one_subject and self._names(later, earlier) else MARKED_ALIKE
        if later.session_id is not None and earlier.session_id == later.session_id:
            return ALIKE_IN_SESSION
        if later.cue is None:
            return ALIKE
        is_marked_anew = one_subject and later.slot[0] != OWNER and earlier.kind is later.kind
        return 0.0 if is_marked_anew else MARKED_ALIKE

    def _names(self, retraction: Assertion, statement: Assertion) -> bool:
        """Whether a retraction takes back that statement by its words, or is too vague to tell."""
        value = self._wordings[retraction.id].value
        return self._is_vague(retraction) or value <= self._wordings[statement.id].said


def _thinned(one: Assertion, others: Iterable[Assertion]) -> Iterable[Assertion]:
    """Yield, of every value, the ones said next to `one`, and all of its slot in its own session; `others` in order."""
    before: dict[object, Assertion] = {}
    after: dict[object, Assertion] = {}
    for other in others:
        value = (other.act, other.slot, folded(other.value), other.limited_to, other.valid_from, other.valid_to)
        if other.session_id == one.session_id and one.session_id is not None and other.slot == one.slot:
            yield other
        elif other.order < one.order:
            before[value] = other
        else:
            after.setdefault(value, other)
    yield from before.values()
    yield from after.values()


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changes at an instant: facts learned, said again, and (fact before, what took its place or None)."""

    learned: tuple[Fact, ...] = ()
    repeated: tuple[Fact, ...] = ()
    retired: tuple[tuple[Fact, Fact | None], ...] = ()
    contested: tuple[Fact, ...] = ()


def changes(before: Sequence[Fact], after: Sequence[Fact]) -> Changes:
    """Compare what was held before a run with what is held after it."""
    old = {one.id: one for one in before}
    holder = {assertion_id: fact for fact in after for assertion_id in fact.assertion_ids}
    known_ids = {assertion_id for fact in before for assertion_id in fact.assertion_ids}
    learned, repeated, retired, contested = [], [], [], []
    for fact in after:
        same = next((old[one] for one in fact.assertion_ids if one in old), None)
        if same is None and not known_ids & set(fact.assertion_ids):
            learned.append(fact)
        elif same is not None and set(fact.assertion_ids) - set(same.assertion_ids):
            repeated.append(fact)
        if (same is None or same.is_served) and not fact.is_served and fact.status is not Status.EXPIRED:
            retired.append((fact, holder.get(fact.retired_by or "")))
        if fact.status is Status.CONTESTED and (same is None or same.status is not Status.CONTESTED):
            contested.append(fact)
    return Changes(tuple(learned), tuple(repeated), tuple(retired), tuple(contested))
