"""Periodic jobs: who holds the lease of a job until when, and for which due time it was last done.

A lease is claimed, renewed and released in one transaction each. Only the holder of a lease can complete its job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from sqlalchemy import JSON, String, cast, func, literal, or_
from sqlmodel import Field, Session, SQLModel, col, select

from afterword.facts.scopes import Scope
from afterword.store.database.statements import insert_missing
from afterword.store.ledger import RunStatus
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.sessions import Progress
from afterword.store.tables import RunRow, ScopeRow, SessionRow

CONSOLIDATION = "consolidation"
_FURTHEST_AHEAD = timedelta(days=1)
"""How far ahead of now a stored due time or end of a lease may lie. Any later one comes from a wrong clock."""


class JobRow(SQLModel, table=True):
    """A periodic job: who holds its lease (`holder`, `leased_until`), and for which due time it was last done.

    `ended_at` is when the job last ended, done or failed. `counts` says what it did then, and `failures` how many parts
    of it failed.
    """

    __tablename__: ClassVar[str] = "jobs"

    name: str = Field(primary_key=True)
    holder: str | None = None
    leased_until: datetime | None = None
    done_for: datetime | None = None
    last_success_at: datetime | None = None
    failure: str | None = None
    ended_at: datetime | None = None
    counts: dict[str, int] = Field(default_factory=dict, sa_type=JSON)
    failures: int = 0


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job: who holds its lease until when, and for which due time it was last done (`done_for`).

    `last_success_at` is when that was, and `failure` says what failed then or since. `ended_at` is when the job last
    ended, done or failed. `counts` says what it did then, and `failures` how many parts of it failed.
    """

    name: str
    holder: str | None
    leased_until: datetime | None
    done_for: datetime | None
    last_success_at: datetime | None
    failure: str | None
    ended_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: int = 0


def read_store_wide_jobs(transaction: Session) -> list[JobState]:
    """Return the state of every job that was ever begun, except the jobs that concern a single scope."""
    query = select(JobRow).where(col(JobRow.name).not_like("%/%")).order_by(col(JobRow.name))
    return [JobState(**row.model_dump()) for row in transaction.exec(query)]


def is_job_claimable(transaction: Session, name: str, *, due_at: datetime, now: datetime) -> bool:
    """Return whether the job was not yet done for this due time, and no process holds its lease."""
    row = transaction.get(JobRow, name)
    return row is None or _is_due(row, due_at, now)


def claim_job(
    transaction: Session, name: str, holder: str, *, due_at: datetime, now: datetime, until: datetime
) -> bool:
    """Take the lease of a job until `until`; return False if the job is not due, or another process holds its lease."""
    insert_missing(transaction, JobRow, [{"name": name}])
    row = _lock_row(transaction, name)
    if not _is_due(row, due_at, now):
        return False
    row.holder, row.leased_until = holder, until
    return True


def renew_lease(transaction: Session, name: str, holder: str, *, until: datetime) -> bool:
    """Extend the lease; return False if another holder has it by now."""
    row = _row_held_by(transaction, name, holder)
    if row is not None:
        row.leased_until = until
    return row is not None


def complete_job(
    transaction: Session,
    name: str,
    holder: str,
    *,
    due_at: datetime,
    now: datetime,
    counts: Mapping[str, int] | None = None,
    failures: int = 0,
    failure: str | None = None,
) -> bool:
    """Record that the job is done for its due time and release the lease; return False if another holder has it.

    `counts` says what it did, `failures` how many parts of it failed, and `failure` why.
    """
    row = release_job(transaction, name, holder)
    if row is not None:
        row.done_for, row.last_success_at, row.failure = due_at, now, failure
        row.ended_at, row.counts, row.failures = now, dict(counts or {}), failures
    return row is not None


def fail_job(
    transaction: Session, name: str, holder: str, *, failure: str, now: datetime, blocked_until: datetime
) -> None:
    """Record that the job failed, and why, and release its lease. Nobody can claim it before `blocked_until`."""
    row = release_job(transaction, name, holder)
    if row is not None:
        row.leased_until, row.failure = blocked_until, failure
        row.ended_at, row.counts, row.failures = now, {}, 1


def release_job(transaction: Session, name: str, holder: str) -> JobRow | None:
    """Release the lease of a job, done or not, and return the row of the job; None if another holder has the lease."""
    row = _row_held_by(transaction, name, holder)
    if row is not None:
        row.holder = row.leased_until = None
    return row


def _row_held_by(transaction: Session, name: str, holder: str) -> JobRow | None:
    query = select(JobRow).where(JobRow.name == name, JobRow.holder == holder)
    return transaction.exec(query.with_for_update()).one_or_none()


def scopes_to_consolidate(
    transaction: Session, *, new_sessions: int, idle_since: datetime, last_before: datetime
) -> list[Scope]:
    """Return the scopes that should be consolidated now.

    In such a scope at least `new_sessions` sessions were read since the last consolidation, and that was not after
    `last_before`. No session of the scope is pending, and none has changed since `idle_since`.
    """
    job = literal(f"{CONSOLIDATION}/") + cast(col(ScopeRow.id), String)
    busy = select(SessionRow.scope_id).where(
        or_(col(SessionRow.progress) == Progress.PENDING, col(SessionRow.updated_at) > idle_since)
    )
    query = (
        select(ScopeRow)
        .join(RunRow, col(RunRow.scope_id) == col(ScopeRow.id))
        .outerjoin(JobRow, col(JobRow.name) == job)
        .where(RunRow.purpose == "session", RunRow.status == RunStatus.APPLIED)
        .where(or_(col(JobRow.last_success_at).is_(None), col(RunRow.applied_at) > col(JobRow.last_success_at)))
        .where(or_(col(JobRow.last_success_at).is_(None), col(JobRow.last_success_at) <= last_before))
        .where(col(ScopeRow.id).not_in(busy))
        .group_by(col(ScopeRow.id))  # the key determines the other columns of the scope
        .having(func.count(func.distinct(col(RunRow.source))) >= new_sessions)
        .order_by(col(ScopeRow.id))
    )
    return [scope_of_row(row) for row in transaction.exec(query)]


def mark_consolidated(transaction: Session, scope: Scope, at: datetime) -> None:
    """Record when a scope was consolidated."""
    name = f"{CONSOLIDATION}/{scope_key(transaction, scope)}"
    insert_missing(transaction, JobRow, [{"name": name}])
    _lock_row(transaction, name).last_success_at = at


def _lock_row(transaction: Session, name: str) -> JobRow:
    return transaction.exec(select(JobRow).where(JobRow.name == name).with_for_update()).one()


def _is_due(row: JobRow, due_at: datetime, now: datetime) -> bool:
    # A process with a wrong clock may have stored times that lie far ahead. They must not keep the job from running.
    latest = now + _FURTHEST_AHEAD
    if row.done_for is not None and due_at <= row.done_for <= latest:
        return False
    return row.leased_until is None or row.leased_until <= now or row.leased_until > latest
