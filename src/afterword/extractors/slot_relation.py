"""Decide how an assertion relates to an earlier one by comparing subject, attribute and value. Pure.

The offline judge uses this module, and so does code that cannot wait for a judge.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import NamedTuple

from afterword.facts.assertions import EVERYTHING, Assertion, Cue, Kind, Relation, SpeechAct
from afterword.facts.words import folded, word_set, words_as_written

RELATION_VERSION = "rules-1"
"""The judge's version that is stored with the verdicts decided here."""

SINGLE_VALUED = word_set(
    """name called home country employer job role birthday age timezone time_zone seat editor shell browser
    operating_system platform version contact budget budget_per_night budget_per_day budget_per_week budget_per_month
    budget_per_year goal deadline source shoe_size extension excess deductible living_room cadence relation phone_number
    address spouse answer_language preferred_drink phone laptop computer boss manager doctor dentist"""
)
"""Attributes that hold one value at a time. Any other attribute may have several values at once."""

_SINGLE_VALUED_PREFIXES = ("favorite_", "number_of_")
_DIETS = word_set("vegan vegetarian pescatarian")
_ABOUT_ONE_ATTRIBUTE = word_set(
    "name called home country employer job origin birthplace raised_in allergy language age"
)
"""To withdraw a value of these attributes leaves other attributes alone: who has left Porto may still like Porto."""

_DENIAL = re.compile(
    r"(?:hate|dislike|detest|can't stand|cannot stand|can't bear|don't like|do not like|not an? (?:big )?fan of|never|"
    r"don't|do not|can't|cannot|hardly ever|rarely|against|not|no) (?P<core>.+)"
)
_HOUR = re.compile(r"(?i)\bat \d{1,2}(?:[:.]\d\d)?(?: ?[ap]m)?\b")
_EMPHASIS = re.compile(r"(?:always|usually|only|mostly|please) (?P<core>.+)")

SHORTEST_NAMED = 4
"""The fewest characters by which a withdrawal finds a value in a sentence. Shorter ones occur in too many."""


def relation_by_slot(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    """Return how the later assertion relates to the earlier one, and the reason, or None if this cannot be decided."""
    if earlier.act is not SpeechAct.STATE or folded(earlier.subject) != folded(later.subject):
        return None
    if later.act is not SpeechAct.STATE:
        return _retraction_of_earlier(earlier, later)
    if _is_of_other_occasion(earlier, later):
        return None
    if _is_dropped_decision(earlier, later):
        return Relation.CHANGES, "decided otherwise"
    if earlier.slot != later.slot:
        return None
    value, later_value = _value_words(earlier), _value_words(later)
    if value == later_value:
        return _relation_of_same_value(earlier, later)
    is_other = value.words == later_value.words or _are_exclusive(earlier, later)
    return _relation_of_other_value(earlier, later) if is_other else None


def _is_of_other_occasion(earlier: Assertion, later: Assertion) -> bool:
    """Return whether they are limited to different occasions, so that the later one does not affect the earlier one."""
    if earlier.kind is Kind.DECISION and not _value_words(later).is_positive and not later.limited_to:
        return False
    return folded(earlier.limited_to or "") != folded(later.limited_to or "")


def _is_dropped_decision(earlier: Assertion, later: Assertion) -> bool:
    """Return whether the later assertion decides against what the earlier one chose for a certain purpose."""
    if earlier.kind is not Kind.DECISION or later.kind is not Kind.DECISION or earlier.slot == later.slot:
        return False
    value, later_value = _value_words(earlier), _value_words(later)
    is_against_it = value.is_positive and not later_value.is_positive
    return is_against_it and value.words[: len(later_value.words)] == later_value.words and bool(earlier.limited_to)


def _are_exclusive(earlier: Assertion, later: Assertion) -> bool:
    """Return whether two different values of the same attribute exclude each other."""
    attribute = later.slot[1]
    if attribute in SINGLE_VALUED or attribute.startswith(_SINGLE_VALUED_PREFIXES):
        return True
    if attribute == "diet":
        return {folded(earlier.value), folded(later.value)} <= _DIETS
    if later.kind is Kind.DECISION and later.limited_to:
        return _value_words(earlier).is_positive and _value_words(later).is_positive
    return attribute.startswith("preferred_") and later.cue is Cue.CHANGE


class _ValueWords(NamedTuple):
    """The words of a value in the singular, without articles and denial, and whether the value is no denial."""

    words: list[str]
    is_positive: bool


def _value_words(assertion: Assertion) -> _ValueWords:
    value = folded(assertion.value.replace("’", "'"))
    if assertion.slot[1] == "home":
        value = value.partition(",")[0]
    denied, emphasised = _DENIAL.fullmatch(value), _EMPHASIS.fullmatch(value)
    match = denied or emphasised
    words = words_as_written(match["core"] if match else value)
    plain = [word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word for word in words]
    return _ValueWords([word for word in plain if word not in ("the", "a", "an")] or plain, denied is None)


def _relation_of_same_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    if earlier.valid_to is not None and earlier.valid_to < later.said_at:
        return None  # the earlier value had ended, so the same value is a new fact
    hours = _HOUR.findall(later.statement)
    has_other_hour = hours and hours != _HOUR.findall(earlier.statement)
    if earlier.valid_from and later.valid_from and (earlier.valid_from != later.valid_from or has_other_hour):
        # The time of something announced is moved before it has come.
        if earlier.valid_from > later.said_at:
            return Relation.CORRECTS, "another time for what was announced"
        if later.valid_from > later.said_at - timedelta(days=1):
            return Relation.CHANGES, "announced again for another time"
    return Relation.SAME, "the same value again"


def _relation_of_other_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str]:
    if later.cue is Cue.CORRECTION and earlier.session_id == later.session_id:
        return Relation.CORRECTS, "put right in the same session"
    return Relation.CHANGES, f"{later.attribute} has one value at a time"


def is_subject_cleared(earlier: Assertion, later: Assertion) -> bool:
    """Return whether the later assertion withdraws everything about the subject of the earlier one.

    No judge is needed then.
    """
    takes_all = later.act is not SpeechAct.STATE and later.attribute == EVERYTHING and not later.value
    return takes_all and earlier.act is SpeechAct.STATE and folded(earlier.subject) == folded(later.subject)


def _retraction_of_earlier(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    """Return `RETRACTS` and the reason if the withdrawal takes back the earlier assertion, else None."""
    if is_subject_cleared(earlier, later):
        return Relation.RETRACTS, "everything was taken back"
    if earlier.slot == later.slot and (not later.value or _value_words(earlier) == _value_words(later)):
        return Relation.RETRACTS, "taken back"
    if {earlier.slot[1], later.slot[1]} & _ABOUT_ONE_ATTRIBUTE and later.act is SpeechAct.RETRACT:
        return None
    if _is_withdrawn_by_name(earlier, later):
        return Relation.RETRACTS, f"taken back by name: {later.value}"
    return None


def _is_withdrawn_by_name(earlier: Assertion, later: Assertion) -> bool:
    """Return whether a withdrawal has the earlier value, or asks to erase what the earlier statement names."""
    name = folded(later.value)
    is_long_enough = len(name) >= SHORTEST_NAMED
    if _value_words(earlier) == _value_words(later):
        return is_long_enough or name == folded(earlier.value)
    words = " ".join(words_as_written(f"{earlier.value} {earlier.statement}".casefold()))
    return later.act is SpeechAct.ERASE and is_long_enough and f" {name} " in f" {words} "
