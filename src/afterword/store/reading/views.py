"""Which facts and turns of a scope may be served at an instant, and the search index over them. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import chain

import numpy
from sqlmodel import Session

from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact
from afterword.facts.subjects import CurrentNames, current_names
from afterword.facts.transcripts import TurnPlace
from afterword.facts.validity.fact_history import FactHistory, facts_at
from afterword.recall.bm25 import Array
from afterword.recall.layers import LineCache
from afterword.recall.named_values import told_former_value
from afterword.recall.ranking import SearchIndex
from afterword.recall.vectors import Vectors
from afterword.store.database.file_marks import FileMark
from afterword.store.reading.fact_lists import FactLists
from afterword.store.reading.fact_rows import KINDS, StoredFact
from afterword.store.reading.snapshots import Snapshot
from afterword.store.reading.turn_rows import StoredTurn

SAMPLED_UNITS = 20
"""How many facts and turns are sampled to estimate the memory of all rows."""
VIEW_BYTES, UNIT_BYTES, MADE_BYTES = 10_000, 700, 1_000
"""Estimated memory of a view itself, of each fact or turn beside its row (its places, its words in the index, and what
it may cache of itself), and of each fact, line and word weight that was computed."""


class View:
    """A snapshot at one instant: which of its facts hold then, and which held before.

    The view is valid from `since` until just before `until` (None: without end). Facts and turns are identified by
    their position in the table of the snapshot. `is_served` marks the facts that hold, and the turns that may be shown
    because all facts that cite them hold. `is_past` marks the facts that held once and do not hold now. `vectors` holds
    the vectors of served facts and turns, by model and dimension. `mark` identifies the state of the database file that
    the snapshot was read from; it may be compared `unasked_left` more times before the database itself is asked.
    `readers` are functions that read further data of the scope. The next view runs them in the transaction that reads
    its facts.

    `before` may be a view of the same snapshot, or of the snapshot that this one was updated from. Then only the
    differences are computed.
    """

    def __init__(self, snapshot: Snapshot, at: datetime, before: View | None = None) -> None:
        self.snapshot = snapshot
        self.since = at
        table = snapshot.table
        has_same_table = before is not None and before.snapshot.table.lineage is table.lineage
        self.vectors: dict[tuple[str, int], Vectors] = dict(before.vectors) if before and has_same_table else {}
        self.mark: FileMark | None = None
        self.unasked_left = 0
        self.readers: dict[Hashable, Callable[[View, Session], object]] = {} if before is None else before.readers
        self.lines: LineCache = LineCache()
        self._facts: dict[str, Fact] = {}
        self._shown: dict[str, Fact] = {}
        self._index: SearchIndex | None = None
        self.is_served: Array = numpy.zeros(table.size, dtype=bool)
        self.is_past: Array = numpy.zeros(table.size, dtype=bool)
        self._kinds = numpy.full(table.size, -1, dtype=numpy.int8)
        self._lengths = numpy.zeros(table.size, dtype=numpy.int32)
        # When each fact next begins, ends or is said, by position. Facts that never change again are left out.
        self._next_changes: dict[int, datetime] = {}
        self._renaming: set[int] = set()
        self._reworded: set[int] = set()
        size, turns = 0, set[TurnPlace]()
        if before is not None and has_same_table and before.since <= at:
            self._copy_marks(before)
            size, turns = before.size, self._turns_with_other_facts(before)
        due = [(place, table.unit_at(place)) for place, then in self._next_changes.items() if then <= at]
        self._mark_served_and_past(chain(due, table.units_from(size)), turns)
        self.lists: FactLists = FactLists(self)
        self.until: datetime | None = min(self._next_changes.values(), default=None)

    def _copy_marks(self, before: View) -> None:
        """Copy what an earlier view determined about the facts and turns that are still in the table."""
        is_alive, size = self.snapshot.table.is_alive, before.size
        self.is_served[:size] = before.is_served & is_alive[:size]
        self.is_past[:size] = before.is_past & is_alive[:size]
        self._kinds[:size], self._lengths[:size] = before._kinds, before._lengths
        self._renaming = {place for place in before._renaming if is_alive[place]}
        self._reworded = {place for place in before._reworded if is_alive[place]}
        self._next_changes = {place: then for place, then in before._next_changes.items() if is_alive[place]}

    def _turns_with_other_facts(self, before: View) -> set[TurnPlace]:
        """Return the turns that a removed fact cited, and those that a withdrawal began or ceased to cite."""
        turns = set(before.snapshot.unlinked_turns ^ self.snapshot.unlinked_turns)
        removed = before.snapshot.table.is_alive & ~self.snapshot.table.is_alive[: before.size]
        for place in removed.nonzero()[0].tolist():
            turns.update(unit.sources if isinstance(unit := before.unit_at(place), StoredFact) else ())
        return turns

    def _mark_served_and_past(
        self, units: Iterable[tuple[int, StoredFact | StoredTurn]], turns: set[TurnPlace]
    ) -> None:
        """Determine whether these facts are served or past, and whether their turns and these `turns` are served."""
        at, has_turns = self.since, self.snapshot.table.has_ever_had_turns
        for place, unit in units:
            if isinstance(unit, StoredTurn):
                turns.add(unit.id)
                continue
            is_served, is_past, next_change = unit.served_past_and_next_change(at)
            if has_turns:
                turns.update(unit.sources)
            self.is_served[place], self.is_past[place] = is_served, is_past
            if unit.is_renaming:
                self._renaming.add(place)
            if unit.has_rewordings:
                self._reworded.add(place)
            self._kinds[place], self._lengths[place] = unit.kind_index_and_statement_length
            self._next_changes.pop(place, None)
            if next_change is not None:
                self._next_changes[place] = next_change
        if has_turns:
            self._mark_served_turns(turns)

    def _mark_served_turns(self, turn_ids: Iterable[TurnPlace]) -> None:
        """Mark the turns whose facts are all served."""
        table, unlinked = self.snapshot.table, self.snapshot.unlinked_turns
        for turn_id in turn_ids:
            turn_place = table.place_of(turn_id)
            if turn_place is not None:
                facts = table.places_supported_by(turn_id)
                is_served = bool(facts) and all(self.is_served[fact] for fact in facts)
                self.is_served[turn_place] = is_served and turn_id not in unlinked

    def is_valid_at(self, at: datetime) -> bool:
        """Return whether the same facts hold at `at` as at the instant of this view."""
        return self.since <= at and (self.until is None or at < self.until)

    @property
    def has_renamings(self) -> bool:
        """Whether some facts state a former name of their subject."""
        return bool(self._renaming)

    @property
    def size(self) -> int:
        """The number of positions in the table: its facts and turns, and those that were replaced or removed."""
        return self.snapshot.table.size

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of the rows, of what was computed from them, and of the vectors."""
        vectors = sum(vectors.memory_bytes for vectors in list(self.vectors.values()))
        cached_word_count = self._index.cached_word_count if self._index is not None else 0
        made = len(self._facts) + len(self._shown) + len(self.lines) + cached_word_count
        return self._row_bytes + MADE_BYTES * made + vectors

    @cached_property
    def _row_bytes(self) -> int:
        sample = list(map(self.unit_at, range(0, self.size, max(1, self.size // SAMPLED_UNITS))))
        rows = sum(unit.memory_bytes for unit in sample) / max(1, len(sample))
        return VIEW_BYTES + int(self.size * (rows + UNIT_BYTES))

    def unit_at(self, place: int) -> StoredFact | StoredTurn:
        """Return the fact or turn at a position of the table."""
        unit: StoredFact | StoredTurn = self.snapshot.table.unit_at(place)
        return unit

    def served_fact_places(self, kinds: Collection[Kind] | None = None) -> Array:
        """Return the positions of the facts that hold (of these kinds, by default of all), in the order of saying."""
        by_order = self.snapshot.table.by_order
        return by_order[(self.is_served & self.are_facts(kinds))[by_order]]

    @cached_property
    def served_fact_count(self) -> int:
        """The number of facts that hold."""
        return int((self.is_served & self.are_facts()).sum())

    def are_facts(self, kinds: Collection[Kind] | None = None) -> Array:
        """Return an array that marks the positions of facts (of these kinds, by default of all)."""
        if kinds is None:
            return self._kinds >= 0
        return numpy.isin(self._kinds, [number for number, kind in enumerate(KINDS) if kind in kinds])

    def facts_with_ended_parts(self) -> Iterator[StoredFact]:
        """Yield the facts that hold and whose sentence changes at some time because a part of them ended."""
        return (self.snapshot.table.unit_at(place) for place in self._reworded if self.is_served[place])

    def facts_at(self, places: Iterable[int]) -> Iterator[Fact]:
        """Yield the facts at these positions, as they are at the instant of the view."""
        return (self.fact(self.snapshot.table.unit_at(place)) for place in places)

    def served_units(self) -> list[StoredFact | StoredTurn]:
        """Return all facts and turns that may be served."""
        return [self.unit_at(place) for place in self.is_served.nonzero()[0].tolist()]

    def fact_with_replaced_value(self, stored: StoredFact) -> Fact:
        """Return a fact with the value that it replaced, if any. Its line then also says since when it holds."""
        shown = self._shown.get(stored.id)
        if shown is None:
            fact = self.fact(stored)
            value = self.replaced_value(fact)
            shown = self._shown[stored.id] = replace(fact, former=value) if value else fact
        return shown

    def replaced_value(self, fact: Fact) -> str | None:
        """Return the value that a fact replaced, None if there is none or agents may not be told it."""
        table = self.snapshot.table
        places = [
            place for name in fact.assertion_ids for place in table.places_superseded_by(name) if self.is_past[place]
        ]
        return told_former_value(fact, filter(None, map(self._fact_unless_wrong, map(table.unit_at, places))))

    def _fact_unless_wrong(self, stored: StoredFact) -> Fact | None:
        # A fact was wrong if one of the people who said it was corrected, even if the others were not.
        return None if stored.history(self.snapshot.scope).undone_by else self.fact(stored)

    @property
    def index(self) -> SearchIndex:
        """The search index over the served facts and turns."""
        index = self._index
        if index is None:
            index = self._index = SearchIndex(self.snapshot.table, self.is_served)
        return index

    def count_characters(self, places: Array) -> int:
        """Return the number of characters in the sentences of the facts at these positions."""
        return int(self._lengths[places].sum())

    def fact(self, stored: StoredFact) -> Fact:
        """Return a stored fact as it is at the instant of the view."""
        fact = self._facts.get(stored.id)
        if fact is None:
            fact = self._facts[stored.id] = self.fact_without_caching(stored)
        return fact

    def fact_without_caching(self, stored: StoredFact) -> Fact:
        """Return a stored fact as it is at the instant of the view, without caching it. The fact must be known then."""
        fact = stored.lone_fact(self.snapshot.scope, self.since) or self._fact_of_history(stored)
        return self.names.renamed_fact(fact) if self._renaming else fact

    def _fact_of_history(self, stored: StoredFact) -> Fact:
        history = stored.history_without_caching(self.snapshot.scope)
        exceptions = self._histories_without_caching(history.exceptions)
        rivals = self._histories_without_caching([id_ for each in (history, *exceptions) for id_ in each.contested_by])
        facts = facts_at([history, *exceptions, *rivals], self.since)
        return next(fact for fact in facts if fact.id == stored.id)

    def _histories_without_caching(self, ids: Iterable[str]) -> list[FactHistory]:
        table, scope = self.snapshot.table, self.snapshot.scope
        return [
            table.unit_at(place).history_without_caching(scope)
            for place in map(table.place_of, ids)
            if place is not None
        ]

    @cached_property
    def names(self) -> CurrentNames:
        """The present names of subjects that were renamed."""
        scope, table = self.snapshot.scope, self.snapshot.table
        renaming = [table.unit_at(place).history(scope) for place in self._renaming]
        return current_names(facts_at(renaming, self.since), self.since)
