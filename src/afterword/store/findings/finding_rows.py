"""The table of findings, and storing the findings of a window. No fact is derived from this table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON
from sqlmodel import Field, Session, SQLModel, col, select

from afterword.facts.assertions import Evidence, EvidenceKind, digest
from afterword.facts.findings import AgentFinding, FindingReview, statement_key
from afterword.facts.scopes import Scope
from afterword.privacy.blanking import has_blanked_words
from afterword.privacy.tombstones import ForgottenContent
from afterword.store import tables  # noqa: F401 - its naming of constraints must be set first
from afterword.store.database.statements import fetch_rows, fetch_where_in, insert_missing, select_columns

FINDING = "agent finding"
"""The subject and the attribute that a tombstone of a finding has, since a finding has neither."""
ERASED = "erased finding"
"""The attribute of the tombstone of a finding that a person has erased. It holds for its repetitions at any time."""


_COPIED_COLUMNS = (
    *("id", "session_id", "agent", "topic", "statement", "is_advice"),
    *("source", "after_tools", "said_at", "expires_at"),
)
"""The columns whose values are the fields of a finding."""


class FindingRow(SQLModel, table=True):
    """A finding or advice of an agent in a window of a session. It is no assertion, and no fact rests on it.

    `evidence` are quotes of the agent, each with its turn. `review` is what a person has decided about the finding."""

    __tablename__: ClassVar[str] = "findings"

    id: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id", index=True)
    window_id: int = Field(foreign_key="windows.id", index=True)
    session_id: str | None = None
    agent: str
    topic: str
    statement: str
    is_advice: bool = False
    source: str | None = None
    after_tools: bool = False
    review: str
    evidence: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    said_at: datetime
    expires_at: datetime
    recorded_at: datetime


def is_finding_forgotten(forgotten: ForgottenContent, statement: str, said_at: datetime) -> bool:
    """Return whether a finding was forgotten after it was said, or contains words that forgetting has blanked out.

    A finding that a person has erased stays forgotten when an agent states it again: that is no new word of a person.
    """
    if has_blanked_words(statement) or forgotten.is_scope_forgotten(said_at):
        return True
    if forgotten.is_slot_forgotten(FINDING, ERASED, statement_key(statement), None):
        return True
    return forgotten.is_slot_forgotten(FINDING, FINDING, statement, said_at)


def findings_run_source(session_id: str) -> str:
    """Return the value that `source` has in the runs that read the findings of a session."""
    return f"findings:{session_id}"


def finding_id(scope: Scope, source: str, window_key: str, finding: AgentFinding) -> str:
    """Return the id of a finding: a hash of its scope, its window and its content."""
    quotes = [(cited.turn, cited.quote) for cited in finding.evidence]
    said = (finding.agent, finding.topic, finding.statement, finding.said_at.isoformat(), finding.is_advice)
    return digest(str(scope), source, window_key, *said, quotes)


def finding_of(row: Any, scope: Scope) -> AgentFinding:
    """Return the finding of a row."""
    return AgentFinding(
        id=row.id,
        scope=scope,
        session_id=row.session_id,
        agent=row.agent,
        topic=row.topic,
        statement=row.statement,
        said_at=row.said_at,
        expires_at=row.expires_at,
        is_advice=row.is_advice,
        source=row.source,
        after_tools=row.after_tools,
        review=FindingReview(row.review),
        evidence=tuple(_evidence_of(piece, row.session_id) for piece in row.evidence),
    )


def _evidence_of(piece: Mapping[str, Any], session_id: str | None) -> Evidence:
    place = (piece.get(name) for name in ("turn", "speaker", "start"))
    return Evidence(EvidenceKind.TURN, piece["quote"], session_id, *place)


def read_findings_of_windows(transaction: Session, scope: Scope, window_ids: Iterable[int]) -> list[AgentFinding]:
    """Return the findings of these windows."""
    return [finding_of(row, scope) for row in fetch_where_in(transaction, FindingRow, "window_id", window_ids)]


def store_findings(
    transaction: Session, scope_id: int, window_id: int, findings: Sequence[AgentFinding], recorded_at: datetime
) -> None:
    """Store the findings of a window. A person's decision about an equal statement applies to them as well."""
    if not findings:
        return
    decisions = (str(FindingReview.APPROVED), str(FindingReview.DROPPED))
    query = select(FindingRow.statement, FindingRow.review).where(
        FindingRow.scope_id == scope_id, col(FindingRow.review).in_(decisions)
    )
    decided = {statement_key(statement): review for statement, review in transaction.exec(query)}
    place = {"scope_id": scope_id, "window_id": window_id, "recorded_at": recorded_at}
    rows = [
        {**_column_values(finding), **place, "review": decided.get(finding.key, str(finding.review))}
        for finding in findings
    ]
    insert_missing(transaction, FindingRow, rows)


def _column_values(finding: AgentFinding) -> dict[str, Any]:
    """Return the values of a finding for all columns except its place in the store and its review."""
    values = {name: getattr(finding, name) for name in _COPIED_COLUMNS}
    return values | {"evidence": [{**asdict(cited), "kind": str(cited.kind)} for cited in finding.evidence]}


def finding_rows_of_scope(transaction: Session, scope_id: int) -> Sequence[Any]:
    """Return all rows of findings of a scope, including those of runs that are not live."""
    return fetch_rows(transaction, select_columns(FindingRow).where(col(FindingRow.scope_id) == scope_id))
