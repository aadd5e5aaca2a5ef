"""What must be true of every history, as functions that raise AssertionError where it is not.

The property tests run them on the code as it is, and the planted bugs on code that was broken on purpose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from afterword.facts.assertions import (
    PERSON,
    RETIRING_RELATIONS,
    Assertion,
    Cue,
    Extent,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.fact import Status
from afterword.facts.validity import timeline
from afterword.facts.validity.fact_history import FactHistory, facts_at
from afterword.facts.words import folded
from histories import LAST_DAY, Book, Dump, History, Pairing, day, dumped, every_pair

RETIRED = (Status.SUPERSEDED, Status.RETRACTED, Status.EXPIRED)
Effective = dict[tuple[str, str], Relation]


def read_twice_is_read_once(history: History) -> None:
    """I2: the same session processed again changes nothing, whatever came in between."""
    once = history.at_once()
    twice = history.at_once()
    for told in history.shuffled():
        assert twice.read(told, len(told.whole)) is None
    _same(twice.dump(), once.dump())


def grown_is_read_at_once(history: History, pairing: Pairing = every_pair) -> None:
    """I2: processed at turn 10 and again at 20 is processed once at 20: what was read otherwise before is swapped."""
    book = Book(history.judge, pairing)
    history.happen(book, undos=False)
    for told in history.sessions:
        book.read(told, len(told.whole))
    _same(book.dump(), history.at_once(pairing=pairing).dump())


def any_order_is_the_order_of_saying(history: History, pairing: Pairing = every_pair) -> None:
    """I3: the order of arrival changes nothing, and neither does the order in which assertions are handed over."""
    book = Book(history.judge, pairing)
    for told in history.shuffled():
        book.read(told, len(told.whole))
    expected = history.at_once(pairing=pairing)
    _same(book.dump(), expected.dump())
    _same(dumped(timeline.fact_histories(expected.assertions[::-1], expected.verdicts[::-1])), expected.dump())


def undone_is_never_run(history: History, pairing: Pairing = every_pair) -> None:
    """I4: whatever was read, grown and undone in between, what is left is as if only that had ever been read."""
    book = Book(history.judge, pairing)
    history.happen(book, undos=True)
    left = {run.source: run.length for run in book.live()}
    _same(book.dump(), history.at_once(left, pairing).dump())


def nothing_is_lost(history: History) -> None:
    """I5: after every move each live statement that nobody asked to erase is in one fact, and in one only."""
    book = Book(history.judge)

    def counted() -> None:
        courses = book.courses()
        gone = timeline.erased_ids(book.assertions, book.verdicts)
        expected = sorted(one.id for one in book.assertions if one.act is SpeechAct.STATE and one.id not in gone)
        assert sorted(one.id for course in courses for one in course.members) == expected
        assert all(course.id == min(course.members, key=lambda one: one.order).id for course in courses)

    history.happen(book, undos=True, seen=counted)
    counted()


def facts_are_sound(history: History) -> None:
    """Spans, statuses and rivals fit each other at every instant."""
    book = history.at_once()
    courses = book.courses()
    for course in courses:
        _spans_are_ordered(course)
        _a_last_instant_is_still_within(course)
    for number in range(-10, LAST_DAY):
        for at in (day(number), day(number) + timedelta(hours=12)):
            _statuses_fit(courses, at, book)


def code_guards_retirements(history: History) -> None:
    """I14 and A5: no judge ends a fact against the guard; what was refused is shown as contested."""
    book = history.at_once()
    verdicts = [one for one in book.verdicts if one.judge != PERSON and not one.joins_subjects]
    courses = timeline.fact_histories(book.assertions, verdicts)
    said = {one.id: one for one in book.assertions}
    for course in courses:
        for taker in {span.ended_by for span in course.spans} | {course.undone_by}:
            judged = {verdict.earlier_id: verdict.relation for verdict in verdicts if verdict.later_id == taker}
            allowed = taker is None or any(
                may_retire(one, said[taker], judged.get(one.id, Relation.CHANGES)) for one in course.members
            )
            assert allowed, f"{taker} may not end {course.id}"
    within = {one.id: course for course in courses for one in course.members}
    for verdict in verdicts:
        old, new = said[verdict.earlier_id], said[verdict.later_id]
        reaches = verdict.relation is Relation.CORRECTS or _reaches(old, new)
        if verdict.relation in RETIRING_RELATIONS and reaches and not may_retire(old, new, verdict.relation):
            _is_contested(within.get(old.id), within.get(new.id), new)


def _is_contested(holder: FactHistory | None, rival: FactHistory | None, refused: Assertion) -> None:
    """What was not let retire a fact stands against it, unless one of the two is no longer there."""
    if holder is None or (rival is None and refused.act is SpeechAct.STATE):
        return
    expected = rival.id if rival else refused.id
    assert expected == holder.id or expected in holder.contested_by, f"{refused.id} was refused in silence"


def beside_means_nothing(history: History) -> None:
    """Verdicts that two stand beside each other, and verdicts on what is not there, change nothing."""
    book = history.at_once()
    judged = {(one.earlier_id, one.later_id) for one in book.verdicts}
    idle = [
        Verdict(one.id, other.id, Relation.BESIDE, "no conflict", "test")
        for one, other in every_pair(book.assertions, ())
        if (one.id, other.id) not in judged and one.act is SpeechAct.STATE
    ]
    strange = [Verdict("nobody", one.id, Relation.CORRECTS, "about nothing", "test") for one in book.assertions]
    _same(
        dumped(timeline.fact_histories(book.assertions, [*book.verdicts, *_not_inherited(idle, book), *strange])),
        book.dump(),
    )


def _not_inherited(idle: Sequence[Verdict], book: Book) -> list[Verdict]:
    """Leave out the pairs of which something is inherited: there, a verdict that they stand beside outweighs that."""
    passing_on = (Relation.SAME, Relation.CONTINUES, Relation.CORRECTS)
    sides = {side for one in book.verdicts if one.relation in passing_on for side in (one.earlier_id, one.later_id)}
    return [one for one in idle if not {one.earlier_id, one.later_id} & sides]


def time_is_cut_as_said(history: History) -> None:
    """Where nothing is repeated, the spans are those of a plain definition, worked out instant by instant."""
    book = history.at_once()
    joining = (Relation.SAME, Relation.CONTINUES)
    verdicts = [one for one in book.verdicts if one.relation not in joining and not one.joins_subjects]
    is_cut_as_defined(book.assertions, verdicts)


def is_cut_as_defined(assertions: Sequence[Assertion], verdicts: Sequence[Verdict]) -> None:
    """Check the spans and words of each statement against the plain definition; nothing is repeated or joined."""
    plain = _Plain(assertions, verdicts)
    courses = {course.id: course for course in timeline.fact_histories(assertions, verdicts)}
    for one in assertions:
        assert (one.id in courses) == (one.act is SpeechAct.STATE and one.id not in plain.erased), one.id
        for number in range(-10, LAST_DAY) if one.id in courses else ():
            at = day(number) + timedelta(hours=12)
            held = any(span.holds_at(at) for span in courses[one.id].spans)
            assert held == plain.holds(one, at), f"{one.id} on day {number}"
            if held:
                rewording = courses[one.id].rewording_at(at)
                words = rewording.statement if rewording else one.statement
                assert words == plain.words(one, at), f"{one.id} on day {number}"
        for at in (day(number) for number in range(-10, LAST_DAY) if one.id in courses):
            expected = {
                verdict.later_id
                for verdict in plain.counting.values()
                if verdict.earlier_id == one.id and verdict.relation is Relation.EXCEPTS and verdict.later_id in courses
            }
            assert set(courses[one.id].exceptions) == expected, f"{one.id} at {at}"
            break


class _Plain:
    """What holds when, written down as directly as possible, for histories without restatements."""

    def __init__(self, assertions: Sequence[Assertion], verdicts: Sequence[Verdict]) -> None:
        self.said = {one.id: one for one in assertions}
        self.takes = effective(self.said, verdicts)
        self.extents = said_extents(self.said, self.takes, verdicts)
        by_judge = sorted(verdicts, key=lambda verdict: verdict.judge == PERSON)
        self.counting = {verdict.pair: verdict for verdict in by_judge}
        self.remainders = said_remainders(self.said, self.takes, self.counting)
        self.wrong: dict[str, bool] = {}
        self.erased = {
            old
            for (old, new), how in self.takes.items()
            if how is Relation.RETRACTS and self._act(new) is SpeechAct.ERASE
        }

    def _act(self, name: str) -> SpeechAct:
        return self.said[name].act

    def was_wrong(self, name: str) -> bool:
        """Whether something corrects it that was not wrong itself."""
        if name not in self.wrong:
            corrections = [
                new
                for (old, new), how in self.takes.items()
                if old == name and how is Relation.CORRECTS and (old, new) not in self.remainders
            ]
            self.wrong[name] = any(not self.was_wrong(new) for new in corrections)
        return self.wrong[name]

    def claim(self, one: Assertion) -> tuple[datetime, datetime | None]:
        """Return the interval that it is about, on other days where only these have changed."""
        start, end = self.claim_as_said(one)
        for taker in self.takers_of_parts(one):
            how = self.takes[one.id, taker.id]
            if how is Relation.CORRECTS or self.takes_whole(one, taker, (start, end), self.claim_as_said(taker)):
                is_ahead = start.date() >= taker.said_at.date()
                first = taker.valid_from if one.valid_from and taker.valid_from and is_ahead else start
                last = taker.valid_to if one.valid_to and taker.valid_to else end
                if last is None or first <= last:
                    start, end = first, last
        return start, end

    def claim_as_said(self, one: Assertion) -> tuple[datetime, datetime | None]:
        """Return the interval that its words name; a correction begins where what it corrects began."""
        starts = [one.valid_from or one.said_at]
        if one.valid_from is None and one.act is SpeechAct.STATE:
            corrected = [old for (old, new), how in self.takes.items() if new == one.id and how is Relation.CORRECTS]
            starts += [self.claim_as_said(self.said[old])[0] for old in corrected if self.was_wrong(old)]
        return min([*starts, *filter(None, [one.valid_to])]), one.valid_to

    def takers_of_parts(self, one: Assertion) -> list[Assertion]:
        """Return what changes or corrects only a part of its words, in the order of saying."""
        takers = [self.said[new] for old, new in self.takes if old == one.id and (old, new) in self.remainders]
        return sorted((taker for taker in takers if not self.was_wrong(taker.id)), key=lambda taker: taker.order)

    def holds(self, one: Assertion, at: datetime) -> bool:
        """Whether it holds at an instant that is no boundary."""
        if self.was_wrong(one.id) or not _within(self.claim(one), at):
            return False
        return not any(_within(self.taken(one, taker), at) for taker in self.takers(one, in_part=False))

    def takers(self, one: Assertion, *, in_part: bool) -> list[Assertion]:
        """Return what takes something of its time, or (`in_part`) of its words."""
        takers = [self.said[new] for old, new in self.takes if old == one.id and not self.was_wrong(new)]
        return [
            taker
            for taker in takers
            if (self.took_effect(taker.id) or self.takes_whole(one, taker))
            and ((one.id, taker.id) in self.remainders) == in_part
        ]

    def words(self, one: Assertion, at: datetime) -> str:
        """Return in which words it is told at an instant: all remainders of these histories are the same words."""
        start = self.claim(one)[0]
        for taker in self.takers(one, in_part=True):
            interval = self.taken(one, taker)
            if self.takes[one.id, taker.id] is Relation.CORRECTS:
                interval = min(start, interval[0]), interval[1]
            if _within(interval, at):
                return self.remainders[one.id, taker.id]
        return one.statement

    def takes_whole(
        self,
        one: Assertion,
        taker: Assertion,
        claim: tuple[datetime, datetime | None] | None = None,
        takers_claim: tuple[datetime, datetime | None] | None = None,
    ) -> bool:
        """Whether a change leaves no other days of an earlier statement: as the judge says, or else by the dates."""
        if self.takes.get((one.id, taker.id)) is not Relation.CHANGES:
            return False
        if (one.id, taker.id) in self.extents:
            return self.extents[one.id, taker.id] is Extent.WHOLE
        (start, end), (former_start, former_end) = takers_claim or self.claim(taker), claim or self.claim(one)
        if one.valid_from is None and former_end is None:
            is_a_day = end is not None and end - start <= timedelta(days=1)
            return taker.valid_from is not None and start > taker.said_at and is_a_day
        if end is not None and (former_end is None or (taker.valid_from and former_start < start and end < former_end)):
            return False
        is_same_start = taker.valid_from is None or start.date() == former_start.date()
        return is_same_start or former_start.date() >= taker.said_at.date()

    def taken(self, one: Assertion, taker: Assertion) -> tuple[datetime, datetime | None]:
        """Return the interval that it takes: what is replaced as a whole ends at the latest when that is said.

        What is told more exactly never holds again after the exact statement has begun.
        """
        start, end = self.claim(taker)
        is_whole = self.takes_whole(one, taker)
        if not is_whole and self.takes[one.id, taker.id] is not Relation.NARROWS:
            return start, end
        former_start = self.claim(one)[0]
        is_ahead = former_start.date() >= taker.said_at.date()
        starts = [start, *([taker.said_at] if is_whole else []), *([former_start] if is_ahead else [])]
        return min(starts), None

    def was_replaced_before_it_began(self, name: str) -> bool:
        """Whether it is a plan in whose place another one was put."""
        one = self.said[name]
        return one.valid_from is not None and any(
            self.takes_whole(one, self.said[new])
            and (old, new) not in self.remainders
            and not self.was_wrong(new)
            and self.said[new].said_at.date() <= self.claim(one)[0].date()
            for old, new in self.takes
            if old == name
        )

    def took_effect(self, name: str) -> bool:
        """Whether it was neither wrong, nor taken back before it came true, nor replaced before it began."""
        if self.was_replaced_before_it_began(name):
            return False
        took_back = [
            self.said[new]
            for (old, new), how in self.takes.items()
            if old == name and how is Relation.RETRACTS and not self.was_wrong(new)
        ]
        start = self._start(self.said[name])
        return not self.was_wrong(name) and all(self._start(one) > start for one in took_back)

    def _start(self, one: Assertion) -> datetime:
        start, end = self.claim(one)
        return start if end is None else min(start, end)


def effective(said: Mapping[str, Assertion], verdicts: Sequence[Verdict]) -> Effective:
    """Return the retirements that are not refused, by the verdict that counts for each pair."""
    by_judge = sorted(verdicts, key=lambda verdict: verdict.judge == PERSON)
    counting = {(one.earlier_id, one.later_id): one for one in by_judge}
    takes = {
        pair: one.relation
        for pair, one in counting.items()
        if one.relation in RETIRING_RELATIONS
        and (one.judge == PERSON or may_retire(said[pair[0]], said[pair[1]], one.relation))
    }
    # What puts something right stands in its place, and so takes from whatever that took from.
    for wrong, right in sorted(takes, key=lambda pair: said[pair[0]].order):
        if takes[wrong, right] is Relation.CORRECTS and said[right].act is SpeechAct.STATE:
            taken = [old for (old, by), how in takes.items() if by == wrong and how is not Relation.RETRACTS]
            for old in taken:
                if (old, right) not in counting and may_retire(said[old], said[right]):
                    takes.setdefault((old, right), Relation.CHANGES)
    return takes


def said_extents(
    said: Mapping[str, Assertion], takes: Effective, verdicts: Sequence[Verdict]
) -> dict[tuple[str, str], Extent]:
    """Return how much each change takes, where the judge says so; what puts a change right takes as much."""
    by_judge = sorted(verdicts, key=lambda verdict: verdict.judge == PERSON)
    counting = {verdict.pair: verdict for verdict in by_judge}
    extents = {pair: verdict.extent for pair, verdict in counting.items() if verdict.extent and pair in takes}
    for wrong, right in sorted(takes, key=lambda pair: said[pair[0]].order):
        if takes[wrong, right] is Relation.CORRECTS and said[right].act is SpeechAct.STATE:
            for old in [old for old, by in takes if by == wrong and (old, wrong) in extents]:
                if (old, right) in takes and (old, right) not in counting:
                    extents.setdefault((old, right), extents[old, wrong])
    return extents


def said_remainders(
    said: Mapping[str, Assertion], takes: Effective, counting: Mapping[tuple[str, str], Verdict]
) -> dict[tuple[str, str], str]:
    """Return what is left of the words; what puts a change right leaves as much."""
    remainders = {pair: verdict.remainder for pair, verdict in counting.items() if verdict.remainder and pair in takes}
    for wrong, right in sorted(takes, key=lambda pair: said[pair[0]].order):
        if takes[wrong, right] is Relation.CORRECTS and said[right].act is SpeechAct.STATE:
            for old in [old for old, by in takes if by == wrong and (old, wrong) in remainders]:
                if (old, right) in takes and (old, right) not in counting:
                    remainders.setdefault((old, right), remainders[old, wrong])
    return remainders


def may_retire(old: Assertion, new: Assertion, how: Relation = Relation.CHANGES) -> bool:
    """Whether code lets one assertion retire another, subjects joined by a verdict aside."""
    return (
        (folded(old.subject) == folded(new.subject) or _speaks_of(new, old.subject) or _takes_over(old, new))
        and (how is Relation.CORRECTS or _reaches(old, new))
        and new.authority >= old.authority
        and not (new.time_is_guess and old.session_id != new.session_id)
        and not (old.kind is Kind.PREFERENCE and old.speaker != new.speaker)
    )


def _speaks_of(new: Assertion, subject: str) -> bool:
    """Whether a statement has the name of another subject, which is not the owner, among its words."""
    return subject != "user" and re.search(rf"\b{re.escape(subject)}\b", new.statement, re.IGNORECASE) is not None


def _takes_over(old: Assertion, new: Assertion) -> bool:
    """Whether somebody now has what another had: the same attribute with the same value, said as a change."""
    values = old.value.casefold(), new.value.casefold()
    is_change = new.act is SpeechAct.STATE and new.cue is Cue.CHANGE
    return is_change and old.attribute == new.attribute and values[0] == values[1]


def _reaches(old: Assertion, new: Assertion) -> bool:
    """Whether the new one is no narrower than the old: what is said for one occasion leaves the rest as it was."""
    return not new.limited_to or old.limited_to == new.limited_to


def _within(claim: tuple[datetime, datetime | None], at: datetime) -> bool:
    start, end = claim
    return (start if end is None else min(start, end)) <= at and (end is None or at <= end)


def _spans_are_ordered(course: FactHistory) -> None:
    for span, after in zip(course.spans, course.spans[1:], strict=False):
        assert span.end is not None, f"{course.id} goes on after an open end"
        assert span.end <= after.start, f"{course.id} overlaps itself"
    assert all(span.end is None or span.start <= span.end for span in course.spans)


def _a_last_instant_is_still_within(course: FactHistory) -> None:
    for span in course.spans:
        if span.end is not None:
            assert span.holds_at(span.end) == (span.ended_by is None), f"{course.id} at the end of {span}"


def _statuses_fit(courses: Sequence[FactHistory], at: datetime, book: Book) -> None:
    facts = facts_at(courses, at)
    assert len({fact.id for fact in facts}) == len(facts)
    ids = {one.id for one in book.assertions}
    for fact in facts:
        assert (fact.status is Status.CONTESTED) == bool(fact.contested_by), fact.id
        assert fact.id not in fact.contested_by
        assert (fact.status is Status.PENDING) == bool(fact.may_be), fact.id
        assert fact.is_served == (fact.status not in RETIRED and (fact.is_flagged or not fact.may_be)), fact.id
        assert fact.retired_by in ids or (fact.retired_by is None and fact.status is not Status.SUPERSEDED), fact.id
        if fact.status is Status.EXPIRED:
            assert fact.valid_to is not None
            assert fact.valid_to < at
    said_by_then = {course.id for course in courses if course.members[0].said_at <= at}
    assert said_by_then <= {fact.id for fact in facts}


def _same(got: Dump, expected: Dump) -> None:
    strange, missing = [one for one in got if one not in expected], [one for one in expected if one not in got]
    assert got == expected, f"not expected: {strange}\nmissing: {missing}"
