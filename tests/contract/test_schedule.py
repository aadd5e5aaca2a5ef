"""Two schedulers on one store, killed and started again: each due job is done once, by one of them at a time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.store import runs, sessions
from afterword.store.database.engine import Store
from afterword.store.ledger import RunStatus
from batches import faults
from schedulers import Schedulers, completions, watch_completions

pytestmark = pytest.mark.begun_first

SEED = 20261121
CLEAN_STOP_S = 10.0
LONG_LEASE_S = 60_000.0
CITIES = ("Graz", "Linz", "Wels", "Steyr", "Villach")


@pytest.fixture
def schedulers(shared_url: str, tmp_path: Path) -> Iterator[Schedulers]:
    made = Schedulers(shared_url, tmp_path / "notes.txt", datetime.now(UTC))
    yield made
    made.end()


async def record(store: Store, number: int) -> None:
    """Queue a session of one of three users."""
    at = datetime.now(UTC) - timedelta(days=1)
    said = {"content": f"I moved to {CITIES[number % len(CITIES)]}.", "source": "user", "type": "TextMessage"}
    state = {"messages": [{**said, "created_at": (at + timedelta(seconds=number)).isoformat()}]}
    whose = Scope.user(f"user{number % 3}")

    def work(transaction: Session) -> None:
        sessions.save_state(transaction, whose, f"s{number}", component="x", state=state, at=at)

    await store.write(work)


async def disturbed(schedulers: Schedulers, store: Store, kills: int) -> int:
    """Kill one of two schedulers at random moments and start another, while sessions come in; return how many came."""
    dice, count = random.Random(SEED), 0
    living = [schedulers.start(), schedulers.start()]
    for _ in range(kills):
        for name in living:
            await schedulers.until("up", 1, by=name)
        for _ in range(dice.randint(1, 3)):
            await record(store, count)
            count += 1
        await asyncio.sleep(dice.uniform(0.3, 2.5))
        victim = dice.randrange(2)
        await schedulers.kill_at_work(living[victim], store)
        living[victim] = schedulers.start()
    for name in living:
        await schedulers.until("up", 1, by=name)
    return count


async def waiting(store: Store) -> int:
    with store.reading() as transaction:
        return len(sessions.waiting_sessions(transaction))


async def settled(schedulers: Schedulers, store: Store) -> None:
    """Leave the schedulers alone until nothing waits and the job was done three times more."""
    async with asyncio.timeout(60):
        while await waiting(store):  # noqa: ASYNC110 - other processes do what is waited for
            await asyncio.sleep(0.1)
    done = sum(what == "ending-DONE" for _, what, _ in schedulers.notes())
    await schedulers.until("ending-DONE", done + 3)


def overlaps(schedulers: Schedulers) -> list[tuple[str, str]]:
    """Return who worked while another did."""
    found, last = [], None
    for one in schedulers.attempts():
        if last is not None and one.begun_at < last.ended_at:
            found.append((last.by, one.by))
        if last is None or one.ended_at > last.ended_at:
            last = one
    return found


def too_soon(schedulers: Schedulers) -> list[float]:
    """Return by how many seconds a job whose process was killed was begun again before its lease was over."""
    gaps = [one.free_at - later.begun_at for one, later in pairwise(schedulers.attempts()) if one.is_cut]
    return [gap for gap in gaps if gap > 0]


async def check_schedulers(schedulers: Schedulers, kills: int) -> None:
    async with Store(schedulers.url) as store:
        await watch_completions(store)
        count = await disturbed(schedulers, store, kills)
        await settled(schedulers, store)
        living = [name for name, one in schedulers.processes.items() if one.poll() is None]
        codes = await asyncio.to_thread(schedulers.terminate, living)
        done = await completions(store)
        assert [code for code, _ in codes] == [0] * len(living)
        assert all(seconds < CLEAN_STOP_S for _, seconds in codes), codes
        assert len(done) == len(set(done)) > 1, "a due job was entered as done twice"
        assert done == sorted(done)
        assert overlaps(schedulers) == []
        assert too_soon(schedulers) == []
        cut = [one for one in schedulers.attempts() if one.is_cut]
        assert all(one is not schedulers.attempts()[-1] for one in cut), "a job that was cut was not begun again"
        assert await faults(store) == []
        with store.reading() as transaction:
            made = [run for number in range(3) for run in runs.read_runs(transaction, Scope.user(f"user{number}"))]
        assert Counter(run.source for run in made) == Counter(f"session:s{number}" for number in range(count))
        assert {run.status for run in made} == {RunStatus.APPLIED}


async def test_two_schedulers_that_are_killed_at_random_do_each_due_job_once(schedulers: Schedulers) -> None:
    await check_schedulers(schedulers, kills=4)


@pytest.mark.soak
async def test_two_schedulers_that_are_killed_forty_times(schedulers: Schedulers) -> None:
    await check_schedulers(schedulers, kills=40)


@pytest.mark.parametrize("shared_url", ["file"], indirect=True)
async def test_a_scheduler_that_is_stopped_hands_its_work_back_at_once(schedulers: Schedulers) -> None:
    """Its work would take longer than it may: it is cut short, and another need not wait for the lease, for hours."""
    schedulers.longest_s, schedulers.lease_s = 2000.0, LONG_LEASE_S
    first = schedulers.start()
    await schedulers.until("begin", 1)
    ((code, seconds),) = await asyncio.to_thread(schedulers.terminate, [first])
    assert (code, seconds < CLEAN_STOP_S) == (0, True)
    schedulers.longest_s = 0.0
    second = schedulers.start()
    await schedulers.until("ending-DONE", 1, by=second)
