"""The interval that each statement is about, with the bounds that corrections and restatements take over. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from afterword.facts.assertions import Assertion, Relation, SpeechAct
from afterword.facts.validity.extents import Interval
from afterword.facts.validity.judged_pairs import JudgedPairs

_ONE_DAY = timedelta(days=1)


def stated_intervals(pairs: JudgedPairs, corrected_by: Mapping[str, str]) -> dict[str, Interval]:
    """Return the interval that each assertion is about.

    It is the interval that was said. A correction without a start begins where the corrected assertion began, and a
    restatement takes over the bounds of what it repeats. A continuation sets a new end.
    """
    stated = _StatedIntervals(pairs, corrected_by)
    for assertion in pairs.ordered:
        stated.add(assertion)
    return stated.intervals


class _StatedIntervals:
    """The intervals of the assertions so far. Each is added after those that were said before it."""

    def __init__(self, pairs: JudgedPairs, corrected_by: Mapping[str, str]) -> None:
        self.intervals: dict[str, Interval] = {}
        self._pairs, self._corrected_by = pairs, corrected_by
        self._continuing = {
            later for laters in pairs.continued_by.values() for later in laters if later not in corrected_by
        }
        self._corrected_starts: dict[str, list[datetime]] = defaultdict(list)
        self._dated: dict[str, list[Assertion]] = {
            root: dated
            for root, members in pairs.members.items()
            if (dated := [said for said in members if self._has_bounds(said)])
        }

    def add(self, assertion: Assertion) -> None:
        """Add the interval of an assertion."""
        start, end = self._restated(assertion)
        if assertion.id in self._continuing:
            start, end = self._without_gap(start, assertion), assertion.valid_to
        self.intervals[assertion.id] = (start if end is None else min(start, end), end)
        if assertion.id in self._corrected_by:
            for later, relation in self._pairs.retirements[assertion.id]:
                if relation is Relation.CORRECTS:
                    self._corrected_starts[later].append(self.intervals[assertion.id][0])
        if assertion.id in self._continuing and end is not None:
            self._shorten_continued(assertion, end)

    def _restated(self, assertion: Assertion) -> Interval:
        """Return the interval that an assertion names, with the bounds that it takes over."""
        start, end = assertion.valid_from or assertion.said_at, assertion.valid_to
        if assertion.valid_from is None and assertion.act is SpeechAct.STATE:
            start = min([start, *self._corrected_starts[assertion.id]])
        for repeated in self._said_before(assertion, self._dated):
            if repeated.id not in self._corrected_by:
                start, end = _restated_interval(assertion, repeated, start, end)
                if repeated.id in self._continuing and assertion.valid_to is None:
                    end = self.intervals[repeated.id][1]
        return start, end

    def _has_bounds(self, assertion: Assertion) -> bool:
        """Whether restatements of an assertion may take over a bound of it."""
        return assertion.valid_from is not None or assertion.valid_to is not None or assertion.id in self._continuing

    def _said_before(
        self, assertion: Assertion, by_root: Mapping[str, list[Assertion]] | None = None
    ) -> list[Assertion]:
        """Return the assertions of the same fact that were said before, of those in `by_root` if that is given."""
        members = (self._pairs.members if by_root is None else by_root).get(self._pairs.roots[assertion.id], [])
        return [member for member in members if member.id in self.intervals and member.id != assertion.id]

    def _without_gap(self, start: datetime, continuing: Assertion) -> datetime:
        """Return the start of an assertion that continues others. No gap is left if it begins a day after their end."""
        ends = (self.intervals[each.id][1] for each in self._said_before(continuing))
        return min((end for end in ends if end is not None and end < start <= end + _ONE_DAY), default=start)

    def _shorten_continued(self, continuing: Assertion, new_end: datetime) -> None:
        """Shorten the earlier assertions of a fact to the end that their continuation sets."""
        for each in self._said_before(continuing):
            start, end = self.intervals[each.id]
            if end is None or end > new_end:
                self.intervals[each.id] = min(start, new_end), new_end


def _restated_interval(assertion: Assertion, repeated: Assertion, start: datetime, end: datetime | None) -> Interval:
    """Return the interval of a restatement: a start or end that was announced before still applies."""
    if assertion.valid_from is None and repeated.valid_from is not None and repeated.valid_from > assertion.said_at:
        start = max(start, repeated.valid_from)
    if assertion.valid_to is None and repeated.valid_to is not None:
        end = repeated.valid_to
    return start, end
