"""How long does it take to choose and render all that an agent is told, where the memory is far larger than the block?

    python benchmarks/block_speed.py [--sizes 1000 10000] [--rounds 60] [--out benchmarks/block_speed.md]

One scope in a SQLite file. Each fact rests on a turn of its own, and two more turns a fact have no fact; every tenth
fact was superseded by the next one, every five-hundredth is flagged. Warm: the store has not changed, as many other
questions were asked before, and no question is repeated. After a write: the first question after the application has
added one fact.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import random
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from recall_speed import NOW, START, TABLES, Times, fact_rows, scope_row, sentence, timed
from sqlalchemy import insert

from afterword.facts.scopes import Scope
from afterword.recall.said_index import shown_text_to_store
from afterword.recall.search_terms import TOKENIZER, turn_terms
from afterword.recall.tokens import estimated_token_count
from afterword.store import entries
from afterword.store.database.compaction import update_postgres_statistics
from afterword.store.database.engine import Store, open_store
from afterword.store.entered_statements import Entry
from afterword.store.reading.recall import recall
from afterword.store.tables import AssertionRow, FactRow, SessionRow, TurnRow

SCOPE = Scope.user("user-0")
BUDGET_TOKENS = 2_000
TURNS_A_FACT = 3
FACTS_A_SESSION = 20
TURNS_A_SESSION = FACTS_A_SESSION * TURNS_A_FACT


def fill(store: Store, size: int) -> None:
    """Write the scope as processing would leave it."""
    chance = random.Random(1)
    rows: dict[Any, list[dict[str, Any]]] = {table: [] for table in (*TABLES, SessionRow, TurnRow)}
    rows[TABLES[0]].append(scope_row(0))
    for number in range(size):
        values = fact_rows(0, number, sentence(chance))
        values[AssertionRow]["is_flagged"] = number % 500 == 0
        if number % 10 == 1:
            end = START + timedelta(minutes=number + 1)
            span = values[FactRow]["spans"][0]
            later = f"a{0:06d}-{number + 1:06d}"
            values[FactRow]["spans"] = [span | {"end": end.isoformat(), "ending": "superseded", "by": later}]
        for table, columns in values.items():
            rows[table].append(columns)
    of_session = {"scope_id": 1, "progress": "done", "humans": ["user"], "assumed": [], "skipped": {}, "attempts": 0}
    for session in range(-(-size // FACTS_A_SESSION)):
        rows[SessionRow].append(of_session | {"id": session + 1, "session_id": f"s{session}", "updated_at": START})
        for number in range(1, TURNS_A_SESSION + 1):
            words = sentence(chance, 15)
            turn = {"session_pk": session + 1, "number": number, "speaker": "user", "role": "human", "text": words}
            found_by = TOKENIZER + turn_terms(START, "user", words)
            derived = {"search_terms": found_by, "shown": shown_text_to_store("user", words)}
            rows[TurnRow].append(turn | {"said_at": START, "time_is_guess": False, **derived})
    with store.connecting(writing=True) as connection:
        for table, values_of_table in rows.items():
            connection.execute(insert(table), values_of_table)
        update_postgres_statistics(connection)


async def measure(folder: Path, size: int, rounds: int) -> tuple[Times, Times, float, float]:
    """Return the times of warm blocks and of those after a write, the processor time of a warm one, and its tokens."""
    chance, tokens = random.Random(2), list[int]()
    async with await open_store(f"sqlite:///{folder}/{size}.db") as store:
        fill(store, size)

        async def tell() -> None:
            recalled = await recall(store, SCOPE, sentence(chance, 4), at=NOW, budget_tokens=BUDGET_TOKENS)
            assert recalled.layers is not None
            tokens.append(
                estimated_token_count(recalled.layers.stable_text)
                + estimated_token_count(recalled.layers.question_text)
            )

        async def write() -> None:
            entry = Entry(f"A note: {sentence(chance)}", attribute=f"added_{chance.random()}")
            await entries.add_entry(store, SCOPE, entry, at=NOW)

        for _ in range(rounds):
            await tell()
        began = time.process_time()
        [warm] = await timed(rounds, tell)
        processor = (time.process_time() - began) * 1000 / rounds
        after: list[float] = []
        for _ in range(max(rounds // 10, 3)):
            await write()
            [(took, _)] = await timed(1, tell)
            after.append(took)
        after.sort()
        return warm, (after[len(after) // 2], after[-1]), processor, sum(tokens) / len(tokens)


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="How long it takes to choose and render a block.")
    parser.add_argument("--sizes", nargs="*", type=int, default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    table = [
        "# Speed of a block with all layers",
        "",
        f"Command: `benchmarks/block_speed.py --rounds {options.rounds}`. Milliseconds, a budget of {BUDGET_TOKENS:,}",
        f"tokens, words alone. Load of the machine at the beginning {load:.1f} on {os.cpu_count()} cores,",
        f"{platform.machine()}, Python {platform.python_version()}.",
        "",
        "| facts | turns | warm p50 | warm p95 | processor time | after a write p50 | slowest | tokens of the block |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory(prefix="afterword-block-", ignore_cleanup_errors=True) as name:
        for size in options.sizes:
            warm, after, processor, tokens = await measure(Path(name), size, options.rounds)
            times = " | ".join(f"{duration:.1f}" for duration in (*warm, processor, *after))
            table.append(f"| {size:,} | {size * TURNS_A_FACT:,} | {times} | {tokens:.0f} |")
    print("\n".join(table))  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text("\n".join([*table, ""]), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
