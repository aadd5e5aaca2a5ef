"""How similar two assertions are, by their words alone. Pure.

The result depends on the two assertions only, not on how rare a word is elsewhere. So it stays the same whatever
arrives later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from afterword.facts.assertions import OWNER, Assertion
from afterword.facts.words import folded, terms
from afterword.text_caches import text_cache

ATTRIBUTE_WEIGHT, VALUE_WEIGHT, ALL_WORDS_WEIGHT, CROSS_WEIGHT = 1.0, 0.6, 2.0, 0.5
"""The weight of full agreement between the attributes, between the values, between all words, and between the
attribute of one assertion and all words of the other."""

MENTION_BONUS = 0.5
"""What is added where one assertion mentions the subject of the other."""

# Verbs and adverbs that do not tell what a statement is about. Years occur in statements about anything.
_GENERIC_STEMS = frozenset(terms("want prefer like need take use get go make say keep always never longer"))
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, slots=True)
class StatementStems:
    """The stems of an assertion: of its subject, its attribute, its value, and of all its words."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    said: frozenset[str]

    @property
    def names_little(self) -> bool:
        """Whether the statement has no value, or hardly a word that says what it is about."""
        return not self.value or len(self.said - self.subject) <= 1


def statement_stems(assertion: Assertion) -> StatementStems:
    """Return the stems of an assertion. The owner as subject has none, since any statement may be about the owner."""
    subject = _stems("" if folded(assertion.subject) == OWNER else assertion.subject)
    attribute, value = _stems(assertion.attribute.replace("_", " ")), _stems(assertion.value)
    sentence = _stems(assertion.statement) | _stems(assertion.limited_to or "")
    return StatementStems(subject, attribute, value, subject | attribute | value | sentence)


def is_compared(stem: str) -> bool:
    """Return whether a stem tells what a statement is about."""
    return stem not in _GENERIC_STEMS and (len(stem) != len("2000") or not _YEAR.fullmatch(stem))


def similarity(first: StatementStems, second: StatementStems) -> float:
    """Return how similar the two are: 0 for no common word, around 5 for the same words.

    The names of the subjects do not count as common words. Different subjects lower the result.
    """
    names = first.subject | second.subject
    first_words, second_words = first.said - names, second.said - names
    score = (
        ATTRIBUTE_WEIGHT * _overlap(first.attribute - names, second.attribute - names)
        + VALUE_WEIGHT * _overlap(first.value - names, second.value - names)
        + ALL_WORDS_WEIGHT * _cosine(first_words, second_words)
        + CROSS_WEIGHT
        * max(_overlap(first.attribute - names, second_words), _overlap(second.attribute - names, first_words))
    )
    if first.subject == second.subject:
        return score
    if _mentions_subject(first, second) or _mentions_subject(second, first):
        return (score + MENTION_BONUS) * 0.9
    if first.subject & second.subject:
        return score * 0.9
    return score * (0.6 if first.subject and second.subject else 0.8)


def _mentions_subject(statement: StatementStems, other: StatementStems) -> bool:
    return bool(other.subject) and other.subject <= statement.said


def _overlap(stems: frozenset[str], others: frozenset[str]) -> float:
    return len(stems & others) / min(len(stems), len(others)) if stems and others else 0.0


def _cosine(stems: frozenset[str], others: frozenset[str]) -> float:
    common = len(stems & others)
    return float(common / (len(stems) * len(others)) ** 0.5) if common else 0.0


@text_cache(10_000)
def _stems(text: str) -> frozenset[str]:
    return frozenset(filter(is_compared, terms(text)))
