"""A schedule that is stopped ends in time, whatever its jobs are waiting for."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from afterword.pipeline.background.due_times import Rhythm
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import AttemptEnding, Job
from afterword.pipeline.background.schedule import Schedule
from afterword.store import jobs
from afterword.store.database.engine import Store, open_store
from running_time import running_time

pytestmark = pytest.mark.begun_first

STOP_S = 10.0
NEVER_S = 600.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


@pytest.fixture
def other(store: Store) -> Iterator[sqlite3.Connection]:
    """A connection of another process to the same file."""
    assert store.path is not None
    with closing(sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)) as connection:
        yield connection


class Stopped:
    """A schedule with one job, stopped once the job is at work and the file is locked by another process."""

    def __init__(self, store: Store, other: sqlite3.Connection, work: Callable[[], Awaitable[object]]) -> None:
        self.other, self.is_at_work, self.work, self.halt = other, asyncio.Event(), work, Halt()
        job = Job("job", Rhythm(every_s=3600.0), self._work)
        self.schedule = Schedule(store, [job], halt=self.halt, jitter_s=0.0)

    async def _work(self) -> None:
        self.other.execute("BEGIN IMMEDIATE")
        self.is_at_work.set()
        await self.work()

    async def seconds(self, run: Awaitable[object]) -> float:
        """Return how long the schedule took to end after it was stopped."""
        running = asyncio.ensure_future(run)
        await asyncio.wait_for(self.is_at_work.wait(), 60)
        await asyncio.sleep(0.2)
        with running_time() as elapsed_s:
            self.halt.stop("SIGTERM")
            await running
            return elapsed_s()


async def test_a_lease_that_cannot_be_handed_back_does_not_keep_the_process(
    store: Store, other: sqlite3.Connection
) -> None:
    stopped = Stopped(store, other, lambda: asyncio.sleep(NEVER_S))
    assert await stopped.seconds(stopped.schedule.run()) < STOP_S
    other.execute("ROLLBACK")
    (job,) = await store.read(jobs.read_store_wide_jobs)
    assert job.holder is not None, "the lease ends by itself"


async def test_a_job_that_waits_to_write_is_interrupted(store: Store, other: sqlite3.Connection) -> None:
    stopped = Stopped(store, other, lambda: store.write(jobs.read_store_wide_jobs))
    assert await stopped.seconds(stopped.schedule.run()) < STOP_S


async def test_a_job_that_clears_the_files_is_interrupted(store: Store, other: sqlite3.Connection) -> None:
    stopped = Stopped(store, other, store.compact)
    assert await stopped.seconds(stopped.schedule.run()) < STOP_S


async def test_what_is_due_once_is_interrupted_as_well(store: Store, other: sqlite3.Connection) -> None:
    stopped = Stopped(store, other, lambda: asyncio.sleep(NEVER_S))
    assert await stopped.seconds(stopped.schedule.run_once()) < STOP_S


async def test_a_claim_that_waits_is_given_up(store: Store, other: sqlite3.Connection) -> None:
    """The job is never begun, since its lease cannot be written."""
    other.execute("BEGIN IMMEDIATE")
    halt = Halt()
    job = Job("job", Rhythm(every_s=3600.0), lambda: asyncio.sleep(NEVER_S))
    running = asyncio.ensure_future(Schedule(store, [job], halt=halt, jitter_s=0.0).run())
    await asyncio.sleep(0.5)
    with running_time() as elapsed_s:
        halt.stop("SIGTERM")
        await running
        assert elapsed_s() < STOP_S
    other.execute("ROLLBACK")
    assert await store.read(jobs.read_store_wide_jobs) == []


async def test_a_claim_that_was_committed_while_it_was_cancelled_is_handed_back(store: Store) -> None:
    """A process that is stopped in the moment of a claim leaves no lease for the next one to wait for."""
    for steps in range(40):
        halt = Halt()
        job = Job(f"job {steps}", Rhythm(every_s=3600.0), lambda: asyncio.sleep(NEVER_S))
        running = asyncio.ensure_future(Schedule(store, [job], halt=halt).run_once())
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert {job.holder for job in await store.read(jobs.read_store_wide_jobs)} <= {None}


async def test_once_says_that_a_job_was_handed_back(store: Store) -> None:
    halt = Halt()

    async def work() -> None:
        halt.stop("SIGTERM")
        await asyncio.sleep(NEVER_S)

    ended = await Schedule(store, [Job("job", Rhythm(every_s=3600.0), work)], halt=halt).run_once()
    assert [report.ending for report in ended] == [AttemptEnding.HANDED_BACK]
    assert [job.holder for job in await store.read(jobs.read_store_wide_jobs)] == [None]
