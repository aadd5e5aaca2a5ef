"""A rule: a pattern for a clause, and how to build a candidate from its match. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from afterword.facts.assertions import Cue, Kind, SpeechAct

Match = re.Match[str]
Check = Callable[[Match, str], bool]

NAME = r"(?-i:[A-ZÀ-ÖØ-Þ][\w'&-]{1,30}(?:\s[A-ZÀ-ÖØ-Þ][\w'&-]{1,30}){0,2})"
"""A name of one to three words."""

FULL_NAME = r"(?-i:[A-ZÀ-ÖØ-Þ][\w-]{1,30}\s[A-ZÀ-ÖØ-Þ][\w'-]{1,30})"
"""A first and a last name."""

PROPER = r"(?-i:[A-ZÀ-ÖØ-Þ][\w'&.-]{1,30}(?:\s(?:&\s|d[aeo]s?\s|of\s|the\s)?[A-ZÀ-ÖØ-Þ\d][\w'&.-]{0,30}){0,4})"
"""The name of a firm, a product or a place."""

AMOUNT = r"(?:(?:[€$£¥]|EUR|USD|GBP|SEK|NOK|CHF)\s?)?\d[\d.,  ]{0,9}(?:k\b)?"
"""A number, with or without a currency before it."""

WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
WEEKDAYS = rf"(?:{WEEKDAY}s)"


@dataclass(frozen=True, slots=True)
class Rule:
    """One pattern and how its match becomes a candidate.

    Named groups: `v` the value (`w` where `v` is missing, else the whole clause), `s` the subject's name (else the
    speaker), `a` the words the attribute comes from (else the value), `period` what a number is counted by. `frame`
    writes the statement: `{c}` is the clause in the third person, `{v}`, `{s}`, `{a}` the groups, `{I}` the speaker.
    `attribute` is fixed, or derived where it is None (from the value if `by_value`). A `sentence` rule reads the whole
    sentence; an `event` takes place on the day it names; `check` may still refuse.
    """

    pattern: re.Pattern[str]
    kind: Kind
    attribute: str | None = None
    frame: str = "{c}"
    cue: Cue | None = None
    act: SpeechAct = SpeechAct.STATE
    sentence: bool = False
    event: bool = False
    by_value: bool = False
    check: Check | None = None


def rule(
    pattern: str,
    kind: Kind,
    attribute: str | None = None,
    frame: str = "{c}",
    *,
    cue: Cue | None = None,
    act: SpeechAct = SpeechAct.STATE,
    sentence: bool = False,
    event: bool = False,
    by_value: bool = False,
    check: Check | None = None,
) -> Rule:
    """Return a rule with its pattern compiled, letter case aside (names excepted)."""
    compiled = re.compile(pattern, re.IGNORECASE)
    return Rule(compiled, kind, attribute, frame, cue, act, sentence, event, by_value, check)
