"""Periods in which something holds, and how they are cut and joined. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afterword.facts.fact import Status


@dataclass(frozen=True, slots=True)
class ValidityPeriod:
    """A period in which a fact holds.

    `end` is None while it is open. `ending` is the status after the end, `by` the assertion that ended it (None where
    its own validity ended it).
    """

    start: datetime
    end: datetime | None = None
    ending: Status = Status.EXPIRED
    by: str | None = None

    def holds_at(self, at: datetime) -> bool:
        """Whether the fact holds at `at`: at the last instant too, unless another assertion ended the period."""
        if self.end is None or at < self.end:
            return at >= self.start
        return at == self.end and self.by is None and at >= self.start


def holds_or_is_announced(said_at: datetime, periods: Sequence[ValidityPeriod], at: datetime) -> bool:
    """Return whether a fact holds or is announced, as the timeline says, without laying it out."""
    if any(period.holds_at(at) for period in periods):
        return True
    is_announced = said_at <= at and any(period.start > at for period in periods)
    return is_announced and not any(period.end is not None and period.end <= at for period in periods)


def subtracted(
    spans: Sequence[ValidityPeriod], interval: tuple[datetime, datetime | None], ending: Status, by: str
) -> list[ValidityPeriod]:
    """Return what is left of the periods outside the interval."""
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


def merged(spans: Sequence[ValidityPeriod]) -> list[ValidityPeriod]:
    """Return the union of the periods in order."""
    periods: list[ValidityPeriod] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end is None, span.end or span.start)):
        last = periods[-1] if periods else None
        if last is None or (last.end is not None and last.end < span.start):
            periods.append(span)
        elif last.end is not None and (span.end is None or span.end > last.end):
            periods[-1] = replace(span, start=last.start)
    return periods
