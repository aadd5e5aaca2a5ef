"""Rules for schedules: days of the week, habits with a time, closing days. Pure."""

from __future__ import annotations

import re

from afterword.extractors.rules.people import is_plausible_name
from afterword.extractors.rules.preferences import OTHERS_SUBJECT, is_habit
from afterword.extractors.rules.rule import NAME, WEEKDAY, WEEKDAYS, Match, Rule, rule
from afterword.facts.assertions import Kind

_LONGEST_TIMETABLE = 14
_TIMETABLE = re.compile(
    rf"\b(?:{WEEKDAYS}|{WEEKDAY} (?:to|through|and) {WEEKDAY}|every|daily|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec))",
    re.IGNORECASE,
)


def _is_someones_schedule(match: Match, _text: str) -> bool:
    return is_plausible_name(match["s"]) and bool(_TIMETABLE.search(match["v"]))


def _is_short(match: Match, text: str) -> bool:
    return len(text.split()) <= _LONGEST_TIMETABLE and not OTHERS_SUBJECT.search(match.string)


def _is_timetable(match: Match, text: str) -> bool:
    return _is_short(match, text) and not re.search(r"\b(?:they|no|was|were|did|had|got|[a-z]+ed)\b", text)


_P = Kind.PREFERENCE
SCHEDULES: tuple[Rule, ...] = (
    rule(
        rf"^(?:[\w ]{{0,40}}?\s)??(?P<s>{NAME}) (?P<v>(?:works|hands in|comes|starts|delivers|is in|takes over|"
        rf"teaches|visits|has)\b[^;]{{2,80}})",
        Kind.ENTITY,
        "schedule",
        check=_is_someones_schedule,
    ),
    rule(
        rf"^(?P<v>(?:not )?(?:on )?(?:{WEEKDAYS}|weekdays|weekends)\b [^;]{{3,80}})$",
        _P,
        "schedule",
        "{I}'s schedule: {v}",
        check=_is_short,
    ),
    rule(rf"^(?P<v>not on {WEEKDAYS})$", _P, "schedule", "{I}'s schedule: {v}"),
    rule(
        rf"\b(?:we're|we are|I'm|I am|is|are) (?:always )?(?P<v>closed (?:on )?(?:{WEEKDAYS}|{WEEKDAY}|from|"
        rf"until)\b[^;]{{0,60}})",
        Kind.ENTITY,
        "closed",
    ),
    rule(
        rf"^(?:[\w']+ ){{0,5}}?(?:I|we) (?:always |usually |only |mostly )?(?P<v>[a-z]+\b[^;]{{0,60}}\b(?:on "
        rf"{WEEKDAYS}|{WEEKDAYS}|before work|after work|"
        rf"every (?:second |other |first |last )?(?:{WEEKDAY}|day|week|month|morning|evening)|in the (?:mornings?|"
        rf"evenings?)|on weekdays|"
        rf"on weekends|at weekends)\b[^;]{{0,40}})",
        _P,
        check=is_habit,
    ),
    rule(
        rf"^(?P<v>(?:[a-z-]+ ){{1,4}}(?:stays? (?:only )?on {WEEKDAY}s?|(?:only )?on {WEEKDAYS})\b[^;]{{0,60}})$",
        _P,
        None,
        "{I}'s schedule: {v}",
        check=_is_timetable,
    ),
)
