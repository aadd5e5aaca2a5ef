"""The timeline: which facts hold, held or will hold, derived from assertions and the verdicts on pairs of them.

Pure: no clock, no database, no model. The order of saying decides which assertion prevails, and the days that it names
decide for which time. The order in which assertions arrive has no influence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from afterword.facts.assertions import Assertion, Extent, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact, Status
from afterword.facts.validity.alternations import IdPair
from afterword.facts.validity.fact_history import FactHistory, facts_at
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.periods import Interval, ValidityPeriod, periods_outside, united_periods
from afterword.facts.validity.stated_intervals import change_extents, replaced_plans, stated_intervals, taken_interval
from afterword.facts.validity.wording import (
    OmittedPart,
    Rewording,
    fact_rewordings,
    rewordings_by_period,
    rewordings_with_continuations,
)


@dataclass(slots=True)
class _Validity:
    """The periods in which each assertion holds, and its rewordings.

    `undone` has the status of each assertion that never holds, and the assertion that ended it.
    """

    spans: dict[str, list[ValidityPeriod]]
    undone: dict[str, tuple[Status, str]]
    rewordings: dict[str, list[Rewording]]

    def undo(self, id_: str, correction: Assertion) -> None:
        """Record that an assertion was wrong from the start, as a correction says."""
        status = Status.SUPERSEDED if correction.act is SpeechAct.STATE else Status.RETRACTED
        self.spans[id_], self.undone[id_] = [], (status, correction.id)

    def remove_interval(self, id_: str, taken: Interval, ending: Status, by: str) -> None:
        """Remove an interval from the periods of an assertion."""
        self.spans[id_] = periods_outside(self.spans[id_], taken, ending, by)
        if not self.spans[id_]:
            self.undone.setdefault(id_, (ending, by))

    def omit_parts(self, assertion: Assertion, omissions: list[OmittedPart]) -> None:
        """Leave out parts of an assertion's sentence. It does not hold in periods in which no words are left."""
        periods = rewordings_by_period(assertion, omissions)
        for period in periods:
            if not period.statement:
                last = max((each for each in omissions if each.covers(period.start)), key=lambda each: each.order)
                self.remove_interval(assertion.id, (period.start, period.end), Status.SUPERSEDED, last.later_id)
        self.rewordings[assertion.id] = [period for period in periods if period.statement]


def timeline(assertions: Iterable[Assertion], verdicts: Iterable[Verdict], at: datetime) -> list[Fact]:
    """Return the facts that the assertions and verdicts imply, with their status at `at` (aware).

    The result does not depend on the order of `assertions`. Facts that were first said after `at` are left out, unless
    they hold at `at` already.

    Raises ValueError if a verdict's pair is not in order of saying.
    """
    return facts_at(fact_histories(assertions, verdicts), at)


