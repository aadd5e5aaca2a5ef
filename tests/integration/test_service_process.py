"""The service as a process: it is killed under writes, and programs of other languages use it."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from weakref import WeakSet

import httpx
import pytest

from afterword.facts.fact import FactFilter, FactOrder
from afterword.facts.scopes import Scope
from afterword.server.background import shortening_gc_pauses
from afterword.store.database.engine import open_store
from afterword.store.entered_statements import Entry
from afterword.store.entries import add_entry
from afterword.store.reading.view_cache import ViewCache
from afterword.store.reading.views import View
from batches import ended, start, wait_until
from nursery import Child
from running_time import running_time
from service import said
from service_processes import IMPATIENT_HEADER_S, serve_impatiently, served

pytestmark = pytest.mark.begun_first

KILLS, SOAK_KILLS = 5, 100
AT = datetime(2026, 3, 1, tzinfo=UTC)
ALL = FactFilter(None, None, None, frozenset())


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    return f"sqlite:///{tmp_path}/afterword.db"


def key_of_mira(url: str, folder: Path) -> str:
    """Return a new key, as the command line makes it."""
    (printed,) = ended(start(url, folder, "keys", "create", "--user", "mira", "--json"))
    return str(json.loads(printed)["key"])


def wait_until_closed(address: str, head: bytes, pause_s: float) -> None:
    """Send the head of a request byte by byte, until the service has closed the connection."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection, suppress(OSError):
        for byte in head:
            connection.sendall(bytes([byte]))
            connection.settimeout(pause_s)
            with suppress(TimeoutError):
                if connection.recv(1) == b"":
                    return
        connection.settimeout(60)
        connection.recv(1)


def test_a_slow_head_of_a_request_ends_the_connection(tmp_path: Path) -> None:
    """Also if bytes arrive all the time; other clients are answered meanwhile."""
    url = f"sqlite:///{tmp_path}/afterword.db"
    with (
        served(url, tmp_path, program=serve_impatiently) as (_, address),
        ThreadPoolExecutor() as threads,
        running_time() as elapsed_s,
    ):
        began_at_s = time.monotonic()
        heads = b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Name: " + b"a" * 1000
        closing = [threads.submit(wait_until_closed, address, head, 0.3) for head in heads]
        with httpx.Client(base_url=address, timeout=60) as client:
            assert client.get("/healthz").status_code == 200
            for closed in as_completed(closing):
                closed.result()
                assert time.monotonic() - began_at_s >= IMPATIENT_HEADER_S
            assert elapsed_s() < IMPATIENT_HEADER_S + 5
            assert client.get("/healthz").status_code == 200


