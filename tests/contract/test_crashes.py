"""Killed and run by several at once on PostgreSQL, too: the store is that of one undisturbed run."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import psycopg
import pytest
from sqlalchemy import make_url

from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
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
    records,
    results,
    sessions_done,
    start,
    start_run,
    wait_until,
    write_batch,
)
from programs import run_backwards

pytestmark = pytest.mark.begun_first

T = TypeVar("T")

SEED = 20261121
ALL_DONE = dict.fromkeys(SCOPES, SESSIONS_EACH)


class Server:
    """A PostgreSQL server on which each test makes a database with the tables in it."""

    def __init__(self, url: str, template: str) -> None:
        self._url, self._template = url, template

    def make(self) -> str:
        """Make a database and return its URL."""
        name = f"afterword_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {self._template}")
        return make_url(self._url).set(database=name).render_as_string(hide_password=False)

    def is_used(self, url: str) -> bool:
        """Whether anybody is connected to a database."""
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"
        with psycopg.connect(self._url) as connection:
            row = connection.execute(query, [make_url(url).database]).fetchone()
        return row is not None and row[0] > 0


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str) -> Server:
    return Server(postgres_url, template)


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory, server: Server, canonical: Canonical) -> Calm:
    """The folder of sessions, and what undisturbed runs of it give."""
    folder, url = write_batch(tmp_path_factory.mktemp("calm") / "saved"), server.make()
    return calm_of(folder, url, lambda: server.is_used(url), canonical)


def read(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with Store(url) as store:
            return await work(store)

    return asyncio.run(opened())


def audit(url: str, calm: Calm, canonical: Canonical) -> tuple[dict[Scope, int], list[str]]:
    """How many sessions of each scope are done; and what is wrong: halves, other facts than those sessions give."""

    async def look(store: Store) -> tuple[dict[Scope, int], list[str]]:
        found = await faults(store) + await differences(store, calm, canonical)
        return await sessions_done(store), found

    return read(url, look)


@pytest.mark.parametrize("moment", few_moments(2, SEED, outside_soak=1))
def test_a_batch_killed_at_a_random_moment_and_run_again_is_as_if_never_killed(
    moment: float, server: Server, calm: Calm, canonical: Canonical
) -> None:
    url = server.make()
    killed(start_run(url, calm.folder), lambda: server.is_used(url), moment * calm.working_s)
    # What was sent before the kill may still be carried out: the server ends it, or takes it back.
    wait_until(lambda: not server.is_used(url))
    assert audit(url, calm, canonical)[1] == []
    ended(start_run(url, calm.folder))
    assert audit(url, calm, canonical) == (ALL_DONE, [])
    for scope in SCOPES:
        assert read(url, partial(records, scope=scope)) == calm.records[scope]


def test_four_processes_at_once_do_what_one_does(server: Server, calm: Calm, canonical: Canonical) -> None:
    url = server.make()
    became = results(*[start_run(url, calm.folder) for _ in range(4)])
    assert set(became) == {"done", "unchanged"}
    assert audit(url, calm, canonical) == (ALL_DONE, [])


def test_a_process_that_goes_backwards_meets_another_without_harm(
    server: Server, calm: Calm, canonical: Canonical
) -> None:
    url = server.make()
    ended(start_run(url, calm.folder), start(url, calm.folder.parent, str(calm.folder), program=run_backwards))
    assert audit(url, calm, canonical) == (ALL_DONE, [])
