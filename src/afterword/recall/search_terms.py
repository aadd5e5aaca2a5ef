"""The words by which facts and turns are found: computed when they are stored, and read when they are indexed. Pure."""

from __future__ import annotations

import re
from datetime import datetime

from afterword.facts.assertions import OWNER
from afterword.facts.fact import Fact
from afterword.facts.words import terms

TOKENIZER = "1:"
"""The version of `terms`. Stored words begin with it; words of another version are not used."""

_MONTHS = "January February March April May June July August September October November December".split()
_MONTH_STEMS = frozenset(stem for month in _MONTHS for stem in terms(month))


def fact_text(said_at: datetime, subject: str, statement: str, attribute: str, value: str) -> str:
    """Return the text by which a fact is found, with its date and subject. Its vector is made of this text."""
    return f"{_date(said_at)} {_subject_unless_owner(subject)} {statement} {attribute} {value}"


def turn_text(said_at: datetime | None, name: str, text: str) -> str:
    """Return the text by which a turn is found, with its date. `name` is the speaker, or empty if only one spoke."""
    return f"{_date(said_at) if said_at else ''} {name} {text}"


def fact_terms(said_at: datetime, subject: str, statement: str, attribute: str, value: str) -> str:
    """Return the words by which a fact is found: those of its subject (none for the owner), a tab, and the others."""
    return _tab_separated_terms(_subject_unless_owner(subject), fact_text(said_at, OWNER, statement, attribute, value))


def words_without_date(found_by: str) -> set[str]:
    """Return the words of `found_by`, a result of `fact_terms`, without those of the date."""
    name, _, text = found_by.partition("\t")
    words = text.split()
    # The date comes first: a day, a month unless its name is a stop word, and a year.
    return {*name.split(), *words[3 if words[1] in _MONTH_STEMS else 2 :]}


def turn_terms(said_at: datetime | None, speaker: str, text: str) -> str:
    """Return the words by which a turn is found: those of its speaker, a tab, and the others."""
    return _tab_separated_terms(speaker, turn_text(said_at, "", text))


def _tab_separated_terms(name: str, text: str) -> str:
    return f"{' '.join(terms(name))}\t{' '.join(terms(text))}"


def _subject_unless_owner(subject: str) -> str:
    return "" if subject == OWNER else subject


def _date(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"


def matched_words(query: str, fact: Fact) -> tuple[str, ...]:
    """Return the words of a query, as they were written, whose stems occur in the fact."""
    subject = "" if fact.subject == OWNER else fact.subject
    stems = set(terms(f"{fact.statement} {subject} {fact.attribute.replace('_', ' ')} {fact.value}"))
    words = dict.fromkeys(re.findall(r"[^\W_]+", query))
    return tuple(word for word in words if stems & set(terms(word)))
