"""Conversion between the rows of findings and `AgentFinding`, and storing those of one window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from afterword.facts.assertions import Evidence, EvidenceKind, digest
from afterword.facts.findings import AgentFinding, FindingReview, statement_key
from afterword.facts.scopes import Scope
from afterword.privacy.blanking import has_blanked_words
from afterword.privacy.tombstones import Forgotten
from afterword.store.database.inserts import insert_missing
from afterword.store.database.statements import fetch_rows, fetch_where_in, select_columns
from afterword.store.findings.finding_table import FindingRow

FINDING = "agent finding"
"""Stands for subject and attribute of a finding where a tombstone needs them."""


def is_finding_forgotten(forgotten: Forgotten, statement: str, said_at: datetime) -> bool:
    """Return whether a finding was forgotten since it was said, or holds blanked words."""
    if has_blanked_words(statement) or forgotten.is_scope_forgotten(said_at):
        return True
    return forgotten.is_slot_forgotten(FINDING, FINDING, statement, said_at)


def findings_source(session_id: str) -> str:
    """Return the source of the runs that read the findings of a session."""
    return f"findings:{session_id}"


def finding_id(scope: Scope, source: str, window_key: str, finding: AgentFinding) -> str:
    """Return the id of a finding in a window."""
    quotes = [(cited.turn, cited.quote) for cited in finding.evidence]
    said = (finding.agent, finding.topic, finding.statement, finding.said_at.isoformat(), finding.is_advice)
    return digest(str(scope), source, window_key, *said, quotes)


def finding_values(finding: AgentFinding, scope_id: int, window_id: int, recorded_at: datetime) -> dict[str, Any]:
    """Return the columns of a finding."""
    return {
        "id": finding.id,
        "scope_id": scope_id,
        "window_id": window_id,
        "session_id": finding.session_id,
        "agent": finding.agent,
        "topic": finding.topic,
        "statement": finding.statement,
        "is_advice": finding.is_advice,
        "source": finding.source,
        "after_tools": finding.after_tools,
        "review": str(finding.review),
        "evidence": [{**asdict(cited), "kind": str(cited.kind)} for cited in finding.evidence],
        "said_at": finding.said_at,
        "expires_at": finding.expires_at,
        "recorded_at": recorded_at,
    }


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
        evidence=tuple(
            Evidence(
                EvidenceKind.TURN,
                piece["quote"],
                row.session_id,
                piece.get("turn"),
                piece.get("speaker"),
                piece.get("start"),
            )
            for piece in row.evidence
        ),
    )


def read_windows_findings(transaction: Session, scope: Scope, window_ids: Iterable[int]) -> list[AgentFinding]:
    """Return the findings of these windows."""
    return [finding_of(row, scope) for row in fetch_where_in(transaction, FindingRow, "window_id", window_ids)]


def store_findings(
    transaction: Session, scope_id: int, window_id: int, findings: Sequence[AgentFinding], recorded_at: datetime
) -> None:
    """Store the findings of a window. What a person has decided about the same statement counts for them too."""
    if not findings:
        return
    decided = read_decisions(transaction, scope_id)
    rows = []
    for finding in findings:
        values = finding_values(finding, scope_id, window_id, recorded_at)
        rows.append({**values, "review": str(decided.get(finding.key, finding.review))})
    insert_missing(transaction, FindingRow, rows)


def read_decisions(transaction: Session, scope_id: int) -> dict[str, FindingReview]:
    """Return what persons have decided about findings of a scope, by the keys of their statements."""
    table = FindingRow
    decisions = (str(FindingReview.APPROVED), str(FindingReview.DROPPED))
    query = select(table.statement, table.review).where(table.scope_id == scope_id, col(table.review).in_(decisions))
    return {statement_key(statement): FindingReview(review) for statement, review in transaction.exec(query)}


def rows_of_scope(transaction: Session, scope_id: int) -> Sequence[Any]:
    """Return all rows of findings of a scope, live or not."""
    return fetch_rows(transaction, select_columns(FindingRow).where(col(FindingRow.scope_id) == scope_id))
