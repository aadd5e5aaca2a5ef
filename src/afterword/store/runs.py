"""Runs as people see them, the verdicts that are kept, and the policy of a scope."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlmodel import Session, col, select

from afterword.errors import NotFound
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript
from afterword.store.database.statements import fetch_rows
from afterword.store.ledger import ensure_scope
from afterword.store.lookup import CHUNK, assertions_by_id, read_scopes, scope_row, select_where_in
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.rows import unpack_transcript, verdict_key, verdict_of
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


class Policy(StrEnum):
    """What a person wants to see before it counts."""

    AUTO = "auto"
    HOLD_RETIREMENTS = "hold-retirements"
    HOLD_ALL = "hold-all"

    def holds(self, *, retires: bool) -> bool:
        """Whether a run waits for a person, by whether it retires anything."""
        return self is Policy.HOLD_ALL or (self is Policy.HOLD_RETIREMENTS and retires)


@dataclass(frozen=True, slots=True)
class Run:
    """One processing as it is kept."""

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
    calls: int
    prompt_tokens: int
    completion_tokens: int
    counts: Mapping[str, int]


def policy_of(transaction: Session, scope: Scope) -> Policy:
    """Return the policy of a scope, `auto` where none was set."""
    row = scope_row(transaction, scope)
    return Policy(row.policy) if row else Policy.AUTO


def set_policy(transaction: Session, scope: Scope, policy: Policy) -> None:
    """Set the policy of a scope; it holds for the runs to come."""
    row = transaction.get(ScopeRow, ensure_scope(transaction, scope))
    if row is None:
        raise NotFound(f"the scope {scope} could not be made")
    row.policy = policy
    transaction.add(row)
    transaction.flush()


def read_runs(transaction: Session, scope: Scope, *, statuses: Sequence[str] = ()) -> list[Run]:
    """Return the runs of a scope, oldest first, or those of these statuses."""
    row = scope_row(transaction, scope)
    if row is None:
        return []
    query = select(RunRow).where(RunRow.scope_id == row.id).order_by(col(RunRow.id))
    if statuses:
        query = query.where(col(RunRow.status).in_(statuses))
    return [_run(one, scope) for one in transaction.exec(query)]


def read_run(transaction: Session, run_id: int) -> Run:
    """Return a run by its id. For those who run the store. Raises `NotFound` where there is none."""
    row = transaction.get(RunRow, run_id)
    if row is None:
        raise NotFound(f"no run {run_id}; see `afterword runs`")
    of = transaction.get(ScopeRow, row.scope_id)
    scopes = [scope for scope in read_scopes(transaction) if of and str(scope) == f"{of.tenant}/{of.kind}/{of.name}"]
    return _run(row, scopes[0])


def dry_run_transcript(transaction: Session, found: Run) -> Transcript | None:
    """Return what a dry run has read, None for every other run."""
    row = transaction.get(RunRow, found.id)
    return unpack_transcript(row.transcript) if row and row.transcript else None


def read_proposal(transaction: Session, found: Run) -> tuple[Proposal, int | None]:
    """Return what a run proposed, and the key of the session that it reads."""
    row = transaction.get(RunRow, found.id)
    if row is None:
        raise NotFound(f"no run {found.id}")
    ties = select(RunWindowRow).where(RunWindowRow.run_id == found.id).order_by(col(RunWindowRow.ordinal))
    readings = [_reading(transaction, found.scope, tie.window_id) for tie in transaction.exec(ties)]
    keys = select(RunVerdictRow.verdict_key).where(RunVerdictRow.run_id == found.id)
    verdicts = transaction.exec(select(VerdictRow).where(col(VerdictRow.key).in_(keys)))
    proposal = Proposal(
        scope=found.scope,
        source=found.source,
        purpose=found.purpose,
        extractor=found.extractor,
        judge=found.judge,
        started_at=found.started_at,
        revision=found.counts.get("revision", 0),
        readings=tuple(readings),
        verdicts=tuple(verdict_of(one) for one in verdicts),
        calls=found.calls,
        prompt_tokens=found.prompt_tokens,
        completion_tokens=found.completion_tokens,
        counts=found.counts,
    )
    return proposal, row.session_pk


def read_verdicts(
    transaction: Session, scope: Scope, pairs: Sequence[tuple[Assertion, Assertion]], judge: str
) -> dict[tuple[str, str], Verdict]:
    """Return the verdicts that this judge has given on these pairs before, by the pair's ids."""
    keys = {verdict_key(scope, earlier, later, judge): (earlier.id, later.id) for earlier, later in pairs}
    wanted, found = list(keys), {}
    for start in range(0, len(wanted), CHUNK):
        for row in fetch_rows(transaction, select_where_in(VerdictRow, "key"), {"keys": wanted[start : start + CHUNK]}):
            found[keys[row.key]] = verdict_of(row)
    return found


def _reading(transaction: Session, scope: Scope, window_id: int) -> WindowReading:
    window = transaction.get(WindowRow, window_id)
    if window is None:
        raise NotFound(f"window {window_id} is gone")
    ties = transaction.exec(select(WindowAssertionRow.assertion_id).where(WindowAssertionRow.window_id == window_id))
    said = assertions_by_id(transaction, scope, list(ties))
    refused = select(RejectionRow).where(RejectionRow.window_id == window_id).order_by(col(RejectionRow.ordinal))
    rejections = tuple((one.reason, one.statement, one.detail) for one in transaction.exec(refused))
    return WindowReading(window.key, window.first_turn, window.last_turn, tuple(said.values()), rejections)


def _run(row: RunRow, scope: Scope) -> Run:
    if row.id is None:
        raise NotFound("the run has no id")
    return Run(
        id=row.id,
        scope=scope,
        source=row.source,
        purpose=row.purpose,
        status=row.status,
        extractor=row.extractor,
        judge=row.judge,
        started_at=row.started_at,
        applied_at=row.applied_at,
        undone_at=row.undone_at,
        calls=row.calls,
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
        counts=row.counts,
    )
