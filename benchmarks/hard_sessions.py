"""Which sessions cost the most? Sessions of 100 kB of the worst kinds, and a value that changes to and fro.

    python benchmarks/hard_sessions.py [--bytes 100000] [--changes 100 400] [--out benchmarks/hard_sessions.md]

Seconds of processor time, read by the offline rules into a SQLite file. To and fro: one session a change, and of the
last twenty sessions the median.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median

from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store.database.engine import Store, open_store

FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
LAST = 20


def _repeated(sentence: Callable[[int], str], size: int) -> list[str]:
    sentences: list[str] = []
    while size > 0:
        sentences.append(sentence(len(sentences)))
        size -= len(sentences[-1]) + 1
    return sentences


def _home(number: int) -> str:
    return f"I live in City{number}."


KINDS: dict[str, Callable[[int], list[str]]] = {
    "turns of one letter": lambda size: [chr(ord("a") + number % 26) for number in range(size)],
    "homes in one turn": lambda size: [" ".join(_repeated(_home, size))],
    "homes, each in a turn of its own": lambda size: _repeated(_home, size),
    "homes that are forgotten again": lambda size: [
        " ".join(_repeated(lambda number: f"{_home(number)} Forget that I live in City{number}.", size))
    ],
    "likes in one turn": lambda size: [" ".join(_repeated(lambda number: f"I like thing{number}.", size))],
}


async def _seconds(store: Store, scope: str, day: int, said: Sequence[str]) -> float:
    """Return the seconds of processor time that a session takes."""
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in said]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    at = FIRST_DAY + timedelta(days=day)
    saved = Saved(Scope.user(scope), f"s{day}", state=state, started_at=at, ended_at=at)
    before = time.process_time()
    await process_session(store, saved, extractor=RulesExtractor())
    return time.process_time() - before


async def main() -> None:
    """Run the benchmark and print (and write) its tables."""
    parser = argparse.ArgumentParser(description="Which sessions cost the most?")
    parser.add_argument("--bytes", type=int, default=100_000)
    parser.add_argument("--changes", nargs="*", type=int, default=[10, 100, 400])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load, python = os.getloadavg()[0], platform.python_version()
    table = ["# Sessions that cost the most", ""]
    table += [f"Seconds of processor time. Load of the machine at the beginning {load:.1f} on {os.cpu_count()} cores,"]
    table += [f"Python {python}.", "", f"| {options.bytes:,} bytes of | seconds |", "|---|---|"]
    with tempfile.TemporaryDirectory(prefix="afterword-hard-", ignore_cleanup_errors=True) as folder:
        async with await open_store(f"sqlite:///{folder}/afterword.db") as store:
            await _seconds(store, "first", 0, ["I live in Graz."])
            for name, kind in KINDS.items():
                table.append(f"| {name} | {await _seconds(store, name, 0, kind(options.bytes)):.1f} |")
            table += ["", "| changes of one value to and fro | seconds of a session |", "|---|---|"]
            taken: list[float] = []
            for number in range(max(options.changes, default=0)):
                taken.append(await _seconds(store, "mover", number, [f"I live in City{number % 2} now."]))
                if number + 1 in options.changes:
                    table.append(f"| {number + 1:,} | {median(taken[-LAST:]):.3f} |")
    print("\n".join(table))  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text("\n".join([*table, ""]), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
