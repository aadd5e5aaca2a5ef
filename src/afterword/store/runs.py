"""Stored runs and verdicts, read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, func, select

from afterword.errors import NotFound
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.store.database.statements import fetch_where_in
from afterword.store.lookup import assertions_by_id
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.rows import unpack_transcript, verdict_key, verdict_of
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import (
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    VerdictRow,
    WindowAssertionRow,
    WindowRow,
)


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run."""

    id: int
    scope: Scope
    source: str
    purpose: str
    status: str
    extractor: str
    judge: str
    started_at: datetime
    applied_at: datetime | None
    undone_at: datetime | None
    redone_at: datetime | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    counts: Mapping[str, int]


def read_runs(transaction: Session, scope: Scope, *, statuses: Sequence[str] = ()) -> list[Run]:
    """Return the runs of a scope, oldest first; with `statuses`, only those that have one of them."""
    query = select(RunRow).where(RunRow.scope_id == scope_key(transaction, scope)).order_by(col(RunRow.id))
    if statuses:
        query = query.where(col(RunRow.status).in_(statuses))
    return [_run_of(row, scope) for row in transaction.exec(query)]


def count_runs(transaction: Session, status: str) -> dict[Scope, int]:
    """Return how many runs of each scope have this status. For operators."""
    query = select(ScopeRow, func.count()).where(col(RunRow.scope_id) == col(ScopeRow.id), RunRow.status == status)
    query = query.group_by(*ScopeRow.__table__.columns)  # type: ignore[attr-defined]  # SQLModel hides it
    return {scope_of_row(row): count for row, count in transaction.exec(query).all()}


def read_run(transaction: Session, run_id: int) -> Run:
    """Return a run of any scope. For operators. Raises `NotFound` if there is no such run."""
    query = select(RunRow, ScopeRow).where(col(RunRow.scope_id) == col(ScopeRow.id), RunRow.id == run_id)
    pair = transaction.exec(query).one_or_none()
    if pair is None:
        raise NotFound(f"no run {run_id}; see `afterword runs`")
    return _run_of(pair[0], scope_of_row(pair[1]))


def runs_caused_by(transaction: Session, cause: Run) -> list[Run]:
    """Return the applied runs that undoing this run made."""
    query = select(RunRow).where(RunRow.caused_by == cause.id, RunRow.status == "applied").order_by(col(RunRow.id))
    return [_run_of(row, cause.scope) for row in transaction.exec(query)]


def dry_run_transcript(transaction: Session, run: Run) -> Transcript | None:
    """Return the transcript that a dry run has read, None for every other run."""
    row = transaction.get(RunRow, run.id)
    return unpack_transcript(row.transcript) if row and row.transcript else None


def read_proposal(transaction: Session, run: Run) -> tuple[Proposal, int | None]:
    """Return the proposal of a run, and the key of the session that it read."""
    row = transaction.get(RunRow, run.id)
    if row is None:
        raise NotFound(f"no run {run.id}")
    windows = select(WindowRow).join(RunWindowRow, col(RunWindowRow.window_id) == col(WindowRow.id))
    windows = windows.where(RunWindowRow.run_id == run.id).order_by(col(RunWindowRow.ordinal))
    keys = select(RunVerdictRow.verdict_key).where(RunVerdictRow.run_id == run.id)
    verdicts = transaction.exec(select(VerdictRow).where(col(VerdictRow.key).in_(keys)))
    proposal = Proposal(
        scope=run.scope,
        source=run.source,
        purpose=run.purpose,
        extractor=run.extractor,
        judge=run.judge,
        started_at=run.started_at,
        revision=run.counts.get("revision", 0),
        readings=tuple([_reading_of(transaction, run.scope, window) for window in transaction.exec(windows).all()]),
        verdicts=tuple(verdict_of(verdict) for verdict in verdicts),
        calls=run.calls,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
        counts=run.counts,
    )
    return proposal, row.session_pk


def read_verdicts(
    transaction: Session, scope: Scope, pairs: Sequence[tuple[Assertion, Assertion]], judge: str
) -> dict[tuple[str, str], Verdict]:
    """Return the stored verdicts of this judge on these pairs, by the ids of the pair."""
    keys = {verdict_key(scope, earlier, later, judge): (earlier.id, later.id) for earlier, later in pairs}
    return {keys[row.key]: verdict_of(row) for row in fetch_where_in(transaction, VerdictRow, "key", keys)}


def _reading_of(transaction: Session, scope: Scope, window: WindowRow) -> WindowReading:
    ids = transaction.exec(select(WindowAssertionRow.assertion_id).where(WindowAssertionRow.window_id == window.id))
    assertions = assertions_by_id(transaction, scope, list(ids))
    refused = select(RejectionRow).where(RejectionRow.window_id == window.id).order_by(col(RejectionRow.ordinal))
    rejections = tuple((row.reason, row.statement, row.detail) for row in transaction.exec(refused))
    return WindowReading(window.key, window.first_turn, window.last_turn, tuple(assertions.values()), rejections)


def _run_of(row: RunRow, scope: Scope) -> Run:
    values = row.model_dump(exclude={"scope_id", "session_pk", "applied_revision", "transcript", "caused_by"})
    return Run(scope=scope, **values)
