"""Find English dates in a sentence and resolve them against the day on which it was said. Pure.

Ambiguous dates are left out.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

MONTHS = tuple("january february march april may june july august september october november december".split())
WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s(?P<year>20\d\d)\b)?"
_WEEKDAY = r"(?P<weekday>mon|tues|wednes|thurs|fri|satur|sun)day"
_RANGE_DAY = r"(?P<first>\d{1,2})(?:st|nd|rd|th)?\s?(?:-|–|to|until|till|and)\s?(?:the\s)?"

_FORMS = tuple(
    re.compile(r"\b" + form, re.IGNORECASE)
    for form in (
        r"(?P<iso>20\d\d-\d\d-\d\d)\b",
        rf"{_RANGE_DAY}{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}",
        rf"(?P<end>end) of {_MONTH}{_YEAR}",
        rf"{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}",
        rf"{_MONTH}\s(?:the\s)?{_DAY}(?!\d|:|,\d|\.\d){_YEAR}",
        rf"a week from {_WEEKDAY}\b",
        rf"(?:(?P<other>mon|tues|wednes|thurs|fri|satur|sun)day (?:and|to) )?{_WEEKDAY} (?P<next>next) week\b",
        rf"(?P<next>next) {_WEEKDAY}\b",
        r"(?P<tomorrow>tomorrow)\b",
        rf"(?<=since ){_WEEKDAY}\b",
        rf"(?<=from ){_WEEKDAY}\b(?! to)",
        rf"(?<=since ){_MONTH}(?! \d)",
        r"(?P<this>this) month(?= on)",
    )
)
_FROM = re.compile(
    r"(?:\bfrom|\bstarting(?: on)?|\bas of|\bbeginning|\beffective|\bsince)\s(?:on\s)?(?:the\s)?$", re.IGNORECASE
)
_SINCE = re.compile(r"\bsince\s(?:the\s)?$", re.IGNORECASE)
_UNTIL = re.compile(r"\b(?:until|till?|through|up to(?: and including)?|by|not later than)\s(?:the\s)?$", re.IGNORECASE)
_BETWEEN = re.compile(r"^\s(?:to|until|till|through|-|–)\s(?:the\s)?$", re.IGNORECASE)
_WEEKDAY_BEFORE = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s(?:the\s)?$", re.IGNORECASE)
_NEAREST_PAST = timedelta(days=60)


@dataclass(frozen=True, slots=True)
class Day:
    """A day or a range of days in a sentence. `is_relative` if it depends on when it was said."""

    start: int
    end: int
    first: date
    last: date
    is_relative: bool


@dataclass(frozen=True, slots=True)
class Validity:
    """The first and last day on which something holds, if the sentence says so, and the relative dates it names."""

    valid_from: date | None = None
    valid_to: date | None = None
    relative: tuple[Day, ...] = ()


_Bounds = tuple[date | None, date | None]


def validity(text: str, said_on: date, *, is_event: bool = False) -> Validity:
    """Return when something holds. An event holds on the coming days that the sentence names."""
    days = list(_days(text, said_on))
    relative = tuple(day for day in days if day.is_relative)
    bounds = _range(text, days) or _bounds(text, days) or _coming(days, said_on, is_event=is_event)
    return Validity(*bounds, relative=relative)


def _range(text: str, days: list[Day]) -> _Bounds | None:
    """Return the first and last day of "from the 13th to the 16th"."""
    for day, following in pairwise(days):
        if _BETWEEN.match(_WEEKDAY_BEFORE.sub("", text[day.end : following.start])) and day.first <= following.last:
            return day.first, following.last
    return None


def _bounds(text: str, days: list[Day]) -> _Bounds | None:
    """Return the day named after "from" and the day named after "until", or None if neither is there."""
    start = next((day.first for day in days if _FROM.search(_before(text, day))), None)
    end = next((day.last for day in days if _UNTIL.search(_before(text, day))), None)
    if start and end and end < start:
        end = None
    return (start, end) if start or end else None


def _coming(days: list[Day], said_on: date, *, is_event: bool) -> _Bounds:
    """Return the coming days that the sentence names. A single day counts for an event only."""
    coming = next((day for day in days if day.first >= said_on), None)
    if coming and (is_event or coming.first < coming.last):
        return coming.first, coming.last
    return None, None


def _before(text: str, day: Day) -> str:
    return _WEEKDAY_BEFORE.sub("", text[max(0, day.start - 40) : day.start])


def _days(text: str, said_on: date) -> Iterator[Day]:
    """Yield the dates in the order of the text. Of overlapping dates, the longer form wins."""
    taken: list[Day] = []
    for form in _FORMS:
        for match in form.finditer(text):
            if any(day.start < match.end() and match.start() < day.end for day in taken):
                continue
            day = _resolve(match, text, said_on)
            if day:
                taken.append(day)
    yield from sorted(taken, key=lambda day: day.start)


def _resolve(match: re.Match[str], text: str, said_on: date) -> Day | None:
    parts = match.groupdict()
    try:
        bounds = (
            _absolute(parts, match, text, said_on)
            if parts.get("month") or parts.get("iso")
            else _relative_days(parts, match, said_on)
        )
    except (ValueError, OverflowError):
        return None
    if bounds is None:
        return None
    is_relative = not (parts.get("iso") or parts.get("month"))
    return Day(match.start(), match.end(), *bounds, is_relative)


def _absolute(parts: dict[str, str | None], match: re.Match[str], text: str, said_on: date) -> tuple[date, date] | None:
    if parts.get("iso"):
        day = date.fromisoformat(match.group("iso"))
        return day, day
    month = 1 + next(place for place, name in enumerate(MONTHS) if name.startswith(match.group("month").lower()[:3]))
    is_past = bool(_SINCE.search(text[: match.start()]))
    year = int(parts.get("year") or 0) or _year(month, int(parts.get("day") or 1), said_on, is_past=is_past)
    if parts.get("end"):
        day = date(year, month, monthrange(year, month)[1])
        return day, day
    last = date(year, month, int(parts.get("day") or 1))
    return (date(year, month, int(parts["first"] or 1)) if parts.get("first") else last), last


def _year(month: int, day: int, said_on: date, *, is_past: bool) -> int:
    """Return the year of a date that names none: its last one if it is past, else the next or a recent one."""
    for year in (said_on.year - 1, said_on.year, said_on.year + 1):
        candidate = date(year, month, min(day, monthrange(year, month)[1]))
        if is_past and candidate <= said_on < date(year + 1, month, min(day, monthrange(year + 1, month)[1])):
            return year
        if not is_past and candidate >= said_on - _NEAREST_PAST:
            return year
    return said_on.year


def _relative_days(parts: dict[str, str | None], match: re.Match[str], said_on: date) -> tuple[date, date] | None:
    if parts.get("tomorrow"):
        return said_on + timedelta(days=1), said_on + timedelta(days=1)
    if parts.get("this"):
        return said_on.replace(day=1), said_on.replace(day=1)
    weekday = _weekday_number(parts["weekday"] or "")
    monday_next = said_on + timedelta(days=7 - said_on.weekday())
    words = match.group().lower()
    if words.endswith("next week"):
        last = monday_next + timedelta(days=weekday)
        other = parts.get("other")
        return (monday_next + timedelta(days=_weekday_number(other)) if other else last), last
    if match.string[: match.start()].lower().endswith("since "):
        past = said_on - timedelta(days=(said_on.weekday() - weekday) % 7 or 7)
        return past, past
    coming = said_on + timedelta(days=(weekday - said_on.weekday()) % 7 or 7)
    if words.startswith("a week from"):
        return coming + timedelta(days=7), coming + timedelta(days=7)
    if parts.get("next") and coming < monday_next:
        return None  # "next Friday", said on a Monday, is this week's to some and next week's to others
    return coming, coming


def _weekday_number(stem: str) -> int:
    return next(place for place, name in enumerate(WEEKDAYS) if name.startswith(stem.lower()))
