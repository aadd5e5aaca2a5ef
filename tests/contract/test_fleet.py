"""Workers on one PostgreSQL store: every session once, one at a time within a scope, also where a worker is killed."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest

import afterword
from afterword.errors import StoreOutdated
from afterword.facts.scopes import Scope
from afterword.pipeline.background import workers as fleet
from afterword.store import runs, sessions
from afterword.store.database.engine import Store
from batches import faults, state, wait_until
from chaos import ran
from commands import Commands
from nursery import Child
from programs import work
from running_time import running_time
from servers import away

pytestmark = pytest.mark.begun_first

USERS = ("mira", "jon", "lena")
SESSIONS_EACH = 4
CLEAN_STOP_S = 10.0
STOP_WITHOUT_DATABASE_S = 20.0
DEAF_MODEL = {"BASE_URL": "http://127.0.0.1:9/v1", "API_KEY": "k", "MODE": "json_schema", "MAX_RETRIES": "0"}
"""A model whose server does not run."""


class Workers:
    """Processes that work on one store."""

    def __init__(self, url: str, log: Path) -> None:
        self.url, self.log, self.processes = url, log, list[Child]()

    def start(self, pause_s: float, *, once: bool) -> Child:
        arguments = [self.url, str(self.log), str(pause_s), "once" if once else "on"]
        printed = self.log.with_name(f"worker-{len(self.processes)}.txt")
        self.processes.append(Child(arguments, os.environ, printed, program=work))
        return self.processes[-1]

    def notes(self) -> list[tuple[str, str, float]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(who, what, float(when)) for who, what, when in map(str.split, lines)]


@pytest.fixture
def workers(postgres_store_url: str, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(postgres_store_url, tmp_path / "notes.txt")
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


async def record_all(store: Store) -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    for number in range(SESSIONS_EACH):
        for user in USERS:
            told = {"source": "user", "type": "TextMessage", "created_at": (at + timedelta(days=number)).isoformat()}
            state = {"messages": [{**told, "content": f"I am called {user}."}, {**told, "content": "I live in Graz."}]}
            with store.writing() as transaction:
                sessions.save_state(transaction, Scope.user(user), f"s{number}", component="x", state=state, at=at)


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query.encode()).fetchall()


async def test_workers_do_each_session_once_and_one_at_a_time_within_a_scope(workers: Workers) -> None:
    """One of them is killed in the middle of a session: its job is taken up again."""
    async with Store(workers.url) as store:
        with pytest.raises(StoreOutdated, match="afterword migrate"):
            async with fleet.open_queue(store):
                pass
        assert [await fleet.create_queue_tables(store), await fleet.create_queue_tables(store)] == [True, False]
        await record_all(store)
        async with fleet.open_queue(store) as app:
            assert await fleet.enqueue_waiting_sessions(app, store) == len(USERS) * SESSIONS_EACH
            assert await fleet.enqueue_waiting_sessions(app, store) == 0
            victim = workers.start(30.0, once=False)
            wait_until(lambda: len(workers.notes()) == 2)
            victim.kill()
            victim.wait()
            begun = rows(workers.url, "SELECT args::text, lock FROM procrastinate_jobs WHERE status = 'doing'")
            assert len(begun) == 2
            assert await fleet.retry_stalled_jobs(app) == 0  # a worker may be silent for half a minute
            assert await fleet.retry_stalled_jobs(app, silent_s=0.0) == 2
        workers.log.unlink()
        finishing = [workers.start(0.05, once=True) for _ in "12"]
        assert [one.wait() for one in finishing] == [0, 0]
        assert await faults(store) == []
        with store.reading() as transaction:
            made = [run.source for user in USERS for run in runs.read_runs(transaction, Scope.user(user))]
        assert Counter(made) == {f"session:s{number}": len(USERS) for number in range(SESSIONS_EACH)}
    for user in USERS:
        told = [what for who, what, _ in workers.notes() if who == user]
        assert all(pair in (("begin", "end"), ("end", "begin")) for pair in pairwise(told)), told
    assert rows(workers.url, "SELECT status FROM procrastinate_jobs WHERE task_name = 'afterword.session'") == []


async def test_the_queue_holds_keys_and_no_words(workers: Workers) -> None:
    async with Store(workers.url) as store:
        await fleet.create_queue_tables(store)
        await record_all(store)
        async with fleet.open_queue(store) as app:
            await fleet.enqueue_waiting_sessions(app, store)
    kept = str(rows(workers.url, "SELECT args::text, lock, queueing_lock, task_name FROM procrastinate_jobs"))
    assert "session" in kept
    assert not [word for word in (*USERS, "Graz", "s0") if word in kept]


async def test_the_commands_hand_out_and_work_off_the_queue(workers: Workers, tmp_path: Path) -> None:
    def afterword(*arguments: str) -> str:
        environment = {**os.environ, "AFTERWORD_STORE__URL": workers.url, "AFTERWORD_SCHEDULE__DEFER": "true"}
        return ran(environment, tmp_path, *arguments)

    afterword("migrate")
    async with Store(workers.url) as store:
        await record_all(store)
        assert json.loads(afterword("run", "--defer", "--json")) == {"deferred": len(USERS) * SESSIONS_EACH}
        assert json.loads(afterword("schedule", "--once", "--json"))["pending"]["ending"] == "done"
        afterword("worker", "--once")
        assert await faults(store) == []
        with store.reading() as transaction:
            assert {one.progress for one in sessions.read_sessions(transaction)} == {sessions.Progress.DONE}


def test_a_worker_prints_json_and_ends_with_1_where_a_session_failed(
    postgres_store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, reachable = Commands(tmp_path, monkeypatch, capsys), {"AFTERWORD_STORE__URL": postgres_store_url}
    run.within(reachable, "migrate")
    with afterword.connect(postgres_store_url) as app:
        app.user("mira").queue(state("I like tea."), session_id="monday")
    run.within(reachable, "run", "--defer")
    done = json.loads(run.within(reachable, "worker", "--once", "--json"))
    assert done == {"counts": {"sessions processed": 1}, "failures": {}}
    assert "working on postgresql://" in run.errors  # where it does not spoil the JSON

    with afterword.connect(postgres_store_url) as app:
        app.webhooks.add("https://hooks.example/x", events=["job failed"])
        app.user("mira").queue(state("I like coffee."), session_id="tuesday")
    deaf = {f"AFTERWORD_MODEL__{name}": value for name, value in DEAF_MODEL.items()}
    deaf |= reachable | {"AFTERWORD_EXTRACTOR": "model"}
    run.within(deaf, "run", "--defer")
    printed = run.within(deaf, "worker", "--once", "--json", expected=1)
    failed, _ = json.JSONDecoder().raw_decode(printed)
    assert failed["counts"] == {"sessions processed": 0}
    ((reason, count),) = failed["failures"].items()
    assert "no connection" in reason
    assert count == 1
    with afterword.connect(postgres_store_url) as app:
        (hook,) = app.webhooks.list()
        (post,) = app.webhooks.posts(hook.webhook.id)
    assert post.content == {"job": "queued sessions", "failures": 1}


async def test_a_worker_that_is_stopped_ends_its_session_or_leaves_it_waiting(workers: Workers) -> None:
    async with Store(workers.url) as store:
        await fleet.create_queue_tables(store)
        await record_all(store)
        process = workers.start(600.0, once=False)
        wait_until(lambda: len(workers.notes()) == 2)
        with running_time() as elapsed_s:
            process.terminate()
            assert process.wait() == 0
            assert elapsed_s() < CLEAN_STOP_S
        with store.reading() as transaction:
            assert len(sessions.waiting_sessions(transaction)) == len(USERS) * SESSIONS_EACH
        assert rows(workers.url, "SELECT 1 FROM procrastinate_jobs WHERE status = 'doing'") == []


async def test_a_worker_goes_on_after_the_database_was_away(workers: Workers, postgres_url: str) -> None:
    async with Store(workers.url) as store:
        await fleet.create_queue_tables(store)
        process = workers.start(0.0, once=False)
        wait_until(lambda: len(rows(workers.url, "SELECT 1 FROM procrastinate_workers")) == 1)
    with away(postgres_url, workers.url):
        await asyncio.sleep(2)
        assert process.poll() is None
    async with Store(workers.url) as store:
        await record_all(store)
        async with fleet.open_queue(store) as app:
            await fleet.enqueue_waiting_sessions(app, store)
        wait_until(lambda: len(rows(workers.url, "SELECT 1 FROM runs")) == len(USERS) * SESSIONS_EACH)
    with away(postgres_url, workers.url), running_time() as elapsed_s:
        process.terminate()
        assert process.wait() == 0
        assert elapsed_s() < STOP_WITHOUT_DATABASE_S
