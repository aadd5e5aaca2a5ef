"""The timeline: which facts hold, held or will hold, derived from assertions and the verdicts on pairs of them.

Pure: no clock, no database, no model. The order of saying decides which assertion prevails, and the days that it names
decide for which time. The order in which assertions arrive has no influence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from afterword.facts.assertions import Assertion, Authority, EvidenceKind, Extent, Relation, SpeechAct, Verdict
from afterword.facts.fact import ENDED_STATUSES, SERVED, Fact, Status
from afterword.facts.safety import assertion_flag, is_flagged
from afterword.facts.subjects import renamed_labels
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.periods import Interval, ValidityPeriod, merged, subtracted
from afterword.facts.validity.stated_intervals import change_extents, replaced_plans, stated_intervals, taken_interval
from afterword.facts.validity.wording import (
    OmittedPart,
    Rewording,
    fact_rewordings,
    reworded_value,
    rewordings_by_period,
    rewordings_with_continuations,
)


@dataclass(frozen=True, slots=True)
class FactHistory:
    """One fact through all time: the assertions that state it, in order of saying, and the periods in which it holds.

    `lead` is the assertion whose words the fact has, `spans` the periods in which it holds. If `spans` is empty,
    `undone_by` is the assertion because of which the fact never holds, and `undone_as` its status. `may_be` names the
    people whom the fact may be about, if that is unclear. `exceptions` are the ids of the facts that limit it.
    `rewordings` are the periods in which it is told in other words, because a part of its sentence has ended.
    `recorded_at` is when it was stored, if that is known.
    """

    lead: Assertion
    members: tuple[Assertion, ...]
    spans: tuple[ValidityPeriod, ...]
    undone_as: Status = Status.SUPERSEDED
    undone_by: str | None = None
    contested_by: tuple[str, ...] = ()
    may_be: tuple[str, ...] = ()
    exceptions: tuple[str, ...] = ()
    rewordings: tuple[Rewording, ...] = ()
    recorded_at: datetime | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The id of the first-said assertion."""
        return self.members[0].id

    def rewording_at(self, at: datetime) -> Rewording | None:
        """Return the rewording that applies at an instant, None if the words of `lead` apply.

        Before the fact begins, its first words apply. After its end, its last words apply.
        """
        if not self.rewordings:
            return None
        holding = [span for span in self.spans if span.start <= at]
        last = holding[-1] if holding else self.spans[0] if self.spans else None
        if last is None:
            return None
        moment = max(at, last.start) if last.end is None else min(max(at, last.start), last.end)
        is_over = last.end is not None and moment == last.end
        return next(
            (each for each in self.rewordings if each.covers(moment) or (is_over and each.start < moment == each.end)),
            None,
        )

    @property
    def is_flagged(self) -> bool:
        """Whether agents must always be told it: as a person decided last, else if any assertion is flagged."""
        entered = [EvidenceKind.PERSON in [cited.kind for cited in member.evidence] for member in self.members]
        return is_flagged(list(zip(entered, map(assertion_flag, self.members), strict=True)))


@dataclass(slots=True)
class _Validity:
    """The periods in which each assertion holds, and its rewordings.

    `undone` has the status of each assertion that never holds, and the assertion that ended it.
    """

    spans: dict[str, list[ValidityPeriod]]
    undone: dict[str, tuple[Status, str]]
    rewordings: dict[str, list[Rewording]]

    def end(self, id_: str, taken: Interval, ending: Status, by: str) -> None:
        """Remove an interval from the periods of an assertion."""
        self.spans[id_] = subtracted(self.spans[id_], taken, ending, by)
        if not self.spans[id_]:
            self.undone.setdefault(id_, (ending, by))

    def omit(self, assertion: Assertion, omissions: list[OmittedPart]) -> None:
        """Leave out parts of an assertion's sentence. It does not hold in periods in which no words are left."""
        periods = rewordings_by_period(assertion, omissions)
        for period in periods:
            if not period.statement:
                last = max((each for each in omissions if each.covers(period.start)), key=lambda each: each.order)
                self.end(assertion.id, (period.start, period.end), Status.SUPERSEDED, last.later_id)
        self.rewordings[assertion.id] = [period for period in periods if period.statement]


def timeline(assertions: Iterable[Assertion], verdicts: Iterable[Verdict], at: datetime) -> list[Fact]:
    """Return the facts that the assertions and verdicts imply, with their status at `at` (aware).

    The result does not depend on the order of `assertions`. Facts that were first said after `at` are left out, unless
    they hold at `at` already.

    Raises ValueError if a verdict's pair is not in order of saying.
    """
    return facts_at(fact_histories(assertions, verdicts), at)


