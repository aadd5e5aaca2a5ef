"""Facts and turns as units of a search index: a fact by its sentence, a turn by its words. Pure."""

from __future__ import annotations

from datetime import datetime

from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.recall.ranking import SearchUnit

_MONTHS = "January February March April May June July August September October November December".split()


def fact_unit(fact_id: str, about: str, said_at: datetime, words: str, sources: tuple[TurnPlace, ...]) -> SearchUnit:
    """Return the unit of a fact.

    `about` is its subject, empty for the owner. `words` are what finds it, `sources` the turns that support it.
    """
    return SearchUnit(fact_id, f"{_date(said_at)} {about} {words}", about, sources=tuple(map(turn_id, sources)))


def turn_unit(turn: SourceTurn) -> SearchUnit:
    """Return the unit of a turn."""
    name = turn.speaker if turn.in_company else ""
    day = _date(turn.said_at) if turn.said_at else ""
    is_question = turn.in_company and "?" in turn.text
    return SearchUnit(turn_id(turn.place), f"{day} {name} {turn.text}", name, turn.session_id, turn.number, is_question)


def turn_id(place: TurnPlace) -> str:
    """Return the id of a turn in a search index."""
    session_id, number = place
    return f"turn {number} of {session_id}"


def _date(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
