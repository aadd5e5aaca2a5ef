"""The pairs of statements that a judge must see, and the changes that a run makes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from afterword.extractors.judge import Pair
from afterword.facts.assertions import OWNER, Assertion, Order, SpeechAct
from afterword.facts.fact import Fact, Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.removals import (
    UnnamedRemovalCounts,
    asks_to_erase_everything,
    count_unnamed_removals,
    has_matched_statement,
    removals_between,
)
from afterword.facts.similarity import IndexedStatement, similarity
from afterword.facts.validity.fact_history import facts_at
from afterword.facts.validity.neighbourhood import (
    LAST_REPLACEMENTS,
    REPLACEMENTS,
    may_withdraw_in_advance,
    need_not_be_judged,
    replacement_times,
)
from afterword.facts.validity.timeline import histories_of_pairs
from afterword.facts.words import folded, terms, words_as_written
from afterword.text_caches import text_cache

ALIKE, MARKED_ALIKE, ALIKE_IN_SESSION = 0.5, 0.4, 2.0
"""The least similarity of two statements that are judged.

`ALIKE` is for most pairs. `MARKED_ALIKE` is for a later statement that is marked as a change or correction, or that
withdraws something. `ALIKE_IN_SESSION` is for two statements of one session, whose extractor has seen both. The values
were measured on recorded extractions.
"""

SLOT, FORGETTING = 10.0, 1.0
"""What is added to the similarity of two statements: `SLOT`, more than words can, if they have the same slot.

`FORGETTING` is added to the rank of pairs with a request to forget. Such requests are worded loosely, so their pairs
are judged before pairs that are only worded alike.
"""


LIKELY_SHARE, SHARED_NAME, WITHDRAWAL_PAIRS = 0.25, 0.5, 15
"""How the pairs of statements of two slots are selected (see `_LikelyPairs`). Also measured on recorded extractions.

