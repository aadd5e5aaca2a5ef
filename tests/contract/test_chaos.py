"""A model that fails, processes that are killed, a database that is restarted: nothing is lost, nothing is twice.

A fifth of the model's answers is spoilt, in every way that `docs/faults.md` lists; one session is refused for good.
In the end each session is done or set aside with its reason, and the store is that of a calm run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
import pytest

from aftermath import Calms, Canonical, half_done, held, leases, ledger_faults, tallied, unlike
from afterword.errors import StoreOutdated, StoreUnreachable
from afterword.extractors.testing import ScriptedEndpoint
from afterword.pipeline.background import workers
from afterword.store import sessions
from afterword.store.database.engine import Store
from chaos import KINDS, LEASE_S, ChaosModel, Herd, environment, ran
from servers import Server
from small_talk import Talk, talks, written

pytestmark = pytest.mark.begun_first

SEED = 20261122
ENDINGS = frozenset({0, 1, -9})
"""How a process may end: well, with failures that it has shown, or killed."""
ENDED = (sessions.Progress.DONE, sessions.Progress.SET_ASIDE)


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything: the sessions are those of so many users, so many each."""

    users: int
    sessions_each: int
    kills: int
    crashes: int
    longest_s: float

    @property
    def sessions(self) -> int:
        """How many sessions there are."""
        return self.users * self.sessions_each


IN_CI, FULL = Size(2, 4, kills=2, crashes=1, longest_s=400), Size(30, 10, kills=60, crashes=5, longest_s=1500)
SIZES = [pytest.param(IN_CI, id="ci"), pytest.param(FULL, id="soak", marks=pytest.mark.soak)]


@dataclass(slots=True)
class Chaos:
    """One store and what befalls it."""

    url: str
    folder: Path
    size: Size
    model: ChaosModel
    environment: dict[str, str]
    told: list[Talk] = field(default_factory=list)
    herd: Herd | None = None
    crashes: int = 0
    begun: float = field(default_factory=time.monotonic)

    def gather(self, *commands: Sequence[str]) -> Herd:
        """Make the herd that runs these commands; it is started when it is tended."""
        self.herd = Herd(commands, self.environment, self.folder, kills=self.size.kills, seed=SEED)
        self.model.on_request = self.herd.on_request
        return self.herd

    async def run(self, *arguments: str) -> str:
        """Run one command undisturbed."""
        return await asyncio.to_thread(ran, self.environment, self.folder, *arguments)

    async def record(self) -> None:
        """Queue all sessions, as `record_session` does."""
        async with Store(self.url) as store:
            for one in self.told:
                save = partial(sessions.save_state, scope=one.scope, session_id=one.session_id, component="team")
                await store.write(partial(save, state=one.state, at=one.at))

    async def is_over(self) -> bool:
        """Whether each session is done or set aside; no answer while a server is away."""
        try:
            async with Store(self.url) as store:
                await store.check()
                with store.reading() as transaction:
                    found = sessions.read_sessions(transaction)
        except StoreOutdated:
            return False
        except StoreUnreachable:
            if self.url.startswith("sqlite"):
                raise
            return False
        return len(found) == len(self.told) and all(one.progress in ENDED for one in found)


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> Size:
    """How much of everything."""
    assert isinstance(request.param, Size)
    return request.param


@pytest.fixture(scope="module")
def calms() -> Calms:
    """What undisturbed runs give."""
    return Calms()


@pytest.fixture
def model() -> ChaosModel:
    """A model that fails."""
    return ChaosModel(SEED)


@pytest.fixture
def endpoint(model: ChaosModel) -> Iterator[ScriptedEndpoint]:
    """Where the model is asked."""
    with ScriptedEndpoint(model) as serving:
        yield serving


@pytest.fixture
def chaos(size: Size, model: ChaosModel, endpoint: ScriptedEndpoint, tmp_path: Path) -> Iterator[Chaos]:
    """The sessions, on a SQLite file that is not there yet."""
    url = f"sqlite:///{tmp_path}/store.db"
    made = Chaos(url, tmp_path, size, model, environment(url, endpoint.base_url, tmp_path))
    made.told = talks(size.users, size.sessions_each, SEED)
    yield made
    if made.herd is not None:
        made.herd.end()


