"""Which days a later statement takes from an earlier one. Pure.

A change replaces the whole of a plan, or only some of its days. A judge may say which. Where it does not, the dates
decide.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from afterword.facts.assertions import Assertion, Extent, Relation
from afterword.facts.validity.alternations import IdPair
from afterword.facts.validity.extents import Interval, extent_by_dates, has_not_begun, is_announced
from afterword.facts.validity.judged_pairs import JudgedPairs


def change_extents(pairs: JudgedPairs, intervals: Mapping[str, Interval]) -> dict[IdPair, Extent]:
    """Return for every change how much it takes of the earlier statement."""
    return {
        (earlier, later): pairs.extents.get((earlier, later))
        or extent_by_dates(pairs.by_id[earlier], pairs.by_id[later], intervals[earlier], intervals[later])
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
        and is_announced(pairs.by_id[earlier], intervals[earlier])
        and has_not_begun(intervals[earlier], pairs.by_id[later])
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
    return (min(start, earlier_interval[0]) if has_not_begun(earlier_interval, later) else start), None