`LIKELY_SHARE` is the least likelihood of a pair, as a share of that of the likeliest pair of the later statement.
`SHARED_NAME` is added if both sentences contain the same name. `WITHDRAWAL_PAIRS` is how many pairs a withdrawal gets
that names something.
"""


def required_pairs(
    new: Sequence[Assertion],
    known: Knowledge,
    *,
    compared_before: Sequence[Assertion] = (),
    pairs_a_statement: int | None = None,
) -> list[Pair]:
    """Return the pairs (earlier-said, later-said) that must be judged for the new statements, likely conflicts first.

    A statement is paired with those of its slot and with similar ones, retired values included. A retraction is paired
    with everything said before about its subject. Only the two statements decide whether a pair is required, so the
    order of arrival does not matter. There are two exceptions. If a value was stated several times, only the nearest
    statement before and the nearest after are paired. A statement that several changes have replaced for good is not
    paired with later changes (see `facts.validity.neighbourhood`). For statements in `compared_before` fewer such
    changes are enough. A change does not count if a retraction may withdraw it from its beginning, so a new retraction
    may require pairs of older statements. `known` holds all of these statements.

    With `pairs_a_statement`, a later statement gets only its likeliest pairs with statements of other slots (see
    `_LikelyPairs`). The other pairs need no verdict, and are not counted as unjudged.
    """
    likely = None if pairs_a_statement is None else _LikelyPairs(known, pairs_a_statement)
    ranks: dict[tuple[str, str], tuple[float, tuple[object, ...], tuple[object, ...]]] = {}
    replacements = dict.fromkeys((assertion.id for assertion in compared_before), LAST_REPLACEMENTS)
    replacements |= dict.fromkeys((assertion.id for assertion in new), REPLACEMENTS)
    for id_, count in replacements.items():
        statement = known.index.by_id[id_]
        partners = _nearest_by_value(statement, _statements_to_judge_with(statement, known, count))
        pairs = [(other, statement) if other.order < statement.order else (statement, other) for other in partners]
        for earlier, later in (*pairs, *_pairs_to_judge_again(statement, known, count)):
            if likely is None or likely.contains(earlier, later):
                ranks[earlier.said.id, later.said.id] = -_urgency(earlier, later), earlier.order, later.order
    ranked = sorted(ranks, key=ranks.__getitem__)
    return [(known.by_id[earlier], known.by_id[later]) for earlier, later in ranked]


def _urgency(earlier: IndexedStatement, later: IndexedStatement) -> float:
    """Return how likely two statements conflict. Pairs with a higher urgency are judged first."""
    is_request = SpeechAct.ERASE in (earlier.said.act, later.said.act)
    return _similarity(earlier, later) + (FORGETTING if is_request else 0.0)


def comparison_partners(removed: Sequence[Assertion], known: Knowledge) -> list[Assertion]:
    """Return the known statements that must be compared again once the `removed` ones, which are known too, are gone.

    These are the statements that must be judged with a removed one. Without it they must be compared with the next
    statement of the same value, or with the next change.
    """
    partners = (
        other.said
        for assertion in removed
        for other in _statements_to_judge_with(known.index.by_id[assertion.id], known, REPLACEMENTS + 1)
    )
    return list({other.id: other for other in partners}.values())


@dataclass(frozen=True, slots=True)
class ReplacedKnowledge:
    """The knowledge of a scope in which new statements have taken the place of old ones, and are not judged yet.

    `others` is the knowledge without the old and the new statements. `combined` has the new ones as well. The `pairs`
    must be judged.
    """

    others: Knowledge
    combined: Knowledge
    pairs: list[Pair]


def replace_statements(
    known: Knowledge, old: Sequence[Assertion], new: Sequence[Assertion], pairs_a_statement: int | None
) -> ReplacedKnowledge:
    """Return the knowledge after new statements have taken the place of old ones, and the pairs to judge for that."""
    _ = known.index  # built once here, the index is shared by everything that is derived from `known`
    others = known.revised(known.revision, removed=old) if old else known
    combined = others.revised(others.revision, added=new)
    # A statement that was compared only with one that is now gone must be compared with the next one.
    new_ids = {assertion.id for assertion in new}
    gone = [assertion for assertion in old if assertion.id not in new_ids]
    unpaired = [other for other in comparison_partners(gone, known) if other.id in others.by_id]
    pairs = required_pairs(new, combined, compared_before=unpaired, pairs_a_statement=pairs_a_statement)
    return ReplacedKnowledge(others, combined, pairs)


def _statements_to_judge_with(
    statement: IndexedStatement, known: Knowledge, count: int, ignored_id: str | None = None
) -> list[IndexedStatement]:
    """Return the statements that must be judged with this one, in the order of saying.

    A statement that was replaced `count` times already is left out. The retraction `ignored_id` counts as if it had
    withdrawn none of these replacements.
    """
    near = list(known.index.statements_near(statement))
    retractions = [each for each in (*near, statement) if each.said.act is not SpeechAct.STATE]
    retractions = [each for each in retractions if each.said.id != ignored_id]
    partners = []
    for other in near:
        earlier, later = (other, statement) if other.order < statement.order else (statement, other)
        if _is_required(earlier, later) and not _is_replaced(earlier, later, known, count, retractions):
            partners.append(other)
    return sorted(partners, key=lambda other: other.order)


def _pairs_to_judge_again(
    retraction: IndexedStatement, known: Knowledge, count: int
) -> Iterable[tuple[IndexedStatement, IndexedStatement]]:
    """Yield pairs of a statement and a later one that must be judged because of a retraction.

    The retraction may undo what replaced the earlier statement, which then holds again beside the later one.
    """
    if retraction.said.act is SpeechAct.STATE:
        return
    for earlier in known.index.statements_near(retraction):
        if earlier.said.id in known.replacement_times and _ids_withdrawn_in_advance(earlier, known, [retraction]):
            before = {other.said.id for other in _statements_to_judge_with(earlier, known, count, retraction.said.id)}
            after = [other for other in _statements_to_judge_with(earlier, known, count) if other.order > earlier.order]
            for later in _nearest_by_value(earlier, after):
                if later.said.id not in before:
                    yield earlier, later


def _is_replaced(
    earlier: IndexedStatement,
    later: IndexedStatement,
    known: Knowledge,
    count: int,
    retractions: Sequence[IndexedStatement],
) -> bool:
    """Whether at least `count` changes, which none of these retractions may withdraw, came between two statements."""
    starts = known.replacement_times.get(earlier.said.id)
    if starts is None or not need_not_be_judged(earlier.said, later.said, starts, count):
        return False
    undone_ids = _ids_withdrawn_in_advance(earlier, known, retractions)
    if not undone_ids:
        return True
    verdicts = known.verdicts_by_id.get(earlier.said.id, ())
    remaining = replacement_times(earlier.said.id, known.by_id, verdicts, undone_ids)
    return remaining is not None and need_not_be_judged(earlier.said, later.said, remaining, count)


def _ids_withdrawn_in_advance(
    earlier: IndexedStatement, known: Knowledge, retractions: Sequence[IndexedStatement]
) -> set[str]:
    """Return the ids of the statements said after an earlier one that these retractions may withdraw in advance."""
    if not retractions:
        return set()
    ids = {verdict.later_id for verdict in known.verdicts_by_id.get(earlier.said.id, ())} - {earlier.said.id}
    laters = [known.index.by_id[id_] for id_ in ids if id_ in known.by_id]
    return {
        later.said.id
        for later in laters
        for retraction in retractions
        if may_withdraw_in_advance(later.said, retraction.said) and _is_required(later, retraction)
    }


def _is_required(earlier: IndexedStatement, later: IndexedStatement) -> bool:
    """Whether two statements must be judged unless the earlier one was replaced for good."""
    # A retraction does not affect statements said after it.
    if earlier.said.act is not SpeechAct.STATE:
        return False
    least = _least_similarity(earlier, later)
    return least == 0.0 or _similarity(earlier, later) >= least


def _least_similarity(earlier: IndexedStatement, later: IndexedStatement) -> float:
    """Return how similar the two must be to be judged; 0 if they are judged whatever their words."""
    subject = later.slot[0]
    is_same_subject = earlier.slot[0] == subject
    if earlier.slot == later.slot:
        return 0.0
    if later.said.act is not SpeechAct.STATE:
        return 0.0 if is_same_subject and _may_be_named(earlier, later) else MARKED_ALIKE
    if _are_of_one_session(earlier, later):
        return ALIKE_IN_SESSION
    if later.said.cue is None:
        return ALIKE
    is_marked_anew = is_same_subject and subject != OWNER and earlier.said.kind is later.said.kind
    return 0.0 if is_marked_anew else MARKED_ALIKE


def _are_of_one_session(first: IndexedStatement, second: IndexedStatement) -> bool:
    return first.said.session_id is not None and first.said.session_id == second.said.session_id


def _may_be_named(earlier: IndexedStatement, withdrawal: IndexedStatement) -> bool:
    """Whether the words of a withdrawal name a statement, or are too vague to decide."""
    return withdrawal.is_vague_retraction or withdrawal.words.value <= earlier.words.all_stems


def _similarity(first: IndexedStatement, second: IndexedStatement) -> float:
    """Return how similar the two are. The same slot outweighs any similarity of words."""
    return (SLOT if first.slot == second.slot else 0.0) + similarity(first.words, second.words)


def _nearest_by_value(statement: IndexedStatement, others: Iterable[IndexedStatement]) -> Iterable[IndexedStatement]:
    """Yield, for each value, the last statement before this one and the first after it: in its session, and overall."""
    before: dict[object, IndexedStatement] = {}
    after: dict[object, IndexedStatement] = {}
    for other in others:
        said = other.said
        content = said.act, other.slot, folded(said.value), said.limited_to, said.valid_from, said.valid_to
        # A verdict on one statement of a value holds for the others of that value. Retractions count one by one.
        source = (said.time_is_guess, said.authority, said.speaker) if said.act is not SpeechAct.STATE else ()
        value = (*content, *source)
        is_own = _are_of_one_session(other, statement)
        for key in ((value, True), (value, False)) if is_own else ((value, False),):
            if other.order < statement.order:
                before[key] = other
            else:
                after.setdefault(key, other)
    yield from {other.said.id: other for other in (*before.values(), *after.values())}.values()


Rank = tuple[bool, float, Order]
"""A statement's rank: whether it was not replaced yet, how likely a later one changes it, and when it was said."""


