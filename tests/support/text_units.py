"""Units of a search index that are made of plain texts, and indexes over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from afterword.facts.words import terms
from afterword.recall.ranking import SearchIndex
from afterword.recall.unit_table import UnitTable


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A fact, or a turn where it has a conversation."""

    id: str
    text: str
    name: str = ""
    conversation: str | None = None
    number: int = 0
    asks: bool = False
    sources: tuple[str, ...] = ()
    successor: str | None = None

    @property
    def terms(self) -> str:
        return f"{' '.join(terms(self.name))}\t{' '.join(terms(self.text))}"

    @property
    def order(self) -> tuple[bool, str, int, str]:
        return self.conversation is None, self.conversation or "", self.number, self.id


def table_of(units: Sequence[TextUnit]) -> UnitTable:
    """Return a new table of these units."""
    return UnitTable().revised((), units)


def index_of(table: UnitTable) -> SearchIndex:
    """Return the index over all units of a table."""
    return SearchIndex(table, table.is_alive)


def search_index(units: Sequence[TextUnit]) -> SearchIndex:
    """Return an index of these units."""
    return index_of(table_of(units))


def vector_bytes(*vectors: Sequence[float]) -> dict[int, bytes]:
    """Return vectors by place, as they are stored."""
    return {place: numpy.asarray(vector, dtype="<f2").tobytes() for place, vector in enumerate(vectors)}
