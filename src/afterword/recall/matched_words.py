"""Which words of a query a fact contains. Pure."""

from __future__ import annotations

import re

from afterword.facts.assertions import OWNER
from afterword.facts.fact import Fact
from afterword.facts.words import terms


def matched_words(query: str, fact: Fact) -> tuple[str, ...]:
    """Return the words of a query, as they were asked, whose stems the fact contains."""
    subject = "" if fact.subject == OWNER else fact.subject
    stems = set(terms(f"{fact.statement} {subject} {fact.attribute.replace('_', ' ')} {fact.value}"))
    words = dict.fromkeys(re.findall(r"[^\W_]+", query))
    return tuple(word for word in words if stems & set(terms(word)))
