"""Which pairs of assertions a judge must see, and what a run changes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from afterword.extractors.judge import Pair
from afterword.store.assertions import OWNER, Act, Assertion, folded
from afterword.store.facts import Fact, Status
from afterword.store.likeness import likeness
from afterword.store.postings import Postings, is_vague

ALIKE, MARKED_ALIKE, ALIKE_IN_SESSION = 0.5, 0.4, 2.0
"""How alike two assertions must be to be judged: at all; where the later one is marked as a change or correction, or
takes something back; and within one session, whose extractor has seen both. Measured on recorded extractions."""

SLOT, FORGETTING = 10.0, 1.0
"""What the same slot adds to likeness (more than any words do), and a request to forget to the rank of its pairs: it names
things loosely, and what it may mean is judged before what is only worded alike."""


def required_pairs(new: Sequence[Assertion], known: Iterable[Assertion] | Postings) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that bear on the new assertions, the likeliest conflicts first.

    A statement meets its slot and whatever is worded alike, retired values too; a retraction all that was said before
    of what it names. Whether a pair is required depends on the two alone, so that the order of arrival decides
    nothing; but of restatements of one value, only the ones said next before and after are met. Where `known` are
    postings, they hold the new ones too.
    """
    postings = known if isinstance(known, Postings) else Postings.of((*known, *new))
    found: dict[tuple[str, str], tuple[float, tuple[object, ...]]] = {}
    for one in new:
        for other in _thinned(one, _required(one, postings)):
            earlier, later = sorted((one, other), key=_order)
            found[earlier.id, later.id] = -_urgency(earlier, later, postings), (earlier.order, later.order)
    by_id = postings.by_id
    return [(by_id[earlier], by_id[later]) for earlier, later in sorted(found, key=found.__getitem__)]


def partners(taken: Sequence[Assertion], postings: Postings) -> list[Assertion]:
    """Return what must be judged with any of these, which the postings hold: what, without them, must be compared with
    the next restatement."""
    return list({other.id: other for one in taken for other in _required(one, postings)}.values())


def _order(one: Assertion) -> tuple[object, ...]:
    return one.order


def _required(one: Assertion, postings: Postings) -> list[Assertion]:
    """Return what must be judged with a statement, in the order of saying."""
    near = (postings.by_id[name] for name in postings.near(one) if name != one.id)
    order = one.order
    is_met = (
        other for other in near if _is_required(*((other, one) if other.order < order else (one, other)), postings)
    )
    return sorted(is_met, key=_order)


def _is_required(earlier: Assertion, later: Assertion, postings: Postings) -> bool:
    # Nothing said after a retraction is touched by it.
    if earlier.act is not Act.STATE:
        return False
    least = _least(earlier, later, postings)
    return least == 0.0 or _likeness(earlier, later, postings) >= least


def _least(one: Assertion, other: Assertion, postings: Postings) -> float:
    """Return how alike an earlier and a later one must be; 0 where they are judged whatever their words."""
    subject = other.slot[0]
    one_subject = one.slot[0] == subject
    if one.slot == other.slot:
        return 0.0
    if other.act is not Act.STATE:
        return 0.0 if one_subject and _names(other, one, postings) else MARKED_ALIKE
    if other.session_id is not None and one.session_id == other.session_id:
        return ALIKE_IN_SESSION
    if other.cue is None:
        return ALIKE
    is_marked_anew = one_subject and subject != OWNER and one.kind is other.kind
    return 0.0 if is_marked_anew else MARKED_ALIKE


def _names(retraction: Assertion, statement: Assertion, postings: Postings) -> bool:
    """Whether a retraction takes back that statement by its words, or is too vague to tell."""
    said = postings.wordings[retraction.id]
    return is_vague(retraction, said) or said.value <= postings.wordings[statement.id].said


def _likeness(one: Assertion, other: Assertion, postings: Postings) -> float:
    """Return how alike the two are; the same slot outweighs every likeness of words."""
    same_slot = SLOT if one.slot == other.slot else 0.0
    return same_slot + likeness(postings.wordings[one.id], postings.wordings[other.id])


def _urgency(one: Assertion, other: Assertion, postings: Postings) -> float:
    """Return what ranks a pair before others: how alike the two are, and whether something is to be forgotten."""
    return _likeness(one, other, postings) + (FORGETTING if Act.ERASE in (one.act, other.act) else 0.0)


def _thinned(one: Assertion, others: Iterable[Assertion]) -> Iterable[Assertion]:
    """Yield, of every value, the ones said next to this one, in its own session and in any."""
    before: dict[object, Assertion] = {}
    after: dict[object, Assertion] = {}
    for other in others:
        said = other.act, other.slot, folded(other.value), other.limited_to, other.valid_from, other.valid_to
        # Of statements, the others of a value inherit what is judged of one; of retractions each counts by itself.
        by_whom = (other.time_is_guess, other.authority, other.speaker) if other.act is not Act.STATE else ()
        value = (*said, *by_whom)
        is_own = other.session_id is not None and other.session_id == one.session_id
        for key in ((value, True), (value, False)) if is_own else ((value, False),):
            if other.order < one.order:
                before[key] = other
            else:
                after.setdefault(key, other)
    yield from {found.id: found for found in (*before.values(), *after.values())}.values()


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
