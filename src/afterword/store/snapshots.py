"""Reading what recall needs of one scope in one go: as plain rows, so that a large scope is read quickly.

The rows are values as the driver gives them; `store.views` makes facts of those that are served.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, Select, select, type_coerce
from sqlalchemy.types import NullType
from sqlmodel import SQLModel, col

from afterword.store.assertions import Act, Assertion, Authority, Cue, Evidence, EvidenceKind, Kind
from afterword.store.facts import Status
from afterword.store.lookup import live_runs
from afterword.store.scopes import Scope
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RunWindowRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    WindowAssertionRow,
)
from afterword.store.timeline import Course, Span
from afterword.store.transcripts import Place, Role, SourceTurn

Plain = Row[Any]
LONGEST_WITHOUT_ZONE = len("2026-01-01 00:00:00.000000")
KINDS = {str(kind): kind for kind in Kind}
STATUSES = {str(status): status for status in Status}
UNREAD = frozenset({"scope_id", "subject_key", "attribute_key"})


class Held:
    """One fact through all time as the store keeps it. It is laid out as a `Course` when it is needed."""

    __slots__ = ("_course", "_evidence", "_lead", "_members", "_row", "id", "kind", "said_at", "sources", "spans")

    def __init__(self, row: Plain, members: Sequence[Plain], evidence: Sequence[Sequence[Plain]], spans: Any) -> None:
        self.id: str = row.id
        self._lead = members[0] if len(members) == 1 else next(one for one in members if one.id == row.lead_id)
        self.kind = KINDS[self._lead.kind]
        self.said_at = _moment(members[0].said_at)
        self.spans = tuple([_span(one) for one in spans])
        places = [(item.session_id, item.turn) for said in evidence for item in said if item.turn is not None]
        self.sources: tuple[Place, ...] = tuple(places if len(places) < 2 else dict.fromkeys(places))
        self._row, self._members, self._evidence = row, members, evidence
        self._course: Course | None = None

    @property
    def statement(self) -> str:
        """The sentence of the assertion that leads."""
        return str(self._lead.statement)

    @property
    def subject(self) -> str:
        """Whom or what it is about."""
        return str(self._lead.subject)

    @property
    def words(self) -> str:
        """Attribute and value, beside the sentence."""
        return f"{self._lead.attribute} {self._lead.value}"

    @property
    def order(self) -> tuple[datetime, str, int, int, str]:
        """The order of saying."""
        first = self._members[0]
        turn, start = max(((item.turn or 0, item.start or 0) for item in self._evidence[0]), default=(0, 0))
        return self.said_at, first.session_id or "", turn, start, self.id

    @property
    def rivals(self) -> list[str]:
        """The facts that it may stand against."""
        return list(_parsed(self._row.contested_by))

    @property
    def may_be(self) -> list[str]:
        """Those whom it may be about, where that is open: then it is told to nobody."""
        return list(_parsed(self._row.may_be))

    def course(self, scope: Scope) -> Course:
        """Return the fact through all time."""
        if self._course is None:
            said = [_assertion(row, items, scope) for row, items in zip(self._members, self._evidence, strict=True)]
            self._course = Course(
                lead=next(one for one in said if one.id == self._row.lead_id),
                members=tuple(said),
                spans=self.spans,
                undone_as=Status(self._row.undone_as),
                undone_by=self._row.undone_by,
                contested_by=tuple(self.rivals),
                may_be=tuple(self.may_be),
                recorded_at=min(_moment(row.recorded_at) for row in self._members),
            )
        return self._course


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that can be recalled of a scope at one revision: facts in the order of saying, and their turns.

    `otherwise` are the turns that something else rests on, live and no fact: what was withdrawn or is to be gone.
    """

    scope: Scope
    revision: int
    held: tuple[Held, ...] = ()
    turns: tuple[SourceTurn, ...] = ()
    otherwise: frozenset[Place] = frozenset()


def revision(connection: Connection, scope: Scope) -> tuple[int | None, int]:
    """Return the key of the scope, None where nothing is kept of it, and its revision."""
    query = select(col(ScopeRow.id), col(ScopeRow.revision)).where(
        col(ScopeRow.tenant) == scope.tenant, col(ScopeRow.kind) == str(scope.kind), col(ScopeRow.name) == scope.id
    )
    row = connection.execute(query).one_or_none()
    return (row.id, row.revision) if row else (None, 0)


def read(connection: Connection, scope: Scope) -> Snapshot:
    """Return what the scope holds; the connection is in a transaction, so that all of it is of one revision."""
    key, number = revision(connection, scope)
    if key is None:
        return Snapshot(scope, 0)
    facts = connection.execute(_facts(key)).all()
    members, evidence = _gathered(connection.execute(_members(key)).all(), 0), defaultdict[str, list[Plain]](list)
    for item in connection.execute(_evidence(key)):
        evidence[item.assertion_id].append(item)
    spans = _spans(facts)
    held = [
        Held(row, members[row.id], [evidence[one.id] for one in members[row.id]], span)
        for row, span in zip(facts, spans, strict=True)
    ]
    held.sort(key=lambda one: one.order)
    sources = {place for one in held for place in one.sources}
    turns = [turn for turn in map(_turn, connection.execute(_turns(key)) if sources else ()) if turn.place in sources]
    otherwise = {(row.session_id, row.turn) for row in connection.execute(_otherwise(key))}
    return Snapshot(scope, number, tuple(held), tuple(turns), frozenset(otherwise))


def _plain(table: type[SQLModel], *names: str) -> list[Any]:
    """Return columns whose values are left as the driver gives them: what is never served is never converted."""
    columns = SQLModel.metadata.tables[str(table.__tablename__)].columns
    return [type_coerce(columns[name], NullType()).label(name) for name in names]


