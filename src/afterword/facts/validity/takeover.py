"""Which days a later statement takes from an earlier one. Pure.

A change replaces the whole of a plan, or only some of its days. A judge may say which. Where it does not, the dates
decide.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime, timedelta

from afterword.facts.assertions import Assertion, Extent, Relation
from afterword.facts.validity.judged_pairs import IdPair, JudgedPairs

Interval = tuple[datetime, datetime | None]
"""A start and an end, None where the end is open."""

_ONE_DAY = timedelta(days=1)


def change_extents(pairs: JudgedPairs, intervals: Mapping[str, Interval]) -> dict[IdPair, Extent]:
    """Return for every change how much it takes of the earlier statement."""
    return {
        (earlier, later): pairs.extents.get((earlier, later))
        or _extent_by_dates(pairs.by_id[earlier], pairs.by_id[later], intervals[earlier], intervals[later])
        for earlier, retirements in pairs.retirements.items()
        for later, relation in retirements
        if relation is Relation.CHANGES
    }


def replaced_plans(
    pairs: JudgedPairs,
    intervals: Mapping[str, Interval],
    extents: Mapping[IdPair, Extent],
    corrected_ids: Container[str],
) -> set[str]:
    """Return the plans that another one replaced as a whole before they began. They ended nothing themselves."""
    return {
        earlier
        for (earlier, later), extent in extents.items()
        if extent is Extent.WHOLE
        and (earlier, later) not in pairs.remainders
        and later not in corrected_ids
        and _is_announced(pairs.by_id[earlier], intervals[earlier])
        and _has_not_begun(intervals[earlier], pairs.by_id[later])
    }


def taken_interval(
    later: Assertion, later_interval: Interval, earlier_interval: Interval, extent: Extent | None
) -> Interval:
    """Return the interval that a later statement takes from an earlier one: usually its own interval.

    A statement that is replaced as a whole ends when the later one is said, and does not come back. If it has not
    begun, all of it ends.
    """
    if extent is not Extent.WHOLE:
        return later_interval
    start = min(later_interval[0], later.said_at)
    return (min(start, earlier_interval[0]) if _has_not_begun(earlier_interval, later) else start), None


def _extent_by_dates(
    earlier: Assertion, later: Assertion, earlier_interval: Interval, later_interval: Interval
) -> Extent:
    """Return how much a change takes of the earlier statement if no judge has said it."""
    if earlier_interval[1] is None and not _is_announced(earlier, earlier_interval):
        return Extent.WHOLE if _moves_event(later, later_interval) else Extent.DAYS
    if _leaves_other_days(later, earlier_interval, later_interval):
        return Extent.DAYS
    has_same_start = later.valid_from is None or later_interval[0].date() == earlier_interval[0].date()
    return Extent.WHOLE if has_same_start or _has_not_begun(earlier_interval, later) else Extent.DAYS


def _leaves_other_days(later: Assertion, earlier_interval: Interval, later_interval: Interval) -> bool:
    """Return whether the later statement ends before the earlier one, which holds on its other days."""
    (earlier_start, earlier_end), (later_start, later_end) = earlier_interval, later_interval
    if later_end is None or earlier_end is None:
        return later_end is not None
    return later.valid_from is not None and earlier_start < later_start and later_end < earlier_end


def _moves_event(later: Assertion, later_interval: Interval) -> bool:
    """Return whether it gives a new date to an event of at most a day that is still ahead, such as a deadline."""
    start, end = later_interval
    is_ahead = later.valid_from is not None and start > later.said_at
    return is_ahead and end is not None and end - start <= _ONE_DAY


def _is_announced(assertion: Assertion, interval: Interval) -> bool:
    """Return whether a statement names its first day, or begins after it was said."""
    return assertion.valid_from is not None or interval[0] > assertion.said_at


def _has_not_begun(earlier_interval: Interval, later: Assertion) -> bool:
    """Return whether the earlier statement's first day is not over when the later one is said."""
    return earlier_interval[0].date() >= later.said_at.date()
