"""How much longer does a live agent's turn take while sessions are processed?

    python benchmarks/turn_latency.py [--turns 400] [--rounds 3] [--facts 1000] [--out benchmarks/turn_latency.md]

A real AssistantAgent with a scripted model talks with a FactMemory over an SQLite file, a turn each 20 ms. Beside it
the sessions of 64 other people are processed into the same store by the offline rules, which never wait for a model and
so keep a core busy. The conditions take turns within each round. A round's sessions are new.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.replay import ReplayChatCompletionClient
from live_agent import INFO, seed
from throughput import state

import afterword
from afterword import FactMemory, ProcessingOptions
from afterword.facts.scopes import Scope

PEOPLE, SESSIONS_EACH = 64, 40
PAUSE_S = 0.02
CONDITIONS = ("nothing", "a run in another process", "a process of its own", "this process")


def write_sessions(folder: Path, name: str) -> Path:
    """Return a folder with new sessions of many people, to be processed in one round."""
    target = folder / name
    for person in range(PEOPLE):
        place = target / f"{name}-{person}"
        place.mkdir(parents=True)
        for number in range(SESSIONS_EACH):
            (place / f"{number}.json").write_text(json.dumps(state(person, number)), encoding="utf-8")
    return target


@asynccontextmanager
async def working(app: afterword.Afterword, condition: str, sessions: Path) -> AsyncIterator[None]:
    """Process sessions while the block runs, and stop then. Raises if they were all done before its end."""
    if condition == CONDITIONS[0]:
        yield
        return
    if condition == CONDITIONS[1]:
        command = (sys.executable, "-m", "afterword", "run", str(sessions), "--processes", "1", "--json")
        running = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        await asyncio.sleep(2)
        yield
        if running.returncode is not None:
            raise SystemExit(f"the run beside the agent ended early, with exit code {running.returncode}")
        running.kill()
        await running.wait()
        return
    is_over = False
    options = ProcessingOptions(
        own_process=condition == CONDITIONS[2], stop=lambda: "the turns are measured" if is_over else None
    )
    task = asyncio.create_task(app.process(sessions, options=options))
    await asyncio.sleep(2)
    yield
    if task.done():
        raise SystemExit(f"the work in {condition} ended early: {await task}")
    is_over = True
    await task


async def talk(agent: AssistantAgent, turns: int) -> list[float]:
    """Return how long each turn took, in milliseconds."""
    taken = []
    for turn in range(turns):
        started = time.perf_counter()
        await agent.run(task=f"Where is item {turn % 97}?")
        taken.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(PAUSE_S)
    return taken


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="How much longer a turn takes while sessions are processed.")
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--facts", type=int, default=1_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    taken: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        os.environ["AFTERWORD_STORE__URL"] = url = f"sqlite:///{folder}/facts.db"
        async with afterword.open(url) as app:
            store = await app.store()
            await seed(store, Scope.user("mira"), options.facts)
            for round_number in range(options.rounds):
                for place, condition in enumerate(CONDITIONS):
                    model = ReplayChatCompletionClient(["Fine."] * (options.turns + 5), model_info=INFO)
                    agent = AssistantAgent("helper", model, memory=[FactMemory(user="mira", store=store)])
                    await talk(agent, 5)
                    async with working(app, condition, write_sessions(folder, f"r{round_number}c{place}")):
                        taken[condition] += await talk(agent, options.turns)
    base = statistics.quantiles(taken[CONDITIONS[0]], n=100)[98]
    rows = [
        "# A turn of a live agent while sessions are processed",
        "",
        f"{options.rounds} rounds of {options.turns} turns, {options.facts:,} facts; in ms.",
        "",
        "| what runs at the same time | p50 | p95 | p99 | p99 compared with nothing |",
        "|---|---|---|---|---|",
    ]
    for condition in CONDITIONS:
        percentiles = statistics.quantiles(taken[condition], n=100)
        p50, p95, p99 = percentiles[49], percentiles[94], percentiles[98]
        rows.append(f"| {condition} | {p50:.2f} | {p95:.2f} | {p99:.2f} | {p99 - base:+.1f} |")
    rows += ["", f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}."]
    print("\n".join(rows))  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text("\n".join([*rows, ""]), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