def facts_at(histories: Sequence[FactHistory], at: datetime) -> list[Fact]:
    """Return the facts of these histories with their status at `at`, in order of saying."""
    not_holding = {history.id for history in histories if not any(span.holds_at(at) for span in history.spans)}
    facts = [fact for fact in (_fact(history, at, not_holding) for history in histories) if fact is not None]
    if not any(history.exceptions for history in histories):
        return facts
    served = {fact.id: fact for fact in facts if fact.is_served}
    exceptions = {history.id: history.exceptions for history in histories}
    return [
        replace(fact, exceptions=tuple(served[id_] for id_ in exceptions.get(fact.id, ()) if id_ in served))
        if fact.id in served
        else fact
        for fact in facts
    ]


def fact_histories(assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> list[FactHistory]:
    """Return the history of each fact that the assertions and verdicts imply, in order of saying.

    Verdicts on other assertions are left out. Raises ValueError if a verdict's pair is not in order of saying.
    """
    return derived_histories(JudgedPairs(assertions, verdicts))


def derived_histories(pairs: JudgedPairs, ids: Collection[str] | None = None) -> list[FactHistory]:
    """Return the history of each fact that the judged pairs imply, in order of saying.

    With `ids`, only those of the facts to which these assertions belong.
    """
    corrected_by = _corrected_by(pairs)
    intervals = stated_intervals(pairs, corrected_by)
    validity = _validity(pairs, corrected_by, intervals)
    _remove_broader_restatements(pairs, validity)
    erased = pairs.erased()
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
    return JudgedPairs(assertions, verdicts).erased()


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
    never_ended_anything = _withdrawn_before_they_held(pairs, corrected_by, intervals)
    never_ended_anything |= replaced_plans(pairs, intervals, extents, corrected_by)
    for assertion in pairs.ordered:
        if assertion.id in corrected_by:
            correction = pairs.by_id[corrected_by[assertion.id]]
            status = Status.SUPERSEDED if correction.act is SpeechAct.STATE else Status.RETRACTED
            validity.spans[assertion.id], validity.undone[assertion.id] = [], (status, correction.id)
            continue
        validity.spans[assertion.id] = [ValidityPeriod(*intervals[assertion.id])]
        omissions: list[OmittedPart] = []
        retirements = sorted(pairs.retirements[assertion.id], key=lambda retirement: pairs.position[retirement[0]])
        for later, relation in retirements:
            extent = extents.get((assertion.id, later))
            # What was replaced as a whole does not hold again when its replacement is withdrawn or replaced itself.
            if later in corrected_by or (later in never_ended_anything and extent is not Extent.WHOLE):
                continue
            ending = Status.RETRACTED if relation is Relation.RETRACTS else Status.SUPERSEDED
            taken = taken_interval(pairs.by_id[later], intervals[later], intervals[assertion.id], extent, relation)
            remainder = pairs.remainders.get((assertion.id, later))
            if remainder is None:
                validity.end(assertion.id, taken, ending, later)
                continue
            if relation is Relation.CORRECTS:
                taken = (min(taken[0], intervals[assertion.id][0]), taken[1])
            held_before = relation is Relation.CHANGES and taken[0] > intervals[assertion.id][0]
            omissions.append(OmittedPart(taken, pairs.position[later], remainder, later, held_before))
        validity.omit(assertion, omissions)
    return validity


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
    for broad, narrow in sorted(pairs.broader, key=lambda pair: (pairs.position[pair[0]], pairs.position[pair[1]])):
        said_at = pairs.by_id[broad].said_at
        for span in before[narrow]:
            if span.holds_at(said_at) or span.start > said_at:
                is_over = pairs.broader[broad, narrow] is Relation.NARROWS and span.by is None
                validity.end(broad, (span.start, None if is_over else span.end), Status.SUPERSEDED, narrow)


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
    rival_roots = (rival for contest in pairs.contests if root in contest for rival in contest - {root})
    # A fact has the id of its first remaining assertion. A retraction is not a fact and keeps its own id.
    rivals = sorted(
        remaining[rival][0].id if remaining.get(rival) else rival for rival in rival_roots if remaining.get(rival, True)
    )
    exceptions = [remaining[other][0] for other in pairs.exceptions.get(root, ()) if remaining.get(other)]
    lead = next((assertion for assertion in members if assertion.id not in corrected_by), members[0])
    spans = {member.id: validity.spans[member.id] for member in members}
    continuing_ids = {later for laters in pairs.continued_by.values() for later in laters}
    continuing = [member for member in members if member.id in continuing_ids and member.id not in corrected_by]
    people = [pairs.subjects.possible_people(assertion) for assertion in members]
    return FactHistory(
        lead=lead,
        members=tuple(members),
        spans=tuple(merged([span for periods in spans.values() for span in periods])),
        undone_as=undone_as,
        undone_by=undone_by,
        contested_by=tuple(rivals),
        # If one assertion makes clear who is meant, this is clear for all that repeat it.
        may_be=people[0] if all(people) else (),
        exceptions=tuple(said.id for said in sorted(exceptions, key=lambda said: said.order)),
        rewordings=rewordings_with_continuations(
            lead,
            [member for member in continuing if member.id != lead.id],
            fact_rewordings(
                lead.id,
                {member.id: member.statement for member in members},
                {id_: [(span.start, span.end) for span in periods] for id_, periods in spans.items()},
                validity.rewordings,
            ),
        ),
    )


def _fact(history: FactHistory, at: datetime, not_holding: set[str]) -> Fact | None:
    """Return the fact with its status at `at`, None if it was not said by then and does not hold yet."""
    span, status = deciding_span(history.spans, history.members[0].said_at, history.undone_as, at)
    if status is None:
        return None
    rivals = tuple([rival for rival in history.contested_by if rival not in not_holding])
    if status is Status.CURRENT and history.may_be:
        status = Status.PENDING
    elif status is Status.CURRENT and rivals:
        status = Status.CONTESTED
    lead, members = history.lead, history.members
    rewording = history.rewording_at(at)
    return Fact(
        id=history.id,
        scope=lead.scope,
        kind=lead.kind,
        subject=lead.subject,
        attribute=lead.attribute,
        value=reworded_value(lead.value, rewording.statement) if rewording else lead.value,
        statement=rewording.statement if rewording else lead.statement,
        status=status,
        said_at=members[0].said_at,
        valid_from=span.start if span else None,
        valid_to=span.end if span else None,
        support=len({said.session_id or said.id for said in members[:1] + tuple(filter(_states, members[1:]))}),
        evidence=tuple(dict.fromkeys([evidence for assertion in members for evidence in assertion.evidence])),
        assertion_ids=tuple([assertion.id for assertion in members]),
        recorded_at=history.recorded_at,
        retired_by=(span.by if span else history.undone_by) if status in ENDED_STATUSES else None,
        contested_by=rivals if status is Status.CONTESTED else (),
        may_be=history.may_be if status is Status.PENDING else (),
        limited_to=lead.limited_to,
        outcome=lead.outcome,
        former_name=lead.former_name if renamed_labels(lead) else None,
        dated=_is_dated(lead, span),
        later_periods=_later_periods(history, span) if status in SERVED else (),
        last_said_at=members[-1].said_at,
        is_flagged=history.is_flagged,
        tags=tuple(dict.fromkeys([tag for assertion in members for tag in assertion.tags])),
    )


def _states(repetition: Assertion) -> bool:
    """Return whether a later assertion of a fact states or confirms it. A person's flag does not."""
    is_decided = any(said.kind is EvidenceKind.PERSON and said.speaker is None for said in repetition.evidence)
    return not is_decided or repetition.is_flagged is None or repetition.authority is Authority.CONFIRMED


def _later_periods(history: FactHistory, span: ValidityPeriod | None) -> tuple[Interval, ...]:
    """Return the periods after the one that decides the status. There are none if that period has no end."""
    if span is None or span.end is None:
        return ()
    later_spans = history.spans[history.spans.index(span) + 1 :]
    return tuple((later.start, later.end) for later in later_spans)


def _is_dated(lead: Assertion, span: ValidityPeriod | None) -> bool:
    """Return whether the words name the day on which the fact begins or ends."""
    has_own_end = span is not None and span.end is not None and span.by is None
    return lead.valid_from is not None or lead.valid_to is not None or has_own_end


def deciding_span(
    spans: Sequence[ValidityPeriod], said_at: datetime, undone_as: Status, at: datetime
) -> tuple[ValidityPeriod | None, Status | None]:
    """Return the period that decides a fact's status at `at`, and the status, None if the fact is not known yet.

    `spans` are the periods of the fact, which was first said at `said_at`. `undone_as` is its status if it has no
    periods.
    """
    for span in spans:
        if span.holds_at(at):
            return span, Status.CURRENT
    if said_at > at:
        return None, None
    past = [span for span in spans if span.end is not None and span.end <= at]
    if past:
        return past[-1], past[-1].ending
    ahead = next((span for span in spans if span.start > at), None)
    return (ahead, Status.CURRENT) if ahead else (None, undone_as)