def fact_histories(assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> list[FactHistory]:
    """Return the history of each fact that the assertions and verdicts imply, in order of saying.

    Verdicts on other assertions are left out. Raises ValueError if a verdict's pair is not in order of saying.
    """
    return histories_of_pairs(JudgedPairs(assertions, verdicts))


def histories_of_pairs(pairs: JudgedPairs, ids: Collection[str] | None = None) -> list[FactHistory]:
    """Return the history of each fact that the judged pairs imply, in order of saying.

    With `ids`, only those of the facts to which these assertions belong.
    """
    corrected_by = _corrected_by(pairs)
    intervals = stated_intervals(pairs, corrected_by)
    validity = _validity(pairs, corrected_by, intervals)
    _remove_broader_restatements(pairs, validity)
    erased = pairs.hidden_ids()
    remaining = {
        root: [assertion for assertion in members if assertion.id not in erased]
        for root, members in pairs.members.items()
    }
    return [
        _history(pairs, members, validity, corrected_by, remaining)
        for members in remaining.values()
        if members and (ids is None or members[0].id in ids)
    ]


def erased_ids(assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> frozenset[str]:
    """Return the ids of assertions that a request to erase hides. No read, prompt, block or export contains them."""
    return JudgedPairs(assertions, verdicts).hidden_ids()


def _corrected_by(pairs: JudgedPairs) -> dict[str, str]:
    """Return the assertions that were corrected, and so were wrong from the start, each with its latest correction.

    A correction that was itself corrected does not count.
    """
    corrected_by: dict[str, str] = {}
    for assertion in reversed(pairs.ordered):
        corrections = [
            later
            for later, relation in pairs.retirements[assertion.id]
            if relation is Relation.CORRECTS
            and later not in corrected_by
            and (assertion.id, later) not in pairs.remainders
        ]
        if corrections:
            corrected_by[assertion.id] = max(corrections, key=pairs.position.__getitem__)
    return corrected_by


def _validity(pairs: JudgedPairs, corrected_by: Mapping[str, str], intervals: Mapping[str, Interval]) -> _Validity:
    """Return the periods in which each assertion holds, and its rewordings."""
    validity = _Validity({}, {}, {})
    extents = change_extents(pairs, intervals)
    retirements = _retirements_in_effect(pairs, corrected_by, intervals, extents)
    for assertion in pairs.ordered:
        if assertion.id in corrected_by:
            validity.undo(assertion.id, pairs.by_id[corrected_by[assertion.id]])
            continue
        stated = intervals[assertion.id]
        validity.spans[assertion.id] = [ValidityPeriod(*stated)]
        omissions: list[OmittedPart] = []
        for later, relation in retirements.get(assertion.id, ()):
            pair = assertion.id, later
            taken = taken_interval(pairs.by_id[later], intervals[later], stated, extents.get(pair), relation)
            if pair in pairs.remainders:
                omissions.append(_omitted_part(pairs, pair, relation, taken, stated[0]))
            else:
                ending = Status.RETRACTED if relation is Relation.RETRACTS else Status.SUPERSEDED
                validity.remove_interval(assertion.id, taken, ending, later)
        validity.omit_parts(assertion, omissions)
    return validity


def _retirements_in_effect(
    pairs: JudgedPairs,
    corrected_by: Mapping[str, str],
    intervals: Mapping[str, Interval],
    extents: Mapping[IdPair, Extent],
) -> dict[str, list[tuple[str, Relation]]]:
    """Return for each assertion the later ones that end it or a part of it, in order of saying, with their relation."""
    never_ended_anything = _withdrawn_before_they_held(pairs, corrected_by, intervals)
    never_ended_anything |= replaced_plans(pairs, intervals, extents, corrected_by)

    in_effect: dict[str, list[tuple[str, Relation]]] = {}
    for earlier, retirements in pairs.retirements.items():
        for later, relation in retirements:
            # What was replaced as a whole does not hold again when its replacement is withdrawn or replaced itself.
            is_lasting = later not in never_ended_anything or extents.get((earlier, later)) is Extent.WHOLE
            if is_lasting and later not in corrected_by:
                in_effect.setdefault(earlier, []).append((later, relation))
    for retirements in in_effect.values():
        retirements.sort(key=lambda retirement: pairs.position[retirement[0]])
    return in_effect


def _omitted_part(
    pairs: JudgedPairs, pair: IdPair, relation: Relation, taken: Interval, start: datetime
) -> OmittedPart:
    """Return the part of an earlier sentence, which holds from `start` on, that a later statement ends.

    A correction says that the part never held.
    """
    _, later = pair
    if relation is Relation.CORRECTS:
        taken = (min(taken[0], start), taken[1])
    held_before = relation is Relation.CHANGES and taken[0] > start
    return OmittedPart(taken, pairs.position[later], pairs.remainders[pair], later, held_before)


def _withdrawn_before_they_held(
    pairs: JudgedPairs, corrected_by: Mapping[str, str], intervals: Mapping[str, Interval]
) -> set[str]:
    """Return the assertions that were withdrawn before they began to hold."""
    return {
        assertion.id
        for assertion in pairs.ordered
        for later, relation in pairs.retirements[assertion.id]
        if relation is Relation.RETRACTS
        and later not in corrected_by
        and intervals[later][0] <= intervals[assertion.id][0]
    }


def _remove_broader_restatements(pairs: JudgedPairs, validity: _Validity) -> None:
    """Remove from a broader restatement the periods in which a narrower statement holds.

    If the narrower statement says the same more exactly, the broader one does not hold after it either. If it is an
    exception, the broader one holds on the other days.
    """
    before = dict(validity.spans)
    for broad, narrow in sorted(
        pairs.broader_restatements, key=lambda pair: (pairs.position[pair[0]], pairs.position[pair[1]])
    ):
        said_at = pairs.by_id[broad].said_at
        for span in before[narrow]:
            if span.holds_at(said_at) or span.start > said_at:
                is_over = pairs.broader_restatements[broad, narrow] is Relation.NARROWS and span.ended_by is None
                validity.remove_interval(broad, (span.start, None if is_over else span.end), Status.SUPERSEDED, narrow)


def _history(
    pairs: JudgedPairs,
    members: list[Assertion],
    validity: _Validity,
    corrected_by: Mapping[str, str],
    remaining: Mapping[str, list[Assertion]],
) -> FactHistory:
    endings = [validity.undone[assertion.id] for assertion in members if assertion.id in validity.undone]
    undone_as, undone_by = endings[-1] if endings else (Status.SUPERSEDED, None)
    root = pairs.roots[members[0].id]
    lead = next((assertion for assertion in members if assertion.id not in corrected_by), members[0])
    people = [pairs.subjects.possible_people(assertion) for assertion in members]
    return FactHistory(
        lead=lead,
        members=tuple(members),
        spans=tuple(united_periods([span for member in members for span in validity.spans[member.id]])),
        undone_as=undone_as,
        undone_by=undone_by,
        contested_by=_rival_ids(pairs, root, remaining),
        # If one assertion makes clear who is meant, this is clear for all that repeat it.
        may_be=people[0] if all(people) else (),
        exceptions=_exception_ids(pairs, root, remaining),
        rewordings=_rewordings(pairs, lead, members, validity, corrected_by),
    )


def _rival_ids(pairs: JudgedPairs, root: str, remaining: Mapping[str, list[Assertion]]) -> tuple[str, ...]:
    """Return the ids of the facts and retractions that contradict the fact with this root, sorted."""
    rivals = {rival for contest in pairs.contests if root in contest for rival in contest - {root}}
    # A fact has the id of its first remaining assertion. A retraction is not a fact and keeps its own id.
    ids = (remaining[rival][0].id if rival in remaining else rival for rival in rivals if remaining.get(rival, True))
    return tuple(sorted(ids))


def _exception_ids(pairs: JudgedPairs, root: str, remaining: Mapping[str, list[Assertion]]) -> tuple[str, ...]:
    """Return the ids of the exceptions of the fact with this root, in order of saying."""
    exceptions = [remaining[other][0] for other in pairs.exceptions.get(root, ()) if remaining.get(other)]
    return tuple(said.id for said in sorted(exceptions, key=lambda said: said.order))


def _rewordings(
    pairs: JudgedPairs,
    lead: Assertion,
    members: list[Assertion],
    validity: _Validity,
    corrected_by: Mapping[str, str],
) -> tuple[Rewording, ...]:
    """Return the periods in which a fact is told in words other than those of its leading assertion."""
    rewordings: tuple[Rewording, ...] = ()
    if any(validity.rewordings.get(member.id) for member in members):
        rewordings = fact_rewordings(
            lead.id,
            {member.id: member.statement for member in members},
            {member.id: [(span.start, span.end) for span in validity.spans[member.id]] for member in members},
            validity.rewordings,
        )
    continuing = [said for said in members if said.id in pairs.continuing_ids and said.id not in corrected_by]
    return rewordings_with_continuations(lead, [said for said in continuing if said is not lead], rewordings)
