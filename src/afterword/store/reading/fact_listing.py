"""Returns pages of the list of facts of a scope without loading the scope.

Loading a large scope takes long. A few columns of each fact suffice to find the facts of a page, and only those facts
are built.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, func, select
from sqlmodel import Session, col

from afterword.facts.fact import Fact, FactFilter, FactOrder, Status, subject_group
from afterword.facts.scopes import Scope
from afterword.store import lookup
from afterword.store.database.statements import CompiledQuery, Plain
from afterword.store.reading.fact_rows import KINDS
from afterword.store.reading.snapshots import Version, plain_columns
from afterword.store.rows import StatusColumns, utc_date
from afterword.store.tables import AssertionRow, FactAssertionRow, FactRow

MOST_CONTESTED = 200
"""With more facts than this that others contradict, the scope is loaded to find their status."""
SAMPLED_ROWS, PLACE_BYTES = 50, 100
"""How many rows are sampled to estimate the memory of all, and the memory that a fact takes beside its row."""
# The columns of a row. A fact has one row for each of its assertions.
_ID, _SAID_AT, _SPANS, _MAY_BE, _UNDONE_AS, _IS_CONTESTED, _KIND, _SUBJECT, _LEARNED_AT, _IS_LEAD, _RENAMES = range(11)
_STATUS = slice(_SAID_AT, _UNDONE_AS)
"""The columns of `StatusColumns`."""


class FactListing:
    """The columns that filter and sort the facts of a scope, in one state of the scope. Each fact has one row.

    A fact is identified by its position in the list of rows.
    """

    def __init__(self, scope: Scope, version: Version, rows: Sequence[Plain]) -> None:
        self.scope = scope
        self.version = version
        by_fact: dict[str, Plain] = {}
        for row in rows:
            known = by_fact.get(row[_ID])
            by_fact[row[_ID]] = row if known is None else _joined(known, row)
        # Later sorts are stable, so facts that are equal in another order stay in this one.
        self._rows = sorted(by_fact.values(), key=itemgetter(_SAID_AT, _ID))
        self._contested = [place for place, row in enumerate(self._rows) if row[_IS_CONTESTED]]
        self._doubtful_on: dict[str, list[int]] = {}
        self._is_enough = len(self._contested) <= MOST_CONTESTED and not any(row[_RENAMES] for row in rows)

    @cached_property
    def memory_bytes(self) -> int:
        """The estimated memory of the rows."""
        sample = self._rows[:: max(1, len(self._rows) // SAMPLED_ROWS)]
        row_bytes = sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in sample) // max(1, len(sample))
        return len(self._rows) * (row_bytes + PLACE_BYTES)

    def page(
        self, transaction: Session, wanted: FactFilter, order: FactOrder, *, at: datetime, limit: int, offset: int
    ) -> tuple[list[Fact], int, int] | None:
        """Return a page of the facts that a filter selects, the number of all of them, and a second number.

        The second number counts the facts that only their status excludes. None if the scope must be loaded to tell,
        because subjects were renamed or many facts contradict each other.
        """
        if not self._is_enough:
            return None
        statuses = self._statuses(transaction, at)
        kinds = None if wanted.kinds is None else {KINDS.index(kind) for kind in wanted.kinds}
        fitting = [
            place
            for place in self._in_order(order)
            if statuses[place] is not None and (kinds is None or self._rows[place][_KIND] in kinds)
        ]
        chosen = [place for place in fitting if wanted.statuses is None or statuses[place] in wanted.statuses]
        ids = [self._rows[place][_ID] for place in chosen[offset : offset + limit]]
        facts = {fact.id: fact for fact in lookup.read_facts_by_id(transaction, self.scope, ids, at=at)}
        return [facts[id_] for id_ in ids], len(chosen), len(fitting) - len(chosen)

    def _statuses(self, transaction: Session, at: datetime) -> list[Status | None]:
        """Return the status of each fact at an instant, None for a fact that was first said later."""
        statuses: list[Status | None] = [Status.CURRENT] * len(self._rows)
        for place in self._doubtful(utc_date(at)):
            row = self._rows[place]
            statuses[place] = StatusColumns(*row[_STATUS]).status_at(at, row[_UNDONE_AS])
        contested = {self._rows[place][_ID]: place for place in self._contested}
        for fact in lookup.read_facts_by_id(transaction, self.scope, contested, at=at) if contested else ():
            statuses[contested[fact.id]] = fact.status
        return statuses

    def _doubtful(self, date: str) -> list[int]:
        """Return the positions of the facts whose dates must be read to tell whether they hold on a day."""
        if date not in self._doubtful_on:
            columns = (StatusColumns(*row[_STATUS]) for row in self._rows)
            self._doubtful_on = {date: [place for place, of in enumerate(columns) if not of.plainly_holds(date)]}
        return self._doubtful_on[date]

    def _in_order(self, order: FactOrder) -> list[int]:
        """Return the positions of the facts, sorted by `order`."""
        keys: list[Any]
        if order is FactOrder.LEARNED:
            keys = [row[_LEARNED_AT] for row in self._rows]
        else:
            groups = {(row[_KIND], row[_SUBJECT]) for row in self._rows}
            by_group = {group: subject_group(KINDS[group[0]], group[1]) for group in groups}
            ranks = {key: rank for rank, key in enumerate(sorted(set(by_group.values()), reverse=True))}
            keys = [(ranks[by_group[row[_KIND], row[_SUBJECT]]], row[_SAID_AT]) for row in self._rows]
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=True)


def is_listed(wanted: FactFilter, order: FactOrder) -> bool:
    """Return whether the columns of a listing suffice for a filter and an order."""
    return order is not FactOrder.SAID and wanted.about is None and not wanted.tags


def read_listing(connection: Connection, scope: Scope, version: Version) -> FactListing:
    """Return the listing of a scope whose present state is `version`."""
    return FactListing(scope, version, _LISTED.ask(connection, scope=version.key) if version.key is not None else [])


def _joined(known: Plain, row: Plain) -> Plain:
    """Return one row for a fact, made of two rows that belong to different assertions of it."""
    lead = row if row[_IS_LEAD] else known
    first, learned_at = min(known[_SAID_AT], row[_SAID_AT]), min(known[_LEARNED_AT], row[_LEARNED_AT])
    return (
        *(lead[_ID], first, *lead[_SAID_AT + 1 : _LEARNED_AT]),
        *(learned_at, known[_IS_LEAD] or row[_IS_LEAD], known[_RENAMES] or row[_RENAMES]),
    )


def _listed_columns() -> Select[Any]:
    kind = case(*((col(AssertionRow.kind) == str(kind), number) for number, kind in enumerate(KINDS)))
    said_at, subject, learned_at = plain_columns((AssertionRow, name) for name in ("said_at", "subject", "recorded_at"))
    spans, may_be, undone_as, contested_by = plain_columns(
        (FactRow, name) for name in ("spans", "may_be", "undone_as", "contested_by")
    )
    columns = (
        *(col(FactRow.id), said_at, spans, func.nullif(may_be, "[]"), undone_as),
        *(case((contested_by != "[]", 1), else_=0), kind, subject, learned_at),
        case((col(AssertionRow.id) == col(FactRow.lead_id), 1), else_=0),
        case((col(AssertionRow.former_name).is_not(None), 1), else_=0),
    )
    return (
        select(*(column.label(f"listed_{number}") for number, column in enumerate(columns)))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id))
        .where(col(FactRow.scope_id) == bindparam("scope"))
    )


_LISTED = CompiledQuery(_listed_columns())
