"""A run in several processes gives what a run in one gives, and tells what became of every session."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import afterword
from afterword import ProcessingReport
from afterword.client.process_pool import SessionShare, divide_by_scope, message_bytes, process_share
from afterword.errors import ArgumentInvalid
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.folders import find_sessions
from afterword.settings import Settings
from afterword.store.database.engine import Store
from commands import Commands

CITIES = ("Oslo", "Bergen", "Turku", "Malmo", "Graz", "Porto")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the sessions of six people: each lives in one city, and then in the next."""
    for number, name in enumerate(("ada", "bo", "cy", "dot", "eve", "flo")):
        (tmp_path / "saved" / name).mkdir(parents=True)
        for day, city in enumerate((CITIES[number], CITIES[(number + 1) % 6])):
            state = [{"role": "user", "content": f"I live in {city}."}, {"role": "assistant", "content": "Noted."}]
            (tmp_path / "saved" / name / f"{day}.json").write_text(json.dumps(state))
    return tmp_path / "saved"


def settings(tmp_path: Path, name: str, **options: Any) -> Settings:
    return Settings(store={"url": f"sqlite:///{tmp_path}/{name}.db"}, **options)


async def told(app: afterword.Afterword) -> dict[str, set[tuple[str, str]]]:
    """Return the value and status of each fact of each person."""
    facts: dict[str, set[tuple[str, str]]] = {}
    for scope in (await app.scopes()).scopes:
        page = await app.scope(scope).facts(status="all")
        facts[scope.id] = {(fact.value, fact.status.value) for fact in page.facts}
    return facts


async def run(app: afterword.Afterword, folder: Path, **options: Any) -> ProcessingReport:
    return await app.process(folder, options=afterword.ProcessingOptions(**options))


def priorities() -> set[int]:
    """Return the priorities of the processes that this one has begun and that run."""
    found: set[int] = set()
    for process in children():
        with suppress(ProcessLookupError):  # it has just ended
            found.add(os.getpriority(os.PRIO_PROCESS, process))
    return found


async def test_two_processes_give_what_one_gives(tmp_path: Path, folder: Path) -> None:
    ended: list[SessionOutcome | Failure] = []
    seen: set[int] = set()

    def note(result: SessionOutcome | Failure, _: object) -> None:
        ended.append(result)
        seen.update(priorities())

    async with (
        afterword.open(settings=settings(tmp_path, "together")) as together,
        afterword.open(settings=settings(tmp_path, "alone")) as alone,
    ):
        report = await run(together, folder, processes=2, on_done=note)
        await run(alone, folder)
        assert all(isinstance(session.result, SessionOutcome) for session in report.sessions)
        assert len(ended) == len(report.sessions) == 12
        assert await told(together) == await told(alone)
    assert seen == {os.getpriority(os.PRIO_PROCESS, 0)}


