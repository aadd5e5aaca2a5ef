"""The interval for which each statement holds, and the days that a later statement takes from an earlier one. Pure.

Corrections and repetitions take over bounds of the statements that they correct or repeat. A change replaces the whole
of a plan, or only some of its days. If the judge does not say which, the dates decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from datetime import datetime

from afterword.facts.assertions import Assertion, Extent, Relation, SpeechAct
from afterword.facts.validity.alternations import IdPair
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.periods import ONE_DAY, Interval, extent_by_dates, has_not_begun, is_announced
from afterword.facts.validity.wording import leaves_day_out, numbers_of_day


def stated_intervals(pairs: JudgedPairs, corrected_by: Mapping[str, str]) -> dict[str, Interval]:
    """Return the interval for which each assertion holds, before other assertions end it.

    It is the interval that its words name. A correction without a start begins when the corrected assertion began, and
    a repetition takes over the bounds of the statement that it repeats. A continuation sets a new end. If only the days
    of an earlier sentence change, the rest of the sentence holds on the new days.
    """
    return _StatedIntervals(pairs, corrected_by).intervals


class _StatedIntervals:
    """Computes the intervals of the assertions, in the order of saying."""

    def __init__(self, pairs: JudgedPairs, corrected_by: Mapping[str, str]) -> None:
        self.intervals: dict[str, Interval] = {}
        self._pairs, self._corrected_by = pairs, corrected_by
        self._continuing = pairs.continuing_ids.difference(corrected_by)
        self._corrected_starts: dict[str, list[datetime]] = defaultdict(list)
        self._dated = self._dated_members()
        self._changed_parts = self._find_changed_parts()
        for assertion in pairs.ordered:
            self._add_interval(assertion)

    def _dated_members(self) -> dict[str, list[Assertion]]:
        """Return for each fact the statements whose first or last day a repetition may take over."""
        dated: dict[str, list[Assertion]] = defaultdict(list)
        for root, members in self._pairs.members.items():
            for said in members:
                if said.valid_from is not None or said.valid_to is not None or said.id in self._continuing:
                    dated[root].append(said)
        return dated

    def _find_changed_parts(self) -> dict[str, list[tuple[str, Relation]]]:
        """Return for each statement the earlier ones of which it ends a part only, with the relation."""
        changed_parts: dict[str, list[tuple[str, Relation]]] = defaultdict(list)
        for earlier in {earlier for earlier, _ in self._pairs.remainders}:
            for later, relation in self._pairs.retirements[earlier]:
                if (earlier, later) in self._pairs.remainders and later not in self._corrected_by:
                    changed_parts[later].append((earlier, relation))
        return changed_parts

    def _add_interval(self, assertion: Assertion) -> None:
        start, end = self._restated_interval(assertion)
        if assertion.id in self._continuing:
            start, end = self._without_gap(start, assertion), assertion.valid_to
        self.intervals[assertion.id] = (start if end is None else min(start, end), end)
        if assertion.id in self._corrected_by:
            for later, relation in self._pairs.retirements[assertion.id]:
                if relation is Relation.CORRECTS:
                    self._corrected_starts[later].append(self.intervals[assertion.id][0])
        if assertion.id in self._continuing and end is not None:
            self._end_continued(assertion, end)
        for earlier, relation in self._changed_parts.get(assertion.id, ()):
            self.intervals[earlier] = self._moved_interval(self._pairs.by_id[earlier], assertion, relation)

    def _end_continued(self, continuing: Assertion, end: datetime) -> None:
        """End the earlier assertions of a fact where the assertion that continues them ends."""
        for each in self._said_before(continuing):
            former_start, former_end = self.intervals[each.id]
            if former_end is None or former_end > end:
                self.intervals[each.id] = min(former_start, end), end

    def _moved_interval(self, earlier: Assertion, later: Assertion, relation: Relation) -> Interval:
        """Return the interval of an earlier statement with its days replaced by those that a later statement names.

        A day is replaced if the remainder of the earlier sentence does not name it any more. A statement that has begun
        keeps its first day, and also its last day if its sentence did not name that.
        """
        pair, interval = (earlier.id, later.id), self.intervals[earlier.id]
        if relation is Relation.CHANGES and _change_extent(self._pairs, self.intervals, pair) is not Extent.WHOLE:
            return interval
        is_first_day_open = has_not_begun(interval, later)
        days = (earlier.valid_from if is_first_day_open else None, later.valid_from), (earlier.valid_to, later.valid_to)
        remainder = self._pairs.remainders[pair]

        def is_moved(day: datetime) -> bool:
            is_unnamed_plan = is_first_day_open and not numbers_of_day(remainder, day)
            return is_unnamed_plan or leaves_day_out(remainder, earlier.statement, day)

        start, end = (
            new if old and new and is_moved(old) else stated for (old, new), stated in zip(days, interval, strict=True)
        )
        return interval if start is None or (end is not None and end < start) else (start, end)

    def _restated_interval(self, assertion: Assertion) -> Interval:
        """Return the interval that an assertion names, with bounds taken over from earlier assertions of the fact."""
        start, end = assertion.valid_from or assertion.said_at, assertion.valid_to
        if assertion.valid_from is None and assertion.act is SpeechAct.STATE:
            start = min([start, *self._corrected_starts[assertion.id]])
        for repeated in self._said_before(assertion, self._dated):
            if repeated.id not in self._corrected_by:
                start, end = self._with_announced_bounds(assertion, (start, end), repeated)
        return start, end

    def _with_announced_bounds(self, assertion: Assertion, interval: Interval, repeated: Assertion) -> Interval:
        """Return an assertion's interval with the bounds that the repeated one announced, if it names none itself."""
        start, end = interval
        announced = repeated.valid_from
        if assertion.valid_from is None and announced is not None and announced > assertion.said_at:
            start = max(start, announced)
        if assertion.valid_to is None:
            end = self.intervals[repeated.id][1] if repeated.id in self._continuing else repeated.valid_to or end
        return start, end

    def _said_before(
        self, assertion: Assertion, by_root: Mapping[str, list[Assertion]] | None = None
    ) -> list[Assertion]:
        """Return the earlier assertions of the same fact. `by_root`, if given, restricts them."""
        members = (self._pairs.members if by_root is None else by_root).get(self._pairs.roots[assertion.id], [])
        return [member for member in members if member.id in self.intervals and member.id != assertion.id]

    def _without_gap(self, start: datetime, continuing: Assertion) -> datetime:
        """Return the start of an assertion that continues others: their end, if it begins at most a day after it."""
        ends = (self.intervals[each.id][1] for each in self._said_before(continuing))
        return min((end for end in ends if end is not None and end < start <= end + ONE_DAY), default=start)


