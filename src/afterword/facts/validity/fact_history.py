"""One fact through all time, and the fact at one instant. Pure: no clock, no database, no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from afterword.facts.assertions import Assertion, Authority, EvidenceKind
from afterword.facts.fact import ENDED_STATUSES, SERVED_STATUSES, Fact, Status
from afterword.facts.safety import is_assertion_flagged, is_fact_flagged
from afterword.facts.subjects import renamed_labels
from afterword.facts.validity.periods import Interval, ValidityPeriod
from afterword.facts.validity.wording import Rewording, reworded_value


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
        if not self.rewordings or not self.spans:
            return None
        begun = [span for span in self.spans if span.start <= at]
        last = begun[-1] if begun else self.spans[0]
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
        return is_fact_flagged(list(zip(entered, map(is_assertion_flagged, self.members), strict=True)))


def facts_at(histories: Sequence[FactHistory], at: datetime) -> list[Fact]:
    """Return the facts of these histories with their status at `at`, in order of saying."""
    not_holding = {history.id for history in histories if not any(span.holds_at(at) for span in history.spans)}
    facts = [fact for fact in (_fact_at(history, at, not_holding) for history in histories) if fact is not None]
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


def _fact_at(history: FactHistory, at: datetime, not_holding: set[str]) -> Fact | None:
    """Return the fact with its status at `at`, None if it was not said by then and does not hold yet."""
    span, status = deciding_period_and_status(history.spans, history.members[0].said_at, history.undone_as, at)
    if status is None:
        return None
    rivals = tuple([rival for rival in history.contested_by if rival not in not_holding])
    if status is Status.CURRENT:
        status = _status_while_holding(history, rivals)
    lead, members = history.lead, history.members
    value, statement = _words_at(history, at)
    start, end, ended_by = (span.start, span.end, span.ended_by) if span else (None, None, history.undone_by)
    return Fact(
        id=history.id,
        scope=lead.scope,
        kind=lead.kind,
        subject=lead.subject,
        attribute=lead.attribute,
        value=value,
        statement=statement,
        status=status,
        said_at=members[0].said_at,
        valid_from=start,
        valid_to=end,
        support=_support(members),
        evidence=tuple(dict.fromkeys([evidence for assertion in members for evidence in assertion.evidence])),
        assertion_ids=tuple([assertion.id for assertion in members]),
        recorded_at=history.recorded_at,
        retired_by=ended_by if status in ENDED_STATUSES else None,
        contested_by=rivals if status is Status.CONTESTED else (),
        may_be=history.may_be if status is Status.PENDING else (),
        limited_to=lead.limited_to,
        outcome=lead.outcome,
        former_name=lead.former_name if renamed_labels(lead) else None,
        dated=_is_dated(lead, span),
        later_periods=_later_periods(history, span) if status in SERVED_STATUSES else (),
        last_said_at=members[-1].said_at,
        is_flagged=history.is_flagged,
        tags=tuple(dict.fromkeys([tag for assertion in members for tag in assertion.tags])),
    )


def _status_while_holding(history: FactHistory, rivals: Sequence[str]) -> Status:
    if history.may_be:
        return Status.PENDING
    return Status.CONTESTED if rivals else Status.CURRENT


def _words_at(history: FactHistory, at: datetime) -> tuple[str, str]:
    """Return the value and the statement of a fact at an instant."""
    rewording = history.rewording_at(at)
    if rewording is None:
        return history.lead.value, history.lead.statement
    return reworded_value(history.lead.value, rewording.statement), rewording.statement


def _support(members: Sequence[Assertion]) -> int:
    """Return in how many sessions and entries a fact was stated."""
    first, *repetitions = members
    return len({said.session_id or said.id for said in (first, *filter(_states_or_confirms, repetitions))})


def _states_or_confirms(repetition: Assertion) -> bool:
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
    has_own_end = span is not None and span.end is not None and span.ended_by is None
    return lead.valid_from is not None or lead.valid_to is not None or has_own_end


def deciding_period_and_status(
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