class Check:
    """What must hold after the chaos."""

    def __init__(self, chaos: Chaos, herd: Herd, calms: Calms, canonical: Canonical) -> None:
        self.chaos, self.herd, self.calms, self.canonical = chaos, herd, calms, canonical

    async def of(self, told_as: str, finish: Sequence[str]) -> None:
        """Check the store; put back what was set aside, let the command `finish` it, and check it again."""
        chaos = self.chaos
        seconds = round(time.monotonic() - chaos.begun)
        aside = await self.disturbed()
        met, asked = Counter(chaos.model.met), chaos.model.asked
        await self.leases_end()
        for command in (("retry", "--all"), finish, ("consolidate",)):
            await chaos.run(*command)
        assert await self.wrong(chaos.told) == []
        async with Store(chaos.url) as store:
            assert await tallied(store) == Counter({sessions.Progress.DONE: len(chaos.told)})
        assert self.herd.killed >= chaos.size.kills // 2
        assert len(chaos.told) < FULL.sessions or set(met) == set(KINDS)
        counts = [len(chaos.told), asked, sum(met.values()), len(met), self.herd.started, self.herd.killed]
        row = [told_as, *counts, chaos.crashes, aside, 0, seconds]
        if len(chaos.told) == FULL.sessions and sys.__stdout__:
            sys.__stdout__.write(f"\n| {' | '.join(map(str, row))} |\n")

    async def disturbed(self) -> int:
        """Check the store as the chaos has left it; return how many sessions were set aside."""
        chaos = self.chaos
        self.herd.end()
        chaos.model.heal()
        assert set(self.herd.codes) <= ENDINGS, self.herd.codes
        # Procrastinate logs the loss of its connection as it is.
        assert chaos.crashes or self.herd.untold() == []
        await chaos.run("consolidate")
        async with Store(chaos.url) as store:
            with store.reading() as transaction:
                kept = sessions.read_sessions(transaction)
        assert sorted((one.scope.id, one.session_id) for one in kept) == sorted(
            (one.scope.id, one.session_id) for one in chaos.told
        )
        aside = {one.session_id: one.failure or "" for one in kept if one.progress is sessions.Progress.SET_ASIDE}
        assert all(one.progress is sessions.Progress.DONE for one in kept if one.session_id not in aside)
        assert any(reason.startswith("AnswerRefused: ") for reason in aside.values()), aside
        assert all(reason and "fault of afterword" not in reason for reason in aside.values()), aside
        assert await self.wrong([one for one in chaos.told if one.session_id not in aside]) == []
        return len(aside)

    async def wrong(self, told: Sequence[Talk]) -> list[str]:
        """Return in what the store is unlike the one that a calm run of these gives, and what else is wrong."""
        calm = await self.calms.of(told, self.canonical)
        async with Store(self.chaos.url) as store:
            found = [one for of in calm for one in unlike(await held(store, of, self.canonical), calm[of])]
            return [*found, *await half_done(store), *await ledger_faults(store, self.chaos.model.asked)]

    async def leases_end(self) -> None:
        """Check that each job can be done once the leases of those that were killed are over."""
        await asyncio.sleep(LEASE_S)
        reports = json.loads(await self.chaos.run("schedule", "--once", "--json")).values()
        assert {report["ending"] for report in reports} == {"done"}
        async with Store(self.chaos.url) as store:
            assert await leases(store) == []


async def nothing(_name: str) -> None:
    """Do nothing for a process that has ended."""


@pytest.mark.parametrize("size", SIZES[1:], indirect=True)
async def test_one_batch_that_is_killed_again_and_again(chaos: Chaos, calms: Calms, canonical: Canonical) -> None:
    """`afterword run FOLDER` on a SQLite file, one process after another."""
    command = ("run", str(written(chaos.folder / "saved", chaos.told)), "--json")
    herd = chaos.gather(command)
    await herd.tend(chaos.is_over, nothing, chaos.size.longest_s)
    await Check(chaos, herd, calms, canonical).of("SQLite, one batch", command)


async def test_four_processes_on_one_file_are_killed_at_random(
    chaos: Chaos, calms: Calms, canonical: Canonical
) -> None:
    """Two batches and two schedulers share a SQLite file and a queue."""
    async with Store(chaos.url) as store:
        await store.migrate()
    await chaos.record()
    run, schedule = ("run", "--json"), ("schedule",)
    herd = chaos.gather(run, schedule, run, schedule)
    await herd.tend(chaos.is_over, nothing, chaos.size.longest_s)
    await Check(chaos, herd, calms, canonical).of("SQLite, two batches, two schedulers", run)


async def aged(url: str, name: str) -> None:
    """Let the worker of that name have been silent for more than half a minute; it is dead."""
    silent = f"{workers.STALLED_AFTER_S + 1} s"
    query = "UPDATE procrastinate_workers SET last_heartbeat = last_heartbeat - %s::interval WHERE process = %s"
    async with asyncio.timeout(60):
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                    await connection.execute(query, (silent, name))
                    return
            except psycopg.OperationalError:  # the server is starting again
                await asyncio.sleep(0.1)


async def crashed(chaos: Chaos, server: Server) -> None:
    """Crash the server now and then, by how far the work has come."""
    for number in range(chaos.size.crashes):
        until = (number + 1) * len(chaos.told) // (chaos.size.crashes + 1)
        while chaos.model.asked < until:  # noqa: ASYNC110 - other processes ask
            await asyncio.sleep(0.05)
        await asyncio.to_thread(server.crash)
        chaos.crashes += 1


async def test_three_workers_are_killed_and_their_database_crashes(
    chaos: Chaos,
    calms: Calms,
    canonical: Canonical,
    postgres_server: Server,
    postgres_store_url: str,
) -> None:
    """A scheduler hands out the queue of a PostgreSQL store to three workers; in the midst the server crashes."""
    if postgres_server.own is None:
        pytest.skip("AFTERWORD_TEST_POSTGRES names a server that is not this test's to crash")
    chaos.url = chaos.environment["AFTERWORD_STORE__URL"] = postgres_store_url
    chaos.environment["AFTERWORD_SCHEDULE__DEFER"] = "true"
    async with Store(chaos.url) as store:
        await workers.create_queue_tables(store)
    with psycopg.connect(chaos.url, autocommit=True) as connection:
        named = "process text DEFAULT current_setting('application_name')"
        connection.execute(f"ALTER TABLE procrastinate_workers ADD COLUMN {named}".encode())
    await chaos.record()
    herd = chaos.gather(("worker",), ("worker",), ("worker",), ("schedule",))
    crashing = asyncio.ensure_future(crashed(chaos, postgres_server))
    await herd.tend(chaos.is_over, partial(aged, chaos.url), chaos.size.longest_s)
    await crashing
    for number in range(herd.started):
        await aged(chaos.url, herd.name(number + 1))
    await Check(chaos, herd, calms, canonical).of("PostgreSQL, three workers, one scheduler", ("worker", "--once"))
    with psycopg.connect(chaos.url) as connection:
        left = connection.execute("SELECT status FROM procrastinate_jobs WHERE task_name = 'afterword.session'")
        assert left.fetchall() == []
