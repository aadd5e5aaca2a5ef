"""What every runner is given: texts, vectors and queries that were made once, and one way of being timed.

    python with_LIBRARY.py fill|ask FOLDER MADE SIZE ROUNDS

`fill` writes the first SIZE texts of the file MADE into FOLDER, `ask` opens what lies there and prints a line of JSON:
the time of the first query with the opening, and of each of ROUNDS further queries. Nothing but numpy is needed here.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy

USER = "user-0"
LIMIT = 10
WARMING = 20
"""How many queries are asked before the clock runs."""


@dataclass(frozen=True)
class Given:
    """Texts and queries, each with its unit vector (a row of 256 numbers)."""

    texts: Sequence[str]
    vectors: Any
    queries: Sequence[str]
    query_vectors: Any

    @cached_property
    def asked(self) -> dict[str, list[float]]:
        """The vectors of the queries, as an endpoint would hand them over."""
        return dict(zip(self.queries, self.query_vectors.tolist(), strict=True))

    @cached_property
    def _row(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.texts)}

    def vector(self, text: str) -> list[float]:
        """Return the vector of a query or of a text, instead of asking a model for it."""
        return self.asked[text] if text in self.asked else self.vectors[self._row[text]].tolist()

    def nearest(self, query: str) -> set[str]:
        """Return the texts whose vectors are nearest to the query's."""
        near = self.vectors @ numpy.array(self.asked[query], dtype="float32")
        return {self.texts[row] for row in numpy.argpartition(-near, LIMIT)[:LIMIT]}


def read(made: Path, size: int) -> Given:
    """Return what the file holds, the first `size` texts of it."""
    with numpy.load(made) as kept:
        texts, queries = kept["texts"][:size].tolist(), kept["queries"].tolist()
        given = Given(texts, kept["vectors"][:size].copy(), queries, kept["query_vectors"])
    given.asked  # noqa: B018 - so that it is there before the clock runs
    return given


Ask = Callable[[str], Awaitable[Any]]
Fill = Callable[[Path, Given], Coroutine[Any, Any, None]]
Opened = Callable[[Path, Given], AbstractAsyncContextManager[Ask]]
Texts = Callable[[Any], list[str]]


def main(packages: Sequence[str], fill: Fill, opened: Opened, texts: Texts) -> None:
    """Do what the command line says; `texts` takes from an answer the texts found, outside of the time taken."""
    sys.addaudithook(_no_network)
    command, folder, made, size, rounds = sys.argv[1:]
    given = read(Path(made), int(size))
    if command == "fill":
        asyncio.run(fill(Path(folder), given))
        return
    told = asyncio.run(_asked(Path(folder), given, int(rounds), fill, opened, texts))
    print(json.dumps({"version": ", ".join(f"{one} {version(one)}" for one in packages), **told}))  # noqa: T201


async def _asked(folder: Path, given: Given, rounds: int, fill: Fill, opened: Opened, texts: Texts) -> dict[str, Any]:
    await _load_code(given, fill, opened)
    answers, took, worked = [], [], []
    started = time.perf_counter()
    async with opened(folder, given) as ask:
        await ask(given.queries[0])
        cold = time.perf_counter() - started
        for query in given.queries[1 : WARMING + 1]:
            await ask(query)
        for number in range(rounds):
            query = given.queries[number % len(given.queries)]
            started, idle = time.perf_counter(), time.process_time()
            answer = await ask(query)
            took.append((time.perf_counter() - started) * 1000)
            worked.append((time.process_time() - idle) * 1000)
            answers.append((query, answer))
        shares = [_share(given, query, texts(answer)) for query, answer in answers]
    return {"cold_ms": cold * 1000, "warm_ms": took, "cpu_ms": worked, "nearest": sum(shares) / len(shares)}


async def _load_code(given: Given, fill: Fill, opened: Opened) -> None:
    """Fill and ask a small store, so that what a library imports late is not counted as opening."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as small:
        few = replace(given, texts=given.texts[:50], vectors=given.vectors[:50])
        await fill(Path(small), few)
        async with opened(Path(small), few) as ask:
            await ask(given.queries[0])


def _share(given: Given, query: str, found: list[str]) -> float:
    if len(found) != LIMIT:
        raise SystemExit(f"{len(found)} results instead of {LIMIT}")
    return len(given.nearest(query) & set(found)) / LIMIT


def _no_network(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise RuntimeError(f"the network is not to be used: {event} {arguments[1:]}")
