"""How a later-said assertion relates to an earlier-said one, by slot and value alone. Pure.

The offline judge uses it. So does code that has to decide at once, where asking a judge would take too long.
"""

from __future__ import annotations

from afterword.facts.assertions import EVERYTHING, Assertion, Cue, Relation, SpeechAct
from afterword.facts.words import folded, plain_words, word_set

RELATION_VERSION = "rules-1"
"""The judge's version that is stored with the verdicts decided here."""

SINGLE_VALUED = word_set(
    """name home employer job role birthday age timezone seat editor shell browser operating_system platform
    version contact budget budget_per_night budget_per_day budget_per_week budget_per_month budget_per_year goal
    deadline source shoe_size extension excess deductible living_room cadence relation phone_number address"""
)
"""Attributes that hold one value at a time. Any other attribute may have several values at once."""

# Shorter values occur in too many sentences to tell what is taken back.
SHORTEST_NAMED = 4


def relation(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    """Return how the later assertion relates to the earlier one, and why; None if slot and value do not tell."""
    if earlier.act is not SpeechAct.STATE or folded(earlier.subject) != folded(later.subject):
        return None
    if later.act is not SpeechAct.STATE:
        return _withdrawal(earlier, later)
    if earlier.slot != later.slot or folded(earlier.limited_to or "") != folded(later.limited_to or ""):
        return None
    if folded(earlier.value) == folded(later.value):
        return _same_value(earlier, later)
    return _other_value(earlier, later) if later.slot[1] in SINGLE_VALUED else None


def _same_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    if _is_postponed(earlier, later):
        return Relation.CORRECTS, "another date for what was announced"
    if earlier.valid_to is not None and earlier.valid_to < later.said_at:
        return None  # the earlier value had ended, so the same value is a new fact
    return Relation.SAME, "the same value again"


def _other_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str]:
    if later.cue is Cue.CORRECTION and earlier.session_id == later.session_id:
        return Relation.CORRECTS, "put right in the same session"
    return Relation.CHANGES, f"{later.attribute} has one value at a time"


def is_cleared(earlier: Assertion, later: Assertion) -> bool:
    """Whether the later assertion takes back everything about the earlier one's subject, so that no judge is needed."""
    takes_all = later.act is not SpeechAct.STATE and later.attribute == EVERYTHING and not later.value
    return takes_all and earlier.act is SpeechAct.STATE and folded(earlier.subject) == folded(later.subject)


def _is_postponed(earlier: Assertion, later: Assertion) -> bool:
    """Whether the later assertion moves an announced date that has not come yet."""
    if earlier.valid_from is None or later.valid_from is None or earlier.valid_from == later.valid_from:
        return False
    return earlier.valid_from > later.said_at


def _withdrawal(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    if is_cleared(earlier, later):
        return Relation.RETRACTS, "everything was taken back"
    taken_back = folded(later.value)
    if earlier.slot == later.slot and (not taken_back or taken_back == folded(earlier.value)):
        return Relation.RETRACTS, "taken back"
    words = f" {_words(earlier.value)} {_words(earlier.statement)} "
    if len(taken_back) >= SHORTEST_NAMED and f" {taken_back} " in words:
        return Relation.RETRACTS, f"taken back by name: {later.value}"
    return None


def _words(text: str) -> str:
    return " ".join(plain_words(text.casefold()))
