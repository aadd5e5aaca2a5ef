"""Lists of the facts of a view: filtered, counted and sorted by place, so that only the facts of one page are built.

No I/O. It takes processor time where a scope is large: use it in a thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy

from afterword.facts.dependents import Dependent, changed_groups, dependents, naming_stems
from afterword.facts.fact import SERVED, Fact, FactFilter, FactOrder, Status, learned_key, subject_key
from afterword.facts.validity.timeline import facts_at
from afterword.recall.bm25 import Array
from afterword.store.reading.fact_rows import StoredFact

if TYPE_CHECKING:
    from afterword.store.reading.views import View

T = TypeVar("T")

STATUSES = tuple(Status)
UNKNOWN = len(STATUSES)
"""The number of the status of a fact that is not known yet, and of a turn."""
KEY_BYTES, PLACE_BYTES, FACT_BYTES = 200, 36, 2_000
"""About what a sort key, a place in a Python list and a fact that was built take."""


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """The facts that may be about several people, and those that may no longer fit."""

    pending: tuple[Fact, ...]
    dependents: tuple[Dependent, ...]


@dataclass(frozen=True, slots=True)
class FactCounts:
    """How many facts there are with each status, and how many that hold are about each subject, the most first."""

    by_status: Mapping[Status, int]
    by_subject: Mapping[str, int]


class MadeOnce(Generic[T]):
    """A value that is made when it is first needed, and then kept."""

    def __init__(self) -> None:
        self.value: T | None = None

    def get(self, make: Callable[[], T]) -> T:
        """Return the value, which `make` returns where it is missing."""
        if self.value is None:
            self.value = make()
        return self.value


SubjectKey = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class FormerLists:
    """What the lists of a view take over from the view before, which had `size` places.

    The facts at the `due` places have changed since.
    """

    size: int
    due: Sequence[int]
    statuses: Array
    contestable: Sequence[int]
    subject_keys: Sequence[SubjectKey]


@dataclass(slots=True)
class KeptLists:
    """What takes long to make of the facts of a view. It belongs to the view."""

    former: FormerLists | None = None
    by_saying: MadeOnce[Array] = field(default_factory=MadeOnce)
    by_subject: MadeOnce[Array] = field(default_factory=MadeOnce)
    by_learning: MadeOnce[Array] = field(default_factory=MadeOnce)
    statuses: MadeOnce[Array] = field(default_factory=MadeOnce)
    subject_keys: MadeOnce[list[SubjectKey]] = field(default_factory=MadeOnce)
    contestable: MadeOnce[list[int]] = field(default_factory=MadeOnce)
    waiting: MadeOnce[WaitingFacts] = field(default_factory=MadeOnce)
    counts: MadeOnce[FactCounts] = field(default_factory=MadeOnce)

    @property
    def memory_bytes(self) -> int:
        """About how much memory it takes."""
        former, waiting, counts = self.former, self.waiting.value, self.counts.value
        arrays = [former.statuses] if former else []
        for made in (self.by_saying, self.by_subject, self.by_learning, self.statuses):
            arrays += [] if made.value is None else [made.value]
        keys = self.subject_keys.value or (former.subject_keys if former else ())
        places = len(self.contestable.value or ()) + (len(former.contestable) + len(former.due) if former else 0)
        facts = len(waiting.pending) + len(waiting.dependents) if waiting else 0
        subjects = len(counts.by_subject) if counts else 0
        return (
            sum(array.nbytes for array in arrays)
            + KEY_BYTES * (len(keys) + subjects)
            + PLACE_BYTES * places
            + FACT_BYTES * facts
        )


class FactLists:
    """The facts of a view in the orders in which people list them, by place."""

    def __init__(self, view: View, lists: KeptLists) -> None:
        self._view, self._lists = view, lists

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
        return self._under_current_names(facts_at(histories, self._view.since))

    @property
    def waiting(self) -> WaitingFacts:
        """The facts that a person should look at. They are looked for once for each view."""
        return self._lists.waiting.get(self._find_waiting)

    def _find_waiting(self) -> WaitingFacts:
        pending = self._built(self.pending())
        return WaitingFacts(tuple(pending), tuple(dependents(self._related_to_changes())))

    @property
    def counts(self) -> FactCounts:
        """How many facts there are with each status, and how many that hold are about each subject."""
        return self._lists.counts.get(self._count)

    def _count(self) -> FactCounts:
        numbers = numpy.bincount(self._statuses[self._by_saying], minlength=UNKNOWN + 1).tolist()
        places, _ = self.chosen(FactFilter(SERVED, None, None, frozenset()), FactOrder.SAID)
        subjects = Counter(self._subject(self.stored(place)) for place in places)
        return FactCounts(dict(zip(STATUSES, numbers, strict=False)), dict(subjects.most_common()))

    def served_but(self, fact_ids: Collection[str]) -> list[int]:
        """Return the places of the facts that hold, without some, in the order of saying."""
        places, _ = self.chosen(FactFilter(SERVED, None, None, frozenset()), FactOrder.SAID)
        return [place for place in places if self.stored(place).id not in fact_ids]

    def pending(self) -> list[int]:
        """Return the places of the facts of which it is unclear whom they are about, in the order of saying."""
        return self._with_status(Status.PENDING)

    def _with_status(self, status: Status) -> list[int]:
        places, _ = self.chosen(FactFilter(frozenset({status}), None, None, frozenset()), FactOrder.SAID)
        return places

    def _related_to_changes(self) -> list[Fact]:
        """Return, in the order of saying, the superseded facts, those that replaced them, and those that may depend.

        They are all that `dependents` needs of the facts. The others are not built, since most scopes have many.
        """
        table = self._view.snapshot.table
        if self._view.has_renamings:
            return self.all_facts()  # texts are told under other names than those that are indexed
        superseded = self._with_status(Status.SUPERSEDED)
        ended = [fact for fact in self._built(superseded) if fact.valid_to is not None]
        groups, replaced_by = changed_groups(ended), {fact.retired_by for fact in ended}
        is_related = numpy.zeros(self._view.size, dtype=bool)
        is_related[superseded] = True
        for stem in naming_stems(ended):
            is_related[table.counts(stem)[0]] = True
        for place in self._by_saying.tolist():
            stored = self.stored(place)
            if not is_related[place]:
                is_replacing = not replaced_by.isdisjoint(stored.assertion_ids)
                depends = groups and self._view.is_served[place] and not groups.isdisjoint(stored.attribute_groups)
                is_related[place] = is_replacing or depends or stored.has_rewordings
        return self._built(self._by_saying[is_related[self._by_saying]].tolist())

    def _built(self, places: Sequence[int]) -> list[Fact]:
        """Return the facts at these places, in the order of saying. They are not kept."""
        scope, table = self._view.snapshot.scope, self._view.snapshot.table
        wanted, chosen = set(places), set(places)
        for stored in map(self.stored, places):
            beside = map(table.place, (*stored.contested_by, *stored.exceptions))
            chosen.update(place for place in beside if place is not None)
        in_order = self._by_saying[numpy.isin(self._by_saying, list(chosen))].tolist()
        facts = facts_at([self.stored(place).built_history(scope) for place in in_order], self._view.since)
        ids = {self.stored(place).id for place in wanted}
        return self._under_current_names([fact for fact in facts if fact.id in ids])

    def _under_current_names(self, facts: list[Fact]) -> list[Fact]:
        """Return facts under the names that hold now. The fact that tells of a renaming need not be among them."""
        return list(map(self._view.names.told, facts)) if self._view.has_renamings else facts

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
            may_be = map(self._view.names.subject, stored.may_be if self._statuses[place] == pending else ())
            is_fitting[place] = fact_filter.tags <= stored.tags and fact_filter.is_about(
                scope, self._subject(stored), may_be
            )
        return is_fitting

    def _in_order(self, order: FactOrder) -> Array:
        if order is FactOrder.SUBJECT:
            return self._by_subject
        return self._by_learning if order is FactOrder.LEARNED else self._by_saying

    @property
    def _by_saying(self) -> Array:
        return self._lists.by_saying.get(self._sort_by_saying)

    def _sort_by_saying(self) -> Array:
        by_order = self._view.snapshot.table.by_order
        places: Array = by_order[self._view.are_facts()[by_order]]
        return places

    @property
    def _by_subject(self) -> Array:
        return self._lists.by_subject.get(self._sort_by_subject)

    def _sort_by_subject(self) -> Array:
        keys = self._lists.subject_keys.get(self._make_subject_keys)
        return numpy.array(sorted(self._by_saying.tolist(), key=keys.__getitem__), dtype=numpy.int32)

    def _make_subject_keys(self) -> list[SubjectKey]:
        """Return the sort key of the fact at each place, an empty one for turns."""

        def key(place: int) -> SubjectKey:
            stored = self.stored(place)
            return *subject_key(stored.kind, self._subject(stored), stored.said_at), stored.id

        # Under other names than before, other facts may have other keys too.
        former = None if self._view.has_renamings else self._lists.former
        known = former.subject_keys if former else ()
        are_facts = self._view.are_facts().tolist()
        return [*known, *(key(place) if are_facts[place] else () for place in range(len(known), len(are_facts)))]

    @property
    def _by_learning(self) -> Array:
        return self._lists.by_learning.get(self._sort_by_learning)

    def _sort_by_learning(self) -> Array:
        def key(place: int) -> tuple[object, ...]:
            stored = self.stored(place)
            return learned_key(stored.listed.learned_at, stored.said_at, stored.id)

        return numpy.array(sorted(self._by_saying.tolist(), key=key), dtype=numpy.int32)

    @property
    def _statuses(self) -> Array:
        """The number of the status of the fact at each place."""
        return self._lists.statuses.get(self._find_statuses)

    def _find_statuses(self) -> Array:
        statuses = numpy.full(self._view.size, UNKNOWN, dtype=numpy.int8)
        is_unknown = numpy.ones(self._view.size, dtype=bool)
        former = self._lists.former
        if former is not None:
            statuses[: former.size], is_unknown[: former.size] = former.statuses, False
            is_unknown[[*former.due, *former.contestable]] = True
            statuses[is_unknown | ~self._view.snapshot.table.is_alive] = UNKNOWN
        for place in self._by_saying[is_unknown[self._by_saying]].tolist():
            status = self._status(self.stored(place))
            if status is not None:
                statuses[place] = STATUSES.index(status)
        return statuses

    @property
    def _contestable(self) -> list[int]:
        """The places of the facts that other facts contradict, at some time."""
        return self._lists.contestable.get(self._find_contestable)

    def _find_contestable(self) -> list[int]:
        former = self._lists.former
        known, size = (former.contestable, former.size) if former else ((), 0)
        new = self._by_saying[self._by_saying >= size].tolist()
        return [*known, *(place for place in new if self.stored(place).listed.is_contestable)]

    def passed_on(self, due: Sequence[int]) -> KeptLists:
        """Return what the lists of a later view begin with, in which the facts at these places have changed."""
        statuses = self._lists.statuses.value
        if statuses is None:
            return KeptLists()
        subject_keys = self._lists.subject_keys.value or ()
        return KeptLists(FormerLists(self._view.size, due, statuses, self._contestable, subject_keys))

    def _status(self, stored: StoredFact) -> Status | None:
        status = stored.status_at(self._view.since)
        if status is Status.CURRENT and stored.listed.is_contestable:
            # A rival that holds no more contests nothing, as the timeline says.
            return self._view.fact(stored).status
        return status

    def _subject(self, stored: StoredFact) -> str:
        return self._view.names.subject(stored.listed.subject)
