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
        and later not in corrected_ids
        and _is_announced(pairs.by_id[earlier], intervals[earlier])
        and _has_not_begun(intervals[earlier], pairs.by_id[later])
    }


def taken_interval(later: Assertion, interval: Interval, former: Interval, extent: Extent | None) -> Interval:
    """Return the interval that a later statement takes from an earlier one: usually the interval it is about.

    What is replaced as a whole ends when that is said and does not come back; before it has begun, all of it ends.
    """
    if extent is not Extent.WHOLE:
        return interval
    start = min(interval[0], later.said_at)
    return (min(start, former[0]) if _has_not_begun(former, later) else start), None


def _extent_by_dates(earlier: Assertion, later: Assertion, former: Interval, interval: Interval) -> Extent:
    """Return how much a change takes of the earlier statement, where no judge has said it."""
    (start, end), (former_start, former_end) = interval, former
    has_own_days = earlier.valid_from is not None or former_end is not None or former_start > earlier.said_at
    if not has_own_days:
        return Extent.WHOLE if _moves_event(later, interval) else Extent.DAYS
    if end is not None and former_end is None:
        # What is said for some days leaves the other days of what has no end.
        return Extent.DAYS
    is_inside = former_start < start and end is not None and former_end is not None and end < former_end
    if later.valid_from is not None and is_inside:
        return Extent.DAYS
    if later.valid_from is None or start.date() == former_start.date():
        return Extent.WHOLE
    return Extent.WHOLE if _has_not_begun(former, later) else Extent.DAYS


def _moves_event(later: Assertion, interval: Interval) -> bool:
    """Whether it gives a new date to an event of at most a day that is still ahead, such as a deadline or a defence."""
    start, end = interval
    is_ahead = later.valid_from is not None and start > later.said_at
    return is_ahead and end is not None and end - start <= _ONE_DAY


def _is_announced(assertion: Assertion, interval: Interval) -> bool:
    return assertion.valid_from is not None or interval[0] > assertion.said_at


def _has_not_begun(former: Interval, later: Assertion) -> bool:
    """Whether the earlier statement's first day is not over when the later one is said."""
    return former[0].date() >= later.said_at.date()
