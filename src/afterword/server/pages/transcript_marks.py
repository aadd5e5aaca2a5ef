"""The words of a turn in stretches: what facts rest on, what was masked, and what somebody else wrote. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from afterword import Fact, TurnFacts
from afterword.client.values import HIDDEN_TURNS, SECRET_MASK, Evidence


@dataclass(frozen=True, slots=True)
class MarkedStretch:
    """A stretch of a turn. `facts` are the ids of the facts that rest on it."""

    text: str
    facts: tuple[str, ...] = ()
    is_masked: bool = False
    is_pasted: bool = False


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """A turn with its marks. `is_hidden` says that it was said off the record."""

    number: int
    speaker: str
    role: str
    said_at: datetime | None
    stretches: tuple[MarkedStretch, ...]
    is_hidden: bool


@dataclass(frozen=True, slots=True)
class _Mark:
    start: int
    end: int
    fact: str | None = None
    is_masked: bool = False
    is_pasted: bool = False


def quote_place(text: str, evidence: Evidence) -> tuple[int, int] | None:
    """Return where a quote stands in the text of its turn, None if it does not."""
    start = evidence.start
    if start is None or text[start : start + len(evidence.quote)] != evidence.quote:
        start = text.find(evidence.quote)
    return (start, start + len(evidence.quote)) if evidence.quote and start >= 0 else None


def shown_turn(read: TurnFacts, session_id: str, facts: Iterable[Fact]) -> ShownTurn:
    """Return a turn with the marks of these facts."""
    turn = read.turn
    stretches = marked_stretches(read, session_id, facts)
    return ShownTurn(turn.number, turn.speaker, str(turn.role), turn.said_at, stretches, is_off_record(turn.text))


def marked_stretches(read: TurnFacts, session_id: str, facts: Iterable[Fact]) -> tuple[MarkedStretch, ...]:
    """Return the text of a turn, cut where a mark begins or ends. Joined they are the whole text."""
    text = read.turn.text
    marks = [_Mark(*match.span(), is_masked=True) for match in SECRET_MASK.finditer(text)]
    marks += [_Mark(stretch.start, stretch.end, is_pasted=True) for stretch in read.pasted]
    for fact in facts:
        for evidence in fact.evidence:
            if evidence.session_id == session_id and evidence.turn == read.turn.number:
                place = quote_place(text, evidence)
                marks += [_Mark(*place, fact=fact.id)] if place is not None else []
    return _cut(text, marks)


def _cut(text: str, marks: Sequence[_Mark]) -> tuple[MarkedStretch, ...]:
    borders = sorted({0, len(text), *(border for mark in marks for border in (mark.start, mark.end))})
    stretches = []
    for start, end in pairwise(borders):
        over = [mark for mark in marks if mark.start <= start and end <= mark.end]
        stretches.append(
            MarkedStretch(
                text[start:end],
                tuple(dict.fromkeys(mark.fact for mark in over if mark.fact is not None)),
                any(mark.is_masked for mark in over),
                any(mark.is_pasted for mark in over),
            )
        )
    return tuple(stretches)


def is_off_record(text: str) -> bool:
    """Return whether a turn was said off the record: a placeholder stands in its place."""
    return text in HIDDEN_TURNS
