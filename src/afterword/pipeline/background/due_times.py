"""The due times of jobs, and the clock that decides when a time has come.

The due times of a job are the same in every process and after every restart: multiples of its interval, or the times of
its cron expression. So all processes agree on whether a job was already run for a due time.

A cron expression names local times. A time that a change of the clocks skips is due at the next time that exists. A
time that exists twice is due once, the first time.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from afterword.facts.local_time import read_zone

if TYPE_CHECKING:
    from apscheduler.triggers.base import BaseTrigger

MISFIRE_GRACE_S = 3600
"""How late a job with a cron expression may start. A job with an interval may start at any time after it is due."""
_STEP, _SECOND = timedelta(microseconds=1), timedelta(seconds=1)
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
"""The days of the week by their numbers in a cron expression, in which 7 is Sunday too."""


class JobClock:
    """The clock of the jobs. From `origin` on it runs `speed` times as fast as the machine's clock."""

    def __init__(self, origin: datetime | None = None, speed: float = 1.0) -> None:
        self.origin: datetime = origin or datetime.now(UTC)
        self.speed = speed

    def now(self) -> datetime:
        """Return the present instant, aware, in UTC."""
        return self.origin + (datetime.fromtimestamp(time.time(), tz=UTC) - self.origin) * self.speed

    def to_real_time(self, at: datetime) -> datetime:
        """Return the time of the machine's clock when this clock shows `at`."""
        return self.origin + (at - self.origin) / self.speed

    def to_real_seconds(self, seconds: float) -> float:
        """Return the seconds of the machine's clock that so many seconds of this clock take."""
        return seconds / self.speed


@dataclass(frozen=True, slots=True)
class Rhythm:
    """When a job is due: at an interval in seconds, or at the times of a cron expression in a time zone."""

    every_s: float | None = None
    cron: BaseTrigger | None = None
    zone: tzinfo = UTC

    @classmethod
    def parse(cls, text: str | float, zone: str = "UTC") -> Rhythm:
        """Return the rhythm for a number of seconds, or for a cron expression of five fields in this time zone.

        Raises `ValueError` for any other text. The settings are checked by this method when they are loaded.
        """
        with suppress(ValueError):  # what is no number must be a cron expression
            text = float(text)
        if not isinstance(text, str):
            if not 0 < text < float("inf"):
                raise ValueError(f"{text:g} s is no interval; write seconds above 0")
            return cls(every_s=text)
        local = read_zone(zone)
        try:
            return cls(cron=_cron_trigger(text), zone=local)
        except ValueError:
            raise ValueError(
                f"{text!r} is no interval and no cron expression; write seconds (60) or five cron fields (30 3 * * *)"
            ) from None

    def recent_due_time(self, now: datetime) -> datetime | None:
        """Return the latest due time up to `now`, or None. For a cron expression only the last hour is searched."""
        if self.every_s is not None:
            return datetime.fromtimestamp(now.timestamp() // self.every_s * self.every_s, tz=UTC)
        last, at = None, self.next_due_time(now - timedelta(seconds=MISFIRE_GRACE_S))
        while at is not None and at <= now:
            last, at = at, self.next_due_time(at)
        return last

    def next_due_time(self, after: datetime) -> datetime | None:
        """Return the first due time after an instant, None if there is none."""
        if self.every_s is not None:
            return datetime.fromtimestamp((after.timestamp() // self.every_s + 1) * self.every_s, tz=UTC)
        wall_time: datetime | None = after.astimezone(self.zone).replace(tzinfo=UTC, fold=0)
        while self.cron is not None and wall_time is not None:
            wall_time = self.cron.get_next_fire_time(None, wall_time + _STEP)
            if wall_time is not None and (due_at := _instant_of_wall_time(wall_time, self.zone)) > after:
                return due_at
        return None


def _cron_trigger(text: str) -> BaseTrigger:
    """Return the trigger for a cron expression of five fields. Raises `ValueError` for any other text.

    It computes local times in UTC, where no time is skipped. `Rhythm.next_due_time` converts them to instants.
    """
    # Only a cron expression needs the library.
    from apscheduler.triggers.combining import OrTrigger
    from apscheduler.triggers.cron import CronTrigger

    minute, hour, day, month, weekday = text.split()
    times = {"minute": minute, "hour": hour, "month": month, "timezone": UTC}
    by_weekday = CronTrigger(**times, day_of_week=_weekday_names(weekday))
    if day == "*":
        return by_weekday
    by_day = CronTrigger(**times, day=day)
    # As in cron: if a day of the month and a weekday are both given, either is enough.
    return by_day if weekday == "*" else OrTrigger([by_day, by_weekday])


def _weekday_names(field: str) -> str:
    """Return the weekdays of a cron expression by name, since the numbers of the library begin with Monday.

    Raises `ValueError` if the field does not name weekdays.
    """
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.lower().split(","):
        span, has_step, step = part.partition("/")
        first, is_range, last = ("0", "-", "6") if span == "*" else span.partition("-")
        start = _weekday_number(first)
        end = _weekday_number(last) if is_range else 6 if has_step else start
        end += 7 if end < start else 0  # "fri-mon" goes on into the next week
        days.update(range(start, end + 1, int(step) if has_step else 1))
    return ",".join(sorted({_WEEKDAYS[day % 7] for day in days}))


def _weekday_number(text: str) -> int:
    """Return the number of a weekday that is given by its number from 0 to 7 or by its name."""
    return tuple("01234567").index(text) if text.isdigit() else _WEEKDAYS.index(text)


def _instant_of_wall_time(wall_time: datetime, zone: tzinfo) -> datetime:
    """Return the first instant at which clocks in the zone show this time, or the next instant if they skip it."""
    local = wall_time.replace(tzinfo=zone)
    instant = local.astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local.replace(tzinfo=None):
        return instant
    # The clocks are put forward between these two instants, and only there.
    before, after = local.replace(fold=1).astimezone(UTC), instant
    offset = after.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // _SECOND // 2 * _SECOND
        before, after = (before, middle) if middle.astimezone(zone).utcoffset() == offset else (middle, after)
    return after
