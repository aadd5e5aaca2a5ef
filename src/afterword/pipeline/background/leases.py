"""A job done under a lease: by one process at a time, and again by another where that one dies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import AfterwordError, StoreError
from afterword.pipeline.background.due_times import Clock, Rhythm
from afterword.store import jobs
from afterword.store.database.engine import Store
from afterword.telemetry import Count, Stage, count

logger = telemetry.logs(__name__)

LEASE_S = 120.0
BEATS = 3
"""How often a lease is renewed within its time."""
HAND_BACK_S = 2.0
"""How long a process that is stopped tries to hand a job back; after that the lease ends by itself."""


@dataclass(frozen=True, slots=True)
class Job:
    """A periodic job. Its work may be cut short, and is then done again: it must change nothing when done twice."""

    name: str
    rhythm: Rhythm
    work: Callable[[], Awaitable[object]]


class Ending(StrEnum):
    """How an attempt at a job ended."""

    NOT_DUE = "not due"
    DONE = "done"
    FAILED = "failed"
    HANDED_BACK = "handed back"
    LOST = "lost"


async def attempt(
    store: Store,
    job: Job,
    *,
    clock: Clock,
    lease_s: float = LEASE_S,
    stop: Callable[[], str | None] = lambda: None,
) -> Ending:
    """Do the job if it is due and nobody does it, and return what came of it.

    A job that fails is free again when the lease would have ended; one that is stopped, or cancelled, at once. Where
    the lease is lost (the process slept, the store did not answer), the work is cancelled.
    """
    now = clock.now()
    due_at = job.rhythm.last_due(now)
    if due_at is None or stop() is not None:
        return Ending.NOT_DUE
    if not await store.read(lambda db: jobs.is_job_due(db, job.name, due_at=due_at, now=now)):
        return Ending.NOT_DUE
    with telemetry.stage(Stage.JOB, job=job.name):
        ending = await _Lease(store, job, clock, lease_s, due_at).attempt(stop)
        telemetry.note(ending=str(ending))
    count(Count.JOBS, job=job.name, ending=str(ending))
    return ending


class _Lease:
    """One attempt's hold on a job."""

    def __init__(self, store: Store, job: Job, clock: Clock, lease_s: float, due_at: datetime) -> None:
        self.store, self.job, self.clock, self.lease_s, self.due_at = store, job, clock, lease_s, due_at
        self.holder = uuid4().hex
        self.until = clock.now()

    async def attempt(self, stop: Callable[[], str | None]) -> Ending:
        try:
            return await self._attempt(stop)
        except asyncio.CancelledError:
            # Also where the claim was cancelled: it may have been committed.
            await self._hand_back_in_time()
            raise

    async def _attempt(self, stop: Callable[[], str | None]) -> Ending:
        if not await self.store.write(self._claim):
            return Ending.NOT_DUE
        failure: str | None = "a fault of afterword"
        try:
            ending = await self._worked()
            failure = None
        except asyncio.CancelledError:
            failure = None
            raise
        except AfterwordError as error:
            ending, failure = Ending.FAILED, type(error).__name__
            logger.warning("the job %s failed (%s); it is tried again", self.job.name, failure)
        finally:
            if failure is not None:
                await self._hand_back(failure)
        if ending is Ending.DONE and stop() is not None:
            await self._hand_back(None)
            return Ending.HANDED_BACK
        if ending is Ending.DONE and not await self.store.write(self._complete):
            return Ending.LOST
        return ending

    async def _worked(self) -> Ending:
        work = asyncio.ensure_future(self.job.work())
        beat = asyncio.ensure_future(self._beat())
        try:
            await asyncio.wait({work, beat}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
                return Ending.DONE
            logger.warning("the lease of the job %s was lost; it is left to others", self.job.name)
            return Ending.LOST
        finally:
            work.cancel()
            beat.cancel()
            # Whatever either ends with: a renewal at work would outlive the store, and what it has open with it.
            await asyncio.gather(work, beat, return_exceptions=True)

    async def _beat(self) -> None:
        """Renew the lease as long as it is ours; return when it is lost."""
        while True:
            await asyncio.sleep(self.clock.real_s(self.lease_s / BEATS))
            try:
                if not await self.store.write(self._renew):
                    return
            except StoreError:
                if self.clock.now() >= self.until:
                    return

    def _from_now(self) -> datetime:
        return self.clock.now() + timedelta(seconds=self.lease_s)

    def _claim(self, db: Session) -> bool:
        now, self.until = self.clock.now(), self._from_now()
        return jobs.claim_job(db, self.job.name, self.holder, due_at=self.due_at, now=now, until=self.until)

    def _renew(self, db: Session) -> bool:
        until = self._from_now()
        kept = jobs.renew_lease(db, self.job.name, self.holder, until=until)
        self.until = until if kept else self.until
        return kept

    def _complete(self, db: Session) -> bool:
        return jobs.complete_job(db, self.job.name, self.holder, due_at=self.due_at, now=self.clock.now())

    async def _hand_back(self, failure: str | None) -> None:
        """Free the job; where the store does not answer, the lease frees it when it ends."""
        until = self._from_now() if failure else None

        def work(db: Session) -> None:
            jobs.release_job(db, self.job.name, self.holder, failure=failure, until=until)

        with suppress(StoreError):
            await self.store.write(work)

    async def _hand_back_in_time(self) -> None:
        """Free the job of a caller who is cancelled, not longer than two seconds, however often it is cancelled."""
        handing_back = asyncio.ensure_future(self._hand_back(None))
        deadline = asyncio.get_running_loop().time() + HAND_BACK_S
        while not handing_back.done() and (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([handing_back], timeout=left_s)
        handing_back.cancel()
        await asyncio.gather(handing_back, return_exceptions=True)
