"""Periodic jobs: who does one until when, and for which due time it was last done. One row a job, whoever asks.

A lease is taken, renewed and given up in one transaction each. Who holds none, or has lost it, can end nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import String, cast, func, literal, or_
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store.database.inserts import insert_missing
from afterword.store.ledger import RunStatus
from afterword.store.sessions import Progress
from afterword.store.tables import JobRow, RunRow, ScopeRow, SessionRow

CONSOLIDATION = "consolidation"


@dataclass(frozen=True, slots=True)
class JobState:
    """Where a job stands: the due time it was last done for, when that was, and why it failed since, if it did."""

    name: str
    holder: str | None
    leased_until: datetime | None
    done_for: datetime | None
    last_success_at: datetime | None
    failure: str | None


def read_jobs(transaction: Session) -> list[JobState]:
    """Return every job that was ever done or begun, but not those of single scopes."""
    query = select(JobRow).where(col(JobRow.name).not_like("%/%")).order_by(col(JobRow.name))
    return [
        JobState(one.name, one.holder, one.leased_until, one.done_for, one.last_success_at, one.failure)
        for one in transaction.exec(query)
    ]


def is_job_due(transaction: Session, name: str, *, due_at: datetime, now: datetime) -> bool:
    """Whether the job is to be done for this due time and nobody holds it."""
    row = transaction.get(JobRow, name)
    return row is None or _is_open(row, due_at, now)


def claim_job(
    transaction: Session, name: str, holder: str, *, due_at: datetime, now: datetime, until: datetime
) -> bool:
    """Take the lease of a job that is due, until this instant; say whether it was there to be had."""
    insert_missing(transaction, JobRow, [{"name": name}])
    row = _locked(transaction, name)
    if not _is_open(row, due_at, now):
        return False
    row.holder, row.leased_until = holder, until
    transaction.add(row)
    return True


def renew_lease(transaction: Session, name: str, holder: str, *, until: datetime) -> bool:
    """Hold the lease longer; False where it is another's by now."""
    row = _locked(transaction, name)
    if row.holder != holder:
        return False
    row.leased_until = until
    transaction.add(row)
    return True


def complete_job(transaction: Session, name: str, holder: str, *, due_at: datetime, now: datetime) -> bool:
    """Enter that the job is done for its due time, and give the lease up; False where it is another's by now."""
    row = _locked(transaction, name)
    if row.holder != holder:
        return False
    row.done_for, row.last_success_at, row.failure = due_at, now, None
    row.holder = row.leased_until = None
    transaction.add(row)
    return True


def release_job(
    transaction: Session, name: str, holder: str, *, failure: str | None = None, until: datetime | None = None
) -> None:
    """Give the lease up with the job undone: free at once, or after a failure not before `until`."""
    row = _locked(transaction, name)
    if row.holder != holder:
        return
    row.holder, row.leased_until, row.failure = None, until, failure or row.failure
    transaction.add(row)


def scopes_to_consolidate(
    transaction: Session, *, new_sessions: int, idle_since: datetime, last_before: datetime
) -> list[Scope]:
    """Return the scopes in which so many sessions were read since their last consolidation, which lies before
    `last_before`, where nothing waits and nothing has happened since `idle_since`."""
    job = literal(f"{CONSOLIDATION}/") + cast(col(ScopeRow.id), String)
    waiting = select(SessionRow.scope_id).where(
        or_(col(SessionRow.progress) == Progress.PENDING, col(SessionRow.updated_at) > idle_since)
    )
    query = (
        select(ScopeRow)
        .join(RunRow, col(RunRow.scope_id) == col(ScopeRow.id))
        .outerjoin(JobRow, col(JobRow.name) == job)
        .where(RunRow.purpose == "session", RunRow.status == RunStatus.APPLIED)
        .where(or_(col(JobRow.last_success_at).is_(None), col(RunRow.applied_at) > col(JobRow.last_success_at)))
        .where(or_(col(JobRow.last_success_at).is_(None), col(JobRow.last_success_at) <= last_before))
        .where(col(ScopeRow.id).not_in(waiting))
        .group_by(*ScopeRow.__table__.columns)  # type: ignore[attr-defined]  # SQLModel hides it
        .having(func.count(func.distinct(col(RunRow.source))) >= new_sessions)
        .order_by(col(ScopeRow.id))
    )
    return [Scope.parse(f"{of.tenant}/{of.kind}/{of.name}") for of in transaction.exec(query)]


def mark_consolidated(transaction: Session, scope: Scope, at: datetime) -> None:
    """Enter when a scope was consolidated."""
    query = select(ScopeRow.id).where(
        ScopeRow.tenant == scope.tenant, ScopeRow.kind == str(scope.kind), ScopeRow.name == scope.id
    )
    name = f"{CONSOLIDATION}/{transaction.exec(query).one()}"
    insert_missing(transaction, JobRow, [{"name": name}])
    row = _locked(transaction, name)
    row.last_success_at = at
    transaction.add(row)


def _locked(transaction: Session, name: str) -> JobRow:
    return transaction.exec(select(JobRow).where(JobRow.name == name).with_for_update()).one()


def _is_open(row: JobRow, due_at: datetime, now: datetime) -> bool:
    if row.done_for is not None and row.done_for >= due_at:
        return False
    return row.leased_until is None or row.leased_until <= now
