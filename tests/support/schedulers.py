"""Processes that run a schedule by a clock of their own, killed and started again, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import text

from afterword.pipeline.background.due_times import JobClock
from afterword.store import jobs
from afterword.store.database.engine import Store
from nursery import Child
from programs import schedule
from running_time import running_time

PERIOD_S, LEASE_S, SPEED = 60.0, 150.0, 30.0
"""Of the job: every minute, under a lease of two and a half minutes, by a clock that runs thirty times as fast.

A process that a busy machine stops for three seconds still renews its lease in time.
"""

WATCHED = {
    "sqlite": [
        "CREATE TABLE completions (place INTEGER PRIMARY KEY, done_for TEXT)",
        """CREATE TRIGGER completed AFTER UPDATE OF done_for ON jobs WHEN new.name = 'pending' BEGIN
            INSERT INTO completions (done_for) VALUES (new.done_for); END""",
    ],
    "postgresql": [
        "CREATE TABLE completions (place SERIAL PRIMARY KEY, done_for TEXT)",
        """CREATE FUNCTION note_completion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO completions (done_for) VALUES (new.done_for); RETURN new; END $$""",
        """CREATE TRIGGER completed AFTER UPDATE ON jobs FOR EACH ROW WHEN (new.name = 'pending' AND
            new.done_for IS DISTINCT FROM old.done_for) EXECUTE FUNCTION note_completion()""",
    ],
}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at the job: by whom, and when it began and ended. `is_cut` where its process was killed in it.

    Then the job is free at `free_at` at the earliest.
    """

    by: str
    begun_at: float
    ended_at: float
    is_cut: bool
    free_at: float = 0.0


@dataclass(slots=True)
class Schedulers:
    """Processes that run the same job on one store."""

    url: str
    log: Path
    origin: datetime
    longest_s: float = 1.5
    lease_s: float = LEASE_S
    processes: dict[str, Child] = field(default_factory=dict)
    killed_at: dict[str, float] = field(default_factory=dict)
    leases_ended_at: dict[str, float] = field(default_factory=dict)
    """When the lease ends that was seen just before one was killed, by the machine's clock."""

    def start(self) -> str:
        """Start one more; return its name."""
        name = f"s{len(self.processes)}"
        numbers = map(str, (SPEED, PERIOD_S, self.lease_s, self.longest_s))
        arguments = [self.url, str(self.log), self.origin.isoformat(), *numbers, name]
        self.processes[name] = Child(arguments, os.environ, self.log.with_name(f"{name}.txt"), program=schedule)
        return name

    def kill(self, name: str) -> None:
        """Kill one with SIGKILL."""
        self.processes[name].kill()
        self.processes[name].wait()
        self.killed_at[name] = time.time()

    async def kill_at_work(self, name: str, store: Store) -> None:
        """Kill one after noting until when the job is leased. It may renew the lease in between, or take it."""
        leases = [
            job.leased_until for job in await store.read(jobs.read_store_wide_jobs) if job.leased_until is not None
        ]
        for leased_until in leases:
            self.leases_ended_at[name] = JobClock(self.origin, SPEED).to_real_time(leased_until).timestamp()
        await asyncio.to_thread(self.kill, name)

    def end(self) -> None:
        """Kill all that live."""
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)

    def terminate(self, names: Sequence[str]) -> list[tuple[int, float]]:
        """Send SIGTERM to these; return with which code each ended, and after how many seconds."""
        with running_time() as elapsed_s:
            for name in names:
                self.processes[name].terminate()
            return [(self.processes[name].wait(), elapsed_s()) for name in names]

    def notes(self) -> list[tuple[str, str, float]]:
        """Return what the processes noted: who, what, when."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(who, what, float(when)) for who, what, when in map(str.split, lines)]

    def attempts(self) -> list[Attempt]:
        """Return the attempts at the job, in the order of their beginnings."""
        found: list[Attempt] = []
        begun: dict[str, float] = {}
        for who, what, when in self.notes():
            if what == "begin":
                begun[who] = when
            elif what == "end":
                found.append(Attempt(who, begun.pop(who), when, is_cut=False))
        for who, when in begun.items():
            free_at = self.leases_ended_at.get(who, 0.0)
            found.append(Attempt(who, when, self.killed_at[who], is_cut=True, free_at=free_at))
        return sorted(found, key=lambda one: one.begun_at)

    async def until(self, what: str, count: int, by: str | None = None) -> None:
        """Wait until it was noted so many times."""
        async with asyncio.timeout(60):
            while sum(one == what and by in (None, who) for who, one, _ in self.notes()) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def watch_completions(store: Store) -> None:
    """Let the database itself note each due time for which the job is entered as done."""
    with store.connecting(writing=True) as connection:
        for statement in WATCHED[store.dialect]:
            connection.execute(text(statement))


async def completions(store: Store) -> list[str]:
    """Return the due times for which the job was entered as done, in order."""
    with store.connecting(writing=False) as connection:
        rows = connection.execute(text("SELECT done_for FROM completions ORDER BY place"))
        return [str(row[0]) for row in rows]