class _LikelyPairs:
    """The pairs in which the later statement is likely to change or end the earlier one.

    Pairs of one slot are always likely. So are the pairs of a request to forget or a withdrawal that names nothing,
    because no word tells what it is about. Of its other pairs, each later statement keeps the likeliest ones, one for
    each value of a slot. Earlier statements that were replaced before come last. Apart from that only the two
    statements decide, so the order in which statements arrive does not matter.
    """

    def __init__(self, known: Knowledge, most: int) -> None:
        self._known, self._most = known, most
        self._likeliest: dict[str, frozenset[str]] = {}

    def contains(self, earlier: IndexedStatement, later: IndexedStatement) -> bool:
        """Whether a required pair is among the likely ones."""
        if earlier.slot == later.slot or later.is_vague_retraction:
            return True
        if later.said.id not in self._likeliest:
            self._likeliest[later.said.id] = self._likeliest_before(later)
        return earlier.said.id in self._likeliest[later.said.id]

    def _likeliest_before(self, later: IndexedStatement) -> frozenset[str]:
        """Return the ids of the earlier statements of other slots that this one is judged with."""
        partners = _statements_to_judge_with(later, self._known, REPLACEMENTS)
        before = [other for other in partners if other.order < later.order and other.slot != later.slot]
        ranks = {other.said.id: self._rank(other, later) for other in _nearest_by_value(later, before)}
        likeliest = sorted(ranks, key=ranks.__getitem__, reverse=True)
        if later.said.act is not SpeechAct.STATE:
            return frozenset(likeliest[: max(self._most, WITHDRAWAL_PAIRS)])
        least = LIKELY_SHARE * max((likelihood for _, likelihood, _ in ranks.values()), default=0.0)
        return frozenset(id_ for id_ in likeliest[: self._most] if ranks[id_][1] >= least)

    def _rank(self, earlier: IndexedStatement, later: IndexedStatement) -> Rank:
        replaced_at = self._known.replacement_times.get(earlier.said.id)
        was_replaced = replaced_at is not None and need_not_be_judged(earlier.said, later.said, replaced_at, 1)
        return not was_replaced, _likelihood(earlier, later), earlier.order


