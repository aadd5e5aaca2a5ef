"""One fact as its rows hold it. What finds and orders it is read at once, everything else when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from sqlmodel import SQLModel

from afterword.facts.assertions import OWNER, Assertion, Authority, Cue, Evidence, EvidenceKind, Kind, SpeechAct
from afterword.facts.fact import Status
from afterword.facts.safety import is_flagged, must_never_be_missed
from afterword.facts.scopes import Scope
from afterword.facts.timeline import FactHistory, ValidityPeriod
from afterword.facts.transcripts import TurnPlace
from afterword.recall.index_units import fact_unit
from afterword.recall.ranking import SearchUnit
from afterword.store.database.compiled_queries import Plain
from afterword.store.rows import tags_of
from afterword.store.tables import AssertionRow, EvidenceRow, FactAssertionRow, FactRow

_OF_FACT = "id lead_id spans undone_as undone_by contested_by may_be".split()
_OF_SAID = (
    "id session_id act kind subject attribute value statement speaker authority said_at time_is_guess"
    " valid_from valid_to cue limited_to outcome is_flagged tags recorded_at".split()
)
_OF_EVIDENCE = "ordinal kind quote session_id turn speaker start".split()
COLUMNS: tuple[tuple[type[SQLModel], str], ...] = (
    *((FactRow, name) for name in _OF_FACT),
    (FactAssertionRow, "ordinal"),
    *((AssertionRow, name) for name in _OF_SAID),
    *((EvidenceRow, name) for name in _OF_EVIDENCE),
)
"""The columns of a row, in order. There is one row for each piece of evidence of each assertion of a fact."""

# fmt: off
(
    _FACT, _LEAD, _SPANS, _UNDONE_AS, _UNDONE_BY, _CONTESTED_BY, _MAY_BE, _ORDINAL,
    _ID, _SESSION, _ACT, _KIND, _SUBJECT, _ATTRIBUTE, _VALUE, _STATEMENT, _SPEAKER, _AUTHORITY, _SAID_AT, _IS_GUESS,
    _VALID_FROM, _VALID_TO, _CUE, _LIMITED_TO, _OUTCOME, _IS_FLAGGED, _TAGS, _RECORDED_AT,
    _ITEM, _ITEM_KIND, _QUOTE, _ITEM_SESSION, _TURN, _ITEM_SPEAKER, _START,
) = range(len(COLUMNS))
# fmt: on

_KINDS = {str(kind): kind for kind in Kind}
_ACTS = {str(act): act for act in SpeechAct}
_EVIDENCE_KINDS = {str(kind): kind for kind in EvidenceKind}
_AUTHORITIES = {int(authority): authority for authority in Authority}
_STATUSES = {str(status): status for status in Status}
_LONGEST_WITHOUT_ZONE = len("2026-01-01 00:00:00.000000")

Bounds = tuple[datetime, datetime | None, bool]
"""A period: its start, its end (None: open), and whether it includes the end."""


class StoredFact:
    """One fact over all time, as the store holds it. It becomes a `FactHistory` when that is needed."""

    __slots__ = ("_history", "_lead", "_rows", "_unit", "bounds", "id", "kind", "may_be", "said_at", "sources")

    def __init__(self, rows: Sequence[Plain], spans: Iterable[dict[str, Any]]) -> None:
        first = rows[0]
        self.id: str = first[_FACT]
        self._rows = rows
        self._lead = first if first[_ID] == first[_LEAD] else next(row for row in rows if row[_ID] == row[_LEAD])
        self.kind = _KINDS[self._lead[_KIND]]
        self.said_at = moment(first[_SAID_AT])
        self.bounds: tuple[Bounds, ...] = tuple([_bounds(span) for span in spans])
        # The subjects that it may be about, if that is open. Then it is served to nobody.
        self.may_be: Sequence[str] = () if first[_MAY_BE] == "[]" else json.loads(first[_MAY_BE])
        places = [(row[_ITEM_SESSION], row[_TURN]) for row in rows if row[_TURN] is not None]
        self.sources: tuple[TurnPlace, ...] = tuple(places if len(places) < 2 else dict.fromkeys(places))
        self._history: FactHistory | None = None
        self._unit: SearchUnit | None = None

    @property
    def statement(self) -> str:
        """The sentence of the leading assertion."""
        return str(self._lead[_STATEMENT])

    @property
    def tags(self) -> frozenset[str]:
        """The tags of all its assertions."""
        return frozenset(tag for row in self._rows for tag in tags_of(row[_TAGS]))

    @property
    def unit(self) -> SearchUnit:
        """The unit that finds it in a search index."""
        if self._unit is None:
            lead = self._lead
            about = "" if lead[_SUBJECT] == OWNER else lead[_SUBJECT]
            words = f"{lead[_STATEMENT]} {lead[_ATTRIBUTE]} {lead[_VALUE]}"
            self._unit = fact_unit(self.id, about, self.said_at, words, self.sources)
        return self._unit

    @property
    def order(self) -> tuple[datetime, str, int, int, str]:
        """The sort key of the order of saying."""
        first = self._rows[0]
        turn, start = first[_TURN] or 0, first[_START] or 0
        if len(self._rows) > 1:
            said = first[_ID]
            turn, start = max((row[_TURN] or 0, row[_START] or 0) for row in self._rows if row[_ID] == said)
        return self.said_at, first[_SESSION] or "", turn, start, self.id

    @property
    def contested_by(self) -> Sequence[str]:
        """The ids of the facts that contest it."""
        contested: str = self._rows[0][_CONTESTED_BY]
        rivals: Sequence[str] = () if contested == "[]" else json.loads(contested)
        return rivals

    @property
    def is_flagged(self) -> bool:
        """Whether an agent must never miss it."""
        return is_flagged([(row[_ITEM_KIND] == EvidenceKind.PERSON, _flag(row)) for row in self._rows])

    def history(self, scope: Scope) -> FactHistory:
        """Return the fact over all time."""
        if self._history is None:
            first = self._rows[0]
            said = [_assertion(list(rows), scope) for _, rows in groupby(self._rows, key=lambda row: row[_ID])]
            self._history = FactHistory(
                lead=next(assertion for assertion in said if assertion.id == first[_LEAD]),
                members=tuple(said),
                spans=tuple([_span(span) for span in json.loads(first[_SPANS])]),
                undone_as=_STATUSES[first[_UNDONE_AS]],
                undone_by=first[_UNDONE_BY],
                contested_by=tuple(self.contested_by),
                may_be=tuple(self.may_be),
                recorded_at=min(moment(row[_RECORDED_AT]) for row in self._rows),
            )
        return self._history


def rows_by_fact_id(rows: Iterable[Plain]) -> dict[str, list[Plain]]:
    """Return the rows of each fact by the fact's id, in order."""
    rows_by_fact: dict[str, list[Plain]] = {}
    for row in rows:
        if row[_FACT] in rows_by_fact:
            rows_by_fact[row[_FACT]].append(row)
        else:
            rows_by_fact[row[_FACT]] = [row]
    for some in rows_by_fact.values():
        if len(some) > 1:
            some.sort(key=_place)
    return rows_by_fact


