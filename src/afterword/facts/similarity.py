"""How much two assertions seem to be about the same thing, by their words alone. Pure, and of the two alone.

Nothing else that is known plays a part (no counts of how rare a word is), so that what is alike today is alike whatever
arrives tomorrow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from afterword.facts.assertions import OWNER, Assertion
from afterword.facts.words import folded, terms

ATTRIBUTE, VALUE, SAID, CROSSED = 1.0, 0.6, 2.0, 0.5
"""What each full agreement weighs: of attributes, of values, of all words, of one's attribute or value with the
other's words."""

MENTIONED = 0.5
"""What it adds that one mentions what the other is about."""

# How things are wanted, had and done, which says nothing of what it is about; and years, in which everything happens.
_FRAMES = frozenset(terms("want prefer like need take use get go make say keep always never longer"))
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class StatementStems:
    """The stems of an assertion: of its subject, its attribute, its value, and of all that it says."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    said: frozenset[str]

    @property
    def names_little(self) -> bool:
        """Whether hardly a word tells what it is about, or none its value."""
        return not self.value or len(self.said - self.subject) <= 1


def statement_stems(one: Assertion) -> StatementStems:
    """Return the stems of an assertion; the owner is no word, since everything may be about the owner."""
    subject = _stems("" if folded(one.subject) == OWNER else one.subject)
    attribute, value = _stems(one.attribute.replace("_", " ")), _stems(one.value)
    told = _stems(one.statement) | _stems(one.limited_to or "")
    return StatementStems(subject, attribute, value, subject | attribute | value | told)


def similarity(one: StatementStems, other: StatementStems) -> float:
    """Return how much the two seem to be about the same thing: 0 for nothing in common, around 5 for the same words.

    Names of the subjects do not count as common words; other subjects weigh down, since they are rarely the same.
    """
    names = one.subject | other.subject
    said, also_said = one.said - names, other.said - names
    words = (
        ATTRIBUTE * _shared(one.attribute - names, other.attribute - names)
        + VALUE * _shared(one.value - names, other.value - names)
        + SAID * _cosine(said, also_said)
        + CROSSED * max(_shared(one.attribute - names, also_said), _shared(other.attribute - names, said))
    )
    return (words + (MENTIONED if _mention(one, other) else 0.0)) * _nearness(one, other)


def _nearness(one: StatementStems, other: StatementStems) -> float:
    if one.subject == other.subject:
        return 1.0
    if one.subject & other.subject or _mention(one, other):
        return 0.9
    return 0.6 if one.subject and other.subject else 0.8


def _mention(one: StatementStems, other: StatementStems) -> bool:
    if one.subject == other.subject:
        return False
    return bool((one.subject and one.subject <= other.said) or (other.subject and other.subject <= one.said))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


def _cosine(one: frozenset[str], other: frozenset[str]) -> float:
    common = len(one & other)
    return float(common / (len(one) * len(other)) ** 0.5) if common else 0.0


@lru_cache(maxsize=10_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(stem for stem in terms(text) if stem not in _FRAMES and not _YEAR.fullmatch(stem))