async def test_a_client_that_still_sends_a_body_that_is_too_long_gets_the_answer(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/afterword.db"
    headers = {"Authorization": f"Bearer {key_of_mira(url, tmp_path)}", "Content-Type": "application/json"}

    async def in_parts() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    with served(url, tmp_path) as (_, address):
        for content in (b" " * 8_000_001, b" " * 20_000_000, in_parts()):
            async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
                answer = await client.post("/v1/me/sessions", content=content)
            assert (answer.status_code, answer.headers["Connection"]) == (413, "close")


def write(client: httpx.Client, number: int) -> httpx.Response:
    body, repeated = {"content": f"I like tea number {number}."}, {"Idempotency-Key": f"write-{number}"}
    return client.post("/v1/memory/remember", json=body, headers=repeated)


def write_until_answered(client: httpx.Client, number: int) -> httpx.Response:
    """Write as a careful client does: again, while a server that was killed still holds the request."""
    for _ in range(60):
        answer = write(client, number)
        if answer.status_code != 409:
            break
        time.sleep(int(answer.headers["Retry-After"]))
    return answer


def every_fact(client: httpx.Client) -> list[dict[str, Any]]:
    facts, after = list[dict[str, Any]](), dict[str, str]()
    while True:
        page = client.get("/v1/me/facts", params={"limit": 500, **after}).json()
        facts += page["facts"]
        if page["next"] is None:
            return facts
        after = {"after": page["next"]}


@pytest.mark.parametrize("kills", [KILLS, pytest.param(SOAK_KILLS, marks=pytest.mark.soak)])
def test_what_was_acknowledged_survives_kills_and_nothing_is_doubled(url: str, tmp_path: Path, kills: int) -> None:
    key = key_of_mira(url, tmp_path)
    headers, acknowledged, number = {"Authorization": f"Bearer {key}"}, dict[int, str](), 0
    for kill in range(kills):
        with (
            served(url, tmp_path) as (process, address),
            httpx.Client(base_url=address, headers=headers, timeout=10) as client,
        ):
            killer = threading.Timer(0.2 + 0.037 * (kill % 20), process.kill)
            killer.start()
            with suppress(httpx.TransportError):
                while True:
                    acknowledged[number] = write_until_answered(client, number).json()["id"]
                    number += 1
            killer.join()
    with (
        served(url, tmp_path) as (process, address),
        httpx.Client(base_url=address, headers=headers, timeout=60) as client,
    ):
        for written in range(number + 1):
            answer = write_until_answered(client, written)
            assert answer.status_code == 200
            assert acknowledged.get(written, answer.json()["id"]) == answer.json()["id"]
        facts = every_fact(client)
        expected = [f"I like tea number {written}." for written in range(number + 1)]
        assert sorted(fact["statement"] for fact in facts) == sorted(expected)
        assert {fact["support"] for fact in facts} == {1}
        assert client.get("/v1/me/runs", params={"limit": 1}).json()["total"] == number + 1
        process.terminate()
        assert process.wait(20) in (0, -signal.SIGTERM)


def test_a_session_whose_server_was_killed_can_be_sent_again_soon(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/afterword.db"
    key = key_of_mira(url, tmp_path)
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": "long"}
    state = said(*(f"I like tea number {number}." for number in range(300)))
    body = {"session_id": "long", "state": state, "started_at": "2026-03-02"}
    with served(url, tmp_path) as (process, address):
        # The work waits for the store, which another program writes into, so that the kill always meets it.
        writer = sqlite3.connect(tmp_path / "afterword.db", isolation_level=None, check_same_thread=False)
        killing = threading.Thread(target=kill_when_held, args=(process, writer))
        killing.start()
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{address}/v1/me/sessions", json=body, headers=headers, timeout=60)
        killing.join()
        writer.close()
    with served(url, tmp_path) as (_, address), running_time() as elapsed_s:
        while httpx.post(f"{address}/v1/me/sessions", json=body, headers=headers, timeout=60).status_code == 409:
            assert elapsed_s() < 15
            time.sleep(0.5)
        runs = httpx.get(f"{address}/v1/me/runs", headers=headers, timeout=60).json()["runs"]
        assert [run["status"] for run in runs] == ["applied"]


def kill_when_held(process: Child, writer: sqlite3.Connection) -> None:
    """Lock the store against the server as soon as it has noted the request, and kill the server."""
    wait_until(lambda: writer.execute("SELECT count(*) FROM repeatable_requests").fetchone() == (1,))
    writer.execute("BEGIN IMMEDIATE")
    process.kill()
    process.wait()
    writer.execute("ROLLBACK")


def blocks(repository: Path, language: str) -> list[str]:
    page = (repository / "docs" / "service.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_examples_of_the_page_run(repository: Path, tmp_path: Path) -> None:
    """The program in Python and the one in TypeScript remember and recall against a live service."""
    url = f"sqlite:///{tmp_path}/afterword.db"
    key = key_of_mira(url, tmp_path)
    python, _ = blocks(repository, "python")
    (typescript,) = blocks(repository, "typescript")
    assert len(python.splitlines()) <= 30
    with served(url, tmp_path) as (_, address):
        told = {**os.environ, "MEMORY_URL": address, "MEMORY_KEY": key}
        done = subprocess.run([sys.executable, "-c", python], env=told, capture_output=True, text=True, check=True)
        assert "Oslo" in done.stdout
        node = shutil.which("node")
        if node is None:
            pytest.skip("node is not installed: the TypeScript example was not run")
        # This version of node may not know types: without them the program is JavaScript.
        plain = re.sub(
            r"^type .*\n", "", re.sub(r": (string|Promise<Memory\[\]>|Memory\[\])", "", typescript), flags=re.M
        )
        (tmp_path / "example.mjs").write_text(plain)
        done = subprocess.run([node, tmp_path / "example.mjs"], env=told, capture_output=True, text=True, check=False)
        assert "Oslo" in done.stdout, done.stderr


class Node:
    """An object that refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def _nothing_frozen() -> Iterator[None]:
    """Leave out what the tests have set apart for all their time."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_nothing_frozen")
async def test_full_collections_do_not_look_at_what_stays_and_garbage_is_freed() -> None:
    before = gc.get_freeze_count()
    staying = [Node() for _ in range(10_000)]
    async with shortening_gc_pauses(0.01, full_collection_every=4):
        leaving = Node()
        is_freed = asyncio.Event()
        weakref.finalize(leaving, is_freed.set)
        await asyncio.sleep(0.02)
        assert gc.get_freeze_count() - before > len(staying)
        del leaving
        await asyncio.wait_for(is_freed.wait(), 20)
    assert gc.get_freeze_count() == before


async def test_garbage_is_never_set_apart() -> None:
    """Whichever generation it has reached, which differs between versions of Python."""
    async with shortening_gc_pauses(0.01, full_collection_every=10**9):
        for generation in range(3):
            leaving = Node()
            gc.collect(generation)
            is_freed = asyncio.Event()
            weakref.finalize(leaving, is_freed.set)
            del leaving
            await asyncio.wait_for(is_freed.wait(), 20)


@pytest.mark.usefixtures("_nothing_frozen")
async def test_what_the_program_had_frozen_before_is_frozen_afterwards() -> None:
    staying = [Node() for _ in range(1000)]
    gc.collect()
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        async with shortening_gc_pauses(0.01, full_collection_every=2):
            await asyncio.sleep(0.05)
        assert gc.get_freeze_count() >= before - len(staying) // 2
    finally:
        gc.unfreeze()


async def test_memory_is_flat_over_dropped_views(tmp_path: Path) -> None:
    """Facts of more memories than there is room for come and go between the collections that look at all objects."""
    scopes = [Scope.user(f"user-{number}") for number in range(8)]
    async with await open_store(f"sqlite:///{tmp_path}/afterword.db") as store:
        for scope in scopes:
            for number in range(10):
                await add_entry(store, scope, Entry(f"The parcel {number} weighs {number} kilograms."), at=AT)
        tight, tracked = ViewCache(most_bytes=1), WeakSet[View]()
        async with shortening_gc_pauses(0.005, full_collection_every=10**9):
            for _ in range(5):
                for scope in scopes:
                    view = await tight.view(store, scope, AT + timedelta(days=1))
                    assert len(view.lists.select_places(ALL, FactOrder.SUBJECT)[0]) == 10
                    tracked.add(view)
                    del view
                    await asyncio.sleep(0.001)
            assert len(tracked) <= 2, "views that were dropped still take memory"
