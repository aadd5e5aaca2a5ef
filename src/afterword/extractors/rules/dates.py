"""Compute the dates that a clause names at its end ("until 12 November") from the day on which it was said. Pure.

A month stands for its first day after "from" and "since", for its last day after "until", and for both after "in". The
last day is included. An end never lies before the day on which it was said. Ambiguous days are ignored.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from typing import NamedTuple

from afterword.extractors.rules.vocabulary import MONTHS

_MONTHS, _WEEKDAYS = "jan feb mar apr may jun jul aug sep oct nov dec".split(), "mon tue wed thu fri sat sun".split()
_MONTH = rf"(?P<month>{MONTHS})"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?i)(?:the )?{form}")
    for form in (
        rf"{_DAY} (?:of )?{_MONTH}(?:,? (?P<year>(?:19|20)\d\d))?",
        rf"(?:end of |beginning of )?{_MONTH}(?: (?:the )?{_DAY})?(?:,? (?P<year>(?:19|20)\d\d))?",
        r"(?P<year>20\d\d)-(?P<number>\d\d)-(?P<day>\d\d)",
        r"(?P<whole_year>(?:19|20)\d\d)",
        r"(?P<tomorrow>tomorrow)|next (?P<unit>week|month|year)|(?P<next>next )?(?P<weekday>mon|tues|wednes|thurs|fri|"
        r"satur|sun)day",
    )
)
_TAIL = re.compile(
    r"(?i)(?P<main>.+),? (?:(?P<until>until|till|to|through) |(?P<since>since )|(?P<within>on|in) |(?P<start>from|"
    r"as of|starting(?: on)?) |(?<!until )(?<!till )(?<!from )(?<!of )(?<!on )(?<!in )(?<!starting )"
    r"(?=(?:tomorrow|next (?:week|month|year))$))(?P<day>.+)"
)
_LASTING = re.compile(
    r"(?i)\b(?:stays?|(?<!\bwill )(?<!going to )(?:live|work|study|studie)s?)\b|^have an? |"
    r"(?:\b(?:am|are|is)|'(?:m|re|s)) (?:in|at|away|off|closed)\b|\bam (?!moving|starting|switching|migrating|"
    r"joining|leaving|changing|working|beginning|going to (?-i:[a-z]))\w+ing\b"
)
"""Matches a clause about a state, for which "in May" means all of May: "I work in Graz in May".

