"""Which pairs of assertions a judge must see, and what a run changes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from afterword.extractors.judge import Pair
from afterword.store.assertions import Act, Assertion, folded
from afterword.store.facts import Fact, Status


def required_pairs(new: Sequence[Assertion], known: Iterable[Assertion]) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that bear on the new assertions, in the order of saying.

    A statement meets its slot: of every value there (retired ones too) the ones said next before and after it. A
    retraction meets all that is said of its subject, and every statement all retractions of its subject, so that the
    order of arrival decides nothing.
    """
    everything = sorted({one.id: one for one in (*known, *new)}.values(), key=lambda one: one.order)
    fresh = {one.id for one in new}
    by_subject: dict[str, list[Assertion]] = defaultdict(list)
    by_slot: dict[tuple[str, str], list[Assertion]] = defaultdict(list)
    for one in everything:
        by_subject[one.slot[0]].append(one)
        if one.act is Act.STATE:
            by_slot[one.slot].append(one)
    found: dict[tuple[str, str], Pair] = {}
    for one in everything:
        if one.id in fresh:
            for other in (*_in_slot(one, by_slot[one.slot]), *_taken_back(one, by_subject[one.slot[0]])):
                earlier, later = sorted((one, other), key=lambda each: each.order)
                found[earlier.id, later.id] = (earlier, later)
    return list(found.values())


def _in_slot(one: Assertion, slot: Sequence[Assertion]) -> Iterable[Assertion]:
    """Yield, of every value, the ones said next to `one`, and all of its own session."""
    if one.act is not Act.STATE:
        return
    before: dict[str, Assertion] = {}
    after: dict[str, Assertion] = {}
    for other in slot:
        if other.id == one.id:
            continue
        if other.session_id == one.session_id and one.session_id is not None:
            yield other
        elif other.order < one.order:
            before[folded(other.value)] = other
        else:
            after.setdefault(folded(other.value), other)
    yield from before.values()
    yield from after.values()


def _taken_back(one: Assertion, subject: Sequence[Assertion]) -> Iterable[Assertion]:
    if one.act is Act.STATE:
        return (other for other in subject if other.act is not Act.STATE and other.order > one.order)
    return (other for other in subject if other.act is Act.STATE and other.order < one.order)


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