class Counting(RulesExtractor):
    """Counts how many windows are read at once. Ends none before so many were."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.running = self.most = 0
        self._expected = expected

    async def extract(self, window: Window) -> Extraction:
        self.running += 1
        self.most = max(self.most, self.running)
        async with asyncio.timeout(60):
            await asyncio.sleep(0.01)
            while self.most < self._expected:  # noqa: ASYNC110 - others raise it
                await asyncio.sleep(0.01)
        self.running -= 1
        return await super().extract(window)


async def test_a_batch_may_work_on_one_session_at_once(folder: Path, store: Store) -> None:
    most = []
    for sessions_at_once, expected in ((None, 2), (1, 1)):
        extractor = Counting(expected)
        owner = f"read by {sessions_at_once or 'many'}"
        sessions = [replace(saved, scope=Scope.user(f"{saved.scope.id} {owner}")) for saved in find_sessions([folder])]
        await run_batch(store, sessions, extractor=extractor, sessions_at_once=sessions_at_once)
        most.append(extractor.most)
    assert most[0] > most[1] == 1


async def test_background_work_comes_after_a_live_agent(tmp_path: Path, folder: Path) -> None:
    """It is done in a process of its own, which has a lower priority."""
    seen: set[int] = set()
    async with afterword.open(settings=settings(tmp_path, "own")) as app:
        report = await run(app, folder, own_process=True, processes=1, on_done=lambda *_: seen.update(priorities()))
        assert {type(session.result) for session in report.sessions} == {SessionOutcome}
    assert max(seen) == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)


async def test_what_is_loaded_after_the_first_session_is_left_out_of_collections(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, ended_before = BytesIO(), list[bool]()
    monkeypatch.setattr(gc, "freeze", lambda: ended_before.append(bool(output.tell())))
    chosen = settings(tmp_path, "frozen")
    async with Store(chosen.store.url) as store:
        await store.migrate()
    share = SessionShare(chosen, "rules", True, 1, None, False, tuple(find_sessions([folder])[:3]))
    await process_share(share, lambda: None, output)
    assert ended_before == [False]


async def test_a_stop_is_passed_on_with_its_reason(tmp_path: Path, folder: Path) -> None:
    async with afterword.open(settings=settings(tmp_path, "stopped")) as app:
        report = await run(app, folder, own_process=True, processes=1, stop=lambda: "enough")
        reasons = {session.result.reason for session in report.sessions if isinstance(session.result, NotStarted)}
        assert reasons <= {"enough"}
        assert len(report.sessions) == 12


async def test_what_a_killed_process_left_is_told_and_done_by_the_next_run(tmp_path: Path, folder: Path) -> None:
    async with afterword.open(settings=settings(tmp_path, "killed")) as app:
        await app.scopes()

        def kill(*_: object) -> None:
            for process in children():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

        report = await run(app, folder, processes=2, on_done=kill)
        left = [session.result for session in report.sessions if isinstance(session.result, NotStarted)]
        assert len(report.sessions) == 12
        assert all("exit code -9" in result.reason for result in left)
        again = await run(app, folder)
        assert all(isinstance(session.result, SessionOutcome) for session in again.sessions)
        assert {name: len(facts) for name, facts in (await told(app)).items()} == dict.fromkeys(
            ("ada", "bo", "cy", "dot", "eve", "flo"), 2
        )


async def test_a_process_whose_beginner_is_killed_says_nothing_of_it(tmp_path: Path, folder: Path) -> None:
    """Nobody reads its results then. It finishes the sessions it has begun, and these are stored."""
    chosen = settings(tmp_path, "left")
    async with afterword.open(settings=chosen) as app:
        await app.scopes()
        share = SessionShare(chosen, "rules", True, 4, None, False, tuple(find_sessions([folder])))
        assert await asyncio.to_thread(work_for_nobody, message_bytes(share)) == (0, "")
        assert {len(facts) for facts in (await told(app)).values()} == {2}


def work_for_nobody(message: bytes) -> tuple[int, str]:
    """Let a process work whose results cannot be read; return its exit code and what it printed."""
    command = [sys.executable, "-m", "afterword.client.process_pool"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.close()
        worker.stdin.write(message)
        worker.stdin.flush()
        printed = worker.stderr.read().decode()
    return worker.returncode, printed


def children() -> list[int]:
    """Return the ids of the processes that this one has begun and that run."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "process_pool" in line]


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (lambda path: {"url": "sqlite://"}, "in memory"),
        (
            lambda path: {"settings": Settings(store={"url": f"sqlite:///{path}/a.db"}, budget={"tokens_per_run": 9})},
            "budget",
        ),
    ],
)
async def test_what_cannot_be_shared_is_refused_with_the_reason(
    tmp_path: Path, folder: Path, arrange: Callable[[Path], dict[str, Any]], reason: str
) -> None:
    async with afterword.open(**arrange(tmp_path)) as app:
        with pytest.raises(ArgumentInvalid, match=reason):
            await run(app, folder, processes=2)
        report = await run(app, folder, processes=None)
        assert len(report.sessions) == 12


def test_scopes_stay_together_and_shares_are_even() -> None:
    sessions = [Saved(Scope.user(f"u{number % 7}"), str(number)) for number in range(50)]
    divided = divide_by_scope(sessions, 3)
    assert sorted(saved.session_id for share in divided for saved in share) == sorted(map(str, range(50)))
    owners = [{saved.scope for saved in share} for share in divided]
    assert sum(map(len, owners)) == 7
    assert max(map(len, divided)) - min(map(len, divided)) <= 8


def test_the_command_takes_the_number_of_processes(tmp_path: Path, folder: Path, afterword: Commands) -> None:
    url = f"sqlite:///{tmp_path}/cli.db"
    printed = afterword("run", str(folder), "--processes", "2", "--json", AFTERWORD_STORE__URL=url)
    assert len(json.loads(printed)) == 12


@pytest.mark.parametrize("sent", [b"", b"\x00\x00", b"\x00\x00\x00\x00\x00\x00\x00\x09part"])
def test_a_process_whose_parent_died_before_it_sent_the_work_ends_in_silence(sent: bytes) -> None:
    command = [sys.executable, "-m", "afterword.client.process_pool"]
    ended = subprocess.run(command, input=sent, capture_output=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
