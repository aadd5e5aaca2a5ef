"""A turn of a person as its database row holds it."""

from __future__ import annotations

import json
from datetime import datetime
from sys import getsizeof
from typing import Any

from sqlmodel import SQLModel

from afterword.facts.local_time import at_offset
from afterword.facts.transcripts import SourceTurn
from afterword.recall.search_terms import turn_terms, turn_text
from afterword.store.database.statements import UnconvertedRow, parse_stored_instant
from afterword.store.tables import SessionRow, TurnRow
from afterword.text_caches import text_cache

TURN_COLUMNS: tuple[tuple[type[SQLModel], str], ...] = (
    *((SessionRow, name) for name in "id session_id humans assumed".split()),
    *((TurnRow, name) for name in "number speaker said_at utc_offset_s text shown".split()),
)
"""The first columns of a row. The words by which a search finds the turn follow, None if they are not stored."""

TURN_BYTES = 400
"""Estimated memory of a turn beside its texts."""


class StoredTurn:
    """A turn of a person. It is a `Unit` of `recall.unit_table`, which describes what the search index reads."""

    __slots__ = ("id", "order", "terms", "turn")
    sources: tuple[()] = ()
    successor: None = None

    def __init__(self, row: UnconvertedRow) -> None:
        key, session_id, humans, assumed, number, speaker, said_at, offset_s, text, shown, terms = row
        in_company = _count_people(humans, assumed) > 1
        self.turn: SourceTurn = SourceTurn(
            session_id, number, speaker, local_said_at(said_at, offset_s), text, in_company, shown
        )
        self.id: tuple[str, int] = self.turn.place
        self.order: tuple[int, tuple[Any, Any]] = 0, (key, number)
        if terms is None:
            terms = turn_terms(self.turn.said_at, speaker, text)
        # If only one person speaks in the session, the speaker's name distinguishes nothing.
        self.terms: str = terms if in_company else terms[terms.index("\t") :]

    @property
    def conversation(self) -> str:
        """The id of its session."""
        return self.turn.session_id

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of the turn."""
        return TURN_BYTES + getsizeof(self.turn.text) + getsizeof(self.terms)

    @property
    def number(self) -> int:
        """Its number in its session."""
        return self.turn.number

    @property
    def asks(self) -> bool:
        """Whether it asks a question in a session in which several people speak."""
        return self.turn.in_company and "?" in self.turn.text

    @property
    def text_to_embed(self) -> str:
        """The text from which its vector is computed."""
        return turn_text(self.turn.said_at, self.turn.speaker if self.turn.in_company else "", self.turn.text)


def local_said_at(said_at: Any, utc_offset_s: int | None) -> datetime | None:
    """Return when a turn was said, from the two columns of its row that store the time."""
    return None if said_at is None else at_offset(parse_stored_instant(said_at), utc_offset_s)


@text_cache(10_000)
def _count_people(humans: str, assumed: str) -> int:
    return len({*json.loads(humans), *json.loads(assumed)})
