"""Filters, counts and sorts the facts of a view without building them. Only the facts of one page are built.

A fact is identified by its position in the table of the snapshot. There is no I/O. Large scopes take processor time, so
call this in a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import proxy

import numpy

from afterword.facts.dependents import Dependent, changed_group_numbers, dependents, longest_value_stems
from afterword.facts.fact import (
    SERVED_STATUSES,
    Fact,
    FactFilter,
    FactOrder,
    Status,
    learned_sort_key,
    subject_sort_key,
)
from afterword.recall.bm25 import Array
from afterword.store.reading.fact_rows import StoredFact

if TYPE_CHECKING:
    from afterword.store.reading.views import View

T = TypeVar("T")

STATUSES = tuple(Status)
UNKNOWN = len(STATUSES)
"""The status number of a turn, and of a fact that was first said after the instant of the view."""


@dataclass(frozen=True, slots=True)
class FactsToCheck:
    """Facts that a person should check: their subject is unclear, or a change of another fact may outdate them."""

    pending: tuple[Fact, ...]
    dependents: tuple[Dependent, ...]


@dataclass(frozen=True, slots=True)
class FactCounts:
    """The number of facts by status, and the number of facts that hold by subject, the most frequent subject first."""

    by_status: Mapping[Status, int]
    by_subject: Mapping[str, int]


class ComputedOnce(Generic[T]):
    """Turns a method into a value that is computed when it is first read, and then kept.

    `functools.cached_property` does the same, but up to Python 3.11 all objects of a class share its lock, so that one
    large scope would make the readers of all others wait.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self._name = make, make.__name__

    def __get__(self, owner: Any, _: object = None) -> T:
        value = owner.__dict__[self._name] = self._make(owner)
        return value


