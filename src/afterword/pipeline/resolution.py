"""Which pairs of assertions a judge must see, and what a run changes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afterword.extractors.judge import Pair
from afterword.facts.assertions import OWNER, Assertion, SpeechAct
from afterword.facts.fact import Fact, Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.similarity import similarity
from afterword.facts.statement_index import IndexedStatement, StatementIndex
from afterword.facts.timeline import erased_ids, fact_histories, facts_at
from afterword.facts.words import folded

ALIKE, MARKED_ALIKE, ALIKE_IN_SESSION = 0.5, 0.4, 2.0
"""How alike two assertions must be to be judged: at all; where the later one is marked as a change or correction, or
takes something back; and within one session, whose extractor has seen both. Measured on recorded extractions."""

SLOT, FORGETTING = 10.0, 1.0
"""What the same slot adds to likeness (more than any words do), and a request to forget to the rank of its pairs: it
names things loosely, and what it may mean is judged before what is only worded alike."""


def required_pairs(new: Sequence[Assertion], known: Iterable[Assertion] | StatementIndex) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that bear on the new assertions, the likeliest conflicts first.

    A statement meets its slot and whatever is worded alike, retired values too; a retraction all that was said before
    of what it names. Whether a pair is required depends on the two alone, so that the order of arrival decides
    nothing; but of restatements of one value, only the ones said next before and after are met. Where `known` are
    postings, they hold the new ones too.
    """
    postings = known if isinstance(known, StatementIndex) else StatementIndex.of((*known, *new))
    found: dict[tuple[str, str], tuple[float, tuple[object, ...], tuple[object, ...]]] = {}
    for one in (postings.by_id[said.id] for said in new):
        for other in _thinned(one, _required(one, postings)):
            earlier, later = (other, one) if other.order < one.order else (one, other)
            found[earlier.said.id, later.said.id] = -_urgency(earlier, later), earlier.order, later.order
    ranked = sorted(found, key=found.__getitem__)
    return [(postings.by_id[earlier].said, postings.by_id[later].said) for earlier, later in ranked]


def partners(taken: Sequence[Assertion], postings: StatementIndex) -> list[Assertion]:
    """Return what must be judged with any of these, which the postings hold: what, without them, must be compared with
    the next restatement."""
    met = (other.said for one in taken for other in _required(postings.by_id[one.id], postings))
    return list({other.id: other for other in met}.values())


def _required(one: IndexedStatement, postings: StatementIndex) -> list[IndexedStatement]:
    """Return what must be judged with a statement, in the order of saying."""
    is_met = (
        other
        for other in postings.near(one)
        if (_is_required(other, one) if other.order < one.order else _is_required(one, other))
    )
    return sorted(is_met, key=lambda other: other.order)


def _is_required(earlier: IndexedStatement, later: IndexedStatement) -> bool:
    # Nothing said after a retraction is touched by it.
    if earlier.said.act is not SpeechAct.STATE:
        return False
    least = _least(earlier, later)
    return least == 0.0 or _likeness(earlier, later) >= least


def _least(earlier: IndexedStatement, later: IndexedStatement) -> float:
    """Return how alike the two must be; 0 where they are judged whatever their words."""
    one, other = earlier.said, later.said
    subject = later.slot[0]
    one_subject = earlier.slot[0] == subject
    if earlier.slot == later.slot:
        return 0.0
    if other.act is not SpeechAct.STATE:
        return 0.0 if one_subject and _names(later, earlier) else MARKED_ALIKE
    if other.session_id is not None and one.session_id == other.session_id:
        return ALIKE_IN_SESSION
    if other.cue is None:
        return ALIKE
    is_marked_anew = one_subject and subject != OWNER and one.kind is other.kind
    return 0.0 if is_marked_anew else MARKED_ALIKE


def _names(retraction: IndexedStatement, statement: IndexedStatement) -> bool:
    """Whether a retraction takes back that statement by its words, or is too vague to tell."""
    return retraction.is_vague or retraction.words.value <= statement.words.said


def _likeness(one: IndexedStatement, other: IndexedStatement) -> float:
    """Return how alike the two are; the same slot outweighs every likeness of words."""
    return (SLOT if one.slot == other.slot else 0.0) + similarity(one.words, other.words)


def _urgency(one: IndexedStatement, other: IndexedStatement) -> float:
    """Return what ranks a pair before others: how alike the two are, and whether something is to be forgotten."""
    return _likeness(one, other) + (FORGETTING if SpeechAct.ERASE in (one.said.act, other.said.act) else 0.0)


def _thinned(one: IndexedStatement, others: Iterable[IndexedStatement]) -> Iterable[IndexedStatement]:
    """Yield, of every value, the ones said next to this one, in its own session and in any."""
    before: dict[object, IndexedStatement] = {}
    after: dict[object, IndexedStatement] = {}
    for found in others:
        other = found.said
        said = other.act, found.slot, folded(other.value), other.limited_to, other.valid_from, other.valid_to
        # Of statements, the others of a value inherit what is judged of one; of retractions each counts by itself.
        by_whom = (other.time_is_guess, other.authority, other.speaker) if other.act is not SpeechAct.STATE else ()
        value = (*said, *by_whom)
        is_own = other.session_id is not None and other.session_id == one.said.session_id
        for key in ((value, True), (value, False)) if is_own else ((value, False),):
            if found.order < one.order:
                before[key] = found
            else:
                after.setdefault(key, found)
    yield from {found.said.id: found for found in (*before.values(), *after.values())}.values()


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


def moved_by(before: Knowledge, after: Knowledge, touched: Collection[str], now: datetime) -> Changes:
    """Return what a session changes of the facts that it touches."""
    at = max(one for one in (now, before.last_said_at, after.last_said_at) if one is not None)
    old = facts_at(fact_histories(*before.excerpt(touched)), at)
    hidden = erased_ids(*after.excerpt(touched))
    moved = changes(old, facts_at(fact_histories(*after.excerpt(touched)), at))
    return replace(moved, hidden=sum(hidden.issuperset(fact.assertion_ids) for fact in old))
