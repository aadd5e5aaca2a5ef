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
from afterword.store.database.statements import fetched
from afterword.store.ledger import ensure_scope
from afterword.store.lookup import CHUNK, among, assertions_by_id, scope_row, scopes_kept
from afterword.store.proposals import Proposal, Reading
from afterword.store.rows import unpacked, verdict_key, verdict_of
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


def policy_of(db: Session, scope: Scope) -> Policy:
    """Return the policy of a scope, `auto` where none was set."""
    row = scope_row(db, scope)
    return Policy(row.policy) if row else Policy.AUTO


def set_policy(db: Session, scope: Scope, policy: Policy) -> None:
    """Set the policy of a scope; it holds for the runs to come."""
    row = db.get(ScopeRow, ensure_scope(db, scope))
    if row is None:
        raise NotFound(f"the scope {scope} could not be made")
    row.policy = policy
    db.add(row)
    db.flush()


def runs(db: Session, scope: Scope, *, statuses: Sequence[str] = ()) -> list[Run]:
    """Return the runs of a scope, oldest first, or those of these statuses."""
    row = scope_row(db, scope)
    if row is None:
        return []
    query = select(RunRow).where(RunRow.scope_id == row.id).order_by(col(RunRow.id))
    if statuses:
        query = query.where(col(RunRow.status).in_(statuses))
    return [_run(one, scope) for one in db.exec(query)]


def run(db: Session, run_id: int) -> Run:
    """Return a run by its id. For those who run the store. Raises `NotFound` where there is none."""
    row = db.get(RunRow, run_id)
    if row is None:
        raise NotFound(f"no run {run_id}; see `afterword runs`")
    of = db.get(ScopeRow, row.scope_id)
    scopes = [scope for scope in scopes_kept(db) if of and str(scope) == f"{of.tenant}/{of.kind}/{of.name}"]
    return _run(row, scopes[0])


def transcript_of(db: Session, found: Run) -> Transcript | None:
    """Return what a dry run has read, None for every other run."""
    row = db.get(RunRow, found.id)
    return unpacked(row.transcript) if row and row.transcript else None


def proposal_of(db: Session, found: Run) -> tuple[Proposal, int | None]:
    """Return what a run proposed, and the key of the session that it reads."""
    row = db.get(RunRow, found.id)
    if row is None:
        raise NotFound(f"no run {found.id}")
    ties = select(RunWindowRow).where(RunWindowRow.run_id == found.id).order_by(col(RunWindowRow.ordinal))
    readings = [_reading(db, found.scope, tie.window_id) for tie in db.exec(ties)]
    keys = select(RunVerdictRow.verdict_key).where(RunVerdictRow.run_id == found.id)
    verdicts = db.exec(select(VerdictRow).where(col(VerdictRow.key).in_(keys)))
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


def kept_verdicts(
    db: Session, scope: Scope, pairs: Sequence[tuple[Assertion, Assertion]], judge: str
) -> dict[tuple[str, str], Verdict]:
    """Return the verdicts that this judge has given on these pairs before, by the pair's ids."""
    keys = {verdict_key(scope, earlier, later, judge): (earlier.id, later.id) for earlier, later in pairs}
    wanted, found = list(keys), {}
    for start in range(0, len(wanted), CHUNK):
        for row in fetched(db, among(VerdictRow, "key"), {"keys": wanted[start : start + CHUNK]}):
            found[keys[row.key]] = verdict_of(row)
    return found


def _reading(db: Session, scope: Scope, window_id: int) -> Reading:
    window = db.get(WindowRow, window_id)
    if window is None:
        raise NotFound(f"window {window_id} is gone")
    ties = db.exec(select(WindowAssertionRow.assertion_id).where(WindowAssertionRow.window_id == window_id))
    said = assertions_by_id(db, scope, list(ties))
    refused = select(RejectionRow).where(RejectionRow.window_id == window_id).order_by(col(RejectionRow.ordinal))
    rejections = tuple((one.reason, one.statement, one.detail) for one in db.exec(refused))
    return Reading(window.key, window.first_turn, window.last_turn, tuple(said.values()), rejections)


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
