"""The scheduler of periodic jobs. The due times decide when a job runs, and a lease decides in which process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

from afterword import telemetry
from afterword.errors import ClockAhead, StoreError
from afterword.pipeline.background.due_times import JobClock
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import LEASE_S, AttemptEnding, Job, JobReport, attempt_job
from afterword.store.database.engine import Store

_log = telemetry.logs(__name__)

PATIENCE_S = 6.0
"""How long jobs may go on after the schedule is stopped. Then they are cancelled."""


@dataclass(slots=True)
class Schedule:
    """Runs jobs when they are due, until it is stopped.

    Several processes with the same store and jobs share the work: each job runs once per due time, in the process that
    claims it first. If that process dies, another process takes over when the lease ends. `jitter_s` is the longest
    random delay of a job, and `lease_s` the length of its lease.
    """

    store: Store
    jobs: Sequence[Job]
    _: KW_ONLY
    clock: JobClock = field(default_factory=JobClock)
    jitter_s: float = 5.0
    lease_s: float = LEASE_S
    halt: Halt = field(default_factory=Halt)
    on_end: Callable[[JobReport], None] = lambda _: None
    _running: dict[str, asyncio.Task[JobReport]] = field(init=False, default_factory=dict)

    async def run_once(self) -> tuple[JobReport, ...]:
        """Run the jobs that are due now, one after another, and return how each ended.

        Once a stop is requested, the running job has 6 s to end. After that it is cancelled, and can be started again.
        """
        reports = []
        for job in self.jobs:
            task = self._running[job.name] = asyncio.ensure_future(self._attempt_job(job))
            halted = asyncio.ensure_future(self.halt.wait())
            try:
                await asyncio.wait({task, halted}, return_when=asyncio.FIRST_COMPLETED)
                await self._finish_running_jobs()
            finally:
                task.cancel()
                halted.cancel()
                await asyncio.gather(task, halted, return_exceptions=True)
                del self._running[job.name]
            handed_back = JobReport(job.name, AttemptEnding.HANDED_BACK, self.clock.now())
            reports.append(handed_back if task.cancelled() else task.result())
        return tuple(reports)

    async def run(self) -> None:
        """Run jobs until a stop is requested. Then running jobs have 6 s to end; after that they are cancelled."""
        try:
            while self.halt() is None:
                for job in self.jobs:
                    await self._start_job(job)
                await self.halt.wait(self.clock.to_real_seconds(self._pause_s()))
        finally:
            await self._finish_running_jobs()

    def _pause_s(self) -> float:
        """Return the seconds until the next due time, with a random delay.

        It is at most half a lease: jobs may be overdue after a failure, or after the death of another process.
        """
        now = self.clock.now()
        due_times = (job.rhythm.next_due_time(now) for job in self.jobs)
        pauses = [(due_at - now).total_seconds() for due_at in due_times if due_at is not None]
        return min([*pauses, self.lease_s / 2]) + random.uniform(0, self.jitter_s)

    async def _start_job(self, job: Job) -> None:
        """Attempt a job in its own task, unless it is already running here."""
        if job.name in self._running or self.halt() is not None:
            return
        task = self._running[job.name] = asyncio.ensure_future(self._attempt_job(job))
        task.add_done_callback(lambda ended: self._end_job(job, ended))

    def _end_job(self, job: Job, task: asyncio.Task[JobReport]) -> None:
        self._running.pop(job.name, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Only the type is logged: the message may hold a user's words.
            _log.warning("the job %s met a fault (%s), please report it", job.name, type(error).__name__)

    async def _attempt_job(self, job: Job) -> JobReport:
        try:
            report = await attempt_job(self.store, job, clock=self.clock, lease_s=self.lease_s, stop=self.halt)
        except StoreError as error:
            if isinstance(error, ClockAhead):
                _log.warning("the job %s is not begun: %s", job.name, error)
            else:
                _log.warning("the job %s could not be begun or ended (%s)", job.name, type(error).__name__)
            report = JobReport(job.name, AttemptEnding.FAILED, self.clock.now(), failures={type(error).__name__: 1})
        if report.ending is not AttemptEnding.NOT_DUE:
            self.on_end(report)
        return report

    async def _finish_running_jobs(self) -> None:
        """Wait for running jobs, and cancel those that take too long."""
        tasks = list(self._running.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=PATIENCE_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
