"""Lists of the facts of a view: filtered, counted and sorted by place, so that only the facts of one page are built.

No I/O. It takes processor time where a scope is large: use it in a thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy

from afterword.facts.dependents import Dependent, dependents
from afterword.facts.fact import Fact, Status
from afterword.facts.fact_filter import FactFilter, FactOrder, subject_key
from afterword.facts.renames import told_under_current_names
from afterword.facts.validity.timeline import facts_at
from afterword.recall.bm25 import Array
from afterword.store.reading.fact_rows import StoredFact

if TYPE_CHECKING:
    from afterword.store.reading.views import View

STATUSES = tuple(Status)
UNKNOWN = len(STATUSES)
"""The number of the status of a fact that is not known yet, and of a turn."""


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """The facts that may be about several people, and those that may no longer fit."""

    pending: tuple[Fact, ...]
    dependents: tuple[Dependent, ...]


class FactLists:
    """The facts of a view in the orders in which people list them, by place."""

    def __init__(self, view: View) -> None:
        self._view = view

    def chosen(self, fact_filter: FactFilter, order: FactOrder) -> tuple[list[int], int]:
        """Return the places of the facts that a filter selects, in an order.

        The number is that of the facts which it leaves out by their status alone.
        """
        is_fitting = self._is_fitting(fact_filter)
        has_status = numpy.zeros(UNKNOWN + 1, dtype=bool)
        has_status[:UNKNOWN] = [fact_filter.statuses is None or status in fact_filter.statuses for status in STATUSES]
        is_chosen = is_fitting & has_status[self._statuses]
        in_order = self._in_order(order)
        places: list[int] = in_order[is_chosen[in_order]].tolist()
        return places, int(is_fitting.sum()) - len(places)

    def all_facts(self) -> list[Fact]:
        """Return every fact that is known at the instant of the view, in the order of saying. They are not kept."""
        scope = self._view.snapshot.scope
        histories = [self.stored(place).built_history(scope) for place in self._by_saying.tolist()]
        return told_under_current_names(facts_at(histories, self._view.since))

    @cached_property
    def waiting(self) -> WaitingFacts:
        """The facts that a person should look at. They are looked for once for each view."""
        facts = self.all_facts()
        pending = tuple(fact for fact in facts if fact.status is Status.PENDING)
        return WaitingFacts(pending, tuple(dependents(facts)))

    def stored(self, place: int) -> StoredFact:
        """Return the fact at a place as the store holds it."""
        stored: StoredFact = self._view.snapshot.table.unit(place)
        return stored

    def _is_fitting(self, fact_filter: FactFilter) -> Array:
        """Return of each place whether a fact is known there that has the kind, the subject and the tags."""
        is_fitting: Array = (self._statuses != UNKNOWN) & self._view.are_facts(fact_filter.kinds)
        if fact_filter.about is None and not fact_filter.tags:
            return is_fitting
        scope, pending = self._view.snapshot.scope, STATUSES.index(Status.PENDING)
        for place in is_fitting.nonzero()[0].tolist():
            stored = self.stored(place)
            may_be = stored.may_be if self._statuses[place] == pending else ()
            is_fitting[place] = fact_filter.tags <= stored.tags and fact_filter.is_about(
                scope, self._subject(stored), may_be
            )
        return is_fitting

    def _in_order(self, order: FactOrder) -> Array:
        if order is FactOrder.SUBJECT:
            return self._by_subject
        return self._by_learning if order is FactOrder.LEARNED else self._by_saying

    @cached_property
    def _by_saying(self) -> Array:
        by_order = self._view.snapshot.table.by_order
        places: Array = by_order[self._view.are_facts()[by_order]]
        return places

    @cached_property
    def _by_subject(self) -> Array:
        def key(place: int) -> tuple[object, ...]:
            stored = self.stored(place)
            return subject_key(stored.kind, self._subject(stored), stored.said_at.timestamp())

        return numpy.array(sorted(self._by_saying.tolist(), key=key), dtype=numpy.int32)

    @cached_property
    def _by_learning(self) -> Array:
        places = self._by_saying.tolist()
        newest_first = sorted(places, key=lambda place: self.stored(place).listed.learned_at, reverse=True)
        return numpy.array(newest_first, dtype=numpy.int32)

    @cached_property
    def _statuses(self) -> Array:
        """The number of the status of the fact at each place."""
        statuses = numpy.full(self._view.size, UNKNOWN, dtype=numpy.int8)
        for place in self._by_saying.tolist():
            status = self._status(self.stored(place))
            if status is not None:
                statuses[place] = STATUSES.index(status)
        return statuses

    def _status(self, stored: StoredFact) -> Status | None:
        status = stored.status_at(self._view.since)
        if status is Status.CURRENT and stored.listed.is_contestable:
            # A rival that holds no more contests nothing, as the timeline says.
            return self._view.fact(stored).status
        return status

    def _subject(self, stored: StoredFact) -> str:
        return self._view.names.subject(stored.listed.subject)
