"""What a memory adds to a live agent's turn: time, and growth of the saved state over fifty turns.

    python benchmarks/live_agent.py [--turns 50] [--facts 0 30 1000] [--out benchmarks/live_agent.md]

A real AssistantAgent with a scripted model talks for fifty turns, without memory, with AutoGen's ListMemory, and with
FactMemory over an SQLite file (a memory that fits the block, and one that does not). The agents take turns, so that a
busy machine slows all of them alike. "Added" is the difference to the agent without memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.models import ModelFamily, ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword import FactMemory, open_store
from afterword.facts.assertions import Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct
from afterword.facts.scopes import Scope
from afterword.store import ledger
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, WindowReading

SAID_AT = datetime(2026, 1, 1, tzinfo=UTC)
INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)


def statement(number: int) -> str:
    """Return an invented fact."""
    return f"The user keeps item {number} on shelf {number % 17} of the blue cupboard."


def stored(scope: Scope, number: int) -> Assertion:
    """Return an invented fact as an assertion."""
    text = statement(number)
    return Assertion(
        id=f"{scope.id}-{number:08d}",
        scope=scope,
        session_id="seed",
        act=SpeechAct.STATE,
        kind=Kind.ENTITY,
        subject="user",
        attribute=f"item_{number}",
        value=f"shelf {number % 17}",
        statement=text,
        speaker="user",
        authority=Authority.STATED,
        said_at=SAID_AT,
        evidence=(Evidence(EvidenceKind.TURN, text, "seed", number + 1, "user", 0),),
    )


async def seed(store: Store, scope: Scope, facts: int) -> None:
    """Keep so many facts for a scope."""
    reading = WindowReading("seed", None, None, tuple(stored(scope, number) for number in range(facts)))
    proposal = Proposal(scope, "import:seed", "import", "none", "none", SAID_AT, 0, (reading,))
    with store.writing() as db:
        ledger.apply_run(db, scope, ledger.propose_run(db, proposal), SAID_AT)


async def agents(store: Store, sizes: list[int], turns: int) -> dict[str, AssistantAgent]:
    """Return the agents to compare, by what they remember with."""
    made: dict[str, list[Memory]] = {"no memory": []}
    for size in sizes:
        texts = [MemoryContent(content=statement(one), mime_type=MemoryMimeType.TEXT) for one in range(size)]
        if size:
            made[f"ListMemory, {size:,} facts"] = [ListMemory(memory_contents=texts)]
            await seed(store, Scope.user(f"u{size}"), size)
        made[f"FactMemory, {size:,} facts"] = [FactMemory(user=f"u{size}", store=store)]
    return {
        name: AssistantAgent("helper", ReplayChatCompletionClient(["Fine."] * turns, model_info=INFO), memory=memory)
        for name, memory in made.items()
    }


async def measure(store: Store, sizes: list[int], turns: int) -> list[str]:
    """Return the rows of the table."""
    talking = await agents(store, sizes, turns)
    taken: dict[str, list[float]] = {name: [] for name in talking}
    saved: dict[str, list[int]] = {name: [] for name in talking}
    for turn in range(turns):
        for name, agent in talking.items():
            started = time.perf_counter()
            await agent.run(task=f"Where is item {turn}?")
            taken[name].append((time.perf_counter() - started) * 1000)
            saved[name].append(len(json.dumps(await agent.save_state())))
    base, bytes_a_turn = statistics.median(taken["no memory"][1:]), growth(saved["no memory"])
    rows = []
    for name in talking:
        first, rest = taken[name][0], sorted(taken[name][1:])
        p50, p95 = statistics.median(rest), rest[int(len(rest) * 0.95)]
        added = growth(saved[name]) - bytes_a_turn
        cells = [
            f"{first:.1f}",
            f"{p50:.2f}",
            f"{p95:.2f}",
            f"{p50 - base:+.2f}",
            f"{saved[name][-1]:,}",
            f"{added:+,.0f}",
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def growth(sizes: list[int]) -> float:
    """Return by how many bytes a turn the saved state grew after the first turn."""
    return (sizes[-1] - sizes[0]) / (len(sizes) - 1)


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="What a memory adds to a live agent's turn.")
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--facts", nargs="+", type=int, default=[0, 30, 1_000])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    rows = [f"# What a memory adds to a turn of a live agent, over {options.turns} turns", ""]
    rows += ["A scripted model that answers at once: the times are those of AutoGen and the memory alone, in ms.", ""]
    rows += ["| | first turn | p50 | p95 | p50 added | saved state at the end, bytes | growth a turn added, bytes |"]
    rows += ["|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        async with await open_store(f"sqlite:///{folder}/facts.db") as store:
            rows += await measure(store, options.facts, options.turns)
    told = "\n".join([*rows, ""])
    print(told)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