def change_extents(pairs: JudgedPairs, intervals: Mapping[str, Interval]) -> dict[IdPair, Extent]:
    """Return for every change whether it replaces all of the earlier statement or only some of its days."""
    return {
        (earlier, later): _change_extent(pairs, intervals, (earlier, later))
        for earlier, retirements in pairs.retirements.items()
        for later, relation in retirements
        if relation is Relation.CHANGES
    }


def _change_extent(pairs: JudgedPairs, intervals: Mapping[str, Interval], pair: IdPair) -> Extent:
    """Return the extent that a judge gave a change. If it gave none, the dates decide."""
    earlier, later = pair
    return pairs.extents.get(pair) or extent_by_dates(
        pairs.by_id[earlier], pairs.by_id[later], intervals[earlier], intervals[later]
    )


def replaced_plans(
    pairs: JudgedPairs,
    intervals: Mapping[str, Interval],
    extents: Mapping[IdPair, Extent],
    corrected_ids: Container[str],
) -> set[str]:
    """Return the plans that were replaced as a whole before they began. Such a plan did not end other facts."""
    return {
        earlier
        for (earlier, later), extent in extents.items()
        if extent is Extent.WHOLE
        and (earlier, later) not in pairs.remainders
        and later not in corrected_ids
        and is_announced(pairs.by_id[earlier], intervals[earlier])
        and has_not_begun(intervals[earlier], pairs.by_id[later])
    }


def taken_interval(
    later: Assertion, later_interval: Interval, earlier_interval: Interval, extent: Extent | None, relation: Relation
) -> Interval:
    """Return the interval that a later statement takes from an earlier one: usually the interval of the later one.

    A statement that is replaced as a whole ends when the later one is said, and does not hold again. A statement that
    is narrowed ends when the narrower one begins, and does not hold again either. If it has not begun by then, it never
    holds.
    """
    if extent is not Extent.WHOLE and relation is not Relation.NARROWS:
        return later_interval
    start = min(later_interval[0], later.said_at) if extent is Extent.WHOLE else later_interval[0]
    return (min(start, earlier_interval[0]) if has_not_begun(earlier_interval, later) else start), None
