"""Reads facts as plain database rows, with values as the driver returns them.

The columns for searching and sorting are parsed at once, all others only when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, case, func, select
from sqlalchemy.sql import Select
from sqlmodel import col

from afterword.facts.assertions import OWNER, EvidenceKind, Kind
from afterword.facts.dependents import DependenceWording, groups_affecting
from afterword.facts.fact import Fact, Status
from afterword.facts.local_time import at_offset
from afterword.facts.safety import is_fact_flagged, must_never_be_missed
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TurnPlace
from afterword.facts.validity.fact_history import FactHistory, deciding_period_and_status
from afterword.facts.validity.periods import ValidityPeriod
from afterword.facts.words import terms
from afterword.privacy.prompt_injection import is_instruction
from afterword.recall.search_terms import fact_terms, fact_text
from afterword.store.database import statements
from afterword.store.database.statements import UnconvertedRow, listed_name_condition, parse_stored_instant
from afterword.store.fact_details import (
    ATTRIBUTE,
    DETAILS,
    IS_FLAGGED,
    ITEM_KIND,
    KIND,
    REWORDINGS,
    STATEMENT,
    SUBJECT,
    TAGS,
    UNDONE_AS,
    UTC_OFFSET_S,
    VALUE,
    Details,
    build_history,
    build_lone_fact,
    is_lone_fact,
)
from afterword.store.rows import (
    parse_json_list,
    period_of,
    rewordings_of,
    search_terms_column,
    tags_of,
    unconverted_column,
)
from afterword.store.tables import AssertionRow, EvidenceRow, FactAssertionRow, FactRow

# The columns of a row. A fact has one row for each piece of evidence of each of its assertions. The first five columns
# sort facts in the order of saying.
# fmt: off
(
    _SAID_AT, _SESSION, _TURN, _PLACE, FACT, _ORDINAL, _ITEM, _SAID, _IS_LEAD, _KIND, _LENGTH, _SPANS, _MAY_BE,
    _TERMS, _SOURCE, _SOURCE_TURN, _IS_RENAMING, _SUBJECT, _RECORDED_AT, _CONTESTED_BY, _DETAILS,
) = range(21)
# fmt: on

_REWORDED = '"statement'
"""A text that the JSON of every fact with a changed sentence contains. Searching for it is faster than parsing."""

_START, _OPEN_END = '[{"start": "', '+00:00", "end": null, "ending": "expired", "by": null}]'
"""How the JSON text of the validity periods begins and ends if there is a single period without an end."""

KINDS = tuple(Kind)
"""A row holds a kind as its index in this tuple."""


class StoredFact:
    """One fact over all time, as the store holds it. `history` builds the `FactHistory` when it is needed.

    It is a `Unit` of `recall.unit_table`, which describes the attributes that the search index reads.
    """

    __slots__ = ("_groups", "_history", "_is_flagged", "_is_instruction", "_rows", "_value_words", "id")
    conversation: None = None
    number: int = 0
    asks: bool = False

    def __init__(self, rows: tuple[UnconvertedRow, ...]) -> None:
        by_place = sorted(rows, key=lambda row: (row[_ORDINAL], row[_ITEM] or 0)) if len(rows) > 1 else rows
        self._rows = tuple(by_place)
        self.id: str = rows[0][FACT]
        self._history: FactHistory | None = None
        self._is_flagged: bool | None = None
        self._is_instruction: bool | None = None
        self._value_words: frozenset[str] | None = None
        self._groups: tuple[int, ...] | None = None

    @property
    def _lead_row(self) -> UnconvertedRow:
        rows = self._rows
        return rows[0] if len(rows) == 1 else next(row for row in rows if row[_IS_LEAD])

    @property
    def kind_index_and_statement_length(self) -> tuple[int, int]:
        """The index of its kind in `KINDS`, and the number of characters in its statement."""
        return self._lead_row[_KIND : _LENGTH + 1]

    @property
    def memory_bytes(self) -> int:
        """The estimated memory of its rows."""
        return sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in self._rows) + sys.getsizeof(self)

    @property
    def periods(self) -> tuple[ValidityPeriod, ...]:
        """The periods in which it holds."""
        return tuple([period_of(span) for span in parse_json_list(self._rows[0][_SPANS])])

    @property
    def sources(self) -> tuple[TurnPlace, ...]:
        """The turns that its evidence cites."""
        places = [
            (row[_SESSION] if row[_SOURCE] is None else row[_SOURCE], row[_SOURCE_TURN])
            for row in self._rows
            if row[_SOURCE_TURN] is not None
        ]
        return tuple(places if len(places) < 2 else dict.fromkeys(places))

    @property
    def successor(self) -> str | None:
        """The id of the assertion that superseded it, None if none did."""
        if self._rows[0][_SPANS].endswith('"by": null}]'):
            return None
        last = next(reversed(self.periods), None)
        return last.ended_by if last is not None and last.ending is Status.SUPERSEDED else None

    @property
    def tags(self) -> frozenset[str]:
        """The tags of all its assertions."""
        return frozenset(tag for row in self._details() for tag in tags_of(row[TAGS]))

    @property
    def is_flagged(self) -> bool:
        """Whether it is one of the facts that an agent must never miss, for example an allergy."""
        if self._is_flagged is None:
            flags = [(row[ITEM_KIND] == EvidenceKind.PERSON, _is_flagged_in_row(row)) for row in self._details()]
            self._is_flagged = is_fact_flagged(flags)
        return self._is_flagged

    @property
    def is_instruction(self) -> bool:
        """Whether its statement or its value reads like a command to an assistant."""
        if self._is_instruction is None:
            self._is_instruction = is_instruction(self.statement, self.value)
        return self._is_instruction

    @property
    def value_words(self) -> frozenset[str]:
        """The words of its value, or of its statement if it has no value."""
        if self._value_words is None:
            self._value_words = frozenset(terms(self.value or self.statement))
        return self._value_words

    @property
    def kind(self) -> Kind:
        """Its kind: preference, entity or decision."""
        return KINDS[self.kind_index_and_statement_length[0]]

    @property
    def value(self) -> str:
        """The value of its leading assertion."""
        return str(self._details_of_row(self._lead_row)[VALUE])

    @property
    def attribute_groups(self) -> tuple[int, ...]:
        """The numbers of the attribute groups on which it depends. They are cached, since finding them takes time."""
        if self._groups is None:
            wording = DependenceWording(self.kind, self._details_of_row(self._lead_row)[ATTRIBUTE], self.statement)
            self._groups = tuple(number for number, _ in groups_affecting(wording))
        return self._groups

    @property
    def assertion_ids(self) -> list[str]:
        """The ids of its assertions."""
        return list(dict.fromkeys(row[_SAID] or self.id for row in self._rows))

    @property
    def statement(self) -> str:
        """The statement of its leading assertion."""
        return str(self._details_of_row(self._lead_row)[STATEMENT])

    @property
    def subject(self) -> str:
        """The subject of its leading assertion."""
        return self._lead_row[_SUBJECT] or OWNER

    @property
    def learned_at(self) -> datetime:
        """When it was first stored."""
        return min([parse_stored_instant(row[_RECORDED_AT]) for row in self._rows])

    @property
    def is_contestable(self) -> bool:
        """Whether another fact contradicts it at some time."""
        return self._rows[0][_CONTESTED_BY] is not None

    @property
    def said_at(self) -> datetime:
        """When it was first said, in UTC."""
        return parse_stored_instant(self._rows[0][_SAID_AT])

    @property
    def may_be(self) -> tuple[str, ...]:
        """The names of the people whom an unclear subject may mean; none if the subject is clear."""
        return parse_json_list(self._rows[0][_MAY_BE] or "[]")

    def status_at(self, at: datetime) -> Status | None:
        """Return its status at an instant, ignoring facts that contradict it; None if it was first said later."""
        if self._certainly_holds_at(at):
            return Status.CURRENT
        undone_as = Status(self._details_of_row(self._rows[0])[UNDONE_AS])
        _, status = deciding_period_and_status(self.periods, self.said_at, undone_as, at)
        return Status.PENDING if status is Status.CURRENT and self.may_be else status

    def _certainly_holds_at(self, at: datetime) -> bool:
        """Return whether it was said before the day of an instant, and holds since before that day without an end.

        It compares texts only, which is fast and answers True for most facts.
        """
        first, date = self._rows[0], _utc_date(at)
        said_at, spans = first[_SAID_AT], first[_SPANS]
        said_on = said_at[:10] if isinstance(said_at, str) else parse_stored_instant(said_at).date().isoformat()
        return (
            said_on < date
            and spans[len(_START) : len(_START) + 10] < date
            and spans.endswith(_OPEN_END)
            and spans.count("{") == 1
            and first[_MAY_BE] is None
        )

    def _details(self) -> list[Details]:
        return list(map(self._details_of_row, self._rows))

    def _details_of_row(self, row: UnconvertedRow) -> Details:
        """Return the values of a row, numbered as in `store.fact_details`."""
        known = (row[_SAID] or self.id, row[_SUBJECT] or OWNER, row[_RECORDED_AT], row[_CONTESTED_BY] or "[]")
        return [*known, *parse_json_list(row[_DETAILS])]

    @property
    def order(self) -> tuple[Any, ...]:
        """The sort key of the order of saying. Facts come after turns."""
        first = self._rows[0]
        if len(self._rows) == 1:
            return 1, first
        place = max((row[_TURN], row[_PLACE]) for row in self._rows if row[_SAID] == first[_SAID])
        return 1, (first[_SAID_AT], first[_SESSION], *place, self.id)

    @property
    def terms(self) -> str:
        """The words by which a search finds it. Those of its subject come first, and a tab ends them."""
        stored: str | None = self._rows[0][_TERMS]
        return fact_terms(*self._indexed_texts()) if stored is None else stored

    @property
    def text_to_embed(self) -> str:
        """The text from which its vector is computed."""
        return fact_text(*self._indexed_texts())

    def _indexed_texts(self) -> tuple[datetime, str, str, str, str]:
        lead_row, first_row = self._lead_row, self._rows[0]
        lead = self._details_of_row(lead_row)
        first = lead if lead_row is first_row else self._details_of_row(first_row)
        said_at = at_offset(parse_stored_instant(first_row[_SAID_AT]), first[UTC_OFFSET_S])
        return said_at, lead[SUBJECT], lead[STATEMENT], lead[ATTRIBUTE], lead[VALUE]

    @property
    def is_renaming(self) -> bool:
        """Whether it states a former name of its subject."""
        return bool(self._lead_row[_IS_RENAMING])

    @property
    def has_rewordings(self) -> bool:
        """Whether its statement changes at some time because a part of it ended."""
        return _REWORDED in self._rows[0][_DETAILS] and str(self._details_of_row(self._rows[0])[REWORDINGS]) != "[]"

    def served_past_and_next_change(self, at: datetime) -> tuple[bool, bool, datetime | None]:
        """Return whether it may be served at an instant, whether it held before but not then, and when it next changes.

        The next change is the first instant, not before `at`, at which the fact is first said or one of its periods
        begins or ends. It is None if nothing changes any more.
        """
        first = self._rows[0]
        if _REWORDED not in first[_DETAILS] and self._certainly_holds_at(at):
            return True, False, None
        # A flagged fact is served even if its subject is unclear.
        said_at, is_clear = parse_stored_instant(first[_SAID_AT]), first[_MAY_BE] is None or self.is_flagged
        periods = self.periods
        _, status = deciding_period_and_status(periods, said_at, Status.SUPERSEDED, at)
        is_served = is_clear and status is Status.CURRENT
        is_past = is_clear and not is_served and said_at <= at and any(period.start <= at for period in periods)
        return is_served, is_past, min((then for then in self._moments_of_change(periods) if then >= at), default=None)

    def _moments_of_change(self, periods: Sequence[ValidityPeriod]) -> list[datetime]:
        """Return when it is first said, and when one of its periods or rewordings begins or ends."""
        moments = [self.said_at, *(then for period in periods for then in (period.start, period.end) if then)]
        if self.has_rewordings:
            rewordings = rewordings_of(parse_json_list(self._details_of_row(self._rows[0])[REWORDINGS]))
            moments += [then for each in rewordings for then in (each.start, each.end) if then]
        return moments

    def lone_fact(self, scope: Scope, at: datetime) -> Fact | None:
        """Return the fact at an instant if one assertion says it, for one period that holds; else None.

        Most facts are such. `facts_at` returns the same of its history, which takes twice the time.
        """
        periods, details = self.periods, self._details()
        if len(periods) != 1 or not periods[0].holds_at(at) or self._rows[0][_MAY_BE] is not None:
            return None
        if not is_lone_fact(details):
            return None
        return build_lone_fact(details, periods[0], scope, is_flagged=self.is_flagged)

    def history(self, scope: Scope) -> FactHistory:
        """Return the fact over all time, and cache it."""
        if self._history is None:
            self._history = self.history_without_caching(scope)
        return self._history

    def history_without_caching(self, scope: Scope) -> FactHistory:
        """Return the fact over all time, from the cache if it is there. It is not cached."""
        if self._history is not None:
            return self._history
        lead_id = self._lead_row[_SAID] or self.id
        return build_history(self._details(), lead_id, self.periods, self.may_be, scope)


@lru_cache(maxsize=8)
def _utc_date(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _is_flagged_in_row(row: Details) -> bool:
    if row[IS_FLAGGED] is not None:
        return bool(row[IS_FLAGGED])
    return must_never_be_missed(Kind(row[KIND]), row[STATEMENT], row[ATTRIBUTE], row[VALUE])


def read_stored_facts(connection: Connection, scope_key: int, ids: Sequence[str] | None = None) -> list[StoredFact]:
    """Return the facts of a scope, in no particular order: all of them, or those with these ids."""
    if ids is None:
        return stored_facts(FACT_ROWS.ask(connection, scope=scope_key))
    return stored_facts(_SOME_FACTS.ask_listed(connection, ids, scope=scope_key))


def stored_facts(rows: Sequence[UnconvertedRow]) -> list[StoredFact]:
    """Return one `StoredFact` for all rows of the same fact."""
    # Most facts have one row. Then this takes a quarter of the time of the loop.
    by_fact = {row[FACT]: (row,) for row in rows}
    if len(by_fact) < len(rows):
        by_fact = {}
        for row in rows:
            by_fact[row[FACT]] = (*by_fact.get(row[FACT], ()), row)
    return list(map(StoredFact, by_fact.values()))


def _select_facts() -> Select[Any]:
    session_id = func.coalesce(unconverted_column(AssertionRow, "session_id"), "")
    kind = case(*((col(AssertionRow.kind) == str(kind), number) for number, kind in enumerate(KINDS)))
    # The order is that of the column numbers above and in `store.fact_details`. To save memory, a column is null
    # if it has its usual value or equals another column.
    columns = (
        *(unconverted_column(AssertionRow, "said_at"), session_id),
        *(func.coalesce(col(EvidenceRow.turn), 0), func.coalesce(col(EvidenceRow.start), 0)),
        *(col(FactRow.id), col(FactAssertionRow.ordinal), func.coalesce(col(EvidenceRow.ordinal), 0)),
        func.nullif(col(AssertionRow.id), col(FactRow.id)),
        *(case((col(AssertionRow.id) == col(FactRow.lead_id), 1), else_=0), kind),
        *(func.length(col(AssertionRow.statement)), unconverted_column(FactRow, "spans")),
        *(func.nullif(unconverted_column(FactRow, "may_be"), "[]"), search_terms_column(FactRow)),
        *(func.nullif(col(EvidenceRow.session_id), session_id), col(EvidenceRow.turn)),
        case((col(AssertionRow.former_name).is_not(None), 1)),
        func.nullif(unconverted_column(AssertionRow, "subject"), OWNER),
        unconverted_column(AssertionRow, "recorded_at"),
        func.nullif(unconverted_column(FactRow, "contested_by"), "[]"),
        statements.ColumnsAsJson(*(unconverted_column(table, name) for table, name in DETAILS)),
    )
    return (
        select(*(column.label(f"column_{number}") for number, column in enumerate(columns)))
        .join_from(FactRow, FactAssertionRow, col(FactAssertionRow.fact_id) == col(FactRow.id))
        .join(AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id))
        .outerjoin(EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id))
    )


FACT_ROWS = statements.CompiledQuery(_select_facts().where(col(FactRow.scope_id) == bindparam("scope")))
# The sum keeps SQLite from using the index on the scope, which would scan all facts of the scope.
_SOME_FACTS = statements.CompiledQuery(
    _select_facts().where(listed_name_condition(col(FactRow.id)), col(FactRow.scope_id) + 0 == bindparam("scope"))
)
