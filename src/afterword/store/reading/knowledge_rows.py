"""Reads the live assertions and verdicts of a scope as plain rows. Each object is built when it is first needed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Select
from sqlmodel import SQLModel, col, select

from afterword.facts.assertions import (
    Assertion,
    Extent,
    Order,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.knowledge import Knowledge
from afterword.facts.persistent_map import LazyMap, PersistentMap, group_ids
from afterword.facts.scopes import Scope
from afterword.facts.similarity import StatementIndex, is_distinctive_stem, statement_stems
from afterword.facts.words import terms
from afterword.recall.search_terms import TOKENIZER, words_without_date
from afterword.store.database.statements import ColumnsAsJson, UnconvertedRow, parse_stored_instant
from afterword.store.rows import ASSERTION_COLUMNS, EVIDENCE_COLUMNS, assertion_of_columns
from afterword.store.tables import AssertionRow, EvidenceRow, FactRow, VerdictRow

_ASSERTION_COLUMNS = "id session_id act subject said_at limited_to former_name".split()
_COLUMNS: tuple[tuple[type[SQLModel], str], ...] = (
    *((AssertionRow, name) for name in [*_ASSERTION_COLUMNS, "subject_key", "attribute_key"]),
    *((EvidenceRow, name) for name in "turn start".split()),
    *((FactRow, name) for name in "lead_id search_terms".split()),
)
"""The first columns of a row; a JSON array of `_DETAIL_COLUMNS` follows. An assertion has one row for each piece of its
evidence."""
# fmt: off
(
    _ID, _SESSION, _ACT, _SUBJECT, _SAID_AT, _LIMITED_TO, _FORMER_NAME, _SUBJECT_KEY, _ATTRIBUTE_KEY,
    _TURN, _START, _LEAD, _TERMS, _DETAILS,
) = range(len(_COLUMNS) + 1)
# fmt: on
_ASSERTION_DETAILS = [name for name in ASSERTION_COLUMNS if name not in _ASSERTION_COLUMNS]
_DETAIL_COLUMNS: tuple[tuple[type[SQLModel], str], ...] = (
    *((AssertionRow, name) for name in _ASSERTION_DETAILS),
    *((EvidenceRow, name) for name in ["ordinal", *EVIDENCE_COLUMNS]),
)
"""The columns that are needed only to build an assertion. A row holds them as one JSON array."""
_VERDICT = "earlier_id later_id relation reason judge joins_subjects parts_subjects extent remainder".split()
_EARLIER, _LATER, _RELATION, _REASON, _JUDGE, _JOINS, _PARTS, _EXTENT, _REMAINDER = range(len(_VERDICT))


class _StatementRows:
    """The rows of the live assertions of a scope."""

    def __init__(self, rows: Iterable[UnconvertedRow], scope: Scope) -> None:
        self.first: dict[str, UnconvertedRow] = {}
        self._further: dict[str, list[UnconvertedRow]] = defaultdict(list)
        for row in rows:
            if self.first.setdefault(row[_ID], row) is not row:
                self._further[row[_ID]].append(row)
        self.assertions: LazyMap[str, Assertion] = LazyMap(self.first, lambda id_: _assertion(self._rows(id_), scope))
        self.ids_by_subject: PersistentMap[str, Sequence[str]] = self.ids_by_column(_SUBJECT_KEY)

    def _rows(self, id_: str) -> list[UnconvertedRow]:
        return [self.first[id_], *self._further.get(id_, ())]

    def ids_by_column(self, column: int) -> PersistentMap[str, Sequence[str]]:
        """Return the ids of the assertions by their value of a column."""
        return group_ids((row[column], id_) for id_, row in self.first.items() if row[column] is not None)

    def spellings(self) -> dict[str, set[str]]:
        """Return the spellings of each subject whose name has more than one word, by the key of the subject."""
        spellings: dict[str, set[str]] = defaultdict(set)
        for row in self.first.values():
            if " " in row[_SUBJECT_KEY]:
                spellings[row[_SUBJECT_KEY]].add(row[_SUBJECT])
        return spellings

    def index(self) -> StatementIndex:
        """Return the index that finds assertions to compare, by slot and by word stem."""
        rows = self.first.items()
        by_slot = group_ids(((row[_SUBJECT_KEY], row[_ATTRIBUTE_KEY]), id_) for id_, row in rows)
        by_stem = group_ids((stem, id_) for id_, row in rows for stem in self._stems(row)).as_dict()
        return StatementIndex.of_groups(
            self.assertions,
            LazyMap(self.first, lambda id_: _order(self._rows(id_))),
            (by_slot.as_dict(), {stem: ids for stem, ids in by_stem.items() if is_distinctive_stem(stem)}),
            self.ids_by_subject,
            [id_ for id_, row in rows if row[_ACT] != SpeechAct.STATE],
        )

    def _stems(self, row: UnconvertedRow) -> Iterable[str]:
        """Return the word stems of an assertion. For the leading assertion of a fact they are stored with the fact."""
        if row[_LEAD] != row[_ID] or not row[_TERMS] or not row[_TERMS].startswith(TOKENIZER):
            return statement_stems(self.assertions[row[_ID]]).all_stems
        stems = words_without_date(row[_TERMS][len(TOKENIZER) :])
        return stems.union(terms(row[_LIMITED_TO])) if row[_LIMITED_TO] else stems


def select_assertions(ids: Select[Any]) -> Any:
    """Select the rows of the assertions with these ids."""
    details = ColumnsAsJson(*(getattr(table, name) for table, name in _DETAIL_COLUMNS))
    return (
        select(*(getattr(table, name) for table, name in _COLUMNS))
        .add_columns(details.label("details"))
        .select_from(AssertionRow)
        .outerjoin(EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id))
        .outerjoin(FactRow, col(FactRow.id) == col(AssertionRow.id))
        .where(col(AssertionRow.id).in_(ids))
    )


def select_verdicts(keys: Select[Any]) -> Any:
    """Select the rows of the verdicts with these keys."""
    return select(*(getattr(VerdictRow, name) for name in _VERDICT)).where(col(VerdictRow.key).in_(keys))


def knowledge_of(
    revision: int, assertions: Iterable[UnconvertedRow], verdicts: Sequence[UnconvertedRow], scope: Scope
) -> Knowledge:
    """Return the knowledge of a scope at a revision, made of the rows of its assertions and verdicts."""
    statements = _StatementRows(assertions, scope)
    judged: dict[str, list[UnconvertedRow]] = defaultdict(list)
    for row in verdicts:
        judged[row[_EARLIER]].append(row)
        judged[row[_LATER]].append(row)
    return Knowledge.of_stored(
        revision,
        assertions=statements.assertions,
        verdicts=LazyMap(judged, lambda id_: tuple(map(_verdict, judged[id_]))),
        ids_by_subject=statements.ids_by_subject,
        ids_by_session=statements.ids_by_column(_SESSION),
        all_spellings=statements.spellings(),
        possibly_replaced_ids={row[_EARLIER] for row in verdicts if row[_RELATION] == Relation.CHANGES}
        & statements.first.keys(),
        joined_pairs={(row[_EARLIER], row[_LATER]) for row in verdicts if row[_JOINS]},
        renaming_ids=[id_ for id_, row in statements.first.items() if row[_FORMER_NAME]],
        # Instants that are stored as text sort in the order of time too.
        last_said_at=parse_stored_instant(max(row[_SAID_AT] for row in statements.first.values()))
        if statements.first
        else None,
        make_index=statements.index,
    )


def _order(rows: Sequence[UnconvertedRow]) -> Order:
    row = rows[0]
    turn, start = max((row[_TURN] or 0, row[_START] or 0) for row in rows)
    return parse_stored_instant(row[_SAID_AT]), row[_SESSION] or "", turn, start, row[_ID]


def _assertion(rows: Sequence[UnconvertedRow], scope: Scope) -> Assertion:
    details = [json.loads(row[_DETAILS]) for row in rows]
    # An assertion without evidence has one row, in which the columns of the evidence are null.
    pieces = (each[len(_ASSERTION_DETAILS) :] for each in details)
    evidence = sorted((piece for piece in pieces if piece[0] is not None), key=itemgetter(0))
    columns = dict(zip(_ASSERTION_COLUMNS, rows[0][: len(_ASSERTION_COLUMNS)], strict=True))
    columns.update(zip(_ASSERTION_DETAILS, details[0][: len(_ASSERTION_DETAILS)], strict=True))
    return assertion_of_columns(columns, [piece[1:] for piece in evidence], scope)


def _verdict(row: UnconvertedRow) -> Verdict:
    return Verdict(
        row[_EARLIER],
        row[_LATER],
        Relation(row[_RELATION]),
        row[_REASON],
        row[_JUDGE],
        bool(row[_JOINS]),
        bool(row[_PARTS]),
        Extent(row[_EXTENT]) if row[_EXTENT] else None,
        row[_REMAINDER],
    )