def stored_facts(rows: Iterable[Plain]) -> list[StoredFact]:
    """Return the facts of these rows."""
    facts = list(rows_by_fact_id(rows).values())
    # One long text is parsed faster than many.
    spans = json.loads(f"[{','.join([some[0][_SPANS] for some in facts])}]")
    return [StoredFact(tuple(some), fact_spans) for some, fact_spans in zip(facts, spans, strict=True)]


def moment(value: Any) -> datetime:
    """Return a stored instant. SQLite stores it as text without a zone."""
    if isinstance(value, str):
        value = datetime.fromisoformat(f"{value}+00:00" if len(value) <= _LONGEST_WITHOUT_ZONE else value)
    instant: datetime = value if value.tzinfo is UTC else value.astimezone(UTC)
    return instant


def moment_or_none(value: Any) -> datetime | None:
    """Return a stored instant, None for none."""
    return None if value is None else moment(value)


def _place(row: Plain) -> tuple[int, int]:
    return row[_ORDINAL], row[_ITEM] or 0


def _bounds(span: dict[str, Any]) -> Bounds:
    end = span["end"]
    return datetime.fromisoformat(span["start"]), datetime.fromisoformat(end) if end else None, span["by"] is None


def _span(span: dict[str, Any]) -> ValidityPeriod:
    start, end, _ = _bounds(span)
    return ValidityPeriod(start, end, _STATUSES[span["ending"]], span["by"])


def _assertion(rows: Sequence[Plain], scope: Scope) -> Assertion:
    row = rows[0]
    return Assertion(
        id=row[_ID],
        scope=scope,
        session_id=row[_SESSION],
        act=_ACTS[row[_ACT]],
        kind=_KINDS[row[_KIND]],
        subject=row[_SUBJECT],
        attribute=row[_ATTRIBUTE],
        value=row[_VALUE],
        statement=row[_STATEMENT],
        speaker=row[_SPEAKER],
        authority=_AUTHORITIES[row[_AUTHORITY]],
        said_at=moment(row[_SAID_AT]),
        evidence=tuple([_evidence(row) for row in rows if row[_ITEM] is not None]),
        time_is_guess=bool(row[_IS_GUESS]),
        valid_from=moment_or_none(row[_VALID_FROM]),
        valid_to=moment_or_none(row[_VALID_TO]),
        cue=Cue(row[_CUE]) if row[_CUE] else None,
        limited_to=row[_LIMITED_TO],
        outcome=row[_OUTCOME],
        is_flagged=None if row[_IS_FLAGGED] is None else bool(row[_IS_FLAGGED]),
        tags=tags_of(row[_TAGS]),
    )


def _flag(row: Plain) -> bool:
    if row[_IS_FLAGGED] is not None:
        return bool(row[_IS_FLAGGED])
    return must_never_be_missed(_KINDS[row[_KIND]], row[_STATEMENT], row[_ATTRIBUTE], row[_VALUE])


def _evidence(row: Plain) -> Evidence:
    return Evidence(
        _EVIDENCE_KINDS[row[_ITEM_KIND]], row[_QUOTE], row[_ITEM_SESSION], row[_TURN], row[_ITEM_SPEAKER], row[_START]
    )
