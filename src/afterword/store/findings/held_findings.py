"""The findings of a scope that count, and the decisions of people about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import update
from sqlmodel import Session, col, select

from afterword.errors import NotFound
from afterword.facts.findings import AgentFinding, FindingReview, united_findings
from afterword.facts.scopes import Scope
from afterword.store import scope_rows
from afterword.store.database.statements import fetch_rows, select_columns
from afterword.store.fact_ids import several_begin_so
from afterword.store.findings.finding_rows import finding_of
from afterword.store.findings.finding_settings import note_change
from afterword.store.findings.finding_table import FindingRow
from afterword.store.lookup import live_runs
from afterword.store.tables import RunRow, RunWindowRow


def read_findings(transaction: Session, scope: Scope, known_at: datetime | None = None) -> list[AgentFinding]:
    """Return the findings of the runs that count (at `known_at`), one for each statement, the newest first."""
    scope_id = scope_rows.scope_key(transaction, scope)
    return united_findings(_sayings(transaction, scope, scope_id, known_at)) if scope_id else []


def _sayings(
    transaction: Session, scope: Scope, scope_id: int, known_at: datetime | None = None
) -> Sequence[AgentFinding]:
    windows = select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(live_runs(scope_id, known_at)))
    query = select_columns(FindingRow).where(
        col(FindingRow.scope_id) == scope_id, col(FindingRow.window_id).in_(windows)
    )
    return [finding_of(row, scope) for row in fetch_rows(transaction, query)]


def read_finding(transaction: Session, scope: Scope, finding_id: str) -> AgentFinding:
    """Return a finding by the id of one of its sayings, or by the beginning of one.

    Raises `NotFound` if the scope has no such finding, or several.
    """
    matching = [
        finding
        for finding in read_findings(transaction, scope)
        if any(name == finding_id for name in finding.sayings)
        or (finding_id and any(name.startswith(finding_id) for name in finding.sayings))
    ]
    if len(matching) != 1:
        hint = several_begin_so([finding.id for finding in matching]) if matching else "see `afterword findings --all`"
        raise NotFound(f"no single finding {finding_id!r} in {scope}: {hint}")
    return matching[0]


def read_sayings(transaction: Session, scope: Scope, finding: AgentFinding) -> list[tuple[AgentFinding, list[int]]]:
    """Return every saying of a finding, the oldest first, each with the runs that have it."""
    scope_id = scope_rows.scope_key(transaction, scope)
    query = select_columns(FindingRow).where(col(FindingRow.scope_id) == scope_id)
    rows = [row for row in fetch_rows(transaction, query) if finding_of(row, scope).key == finding.key]
    sayings = []
    for row in sorted(rows, key=lambda row: (row.said_at, row.id)):
        runs = select(RunRow.id).where(
            col(RunRow.id) == col(RunWindowRow.run_id), RunWindowRow.window_id == row.window_id
        )
        ids = [run_id for run_id in transaction.exec(runs.order_by(col(RunRow.id))) if run_id is not None]
        sayings.append((finding_of(row, scope), ids))
    return sayings


def decide_finding(transaction: Session, scope: Scope, finding_id: str, review: FindingReview) -> AgentFinding:
    """Approve or drop a finding on behalf of a person, for all of its sayings, and return it. Raises `NotFound`."""
    scope_rows.lock_scope(transaction, scope)
    finding = read_finding(transaction, scope, finding_id)
    is_said = col(FindingRow.id).in_([saying.id for saying, _ in read_sayings(transaction, scope, finding)])
    transaction.connection().execute(update(FindingRow).where(is_said).values(review=str(review)))
    note_change(transaction, scope)
    return read_finding(transaction, scope, finding.id)
