"""Killed anywhere, run again, run by several at once: the store is that of one undisturbed run."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType

from afterword import FactMemory
from afterword.facts.assertions import EvidenceKind
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.store import lookup, scope_rows
from afterword.store.database.engine import Store, open_store
from batches import (
    SCOPES,
    SESSIONS_EACH,
    Calm,
    Canonical,
    calm_of,
    differences,
    ended,
    faults,
    few_moments,
    killed,
    moments,
    records,
    results,
    sessions_done,
    start,
    start_run,
    wait_until,
    write_batch,
)
from programs import run_backwards, write_for_ever

pytestmark = pytest.mark.begun_first

SEED = 20261121
PRIVATE = 0o600
FACTS = ("facts", "--user", "mira", "--json")
ALL_DONE = dict.fromkeys(SCOPES, SESSIONS_EACH)


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: when, as a part of a run's length; how many sessions were done by then; what was wrong afterwards."""

    moment: float
    done: int
    faults: tuple[str, ...]


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, canonical: Canonical) -> Calm:
    """The folder of sessions, and what undisturbed runs of it give."""
    base = tmp_path_factory.mktemp("calm")
    path = base / "store.db"
    return calm_of(write_batch(base / "saved"), url_of(path), path.exists, canonical)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def modes(path: Path) -> dict[str, int]:
    """Who may read the files of a store."""
    return {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.glob(f"{path.name}*")}


def damage(path: Path) -> list[str]:
    """What SQLite itself finds wrong with a store."""
    connection = sqlite3.connect(path)
    try:
        answers = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    finally:
        connection.close()
    return [one for one in answers if one != "ok"] + [f"no parent: {one}" for one in broken]


async def audit(path: Path, calm: Calm, canonical: Canonical) -> tuple[dict[Scope, int], list[str]]:
    """How many sessions of each scope are done; and what is wrong: damage, halves, other facts than those give."""
    found = [f"{name} has mode {mode:o}" for name, mode in modes(path).items() if mode != PRIVATE]
    async with await open_store(url_of(path)) as store:
        found += await faults(store) + await differences(store, calm, canonical)
        return await sessions_done(store), found + damage(path)


async def differs_from_calm(path: Path, calm: Calm) -> list[str]:
    """The scopes of which more or other things are kept than after an undisturbed run."""
    async with Store(url_of(path)) as store:
        return [str(scope) for scope in SCOPES if await records(store, scope) != calm.records[scope]]


def killed_and_run_again(path: Path, moment: float, calm: Calm, canonical: Canonical) -> Kill | None:
    """Kill a run at a moment, look at the store, run again, look again; None where the run was over by then."""
    if not killed(start_run(url_of(path), calm.folder), path.exists, moment * calm.working_s):
        return None
    then, found = asyncio.run(audit(path, calm, canonical))
    assert Counter(results(start_run(url_of(path), calm.folder)))["unchanged"] == sum(then.values())
    done, wrong = asyncio.run(audit(path, calm, canonical))
    wrong += [] if done == ALL_DONE else [f"done: {done}"]
    wrong += asyncio.run(differs_from_calm(path, calm))
    return Kill(moment, sum(then.values()), (*found, *wrong))


def one_kill(folder: Path, moment: float, calm: Calm, canonical: Canonical) -> Kill:
    """Kill a run once, on a new store; where it was faster than the calm one, sooner."""
    for attempt in range(10):
        kill = killed_and_run_again(folder / f"{attempt}.db", moment * 0.8**attempt, calm, canonical)
        if kill is not None:
            return kill
    raise AssertionError("the run was always over before it could be killed")


@pytest.mark.parametrize("moment", few_moments(5, SEED, outside_soak=2))
def test_a_batch_killed_at_a_random_moment_and_run_again_is_as_if_never_killed(
    moment: float, tmp_path: Path, calm: Calm, canonical: Canonical
) -> None:
    """Already before it is run again, the store holds whole sessions and their facts, nothing else."""
    assert one_kill(tmp_path, moment, calm, canonical).faults == ()


@pytest.mark.soak
@pytest.mark.parametrize("hand", range(5))
def test_ten_more_kills_leave_no_trace(
    hand: int, tmp_path: Path, calm: Calm, canonical: Canonical, capsys: pytest.CaptureFixture[str]
) -> None:
    kills = []
    for number, moment in enumerate(moments(10, SEED + 10 + hand)):
        (tmp_path / str(number)).mkdir()
        kills.append(one_kill(tmp_path / str(number), moment, calm, canonical))
    with capsys.disabled():
        sys.stdout.write(told(hand, kills))
    assert [kill for kill in kills if kill.faults] == []


def told(hand: int, kills: list[Kill]) -> str:
    """A row of the table of kills: how many sessions were done at each, and how many stores differ afterwards."""
    done = " ".join(f"{kill.done:>2}" for kill in kills)
    wrong = sum(bool(kill.faults) for kill in kills)
    whole = SESSIONS_EACH * len(SCOPES)
    return f"\n| {hand} | {len(kills)} kills | {done} of {whole} sessions done | {wrong} unlike an undisturbed store |"


