"""What only PostgreSQL does: many writers at once, timeouts, levels of isolation."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlmodel import Session

import afterword
from afterword.doctor import run_checks
from afterword.errors import Overtaken, StoreUnreachable
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, queued_sessions, run_batch
from afterword.settings import Settings
from afterword.store import lookup, scope_rows, sessions
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store
from afterword.store.limits import StoreLimits
from batches import wait_until
from nursery import Child
from programs import watch_for_ever
from servers import away
from service import serving

AT = datetime(2026, 3, 1, tzinfo=UTC)
MIRA, JON = Scope.user("mira"), Scope.user("jon")


async def test_a_statement_that_takes_too_long_is_given_up(postgres_store_url: str) -> None:
    limits = StoreLimits(pool_size=1, statement_timeout_s=1.0)
    async with Store(postgres_store_url, limits=limits) as store:
        with pytest.raises(StoreUnreachable, match="QueryCanceled"), store.reading() as transaction:
            transaction.connection().execute(text("SELECT pg_sleep(60)"))
        with store.reading() as transaction:
            assert scope_rows.read_scopes(transaction) == []


async def test_a_server_that_can_only_be_read_says_so(postgres_store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in recovery. The memory is read, the probe of the service gives 503, and the doctor reports it."""
    url = f"{postgres_store_url}&options=-c%20default_transaction_read_only%3Don"
    async with afterword.open(postgres_store_url, settings=Settings()) as app:
        await app.check()
        await app.user("mira").remember("I like tea.")
    async with afterword.open(url, settings=Settings()) as app:
        assert (await app.user("mira").facts()).total == 1
        for asked in (app.user("mira").remember("I like rum."), app.check()):
            with pytest.raises(StoreUnreachable, match="can only be read; name the primary server"):
                await asked
        async with serving(app) as call:
            assert (await call.http.get("/readyz")).status_code == 503
            assert (await call.http.get("/healthz")).status_code == 200
    monkeypatch.setenv("AFTERWORD_STORE__URL", url)
    (check,) = [check for check in await run_checks() if check.name == "store"]
    assert (check.ok, "can only be read" in check.finding) == (False, True)


async def test_a_count_of_the_tables_is_taken_at_once(postgres_store_url: str) -> None:
    async def counted(store: Store) -> float:
        with store.connecting(writing=False) as connection:
            query = "SELECT reltuples FROM pg_class WHERE oid = 'sessions'::regclass"
            return float(connection.exec_driver_sql(query).scalar_one())

    async with Store(postgres_store_url) as store:
        await store.write(lambda transaction: sessions.mark_failed(transaction, MIRA, "one", "reason", AT))
        assert await counted(store) < 1
        with store.connecting(writing=True) as connection:
            update_postgres_statistics(connection)
        assert await counted(store) == 1


async def test_of_two_that_make_the_same_row_the_second_begins_anew(postgres_store_url: str) -> None:
    """It could not see the first one's row, so it has to look again."""
    async with Store(postgres_store_url) as store:

        def save(transaction: Session, session_id: str) -> None:
            sessions.mark_failed(transaction, MIRA, session_id, "reason", AT)

        async def late() -> None:
            with store.writing() as transaction:
                assert sessions.find_session(transaction, MIRA, "new") is None
                await store.write(lambda other: save(other, "new"))
                save(transaction, "new")

        await store.write(lambda transaction: save(transaction, "first"))
        with pytest.raises(Overtaken):
            await late()
        await store.write(lambda transaction: save(transaction, "new"))
        with store.reading() as transaction:
            kept = sessions.find_session(transaction, MIRA, "new")
        assert kept is not None
        assert kept.attempts == 2


async def test_where_a_sum_decides_one_of_two_is_refused(postgres_store_url: str) -> None:
    """Each reads that there is room for one, and takes it: strict transactions do not both come through."""

    async def take(store: Store, name: str, both_looked: asyncio.Barrier) -> None:
        with store.writing(strict=True) as transaction:
            taken = scope_rows.read_scopes(transaction)
            await both_looked.wait()
            if not taken:
                scope_rows.ensure_scope(transaction, Scope.user(name))

    async with Store(postgres_store_url) as store:
        both_looked = asyncio.Barrier(2)
        ended = await asyncio.gather(
            *(take(store, name, both_looked) for name in ("mira", "jon")), return_exceptions=True
        )
    assert sorted(type(one).__name__ for one in ended) == ["NoneType", "Overtaken"]


