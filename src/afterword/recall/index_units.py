"""What can be found, as the units of an index: facts by their sentence, turns by their words. Pure."""

from __future__ import annotations

from datetime import datetime

from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.recall.ranking import SearchUnit

_MONTHS = "January February March April May June July August September October November December".split()


def fact_unit(fact_id: str, about: str, said_at: datetime, words: str, sources: tuple[TurnPlace, ...]) -> SearchUnit:
    """Return the unit of a fact; `about` is empty where it is about the owner, `words` are all that find it."""
    return SearchUnit(
        fact_id, f"{_date(said_at)} {about} {words}", about, sources=tuple([turn_id(one) for one in sources])
    )


def turn_unit(turn: SourceTurn) -> SearchUnit:
    """Return the unit of a turn."""
    name = turn.speaker if turn.in_company else ""
    day = _date(turn.said_at) if turn.said_at else ""
    asks = turn.in_company and "?" in turn.text
    return SearchUnit(turn_id(turn.place), f"{day} {name} {turn.text}", name, turn.session_id, turn.number, asks)


def turn_id(place: TurnPlace) -> str:
    """Return the id of a turn among the units of an index."""
    return f"turn {place[1]} of {place[0]}"


def _date(moment: datetime) -> str:
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year}"
