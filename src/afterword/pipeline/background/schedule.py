"""Periodic jobs in one process, beside others that do the same: APScheduler says when, a lease says who."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger

from afterword import telemetry
from afterword.errors import StoreError
from afterword.pipeline.background.due_times import MISFIRE_GRACE_S, Clock, Rhythm
from afterword.pipeline.background.leases import LEASE_S, Ending, Job, attempt
from afterword.store.database.engine import Store

logger = telemetry.logs(__name__)

PATIENCE_S = 6.0
"""How long jobs at work may take to come to an end once the schedule is stopped; then they are cancelled."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How jobs are begun: a random delay of at most `jitter_s`, and the length of their leases, in seconds."""

    jitter_s: float = 5.0
    lease_s: float = LEASE_S


class Halt:
    """Whether somebody has asked for an end. Called, it gives the reason, None before that."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._asked = asyncio.Event()

    def __call__(self) -> str | None:
        """Return the reason to stop. Long work asks this between its steps."""
        return self._reason

    def stop(self, reason: str) -> None:
        """Ask for an end."""
        self._reason = reason
        self._asked.set()

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until an end is asked for, not longer than this; say whether it was."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._asked.wait(), timeout_s)
        return self._asked.is_set()


class _Ticks(BaseTrigger):  # type: ignore[misc]  # apscheduler has no types
    """Fires at the due times of a rhythm, by a clock of its own, somewhat late."""

    def __init__(self, rhythm: Rhythm, clock: Clock, jitter_s: float) -> None:
        self.rhythm, self.clock, self.jitter_s = rhythm, clock, jitter_s

    def get_next_fire_time(self, _previous: datetime | None, _now: datetime) -> datetime | None:
        """Return when APScheduler, by the machine's clock, is to fire next."""
        due_at = self.rhythm.next_due(self.clock.now())
        late = timedelta(seconds=random.uniform(0, self.jitter_s))
        return self.clock.real(due_at + late) if due_at else None


class Schedule:
    """Does jobs when they are due, until it is stopped.

    Several processes with the same store and jobs share the work: each job is done once for each of its due times, by
    whoever is first; where that process dies, by another once the lease is over.
    """

    def __init__(
        self,
        store: Store,
        jobs: Sequence[Job],
        *,
        clock: Clock | None = None,
        timing: Timing | None = None,
        halt: Halt | None = None,
        on_end: Callable[[Job, Ending], None] = lambda *_: None,
    ) -> None:
        self.store, self.jobs, self.clock = store, jobs, clock or Clock()
        self.timing, self.halt, self.on_end = timing or Timing(), halt or Halt(), on_end
        self._at_work: dict[str, asyncio.Task[Ending]] = {}

    async def once(self) -> dict[str, Ending]:
        """Do what is due now, one job after another, and return how each ended.

        Once the halt is called for, the job at work has 6 s to end, and is handed back after that.
        """
        endings: dict[str, Ending] = {}
        for job in self.jobs:
            task = self._at_work[job.name] = asyncio.ensure_future(self._attempt(job))
            halted = asyncio.ensure_future(self.halt.wait())
            try:
                await asyncio.wait({task, halted}, return_when=asyncio.FIRST_COMPLETED)
                await self._end()
            finally:
                task.cancel()
                halted.cancel()
                await asyncio.gather(task, halted, return_exceptions=True)
                del self._at_work[job.name]
            endings[job.name] = Ending.HANDED_BACK if task.cancelled() else task.result()
        return endings

    async def run(self) -> None:
        """Do jobs until the halt is called for; those at work then have 6 s to end, and are handed back after that."""
        scheduler = AsyncIOScheduler(
            timezone=UTC,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": MISFIRE_GRACE_S},
        )
        for job in self.jobs:
            ticks = _Ticks(job.rhythm, self.clock, self.timing.jitter_s)
            scheduler.add_job(self._tick, ticks, args=(job,), id=job.name)
        scheduler.start()
        try:
            await self._watch()
        finally:
            scheduler.pause()
            await self._end()
            scheduler.shutdown(wait=False)

    async def _watch(self) -> None:
        """Look now and then for what is due and undone: after a start, a failure, or the death of another process."""
        pause_s = self.clock.real_s(self.timing.lease_s / 2)
        while self.halt() is None:
            for job in self.jobs:
                await self._tick(job)
            await self.halt.wait(pause_s)

    async def _tick(self, job: Job) -> None:
        """Attempt a job in a task of its own, unless this process is at it already."""
        if job.name in self._at_work or self.halt() is not None:
            return
        task = self._at_work[job.name] = asyncio.ensure_future(self._attempt(job))
        task.add_done_callback(lambda ended: self._ended(job, ended))

    def _ended(self, job: Job, task: asyncio.Task[Ending]) -> None:
        self._at_work.pop(job.name, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its text may hold what was said.
            logger.warning("the job %s met a fault (%s), please report it", job.name, type(error).__name__)

    async def _attempt(self, job: Job) -> Ending:
        try:
            lease_s = self.timing.lease_s
            ending = await attempt(self.store, job, clock=self.clock, lease_s=lease_s, stop=self.halt)
        except StoreError as error:
            logger.warning("the job %s could not be begun or ended (%s)", job.name, type(error).__name__)
            ending = Ending.FAILED
        if ending is not Ending.NOT_DUE:
            self.on_end(job, ending)
        return ending

    async def _end(self) -> None:
        """Let the jobs at work end; cancel those that take too long."""
        tasks = list(self._at_work.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=PATIENCE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