Otherwise "in May" is when something begins, as in "I will work in Graz in May".
"""
_NEAREST_PAST = timedelta(days=60)
_PAST = re.compile(r"\b(?:yesterday|(?:last|(an?|two|three|\d\d?)) (day|week|month|year)s?(?(1) ago))\b")


class Validity(NamedTuple):
    """The first and last day on which something holds, each None if nobody named it."""

    valid_from: date | None = None
    valid_to: date | None = None


ALWAYS = Validity()


def past_day(clause: str, said_on: date) -> date | None:
    """Return the day of "yesterday", "last month" or "two years ago" in a clause, or None if it names no such day."""
    if not (named := _PAST.search(clause.lower())):
        return None
    count = {"two": 2, "three": 3}.get(named[1]) or int(named[1] if (named[1] or "").isdigit() else 1)
    days = count * {"week": 7, "month": 30.44, "year": 365.25}.get(named[2], 1)
    return date.fromordinal(max(1, said_on.toordinal() - round(days)))


def split_days(clause: str, said_on: date, *, is_past: bool = False) -> tuple[str, Validity]:
    """Return a clause without the days at its end, and the first and last day that they set."""
    first = last = None
    for _ in range(2):
        if not (tail := _TAIL.fullmatch(clause)) or not (days := _named_days(tail, said_on, is_past=is_past)):
            break
        clause = tail["main"]
        first = first if tail["until"] else days[0]
        last = days[1] if _has_end(tail, is_past=is_past) else last
    return clause, ALWAYS if first and last and last < first else Validity(first, last)


def _named_days(tail: re.Match[str], said_on: date, *, is_past: bool) -> tuple[date, date] | None:
    """Return the first and last day of what the end of a clause names, or None if that limits nothing."""
    days = _days_of_words(tail["day"], said_on, is_past=is_past or bool(tail["since"]))
    # "In 2019" mostly tells what happened then, and seldom what has held since.
    if not days or (tail["within"] and tail["day"].isdigit()):
        return None
    return _days_not_over(tail["day"], days, said_on) if not is_past and _has_end(tail, is_past=is_past) else days


def _has_end(tail: re.Match[str], *, is_past: bool) -> bool:
    """Return whether the days set an end: after "until", or if a state holds on all of them ("I am away in May")."""
    names_period = tail["within"] or re.fullmatch(r"(?i)tomorrow|next (?:week|month|year)", tail["day"])
    is_lasting = names_period and not tail["start"] and _LASTING.search(tail["main"])
    return bool(tail["until"] or (is_lasting and not is_past))


def _days_not_over(words: str, days: tuple[date, date], said_on: date) -> tuple[date, date]:
    """Return the days, or those of the next year if they were over on `said_on` and the year was not named."""
    if days[1] >= said_on or re.search(r"20\d\d", words):
        return days
    return _days_of_words(words, date(said_on.year + 1, 1, 1), is_past=False) or days


def _days_of_words(words: str, said_on: date, *, is_past: bool) -> tuple[date, date] | None:
    """Return the first and last day of what the words name, or None."""
    match = next((match for form in _DATES if (match := form.fullmatch(words))), None)
    parts = {name: part.lower() for name, part in match.groupdict().items() if part} if match else {}
    if "whole_year" in parts:
        return date(int(parts["whole_year"]), 1, 1), date(int(parts["whole_year"]), 12, 31)
    is_in_month = "day" in parts or "month" in parts
    try:
        return (_month_days if is_in_month else _weekday_or_tomorrow)(parts, said_on, is_past=is_past)
    except (ValueError, OverflowError):
        return None


def _month_days(parts: dict[str, str], said_on: date, *, is_past: bool) -> tuple[date, date]:
    month = int(parts["number"]) if "number" in parts else 1 + _MONTHS.index(parts["month"][:3])
    year, day = int(parts.get("year", said_on.year)), int(parts.get("day", 0))
    if "year" not in parts:
        is_over = date(year, month, day or monthrange(year, month)[1]) < said_on - _NEAREST_PAST
        year += -1 if is_past and date(year, month, day or 1) > said_on else 1 if is_over and not is_past else 0
    return date(year, month, day or 1), date(year, month, day or monthrange(year, month)[1])


def _weekday_or_tomorrow(parts: dict[str, str], said_on: date, *, is_past: bool) -> tuple[date, date] | None:
    if "unit" in parts:
        return _next_period(parts["unit"], said_on)
    if "weekday" not in parts:
        return (said_on + timedelta(days=1), said_on + timedelta(days=1)) if "tomorrow" in parts else None
    ahead = (_WEEKDAYS.index(parts["weekday"][:3]) - said_on.weekday()) % 7 or 7
    if "next" in parts and ahead < 7 - said_on.weekday():
        return None  # "next Friday", said on a Monday, is this week's to some and next week's to others
    day = said_on + timedelta(days=ahead % 7 - 7 if is_past else ahead)
    return day, day


def _next_period(unit: str, said_on: date) -> tuple[date, date]:
    """Return the first and last day of the week, month or year after the present one."""
    if unit == "week":
        monday = said_on + timedelta(days=7 - said_on.weekday())
        return monday, monday + timedelta(days=6)
    if unit == "year":
        return date(said_on.year + 1, 1, 1), date(said_on.year + 1, 12, 31)
    first = date(said_on.year + said_on.month // 12, said_on.month % 12 + 1, 1)
    return first, first.replace(day=monthrange(first.year, first.month)[1])