def _likelihood(earlier: IndexedStatement, later: IndexedStatement) -> float:
    """Return how likely the later statement changes or ends the earlier one, by their words."""
    common_names = _name_stems(earlier.said.statement) & _name_stems(later.said.statement)
    subjects = earlier.words.subject | later.words.subject
    return _similarity(earlier, later) + (0.0 if common_names <= subjects else SHARED_NAME)


@text_cache(10_000)
def _name_stems(sentence: str) -> frozenset[str]:
    """Return the stems of the capitalised words of a sentence, without its first word."""
    return frozenset(terms(" ".join(word for word in words_as_written(sentence)[1:] if word[0].isupper())))


@dataclass(frozen=True, slots=True)
class Changes:
    """What a run changes in the facts of one instant: those learned, repeated, retired and contested.

    `retired` has each retired fact with its successor, or with None. `unclear` are facts that may be about several
    people of one name, and were not unclear before. `hidden` counts facts that somebody asked to erase. Their words are
    not in the changes. `unfound` counts the requests to erase for which no fact was found. `unnamed` counts the facts
    of other sessions that are ended or hidden although nobody named them.
    """

    learned: tuple[Fact, ...] = ()
    repeated: tuple[Fact, ...] = ()
    retired: tuple[tuple[Fact, Fact | None], ...] = ()
    contested: tuple[Fact, ...] = ()
    unclear: tuple[Fact, ...] = ()
    hidden: int = 0
    unfound: int = 0
    unnamed: UnnamedRemovalCounts = field(default_factory=UnnamedRemovalCounts)


def compare_facts(before: Sequence[Fact], after: Sequence[Fact]) -> Changes:
    """Return how the facts after a run differ from those before it."""
    old_by_id = {assertion_id: fact for fact in before for assertion_id in fact.assertion_ids}
    new_by_id = {assertion_id: fact for fact in after for assertion_id in fact.assertion_ids}
    pairs = [(next((old_by_id[id_] for id_ in fact.assertion_ids if id_ in old_by_id), None), fact) for fact in after]
    return Changes(
        learned=tuple(fact for old, fact in pairs if old is None),
        repeated=tuple(fact for old, fact in pairs if old and set(fact.assertion_ids) - set(old.assertion_ids)),
        retired=tuple(
            (fact, new_by_id.get(fact.retired_by or "")) for old, fact in pairs if _is_newly_retired(old, fact)
        ),
        contested=_facts_with_new_status(Status.CONTESTED, pairs),
        unclear=_facts_with_new_status(Status.PENDING, pairs),
    )


def _facts_with_new_status(status: Status, pairs: Sequence[tuple[Fact | None, Fact]]) -> tuple[Fact, ...]:
    """Return the facts that have the status now and did not have it before."""
    return tuple(fact for old, fact in pairs if fact.status is status and not (old and old.status is status))


def fact_changes_of_statements(before: Knowledge, after: Knowledge, ids: Collection[str], now: datetime) -> Changes:
    """Return what changes in the facts that these statements belong to."""
    at = max(instant for instant in (now, before.last_said_at, after.last_said_at) if instant is not None)
    old = facts_at(before.histories(ids), at)
    pairs = after.judged_pairs(ids)
    hidden = pairs.hidden_ids()
    changes = compare_facts(old, facts_at(histories_of_pairs(pairs, ids), at))
    return replace(
        changes,
        hidden=sum(hidden.issuperset(fact.assertion_ids) for fact in old),
        unfound=sum(
            _is_unfound_request(after.by_id[id_], after) for id_ in after.by_id.keys() & set(ids) - before.by_id.keys()
        ),
        unnamed=count_unnamed_removals(removals_between(old, changes.retired, hidden, after)),
    )


def _is_unfound_request(said: Assertion, after: Knowledge) -> bool:
    return said.act is SpeechAct.ERASE and (asks_to_erase_everything(said) or not has_matched_statement(said, after))


def _is_newly_retired(old: Fact | None, fact: Fact) -> bool:
    was_served = old is None or old.is_served
    return was_served and not fact.is_served and fact.status not in (Status.EXPIRED, Status.PENDING)
