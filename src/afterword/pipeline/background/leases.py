"""Leases: a job runs in one process at a time. If that process dies, another process takes over."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from uuid import uuid4

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import AfterwordError, StoreError
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.store import jobs
from afterword.store.access.webhooks import WebhookEvent, announce_everywhere
from afterword.store.database.clock import check_not_ahead
from afterword.store.database.engine import Store

_log = telemetry.logs(__name__)

LEASE_S = 120.0
RENEWALS = 3
"""How often a lease is renewed before it would end."""
REASONS_KEPT = 3
"""How many reasons for failures are stored with a job: the most frequent ones."""
HAND_BACK_S = 2.0
"""How long a process that is stopped tries to give up its lease. If it fails, the lease ends by itself."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job did, as counts by name, and how often parts of it failed, by reason."""

    counts: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """A periodic job. Its work may be interrupted and repeated, so it must be idempotent.

    Webhooks are told when it fails, unless `is_announced` is false.
    """

    name: str
    rhythm: Rhythm
    work: Callable[[], Awaitable[JobResult | None]]
    is_announced: bool = True


class AttemptEnding(StrEnum):
    """How an attempt at a job ended."""

    NOT_DUE = "not due"
    DONE = "done"
    FAILED = "failed"
    HANDED_BACK = "handed back"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class JobReport:
    """How and when an attempt at a job ended, what it did (`counts` by name), and how often parts failed, by reason.

    A job can be done although parts of it failed. Each of these is tried again when it is due.
    """

    name: str
    ending: AttemptEnding
    at: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)

    @property
    def has_failures(self) -> bool:
        """Whether the job, or a part of it, failed."""
        return self.ending is AttemptEnding.FAILED or bool(self.failures)


async def attempt_job(
    store: Store,
    job: Job,
    *,
    clock: JobClock,
    lease_s: float = LEASE_S,
    stop: Callable[[], str | None] = lambda: None,
) -> JobReport:
    """Do the job if it is due and no other process does it, and return how the attempt ended.

    After a failure, any process may start the job again when the lease ends; after a stop or a cancellation, at once.
    If the lease is lost (the process slept, or the store did not answer), the work is cancelled.
    """
    now = clock.now()
    due_at = job.rhythm.recent_due_time(now)
    if due_at is None or stop() is not None:
        return JobReport(job.name, AttemptEnding.NOT_DUE, now)
    if not await store.read(partial(_is_due, job=job, due_at=due_at, clock=clock, now=now)):
        return JobReport(job.name, AttemptEnding.NOT_DUE, now)
    lease = _Lease(store, job, clock, lease_s, due_at)
    with telemetry.stage(telemetry.Stage.JOB, job=job.name):
        ending = await lease.attempt(stop)
        telemetry.note(ending=str(ending))
    telemetry.count(telemetry.Count.JOBS, job=job.name, ending=str(ending))
    return JobReport(job.name, ending, clock.now(), lease.result.counts, lease.result.failures)


def _is_due(transaction: Session, *, job: Job, due_at: datetime, clock: JobClock, now: datetime) -> bool:
    check_not_ahead(transaction, clock.to_real_time(now))
    return jobs.is_job_claimable(transaction, job.name, due_at=due_at, now=now)


