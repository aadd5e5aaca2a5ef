"""Recall on a PostgreSQL server: right whoever writes, and whatever happens to the connections."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from afterword.facts.scopes import Scope
from afterword.store import entries
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from afterword.store.reading.recall import search
from afterword.store.reading.view_cache import view_cache_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=1)
LENA = Scope.user("lena")
ENDING = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def told(store: Store) -> list[str]:
    found = await search(store, LENA, "Lena likes what?", at=LATER)
    return sorted(fact.statement for fact in found.facts)


async def say(store: Store, what: str) -> None:
    await entries.add_entry(store, LENA, Entry(f"Lena likes {what}."), at=NOON)


def on_the_server(url: str, question: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(question).fetchall()


def in_a_loop_of_its_own(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def test_what_another_writes_is_seen_at_the_next_question(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store, Store(postgres_store_url) as other:
        for number, what in enumerate(("tea", "jam", "rain")):
            await say(other, what)
            assert len(await told(store)) == number + 1
            before = await view_cache_of(store).view(store, LENA, LATER)
            assert await view_cache_of(store).view(store, LENA, LATER) is before


async def test_it_goes_on_where_the_server_has_ended_every_connection(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store:
        await say(store, "tea")
        assert await told(store) == await told(store) == ["Lena likes tea."]
        on_the_server(postgres_store_url, ENDING)
        assert await told(store) == ["Lena likes tea."]
        async with Store(postgres_store_url) as other:
            await say(other, "jam")
        on_the_server(postgres_store_url, ENDING)
        assert await told(store) == ["Lena likes jam.", "Lena likes tea."]


async def test_a_question_that_was_given_up_leaves_no_answer_for_the_next(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store:
        await say(store, "tea")
        await told(store)
        for pauses in range(6):
            asked = asyncio.ensure_future(told(store))
            for _ in range(pauses):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait({asked})
            await say(store, f"jam {pauses}")
            assert len(await told(store)) == pauses + 2


async def test_many_may_ask_at_once(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store:
        await say(store, "tea")
        await told(store)
        assert await asyncio.gather(*(told(store) for _ in range(20))) == [["Lena likes tea."]] * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_forked_process_opens_its_own(postgres_store_url: str) -> None:
    async with Store(postgres_store_url) as store:
        await say(store, "tea")
        await told(store)
        assert await told(store) == ["Lena likes tea."]
        child = os.fork()
        if not child:
            done = 1
            try:
                done = 0 if in_a_loop_of_its_own(told(store)) == ["Lena likes tea."] else 1
            finally:
                os._exit(done)
        assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
        await say(store, "jam")
        assert await told(store) == ["Lena likes jam.", "Lena likes tea."]
