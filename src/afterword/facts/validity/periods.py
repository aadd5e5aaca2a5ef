"""Periods in which a fact holds: cutting and joining them, and how much of a period a change replaces. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from afterword.facts.assertions import Assertion, Extent
from afterword.facts.fact import Status


@dataclass(frozen=True, slots=True)
class ValidityPeriod:
    """A period in which a fact holds.

    `end` is None if no end is known. `ending` is the status after the end. `ended_by` is the assertion that ended the
    period, None if it ended on the last day that its own words name.
    """

    start: datetime
    end: datetime | None = None
    ending: Status = Status.EXPIRED
    ended_by: str | None = None

    def holds_at(self, at: datetime) -> bool:
        """Whether the fact holds at `at`. It also holds at `end` itself, unless another assertion ended the period."""
        if self.end is None or at < self.end:
            return at >= self.start
        return at == self.end and self.ended_by is None and at >= self.start


def periods_outside(
    spans: Sequence[ValidityPeriod], interval: tuple[datetime, datetime | None], ending: Status, by: str
) -> list[ValidityPeriod]:
    """Return the parts of the periods that lie outside an interval. A part that ends at its start ends by `by`."""
    start, end = interval
    remaining: list[ValidityPeriod] = []
    for span in spans:
        if (span.end is not None and span.end <= start) or (end is not None and end <= span.start):
            remaining.append(span)
            continue
        if span.start < start:
            remaining.append(ValidityPeriod(span.start, start, ending, by))
        if end is not None and (span.end is None or end < span.end):
            remaining.append(replace(span, start=end))
    return remaining


def united_periods(spans: Sequence[ValidityPeriod]) -> list[ValidityPeriod]:
    """Return the union of the periods, sorted by start."""
    periods: list[ValidityPeriod] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end is None, span.end or span.start)):
        last = periods[-1] if periods else None
        if last is None or (last.end is not None and last.end < span.start):
            periods.append(span)
        elif last.end is not None and (span.end is None or span.end > last.end):
            periods[-1] = replace(span, start=last.start)
    return periods


Interval = tuple[datetime, datetime | None]
"""A start and an end. The end is None if it is open."""

ONE_DAY = timedelta(days=1)


def extent_by_dates(
    earlier: Assertion, later: Assertion, earlier_interval: Interval, later_interval: Interval
) -> Extent:
    """Return, from the dates alone, whether a change replaces all of an earlier statement or only some of its days."""
    if earlier_interval[1] is None and not is_announced(earlier, earlier_interval):
        return Extent.WHOLE if _moves_event(later, later_interval) else Extent.DAYS
    if _leaves_other_days(later, earlier_interval, later_interval):
        return Extent.DAYS
    has_same_start = later.valid_from is None or later_interval[0].date() == earlier_interval[0].date()
    return Extent.WHOLE if has_same_start or has_not_begun(earlier_interval, later) else Extent.DAYS


def names_no_other_days(repetition: Assertion, general: Assertion) -> bool:
    """Whether a repetition names no other days than the general statement, and is not marked as a change."""
    own_days, days = (repetition.valid_from, repetition.valid_to), (general.valid_from, general.valid_to)
    return repetition.cue is None and all(
        day is None or day == former for day, former in zip(own_days, days, strict=True)
    )


def is_undated_and_unmarked(said: Assertion) -> bool:
    """Whether a statement names no days and is not marked as a change or a correction."""
    return said.valid_from is None and said.valid_to is None and said.cue is None


def takes_some_days(general: Assertion, exception: Assertion, extent: Extent | None) -> bool:
    """Return whether a change replaces only some days of a general statement, which holds again afterwards.

    `extent` is the extent that a judge gave, None if it gave none.
    """
    if exception.valid_to is None or (general.valid_to is not None and general.valid_to <= exception.valid_to):
        return False
    decided = extent or extent_by_dates(general, exception, _own_interval(general), _own_interval(exception))
    return decided is Extent.DAYS


def is_announced(assertion: Assertion, interval: Interval) -> bool:
    """Return whether a statement's words name its first day, or it begins after it was said."""
    return assertion.valid_from is not None or interval[0] > assertion.said_at


def has_not_begun(earlier_interval: Interval, later: Assertion) -> bool:
    """Return whether the later statement is said on the first day of the earlier one, or before it."""
    return earlier_interval[0].date() >= later.said_at.date()


def _own_interval(assertion: Assertion) -> Interval:
    return assertion.valid_from or assertion.said_at, assertion.valid_to


def _leaves_other_days(later: Assertion, earlier_interval: Interval, later_interval: Interval) -> bool:
    """Return whether the later statement covers only a part of the earlier one, which still holds on its other days."""
    (earlier_start, earlier_end), (later_start, later_end) = earlier_interval, later_interval
    if later_end is None or earlier_end is None:
        return later_end is not None
    return later.valid_from is not None and earlier_start < later_start and later_end < earlier_end


def _moves_event(later: Assertion, later_interval: Interval) -> bool:
    """Return whether a statement gives a new date to a future event of at most a day, such as a deadline."""
    start, end = later_interval
    is_ahead = later.valid_from is not None and start > later.said_at
    return is_ahead and end is not None and end - start <= ONE_DAY