class _Lease:
    def __init__(self, store: Store, job: Job, clock: JobClock, lease_s: float, due_at: datetime) -> None:
        self.store, self.job, self.clock, self.lease_s, self.due_at = store, job, clock, lease_s, due_at
        self.holder = uuid4().hex
        self.until = clock.now()
        self.result = JobResult()

    async def attempt(self, stop: Callable[[], str | None]) -> AttemptEnding:
        try:
            return await self._do_if_claimed(stop)
        except asyncio.CancelledError:
            # Even if the claim itself was cancelled: it may have been committed.
            with suppress(asyncio.CancelledError, TimeoutError):
                await asyncio.wait_for(self._hand_back(None), HAND_BACK_S)
            raise

    async def _do_if_claimed(self, stop: Callable[[], str | None]) -> AttemptEnding:
        if not await self.store.write(self._claim_job):
            return AttemptEnding.NOT_DUE
        failure: str | None = "a fault of afterword"
        try:
            is_done = await self._work_under_lease()
            failure = None
        except asyncio.CancelledError:
            failure = None
            raise
        except AfterwordError as error:
            failure = type(error).__name__
            self.result = JobResult(failures={failure: 1})
            _log.warning("the job %s failed (%s); it is tried again", self.job.name, failure)
            return AttemptEnding.FAILED
        finally:
            if failure is not None:
                await self._hand_back(failure)
        return await self._complete_or_hand_back(stop) if is_done else AttemptEnding.LOST

    async def _complete_or_hand_back(self, stop: Callable[[], str | None]) -> AttemptEnding:
        if stop() is not None:
            await self._hand_back(None)
            return AttemptEnding.HANDED_BACK
        return AttemptEnding.DONE if await self.store.write(self._complete_job) else AttemptEnding.LOST

    def _complete_job(self, transaction: Session) -> bool:
        failed = Counter(_failures_by_kind(self.result.failures))
        failure = "; ".join(f"{times} × {kind}" for kind, times in failed.most_common(REASONS_KEPT)) or None
        is_ours = jobs.complete_job(
            transaction,
            self.job.name,
            self.holder,
            due_at=self.due_at,
            now=self.clock.now(),
            counts=self.result.counts,
            failures=failed.total(),
            failure=failure,
        )
        if is_ours and failed:
            self._announce_failure(transaction, failed.total())
        return is_ours

    def _announce_failure(self, transaction: Session, failures: int) -> None:
        """Queue posts that the job failed, once a day. They omit the reason, which may contain an address."""
        if self.job.is_announced:
            now, name = self.clock.now(), self.job.name
            content = {"job": name, "failures": failures}
            announce_everywhere(transaction, WebhookEvent.JOB_FAILED, f"job/{name}/{now.date()}", content, now)

    async def _work_under_lease(self) -> bool:
        """Do the work of the job while its lease is renewed. Return False if the lease was lost first."""
        work = asyncio.ensure_future(self.job.work())
        renewal = asyncio.ensure_future(self._keep_renewing())
        try:
            await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                self.result = await work or JobResult()
                return True
            _log.warning("the lease of the job %s was lost; another process may do the job", self.job.name)
            return False
        finally:
            work.cancel()
            renewal.cancel()
            # Wait for both: a running renewal would outlive the store and leave a connection open.
            await asyncio.gather(work, renewal, return_exceptions=True)

    async def _keep_renewing(self) -> None:
        """Renew the lease until it is lost."""
        while True:
            await asyncio.sleep(self.clock.to_real_seconds(self.lease_s / RENEWALS))
            try:
                if not await self.store.write(self._renew_lease):
                    return
            except StoreError:
                if self.clock.now() >= self.until:
                    return

    def _new_end(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.lease_s)

    def _claim_job(self, transaction: Session) -> bool:
        now, self.until = self.clock.now(), self._new_end()
        return jobs.claim_job(transaction, self.job.name, self.holder, due_at=self.due_at, now=now, until=self.until)

    def _renew_lease(self, transaction: Session) -> bool:
        until = self._new_end()
        is_renewed = jobs.renew_lease(transaction, self.job.name, self.holder, until=until)
        self.until = until if is_renewed else self.until
        return is_renewed

    async def _hand_back(self, failure: str | None) -> None:
        """Give up the lease, so that another process can take the job. If that fails, the lease expires."""
        now, until = self.clock.now(), self._new_end()

        def release(transaction: Session) -> None:
            if failure is None:
                jobs.release_job(transaction, self.job.name, self.holder)
                return
            jobs.fail_job(transaction, self.job.name, self.holder, failure=failure, now=now, blocked_until=until)
            self._announce_failure(transaction, 1)

        with suppress(StoreError):
            await self.store.write(release)


def _failures_by_kind(failures: Mapping[str, int]) -> Mapping[str, int]:
    """Return how often each kind of failure occurred. The text after the colon may contain words of a session."""
    kinds = Counter[str]()
    for reason, times in failures.items():
        kinds[reason.partition(":")[0]] += times
    return kinds
