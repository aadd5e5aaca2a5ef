"""The columns that are needed only to build a fact, and the building of facts and histories from them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlmodel import SQLModel

from afterword.facts.assertions import Assertion, Kind
from afterword.facts.fact import Fact, Status
from afterword.facts.local_time import at_offset
from afterword.facts.scopes import Scope
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.periods import ValidityPeriod
from afterword.store.database.statements import parse_stored_instant
from afterword.store.rows import (
    ASSERTION_COLUMNS,
    EVIDENCE_COLUMNS,
    assertion_of_columns,
    evidence_of_columns,
    parse_json_list,
    rewordings_of,
    tags_of,
)
from afterword.store.tables import AssertionRow, EvidenceRow, FactRow

_FACT_DETAILS = "undone_as undone_by exceptions rewordings".split()
_ASSERTION_DETAILS = [name for name in ASSERTION_COLUMNS if name not in ("id", "subject")]
DETAILS: tuple[tuple[type[SQLModel], str], ...] = (
    *((FactRow, name) for name in _FACT_DETAILS),
    *((AssertionRow, name) for name in _ASSERTION_DETAILS),
    *((EvidenceRow, name) for name in ["ordinal", *EVIDENCE_COLUMNS]),
)
"""The columns that are needed only to build a fact. A row holds them as one JSON array, which takes little memory."""

ID, SUBJECT, RECORDED_AT, CONTESTED_BY, UNDONE_AS, UNDONE_BY, EXCEPTIONS, REWORDINGS, _ASSERTION = range(9)
_EVIDENCE = _ASSERTION + len(_ASSERTION_DETAILS)
# fmt: off
(
    KIND, ATTRIBUTE, VALUE, STATEMENT, SAID_AT, VALID_FROM, VALID_TO, LIMITED_TO, OUTCOME, IS_FLAGGED, TAGS,
    FORMER_NAME, UTC_OFFSET_S,
) = (
    _ASSERTION + _ASSERTION_DETAILS.index(name) for name in (
        *"kind attribute value statement said_at valid_from valid_to limited_to outcome is_flagged tags".split(),
        *"former_name utc_offset_s".split(),
    )
)
# fmt: on
_ORDINAL, ITEM_KIND = _EVIDENCE, _EVIDENCE + 1
Details = Sequence[Any]
"""The id of an assertion, three columns that lists need too, and the columns of `DETAILS`, of one piece of evidence."""


def is_lone_fact(details: Sequence[Details]) -> bool:
    """Return whether one assertion alone says the fact of these rows, and no other fact bears on it."""
    row = details[0]
    has_others = not row[CONTESTED_BY] == row[EXCEPTIONS] == row[REWORDINGS] == "[]"
    return not has_others and row[FORMER_NAME] is None and all(other[ID] == row[ID] for other in details[1:])


def build_lone_fact(details: Sequence[Details], period: ValidityPeriod, scope: Scope, *, is_flagged: bool) -> Fact:
    """Return the fact of rows for which `is_lone_fact` is true, at an instant of its only period."""
    row = details[0]
    said_at = at_offset(parse_stored_instant(row[SAID_AT]), row[UTC_OFFSET_S])
    has_own_end = period.end is not None and period.ended_by is None
    return Fact(
        id=row[ID],
        scope=scope,
        kind=Kind(row[KIND]),
        subject=row[SUBJECT],
        attribute=row[ATTRIBUTE],
        value=row[VALUE],
        statement=row[STATEMENT],
        status=Status.CURRENT,
        said_at=said_at,
        valid_from=period.start,
        valid_to=period.end,
        support=1,
        evidence=tuple(dict.fromkeys(evidence_of_columns(piece) for piece in _evidence_columns(details))),
        assertion_ids=(row[ID],),
        recorded_at=parse_stored_instant(row[RECORDED_AT]),
        limited_to=row[LIMITED_TO],
        outcome=row[OUTCOME],
        dated=row[VALID_FROM] is not None or row[VALID_TO] is not None or has_own_end,
        last_said_at=said_at,
        is_flagged=is_flagged,
        tags=tuple(dict.fromkeys(tags_of(row[TAGS]))),
    )


def build_history(
    details: Sequence[Details],
    lead_id: str,
    periods: tuple[ValidityPeriod, ...],
    may_be: tuple[str, ...],
    scope: Scope,
) -> FactHistory:
    """Return the fact of these rows over all time. The rows of an assertion follow each other."""
    first = details[0]
    said = [_assertion(list(group), scope) for _, group in groupby(details, key=itemgetter(ID))]
    return FactHistory(
        lead=next(assertion for assertion in said if assertion.id == lead_id),
        members=tuple(said),
        spans=periods,
        undone_as=Status(first[UNDONE_AS]),
        undone_by=first[UNDONE_BY],
        contested_by=parse_json_list(first[CONTESTED_BY]),
        may_be=may_be,
        exceptions=parse_json_list(first[EXCEPTIONS]),
        rewordings=rewordings_of(parse_json_list(first[REWORDINGS])),
        recorded_at=min([parse_stored_instant(row[RECORDED_AT]) for row in details]),
    )


def _assertion(rows: Sequence[Details], scope: Scope) -> Assertion:
    row = rows[0]
    columns = {"id": row[ID], "subject": row[SUBJECT]}
    columns.update(zip(_ASSERTION_DETAILS, row[_ASSERTION:_EVIDENCE], strict=True))
    return assertion_of_columns(columns, _evidence_columns(rows), scope)


def _evidence_columns(rows: Sequence[Details]) -> list[Sequence[Any]]:
    return [row[ITEM_KIND:] for row in rows if row[_ORDINAL] is not None]
