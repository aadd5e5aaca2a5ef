"""A table of the facts and turns of a scope, with the words by which they are found. Pure.

The position of a fact or turn in the table is called its place. A table is immutable. A changed table shares almost all
data with the one before: new units get places at the end, and removed ones are only marked in `is_alive`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy

from afterword.recall.bm25 import Array, Postings, WordCounts


class Unit(Protocol):
    """A fact or a turn that can be found.

    `terms` are the words by which it is found, separated by spaces. Those of the speaker or of the fact's subject come
    first, then a tab. `conversation` and `number` say where a turn stands; facts have None and 0. `asks` marks a
    question that another person answers. `sources` are the ids of the turns that support a fact. `successor` is the
    id of the statement that superseded it. `order` sorts units with equal scores.
    """

    @property
    def id(self) -> Hashable: ...  # noqa: D102 - described above, as the others are
    @property
    def terms(self) -> str: ...  # noqa: D102
    @property
    def conversation(self) -> str | None: ...  # noqa: D102
    @property
    def number(self) -> int: ...  # noqa: D102
    @property
    def asks(self) -> bool: ...  # noqa: D102
    @property
    def sources(self) -> tuple[Hashable, ...]: ...  # noqa: D102
    @property
    def successor(self) -> Hashable | None: ...  # noqa: D102
    @property
    def order(self) -> tuple[Any, ...]: ...  # noqa: D102


class _IndexSegment:
    """Units that lie next to each other in a table, from the place `first` on, with the index of their words."""

    def __init__(self, units: Sequence[Unit], first: int) -> None:
        self.units, self.first = units, first
        self.places = {unit.id: place for place, unit in enumerate(units, first)}
        self._postings: Postings | None = None

    def postings(self) -> Postings:
        """Return the words of its units, indexed once."""
        # Without a lock, which `cached_property` shares among all tables up to Python 3.11.
        if self._postings is None:
            self._postings = Postings([unit.terms for unit in self.units], self.first)
        return self._postings

    @cached_property
    def superseded(self) -> dict[Hashable, list[int]]:
        """The places of the facts that a statement superseded, by the id of the statement."""
        units = enumerate(self.units, self.first)
        return _grouped((unit.successor, place) for place, unit in units if unit.successor is not None)

    @cached_property
    def supported(self) -> dict[Hashable, list[int]]:
        """The places of the facts that a turn supports, by the id of the turn."""
        units = enumerate(self.units, self.first)
        return _grouped((source, place) for place, unit in units for source in unit.sources)


class UnitTable:
    """Facts and turns, called units, by their place. `is_alive` says which places are in use.

    `by_order` lists the places in the order of their units. The other arrays hold a value for each place: the numbers
    of its conversation and its name (-1: none), the number of a turn, and whether it asks.
    `lineage` is the same object in all tables where a place means the same unit.
    """

    def __init__(self) -> None:
        self.lineage: object = object()
        self.size = 0
        self._segments: tuple[_IndexSegment, ...] = ()
        self._firsts: list[int] = []
        self._conversations: dict[str | None, int] = {}
        self._names: dict[str | None, int] = {}
        flags, numbers = numpy.empty(0, dtype=bool), numpy.empty(0, dtype=numpy.int32)
        self.is_alive: Array = flags
        self.asks: Array = flags
        self.by_order: Array = numbers
        self.conversation: Array = numbers
        self.number: Array = numbers
        self.name: Array = numbers

    def revised(self, removed: Iterable[int], added: Iterable[Unit], *, is_searched: bool = True) -> UnitTable:
        """Return a table without the units at the places `removed`, and with the units `added`.

        If the table `is_searched`, their words are indexed at once, otherwise when they are needed. If most places
        would be unused, the units get new places, and the table another lineage.
        """
        units, gone = sorted(added, key=lambda unit: unit.order), list(removed)
        size = self.size + len(units)
        if size > 2 * (len(self.by_order) - len(gone) + len(units)):
            remaining = set(self.by_order.tolist()).difference(gone)
            return UnitTable().revised((), [*map(self.unit_at, remaining), *units])
        after = object.__new__(UnitTable)
        after.lineage, after.size = self.lineage, size
        after._segments = self._segments_with(units)
        after._firsts = [segment.first for segment in after._segments]
        after._set_arrays(self, units)
        after.is_alive[gone] = False
        after.by_order = self._order_with(units, self.by_order[after.is_alive[self.by_order]])
        for segment in after._segments if is_searched else ():
            segment.postings()
        return after

    def _set_arrays(self, before: UnitTable, added: list[Unit]) -> None:
        """Take over the values of each place from the table before, and append those of the added units."""
        conversations = [unit.conversation for unit in added]
        names = [unit.terms.partition("\t")[0] for unit in added]
        self._conversations = _numbered(before._conversations, conversations)
        self._names = _numbered(before._names, names)
        self.is_alive = _appended(before.is_alive, [True] * len(added))
        self.conversation = _appended(
            before.conversation, [self._conversations.get(name, -1) for name in conversations]
        )
        self.name = _appended(before.name, [self._names.get(name, -1) for name in names])
        self.number = _appended(before.number, [unit.number for unit in added])
        self.asks = _appended(before.asks, [unit.asks for unit in added])

    def _order_with(self, added: list[Unit], remaining: Array) -> Array:
        """Return the places of the remaining and the added units in the order of the units."""
        positions = [
            len(remaining) and bisect_left(remaining, unit.order, key=lambda place: self.unit_at(place).order)
            for unit in added
        ]
        return numpy.insert(remaining, positions, numpy.arange(self.size, self.size + len(added)))

    def _segments_with(self, units: list[Unit]) -> tuple[_IndexSegment, ...]:
        """Return the segments with these units. Segments of up to twice their size are joined, so that few remain."""
        segments, joined = list(self._segments), units
        while segments and len(segments[-1].units) <= 2 * len(joined):
            joined = [*segments.pop().units, *joined]
        if joined:
            segments.append(_IndexSegment(joined, self.size + len(units) - len(joined)))
        return tuple(segments)

    def unit_at(self, place: int) -> Any:
        """Return the fact or turn at a place."""
        segment = self._segments[bisect_right(self._firsts, place) - 1]
        return segment.units[place - segment.first]

    def units_from(self, first: int) -> Iterator[tuple[int, Any]]:
        """Yield the units in use from the place `first` on, each with its place."""
        is_alive = self.is_alive[first:].tolist()
        for segment in self._segments[max(bisect_right(self._firsts, first) - 1, 0) :]:
            for place, unit in enumerate(segment.units, segment.first):
                if place >= first and is_alive[place - first]:
                    yield place, unit

    @property
    def has_ever_had_turns(self) -> bool:
        """Whether the table contains, or once contained, turns."""
        return bool(self._conversations)

    def place_of(self, unit_id: Hashable) -> int | None:
        """Return the place of a unit, or None if the table does not contain it."""
        for segment in reversed(self._segments):
            place = segment.places.get(unit_id)
            if place is not None:
                return place if self.is_alive[place] else None
        return None

    @cached_property
    def has_support(self) -> bool:
        """Whether any fact names the turns that support it."""
        return any(segment.supported for segment in self._segments)

    def places_supported_by(self, turn_id: Hashable) -> list[int]:
        """Return the places of the facts that a turn supports."""
        places = [place for segment in self._segments for place in segment.supported.get(turn_id, ())]
        return [place for place in places if self.is_alive[place]]

    def places_superseded_by(self, statement_id: Hashable) -> list[int]:
        """Return the places of the facts that a statement superseded."""
        places = [place for segment in self._segments for place in segment.superseded.get(statement_id, ())]
        return [place for place in places if self.is_alive[place]]

    def turn_places(self, conversation: str) -> list[int]:
        """Return the positions in this table of the turns of a conversation."""
        number = self._conversations.get(conversation, -2)
        places: list[int] = ((self.conversation == number) & self.is_alive).nonzero()[0].tolist()
        return places

    def counts(self, word: str) -> WordCounts:
        """Return the places of the units with a word, removed ones included, and how often each has it."""
        counts = [known for segment in self._segments if (known := segment.postings().counts(word)) is not None]
        if len(counts) == 1:
            return counts[0]
        empty = numpy.empty(0, dtype=numpy.int32)
        return (
            numpy.concatenate([empty, *(places for places, _ in counts)]),
            numpy.concatenate([empty, *(numbers for _, numbers in counts)]),
        )

    def name_numbers_with(self, words: Iterable[str]) -> list[int]:
        """Return the numbers of the names (of speakers or subjects) that contain any of these words."""
        return list({number for word in words for number in self._names_by_word.get(word, ())})

    @cached_property
    def _names_by_word(self) -> dict[str, list[int]]:
        return _grouped((word, number) for name, number in self._names.items() for word in (name or "").split())

    @cached_property
    def lengths(self) -> Array:
        """For each place, how many words its unit has."""
        empty = numpy.empty(0, dtype=numpy.int32)
        return numpy.concatenate([empty, *(segment.postings().lengths for segment in self._segments)])

    @cached_property
    def rank(self) -> Array:
        """For each place, the position of its unit in the order of the units."""
        rank = numpy.zeros(self.size, dtype=numpy.int32)
        rank[self.by_order] = numpy.arange(len(self.by_order))
        return rank


def _grouped(pairs: Iterable[tuple[Any, int]]) -> dict[Any, list[int]]:
    """Return the numbers that are paired with each key."""
    numbers: defaultdict[Any, list[int]] = defaultdict(list)
    for key, number in pairs:
        numbers[key].append(number)
    return dict(numbers)


def _numbered(known: dict[str | None, int], names: Iterable[str | None]) -> dict[str | None, int]:
    """Return the numbers of the `known` names, and new numbers for those of `names` that are not known."""
    new = [name for name in dict.fromkeys(names) if name and name not in known]
    return known | {name: number for number, name in enumerate(new, len(known))} if new else known


def _appended(array: Array, values: list[Any]) -> Array:
    return numpy.concatenate((array, numpy.array(values, dtype=array.dtype)))
