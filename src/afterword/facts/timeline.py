"""What holds, held or will hold: assertions and the verdicts between them, laid out in time.

Pure: no clock, no database, no model. The order of saying decides who prevails over an interval, the validity that was
said decides which interval; the order of arrival decides nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from afterword.facts.assertions import Assertion, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact, Status
from afterword.facts.judged_pairs import JudgedPairs, RefusedRetirement
from afterword.facts.subjects import SubjectNames

_ONE_DAY = timedelta(days=1)
_RETIRED = (Status.SUPERSEDED, Status.RETRACTED, Status.EXPIRED)


@dataclass(frozen=True, slots=True)
class ValidityPeriod:
    """A stretch of time in which something holds. `end` None is open; `ending` says how it ends, `by` which assertion
    ends it (None where its own validity does)."""

    start: datetime
    end: datetime | None = None
    ending: Status = Status.EXPIRED
    by: str | None = None

    def holds_at(self, at: datetime) -> bool:
        """Whether `at` lies in it; an end set by validity is its last instant, one set by another assertion is not."""
        if self.end is None or at < self.end:
            return at >= self.start
        return at == self.end and self.by is None and at >= self.start


@dataclass(frozen=True, slots=True)
class FactHistory:
    """One fact through all time: the assertions that say it (first-said first), and the spans in which it holds.

    Where nothing is left of it, `undone_by` names the assertion that took it, and `undone_as` how. `may_be` names those
    whom it may be about where that is open. `recorded_at` is when it was learned, where a store says so.
    """

    lead: Assertion
    members: tuple[Assertion, ...]
    spans: tuple[ValidityPeriod, ...]
    undone_as: Status = Status.SUPERSEDED
    undone_by: str | None = None
    contested_by: tuple[str, ...] = ()
    may_be: tuple[str, ...] = ()
    recorded_at: datetime | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """The id of the first-said assertion."""
        return self.members[0].id


def timeline(assertions: Iterable[Assertion], verdicts: Iterable[Verdict], at: datetime) -> list[Fact]:
    """Lay assertions out as the facts that hold, held or will hold, with their status at `at` (aware).

    The order of `assertions` does not matter: when each was said decides, never when it arrived. Facts said only after
    `at` are left out, unless they held at `at` already.
    """
    return facts_at(fact_histories(assertions, verdicts), at)


def facts_at(laid_out: Sequence[FactHistory], at: datetime) -> list[Fact]:
    """Return the facts of these courses with their status at `at`, in the order of saying."""
    over = {course.id for course in laid_out if not any(span.holds_at(at) for span in course.spans)}
    found = [_fact(course, at, over) for course in laid_out]
    return [fact for fact in found if fact is not None]


def fact_histories(
    assertions: Iterable[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
) -> list[FactHistory]:
    """Lay assertions out over all time, one course for each fact, in the order of saying.

    Verdicts on assertions that are not given are left out. `names` are those of the whole scope, where the assertions
    are only a part of it. Raises ValueError where a verdict names a pair against its
    order of saying.
    """
    pairs = _pairs(assertions, verdicts, names)
    void = _void(pairs)
    claims = _claims(pairs, void)
    spans, undone = _spans(pairs, void, claims)
    _absorb_broader(pairs, spans, undone)
    gone = pairs.erased()
    left = {root: [one for one in family if one.id not in gone] for root, family in pairs.families.items()}
    return [_course(pairs, family, spans, undone, void, left) for family in left.values() if family]


def refused_retirements(assertions: Iterable[Assertion], verdicts: Iterable[Verdict]) -> list[RefusedRetirement]:
    """Return the retirements that code refused, for a person to settle."""
    return _pairs(assertions, verdicts).refused


def erased_ids(
    assertions: Iterable[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
) -> frozenset[str]:
    """Return the ids of the statements that someone has asked to be gone: no read, prompt, block or export has them."""
    return _pairs(assertions, verdicts, names).erased()


def _pairs(
    assertions: Iterable[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
) -> JudgedPairs:
    return JudgedPairs(sorted({one.id: one for one in assertions}.values(), key=lambda one: one.order), verdicts, names)


def _void(pairs: JudgedPairs) -> dict[str, str]:
    """Return what was wrong from the start, by whose correction; a correction that was itself corrected counts not."""
    void: dict[str, str] = {}
    for one in reversed(pairs.ordered):
        corrections = [
            later for later, relation in pairs.later_on[one.id] if relation is Relation.CORRECTS and later not in void
        ]
        if corrections:
            void[one.id] = max(corrections, key=pairs.place.__getitem__)
    return void


def _claims(pairs: JudgedPairs, void: Mapping[str, str]) -> dict[str, tuple[datetime, datetime | None]]:
    """Return the interval that each assertion is about: as it was said, as what it repeats or corrects has it."""
    claims: dict[str, tuple[datetime, datetime | None]] = {}
    corrected: dict[str, list[str]] = defaultdict(list)
    for wrong in void:
        for later, relation in pairs.later_on[wrong]:
            if relation is Relation.CORRECTS:
                corrected[later].append(wrong)
    for one in pairs.ordered:
        start, end = one.valid_from or one.said_at, one.valid_to
        if one.valid_from is None and one.act is SpeechAct.STATE:
            start = min([start, *(claims[wrong][0] for wrong in corrected[one.id])])
        for known in pairs.families.get(pairs.root[one.id], []):
            if known.id in claims and known.id not in void:
                start, end = _as_repeated(one, known, start, end)
        claims[one.id] = (start if end is None else min(start, end), end)
    return claims


def _as_repeated(
    one: Assertion, known: Assertion, start: datetime, end: datetime | None
) -> tuple[datetime, datetime | None]:
    """Return the interval of a restatement: it adds nothing, so what was announced or bounded before stays so."""
    if one.valid_from is None and known.valid_from is not None and known.valid_from > one.said_at:
        start = max(start, known.valid_from)
    if one.valid_to is None and known.valid_to is not None:
        end = known.valid_to
    return start, end


def _spans(
    pairs: JudgedPairs, void: Mapping[str, str], claims: Mapping[str, tuple[datetime, datetime | None]]
) -> tuple[dict[str, list[ValidityPeriod]], dict[str, tuple[Status, str]]]:
    """Return where each statement holds, and by whom those were undone of which nothing is left."""
    spans: dict[str, list[ValidityPeriod]] = {}
    undone: dict[str, tuple[Status, str]] = {}
    never = _withdrawn_before(pairs, void, claims)
    for one in pairs.ordered:
        if one.id in void:
            spans[one.id] = []
            wrong = Status.SUPERSEDED if pairs.by_id[void[one.id]].act is SpeechAct.STATE else Status.RETRACTED
            undone[one.id] = (wrong, void[one.id])
            continue
        left = [ValidityPeriod(*claims[one.id])]
        for later, relation in sorted(pairs.later_on[one.id], key=lambda item: pairs.place[item[0]]):
            if later not in void and later not in never:
                ending = Status.RETRACTED if relation is Relation.RETRACTS else Status.SUPERSEDED
                taken = _new_date(pairs.by_id[later], relation, claims[later])
                left = _cut(left, taken, ending, later)
                if not left:
                    undone.setdefault(one.id, (ending, later))
        spans[one.id] = left
    return spans, undone


def _withdrawn_before(
    pairs: JudgedPairs, void: Mapping[str, str], claims: Mapping[str, tuple[datetime, datetime | None]]
) -> set[str]:
    """Return what was taken back before it came true: it never took anything from what held until then."""
    return {
        one.id
        for one in pairs.ordered
        for later, relation in pairs.later_on[one.id]
        if relation is Relation.RETRACTS and later not in void and claims[later][0] <= claims[one.id][0]
    }


def _new_date(
    later: Assertion, relation: Relation, claim: tuple[datetime, datetime | None]
) -> tuple[datetime, datetime | None]:
    """Return the interval that a later statement takes from an earlier one: as a rule, what it claims.

    What is to happen within a day (a deadline, a defence) and changes what was said before is a new date for the same
    thing: the former one is out from when that was said, and does not come back once the day has passed.
    """
    start, end = claim
    is_ahead = later.valid_from is not None and start > later.said_at
    if relation is Relation.CHANGES and is_ahead and end is not None and end - start <= _ONE_DAY:
        return later.said_at, None
    return claim


def _cut(
    spans: list[ValidityPeriod], claim: tuple[datetime, datetime | None], ending: Status, by: str
) -> list[ValidityPeriod]:
    """Return the spans without the claimed interval."""
    start, end = claim
    left: list[ValidityPeriod] = []
    for span in spans:
        if (span.end is not None and span.end <= start) or (end is not None and end <= span.start):
            left.append(span)
            continue
        if span.start < start:
            left.append(ValidityPeriod(span.start, start, ending, by))
        if end is not None and (span.end is None or end < span.end):
            left.append(replace(span, start=end))
    return left


def _absorb_broader(
    pairs: JudgedPairs, spans: dict[str, list[ValidityPeriod]], undone: dict[str, tuple[Status, str]]
) -> None:
    """Leave out the restatement of something broader where what narrowed it still holds."""
    standing = dict(spans)
    for broad, narrow in sorted(pairs.broader, key=lambda pair: (pairs.place[pair[0]], pairs.place[pair[1]])):
        for span in standing[narrow]:
            if span.holds_at(pairs.by_id[broad].said_at):
                spans[broad] = _cut(spans[broad], (span.start, span.end), Status.SUPERSEDED, narrow)
        if not spans[broad]:
            undone.setdefault(broad, (Status.SUPERSEDED, narrow))


def _course(
    pairs: JudgedPairs,
    family: list[Assertion],
    spans: Mapping[str, list[ValidityPeriod]],
    undone: Mapping[str, tuple[Status, str]],
    void: Mapping[str, str],
    left: Mapping[str, list[Assertion]],
) -> FactHistory:
    standing = [one for one in family if one.id not in void] or family
    by_status = [undone[one.id] for one in family if one.id in undone]
    undone_as, undone_by = by_status[-1] if by_status else (Status.SUPERSEDED, None)
    root = pairs.root[family[0].id]
    against = (other for contest in pairs.contests if root in contest for other in contest - {root})
    # A fact bears the id of the first statement that is left of it; a retraction is no fact and bears its own.
    rivals = sorted(left[other][0].id if left.get(other) else other for other in against if left.get(other, True))
    return FactHistory(
        lead=standing[0],
        members=tuple(family),
        spans=tuple(_merged([span for one in family for span in spans[one.id]])),
        undone_as=undone_as,
        undone_by=undone_by,
        contested_by=tuple(rivals),
        may_be=_may_be(pairs, family),
    )


def _may_be(pairs: JudgedPairs, family: list[Assertion]) -> tuple[str, ...]:
    """Return those whom a fact may be about; one statement that tells who is meant tells it for all that repeat it."""
    fitting = [pairs.subjects.fitting(one) for one in family]
    return fitting[0] if all(fitting) else ()


def _merged(spans: list[ValidityPeriod]) -> list[ValidityPeriod]:
    """Return the union of the spans in order."""
    merged: list[ValidityPeriod] = []
    for span in sorted(spans, key=lambda one: (one.start, one.end is None, one.end or one.start)):
        last = merged[-1] if merged else None
        if last is None or (last.end is not None and last.end < span.start):
            merged.append(span)
        elif last.end is not None and (span.end is None or span.end > last.end):
            merged[-1] = replace(span, start=last.start)
    return merged


def _fact(course: FactHistory, at: datetime, over: set[str]) -> Fact | None:
    span, decided = _decisive(course, at)
    if decided is None:
        return None
    rivals = tuple(rival for rival in course.contested_by if rival not in over)
    status = _marked(decided, course, rivals)
    lead = course.lead
    return Fact(
        id=course.id,
        scope=lead.scope,
        kind=lead.kind,
        subject=lead.subject,
        attribute=lead.attribute,
        value=lead.value,
        statement=lead.statement,
        status=status,
        said_at=course.members[0].said_at,
        valid_from=span.start if span else None,
        valid_to=span.end if span else None,
        support=len({one.session_id or one.id for one in course.members}),
        evidence=tuple(dict.fromkeys(item for one in course.members for item in one.evidence)),
        assertion_ids=tuple(one.id for one in course.members),
        recorded_at=course.recorded_at,
        retired_by=_retired_by(course, span, status),
        contested_by=rivals if status is Status.CONTESTED else (),
        may_be=course.may_be if status is Status.PENDING else (),
        limited_to=lead.limited_to,
        outcome=lead.outcome,
        dated=lead.valid_from is not None or lead.valid_to is not None,
        last_said_at=course.members[-1].said_at,
    )


def _marked(status: Status, course: FactHistory, rivals: Sequence[str]) -> Status:
    """Return the status of what holds: with a mark where it is open whom it is about, or where others deny it."""
    if status is not Status.CURRENT:
        return status
    if course.may_be:
        return Status.PENDING
    return Status.CONTESTED if rivals else status


def _retired_by(course: FactHistory, span: ValidityPeriod | None, status: Status) -> str | None:
    if status not in _RETIRED:
        return None
    return span.by if span else course.undone_by


def _decisive(course: FactHistory, at: datetime) -> tuple[ValidityPeriod | None, Status | None]:
    """Return the span that decides the status at `at`, and the status; no status where the fact is not known yet."""
    for span in course.spans:
        if span.holds_at(at):
            return span, Status.CURRENT
    if course.members[0].said_at > at:
        return None, None
    past = [span for span in course.spans if span.end is not None and span.end <= at]
    ahead = [span for span in course.spans if span.start > at]
    if ahead and not past:
        return ahead[0], Status.CURRENT
    if past:
        return past[-1], past[-1].ending
    return None, course.undone_as