async def test_writers_of_different_scopes_do_not_refuse_each_other(postgres_store_url: str) -> None:
    async def work(store: Store, scope: Scope, both_read: asyncio.Barrier) -> None:
        with store.writing() as transaction:
            scope_rows.lock_scope(transaction, scope)
            lookup.read_knowledge(transaction, scope)
            sessions.read_sessions(transaction)
            await both_read.wait()
            sessions.mark_failed(transaction, scope, "one", "reason", AT)

    async with Store(postgres_store_url) as store:
        for scope in (MIRA, JON):
            with store.writing() as transaction:
                scope_rows.ensure_scope(transaction, scope)
        both_read = asyncio.Barrier(2)
        await asyncio.gather(*(work(store, scope, both_read) for scope in (MIRA, JON)))


async def test_a_long_writer_comes_through_between_many_short_ones(postgres_store_url: str) -> None:
    """Somebody always holds the row of the scope, and whoever waits for it is refused. In the end it writes alone."""
    is_over, tried = threading.Event(), []

    def write_again_and_again(store: Store) -> None:
        while not is_over.is_set():
            with suppress(Overtaken), store.writing() as transaction:
                scope_rows.lock_scope(transaction, MIRA)
                time.sleep(0.02)

    def write_late(transaction: Session) -> None:
        tried.append(scope_rows.revision_of(transaction, MIRA))
        time.sleep(0.1)
        scope_rows.lock_scope(transaction, MIRA)

    async with Store(postgres_store_url) as store, Store(postgres_store_url) as others:
        await store.write(lambda transaction: scope_rows.ensure_scope(transaction, MIRA))
        with ThreadPoolExecutor(3) as threads:
            ended = [threads.submit(write_again_and_again, others) for _ in range(3)]
            try:
                await store.write(write_late)
            finally:
                is_over.set()
        assert [one.result() for one in ended] == [None] * 3
    assert len(tried) > 1


async def test_a_batch_of_many_scopes_fails_nowhere(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store:
        for number in range(24):
            told = {"source": "user", "type": "TextMessage", "content": f"My shoe size is {30 + number}."}
            state = {"messages": [{**told, "created_at": (AT + timedelta(days=number)).isoformat()}]}
            scope = Scope.user(f"user{number % 8}")
            with store.writing() as transaction:
                sessions.save_state(transaction, scope, f"s{number}", component="x", state=state, at=AT)
        ended = await run_batch(store, await queued_sessions(store), extractor=RulesExtractor())
    assert [one for one in ended if isinstance(one, Failure)] == []


async def test_readers_who_wait_for_one_load_leave_no_error_behind(postgres_store_url: str, postgres_url: str) -> None:
    """While the database is away each of them gets an error, and asyncio has none to report."""
    reported: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    async with afterword.open(postgres_store_url) as app:
        await app.user("mira").remember("The user likes tea.")
        with away(postgres_url, postgres_store_url):
            ended = await asyncio.gather(*(app.user("mira").search("tea") for _ in range(4)), return_exceptions=True)
    assert [type(error) for error in ended] == [StoreUnreachable] * 4
    del ended
    gc.collect()
    await asyncio.sleep(0)
    assert reported == []


@pytest.mark.begun_first
def test_the_server_of_a_killed_test_run_is_stopped_and_removed(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    (folder / "data").mkdir(parents=True)
    # A shell that starts the tests in the background has them ignore this signal, and a child inherits that.
    with subprocess.Popen(["env", "--default-signal=QUIT", "sleep", "600"]) as server:
        (folder / "data" / "postmaster.pid").write_text(f"{server.pid}\n/data\n")
        run = Child([str(folder)], os.environ, tmp_path / "run.txt", program=watch_for_ever)
        wait_until(lambda: run.printed() == "watching\n")
        assert server.poll() is None
        run.kill()
        assert server.wait(60) == -signal.SIGQUIT
    wait_until(lambda: not folder.exists())