def _facts(key: int) -> Select[Any]:
    columns = _plain(FactRow, "id", "lead_id", "spans", "undone_as", "undone_by", "contested_by", "may_be")
    return select(*columns).where(col(FactRow.scope_id) == key)


def _members(key: int) -> Select[Any]:
    said = _plain(AssertionRow, *(name for name in AssertionRow.model_fields if name not in UNREAD))
    joined = select(*_plain(FactAssertionRow, "fact_id"), *said).join_from(
        FactAssertionRow, AssertionRow, col(AssertionRow.id) == col(FactAssertionRow.assertion_id)
    )
    return joined.where(col(AssertionRow.scope_id) == key).order_by(col(FactAssertionRow.ordinal))


def _evidence(key: int) -> Select[Any]:
    names = ("assertion_id", "kind", "quote", "session_id", "turn", "speaker", "start")
    joined = (
        select(*_plain(EvidenceRow, *names))
        .join_from(EvidenceRow, FactAssertionRow, col(FactAssertionRow.assertion_id) == col(EvidenceRow.assertion_id))
        .join(FactRow, col(FactRow.id) == col(FactAssertionRow.fact_id))
    )
    return joined.where(col(FactRow.scope_id) == key).order_by(col(EvidenceRow.ordinal))


def _turns(key: int) -> Select[Any]:
    names = ("number", "speaker", "said_at", "text")
    joined = select(*_plain(SessionRow, "session_id", "humans", "assumed"), *_plain(TurnRow, *names)).join_from(
        TurnRow, SessionRow, col(SessionRow.id) == col(TurnRow.session_pk)
    )
    cited = (
        select(col(EvidenceRow.assertion_id))
        .join(AssertionRow, col(AssertionRow.id) == col(EvidenceRow.assertion_id))
        .where(
            col(AssertionRow.scope_id) == key,
            col(EvidenceRow.session_id) == col(SessionRow.session_id),
            col(EvidenceRow.turn) == col(TurnRow.number),
        )
    )
    of_people = joined.where(col(SessionRow.scope_id) == key, col(TurnRow.role) == str(Role.HUMAN), cited.exists())
    return of_people.order_by(col(SessionRow.id), col(TurnRow.number))


def _otherwise(key: int) -> Select[Any]:
    """Select the turns of what is live and belongs to no fact: retractions, and what someone asked to be gone."""
    windows = select(col(RunWindowRow.window_id)).where(col(RunWindowRow.run_id).in_(live_runs(key)))
    live = select(col(WindowAssertionRow.assertion_id)).where(col(WindowAssertionRow.window_id).in_(windows))
    told = select(col(FactAssertionRow.assertion_id)).where(col(FactAssertionRow.assertion_id) == col(AssertionRow.id))
    joined = select(*_plain(EvidenceRow, "session_id", "turn")).join_from(
        AssertionRow, EvidenceRow, col(EvidenceRow.assertion_id) == col(AssertionRow.id)
    )
    apart = joined.where(col(AssertionRow.scope_id) == key, ~told.exists(), col(AssertionRow.id).in_(live))
    return apart.where(col(EvidenceRow.turn).is_not(None))


def _gathered(rows: Sequence[Plain], place: int) -> dict[str, list[Plain]]:
    found: defaultdict[str, list[Plain]] = defaultdict(list)
    for row in rows:
        found[row[place]].append(row)
    return found


def _spans(rows: Sequence[Plain]) -> list[Any]:
    """Return the spans of each fact; where JSON comes as text, one long text is read faster than many."""
    if rows and isinstance(rows[0].spans, str):
        parsed: list[Any] = json.loads("[" + ",".join(row.spans for row in rows) + "]")
        return parsed
    return [row.spans for row in rows]


def _span(one: dict[str, Any]) -> Span:
    end = datetime.fromisoformat(one["end"]) if one["end"] else None
    return Span(datetime.fromisoformat(one["start"]), end, STATUSES[one["ending"]], one["by"])


def _parsed(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _moment(value: Any) -> datetime:
    """Return the instant, which SQLite gives as text without a zone."""
    if isinstance(value, str):
        value = datetime.fromisoformat(f"{value}+00:00" if len(value) <= LONGEST_WITHOUT_ZONE else value)
    moment: datetime = value if value.tzinfo is UTC else value.astimezone(UTC)
    return moment


def _moment_or_none(value: Any) -> datetime | None:
    return None if value is None else _moment(value)


def _turn(row: Plain) -> SourceTurn:
    people = {*_parsed(row.humans), *_parsed(row.assumed)}
    said_at = _moment_or_none(row.said_at)
    return SourceTurn(row.session_id, row.number, row.speaker, said_at, row.text, in_company=len(people) > 1)


def _assertion(row: Plain, evidence: Sequence[Plain], scope: Scope) -> Assertion:
    return Assertion(
        id=row.id,
        scope=scope,
        session_id=row.session_id,
        act=Act(row.act),
        kind=Kind(row.kind),
        subject=row.subject,
        attribute=row.attribute,
        value=row.value,
        statement=row.statement,
        speaker=row.speaker,
        authority=Authority(row.authority),
        said_at=_moment(row.said_at),
        evidence=tuple(
            Evidence(EvidenceKind(item.kind), item.quote, item.session_id, item.turn, item.speaker, item.start)
            for item in evidence
        ),
        time_is_guess=bool(row.time_is_guess),
        valid_from=_moment_or_none(row.valid_from),
        valid_to=_moment_or_none(row.valid_to),
        cue=Cue(row.cue) if row.cue else None,
        limited_to=row.limited_to,
        outcome=row.outcome,
    )
