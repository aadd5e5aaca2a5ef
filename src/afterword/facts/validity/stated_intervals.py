"""The interval that each statement is about: as it was said, as it was corrected, and as it was said before. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from afterword.facts.assertions import Assertion, Relation, SpeechAct
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.facts.validity.takeover import Interval

_ONE_DAY = timedelta(days=1)


def stated_intervals(pairs: JudgedPairs, corrected_by: Mapping[str, str]) -> dict[str, Interval]:
    """Return the interval that each assertion is about.

    It is the interval that was said. A correction without a start begins where the corrected assertion began, and a
    restatement takes over the bounds of what it repeats. What continues an assertion brings a new end.
    """
    intervals: dict[str, Interval] = {}
    continuing = {later for laters in pairs.continued_by.values() for later in laters if later not in corrected_by}
    corrected_starts: dict[str, list[datetime]] = defaultdict(list)
    for assertion in pairs.ordered:
        start, end = assertion.valid_from or assertion.said_at, assertion.valid_to
        if assertion.valid_from is None and assertion.act is SpeechAct.STATE:
            start = min([start, *corrected_starts[assertion.id]])
        for repeated in pairs.members.get(pairs.roots[assertion.id], []):
            if repeated.id in intervals and repeated.id not in corrected_by:
                start, end = _restated_interval(assertion, repeated, start, end)
                if repeated.id in continuing and assertion.valid_to is None:
                    end = intervals[repeated.id][1]
        if assertion.id in continuing:
            start, end = _without_gap(start, assertion, pairs, intervals), assertion.valid_to
        intervals[assertion.id] = (start if end is None else min(start, end), end)
        for later, relation in pairs.retirements[assertion.id] if assertion.id in corrected_by else ():
            if relation is Relation.CORRECTS:
                corrected_starts[later].append(intervals[assertion.id][0])
        if assertion.id in continuing:
            _shorten(assertion, pairs, intervals)
    return intervals


def _without_gap(
    start: datetime, continuing: Assertion, pairs: JudgedPairs, intervals: Mapping[str, Interval]
) -> datetime:
    """Return the start of an assertion that continues others. No gap is left where it begins a day after their end."""
    repeated = pairs.members.get(pairs.roots[continuing.id], [])
    ends = [end for each in repeated if each.id in intervals and (end := intervals[each.id][1]) is not None]
    return min((end for end in ends if end < start <= end + _ONE_DAY), default=start)


def _shorten(continuing: Assertion, pairs: JudgedPairs, intervals: dict[str, Interval]) -> None:
    """End what is continued where its continuation ends, if it had a later end or none."""
    new_end = intervals[continuing.id][1]
    for each in pairs.members.get(pairs.roots[continuing.id], []):
        if new_end is not None and each.id in intervals and each.id != continuing.id:
            start, end = intervals[each.id]
            if end is None or end > new_end:
                intervals[each.id] = min(start, new_end), new_end


def _restated_interval(assertion: Assertion, repeated: Assertion, start: datetime, end: datetime | None) -> Interval:
    """Return the interval of a restatement: a start or end that was announced before still applies."""
    if assertion.valid_from is None and repeated.valid_from is not None and repeated.valid_from > assertion.said_at:
        start = max(start, repeated.valid_from)
    if assertion.valid_to is None and repeated.valid_to is not None:
        end = repeated.valid_to
    return start, end
