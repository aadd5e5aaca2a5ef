"""How much two assertions seem to be about the same thing, by their words alone. Pure, and of the two alone."""

from __future__ import annotations

from dataclasses import dataclass

from afterword.store.assertions import OWNER, Act, Assertion
from afterword.store.ranking import terms

SLOT = 10.0
"""What the same slot adds: it outweighs every likeness of words."""

# Frames of a statement, not what it is about.
_EMPTY = frozenset(terms("want prefer like need take use get go make say keep always never longer"))


@dataclass(frozen=True, slots=True)
class Wording:
    """The stems of an assertion: of its subject, its attribute, its value, and of all that it says."""

    subject: frozenset[str]
    attribute: frozenset[str]
    value: frozenset[str]
    said: frozenset[str]


def wording(one: Assertion) -> Wording:
    """Return the stems of an assertion; the owner is no word, since everything may be about the owner."""
    subject = _stems("" if one.subject == OWNER else one.subject)
    attribute, value = _stems(one.attribute.replace("_", " ")), _stems(one.value)
    told = _stems(one.statement) | _stems(one.limited_to or "")
    return Wording(subject, attribute, value, (subject | attribute | value | told) - _EMPTY)


def _stems(text: str) -> frozenset[str]:
    return frozenset(terms(text))