def test_a_store_killed_again_and_again_gets_there(tmp_path: Path, calm: Calm, canonical: Canonical) -> None:
    path = tmp_path / "store.db"
    # The first falls while the tables are made.
    for moment in (0, *moments(3, SEED + 2)):
        killed(start_run(url_of(path), calm.folder), path.exists, moment * calm.working_s / 2)
        assert asyncio.run(audit(path, calm, canonical))[1] == []
    ended(start_run(url_of(path), calm.folder))
    assert asyncio.run(audit(path, calm, canonical)) == (ALL_DONE, [])
    assert asyncio.run(differs_from_calm(path, calm)) == []


def test_four_processes_at_once_do_what_one_does(tmp_path: Path, calm: Calm, canonical: Canonical) -> None:
    """The store is new to all four: they race for its tables, too."""
    path = tmp_path / "store.db"
    became = results(*[start_run(url_of(path), calm.folder) for _ in range(4)])
    assert set(became) == {"done", "unchanged"}
    assert asyncio.run(audit(path, calm, canonical)) == (ALL_DONE, [])


def test_of_four_processes_three_may_be_killed(tmp_path: Path, calm: Calm, canonical: Canonical) -> None:
    """A process that dies holds no lock that the others wait for."""
    path = tmp_path / "store.db"
    survivor, *others = [start_run(url_of(path), calm.folder) for _ in range(4)]
    for one, moment in zip(others, moments(3, SEED + 3), strict=True):
        killed(one, path.exists, moment * calm.working_s)
    ended(survivor)
    assert asyncio.run(audit(path, calm, canonical)) == (ALL_DONE, [])


def test_a_process_that_goes_backwards_meets_another_without_harm(
    tmp_path: Path, calm: Calm, canonical: Canonical
) -> None:
    path = tmp_path / "store.db"
    ended(start_run(url_of(path), calm.folder), start(url_of(path), tmp_path, str(calm.folder), program=run_backwards))
    assert asyncio.run(audit(path, calm, canonical)) == (ALL_DONE, [])


async def test_what_an_agent_adds_meanwhile_is_kept_beside_what_the_batch_learns(
    tmp_path: Path, calm: Calm, canonical: Canonical
) -> None:
    path = tmp_path / "store.db"
    memory = FactMemory(scope=SCOPES[0], store=url_of(path))
    process = start_run(url_of(path), calm.folder)
    added: list[str] = []
    while process.poll() is None:
        added.append(f"Ticket {len(added)} is open.")
        await memory.add(MemoryContent(content=added[-1], mime_type=MemoryMimeType.TEXT))
        await asyncio.sleep(0.05)
    await memory.close()
    ended(process)
    assert damage(path) == []
    async with Store(url_of(path)) as store:
        assert await faults(store) == []
        assert [dump for dump in await canonical(store, SCOPES[0]) if dump[5] not in added] == calm.stages[SCOPES[0]][
            -1
        ]
        found = await notes(store)
    assert sorted((one.statement, one.support, one.contested_by) for one in found) == sorted(
        (statement, 1, ()) for statement in added
    )
    assert len(added) > 1


async def notes(store: Store) -> list[Fact]:
    """The facts that the application itself has put in."""
    with store.reading() as db:
        found = lookup.read_facts(db, SCOPES[0], at=datetime.now(UTC))
    return [one for one in found if one.evidence[0].kind is EvidenceKind.APPLICATION]


@pytest.fixture
def killed_while_writing(tmp_path: Path) -> Path:
    """A store whose writer was killed between the beginning and the end of a transaction, with the widest umask."""
    path = tmp_path / "store.db"
    process = start(url_of(path), tmp_path, program=write_for_ever)
    wait_until(lambda: process.printed() == "writing\n")
    process.kill()
    process.wait()
    return path


async def test_a_transaction_cut_short_leaves_nothing_and_blocks_nobody(
    killed_while_writing: Path, calm: Calm, canonical: Canonical
) -> None:
    log = killed_while_writing.with_name("store.db-wal")
    assert log.stat().st_size > 100_000, "nothing of the transaction had reached the disk"
    async with await open_store(url_of(killed_while_writing)) as store:
        with store.reading() as db:
            assert scope_rows.read_scopes(db) == []
        async with asyncio.timeout(10):
            await store.write(lambda _: None)
    assert damage(killed_while_writing) == []
    ended(start_run(url_of(killed_while_writing), calm.folder))
    assert (await audit(killed_while_writing, calm, canonical)) == (ALL_DONE, [])


def test_every_file_of_a_store_is_its_owners_alone_also_after_a_kill(killed_while_writing: Path) -> None:
    """What a transaction wrote lies in the file beside the store until somebody opens it: as private as the store."""
    assert modes(killed_while_writing) == dict.fromkeys(("store.db", "store.db-shm", "store.db-wal"), PRIVATE)
    (printed,) = ended(start(url_of(killed_while_writing), killed_while_writing.parent, "scopes", "--json"))
    assert printed.strip() == "[]"


def test_a_reader_is_served_while_a_writer_is_at_work(tmp_path: Path) -> None:
    """A live agent recalls while a batch commits: it sees the state before, and at once."""
    path = tmp_path / "store.db"
    process = start(url_of(path), tmp_path, program=write_for_ever)
    wait_until(lambda: process.printed() == "writing\n")
    try:
        connection = sqlite3.connect(path, timeout=0)
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (0,)
        connection.close()
    finally:
        process.kill()
        process.wait()
    assert damage(path) == []