class FactLists:
    """The facts of a view, filtered and sorted as people list them. A fact is given by its position in the table.

    Use it only while the view is alive.
    """

    def __init__(self, view: View) -> None:
        # The view holds these lists. A strong reference back would keep both until the garbage collector runs.
        self._view: View = proxy(view)

    def select_places(self, fact_filter: FactFilter, order: FactOrder) -> tuple[list[int], int]:
        """Return the positions of the facts that a filter selects, and how many others only their status excludes.

        The positions are sorted by `order`.
        """
        are_matching = self._are_matching(fact_filter)
        has_status = numpy.zeros(UNKNOWN + 1, dtype=bool)
        has_status[:UNKNOWN] = [fact_filter.statuses is None or status in fact_filter.statuses for status in STATUSES]
        are_selected = are_matching & has_status[self._statuses]
        in_order = self._places_in_order(order)
        places: list[int] = in_order[are_selected[in_order]].tolist()
        return places, int(are_matching.sum()) - len(places)

    def all_facts(self) -> list[Fact]:
        """Return all facts that are known at the instant of the view, in the order of saying. They are not cached."""
        return self._build_facts(self._places_by_saying)

    @ComputedOnce
    def facts_to_check(self) -> FactsToCheck:
        """The facts that a person should check."""
        return FactsToCheck(
            tuple(self._build_facts(self.pending_places())), tuple(dependents(self._facts_related_to_changes()))
        )

    @ComputedOnce
    def counts(self) -> FactCounts:
        """The number of facts by status, and the number of facts that hold by subject."""
        numbers = numpy.bincount(self._statuses[self._places_by_saying], minlength=UNKNOWN + 1).tolist()
        subjects = Counter(
            self._subject(self.stored_fact(place)) for place in self._places_with_status(SERVED_STATUSES)
        )
        return FactCounts(dict(zip(STATUSES, numbers, strict=False)), dict(subjects.most_common()))

    def served_places_except(self, fact_ids: Collection[str]) -> list[int]:
        """Return the positions of the facts that hold, except those with `fact_ids`, in the order of saying."""
        return [
            place for place in self._places_with_status(SERVED_STATUSES) if self.stored_fact(place).id not in fact_ids
        ]

    def pending_places(self) -> list[int]:
        """Return the positions of the facts whose subject is unclear, in the order of saying."""
        return self._places_with_status({Status.PENDING})

    def _places_with_status(self, statuses: Collection[Status]) -> list[int]:
        return self.select_places(FactFilter(frozenset(statuses), None, None, frozenset()), FactOrder.SAID)[0]

    def _facts_related_to_changes(self) -> list[Fact]:
        """Return the facts that `dependents` must look at, in the order of saying.

        These are the superseded facts, the facts that replaced them, and the facts that may depend on a superseded one.
        The other facts are not built, since most scopes have many.
        """
        table = self._view.snapshot.table
        if self._view.has_renamings:
            return self.all_facts()  # the index holds the former names, the texts of the facts the present ones
        superseded = self._places_with_status({Status.SUPERSEDED})
        ended = [fact for fact in self._build_facts(superseded) if fact.valid_to is not None]
        groups, replaced_by = changed_group_numbers(ended), {fact.retired_by for fact in ended}
        is_related = numpy.zeros(self._view.size, dtype=bool)
        is_related[superseded] = True
        for stem in longest_value_stems(ended):
            is_related[table.counts(stem)[0]] = True
        for place in self._places_by_saying.tolist():
            stored = self.stored_fact(place)
            if not is_related[place]:
                is_replacing = not replaced_by.isdisjoint(stored.assertion_ids)
                depends = groups and self._view.is_served[place] and not groups.isdisjoint(stored.attribute_groups)
                is_related[place] = is_replacing or depends or stored.has_rewordings
        return self._build_facts(self._places_by_saying[is_related[self._places_by_saying]].tolist())

    def _build_facts(self, places: Sequence[int] | Array) -> list[Fact]:
        """Return the facts at these positions that are known, in the order of saying. They are not cached."""
        is_wanted = numpy.isin(self._places_by_saying, places) & (self._statuses[self._places_by_saying] != UNKNOWN)
        return [
            self._view.fact_without_caching(self.stored_fact(place))
            for place in self._places_by_saying[is_wanted].tolist()
        ]

    def stored_fact(self, place: int) -> StoredFact:
        """Return the stored form of the fact at a position."""
        stored: StoredFact = self._view.snapshot.table.unit_at(place)
        return stored

    def _are_matching(self, fact_filter: FactFilter) -> Array:
        """Return an array that marks the known facts with the kind, the subject and the tags of the filter."""
        are_matching: Array = (self._statuses != UNKNOWN) & self._view.are_facts(fact_filter.kinds)
        if fact_filter.subject_words is None and not fact_filter.tags:
            return are_matching
        scope, pending = self._view.snapshot.scope, STATUSES.index(Status.PENDING)
        for place in are_matching.nonzero()[0].tolist():
            stored = self.stored_fact(place)
            may_be = map(self._view.names.current_subject, stored.may_be if self._statuses[place] == pending else ())
            are_matching[place] = fact_filter.tags <= stored.tags and fact_filter.accepts_subject(
                scope, self._subject(stored), may_be
            )
        return are_matching

    def _places_in_order(self, order: FactOrder) -> Array:
        if order is FactOrder.SUBJECT:
            return self._places_by_subject
        return self._places_by_learning if order is FactOrder.LEARNED else self._places_by_saying

    @ComputedOnce
    def _places_by_saying(self) -> Array:
        by_order = self._view.snapshot.table.by_order
        places: Array = by_order[self._view.are_facts()[by_order]]
        return places

    @ComputedOnce
    def _places_by_subject(self) -> Array:
        def key(place: int) -> tuple[object, ...]:
            stored = self.stored_fact(place)
            return *subject_sort_key(stored.kind, self._subject(stored), stored.said_at), stored.id

        return self._sorted_places(key)

    @ComputedOnce
    def _places_by_learning(self) -> Array:
        def key(place: int) -> tuple[object, ...]:
            stored = self.stored_fact(place)
            return learned_sort_key(stored.learned_at, stored.said_at, stored.id)

        return self._sorted_places(key)

    def _sorted_places(self, key: Callable[[int], tuple[object, ...]]) -> Array:
        return numpy.array(sorted(self._places_by_saying.tolist(), key=key), dtype=numpy.int32)

    @ComputedOnce
    def _statuses(self) -> Array:
        """The status of the fact at each position, as an index into `STATUSES`."""
        statuses = numpy.full(self._view.size, UNKNOWN, dtype=numpy.int8)
        for place in self._places_by_saying.tolist():
            status = self._status(self.stored_fact(place))
            if status is not None:
                statuses[place] = STATUSES.index(status)
        return statuses

    def _status(self, stored: StoredFact) -> Status | None:
        status = stored.status_at(self._view.since)
        if status is Status.CURRENT and stored.is_contestable:
            # A contradicting fact that no longer holds contests nothing.
            return self._view.fact(stored).status
        return status

    def _subject(self, stored: StoredFact) -> str:
        return self._view.names.current_subject(stored.subject)
