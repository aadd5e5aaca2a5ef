"""Does a session cost the same however much is known? Model calls and prompt tokens at 0, 1k and 100k stored facts.

    python benchmarks/flat_cost.py [--sizes 0 1000 100000] [--out benchmarks/flat_cost.md]

One scope is filled with invented facts of other attributes, and a few of the same; then one session of three new facts
is processed against a scripted endpoint, which counts requests and the characters of every prompt.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.clients import ModelClient, ModelSettings
from afterword.extractors.model import ModelExtractor
from afterword.extractors.model_judge import ModelJudge
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts
from afterword.pipeline.session import Saved, process_session
from afterword.store import ledger
from afterword.store.assertions import Act, Assertion, Authority, Evidence, EvidenceKind, Kind
from afterword.store.engine import Store
from afterword.store.ledger import Proposal, Reading
from afterword.store.scopes import Scope

OWNER = Scope.user("owner")
START = datetime(2020, 1, 1, tzinfo=UTC)
SAID = {"home": "I live in Graz.", "seat": "I take the aisle seat.", "editor": "I write in Helix."}
THINGS = ["lamp", "road", "song", "stone", "river", "chair", "cloud", "paper", "glass", "train", "bread", "clock"]


def stored(number: int) -> Assertion:
    """Return an invented fact; every ten thousandth is about a home, a seat or an editor."""
    attribute = list(SAID)[number % 3] if number % 10_000 == 0 else f"{THINGS[number % 12]}_{number}"
    value = f"{THINGS[number // 12 % 12]} {number}"
    evidence = (Evidence(EvidenceKind.TURN, value, f"s{number}", 1, "user", 0),)
    return Assertion(
        id=f"a{number:08d}",
        scope=OWNER,
        session_id=f"s{number}",
        act=Act.STATE,
        kind=Kind.ENTITY,
        subject="user",
        attribute=attribute,
        value=value,
        statement=f"The user's {attribute.replace('_', ' ')} is {value}.",
        speaker="user",
        authority=Authority.STATED,
        said_at=START + timedelta(minutes=number),
        evidence=evidence,
    )


def answer(request: dict[str, Any]) -> Reply:
    """Answer an extraction with the three facts of the session, and a judging with `beside` for every pair."""
    shown = request["messages"][-1]["content"]
    if "<statements>" in shown:
        pairs = [line.split(".")[0].strip() for line in shown.splitlines() if ". earlier (" in line]
        findings = [{"pair": int(one), "reason": "-", "relation": "beside", "same_subject": True} for one in pairs]
        return Reply(content=json.dumps({"findings": findings}))
    found = []
    for turn, (attribute, text) in enumerate(SAID.items(), 1):
        citation = Citation(turn=turn, quote=text)
        statement = f"The user says: {text}"
        one = Candidate(
            kind=Kind.ENTITY, subject="user", attribute=attribute, value=text, statement=statement, evidence=[citation]
        )
        found.append(one)
    return facts(*found)


async def measure(size: int, folder: Path) -> tuple[int, int, float]:
    """Return the calls, the prompt tokens (characters by four) and the seconds of one session at this size."""
    async with Store(f"sqlite:///{folder}/{size}.db") as store:
        await store.migrate()
        if size:
            reading = Reading("seed", None, None, tuple(stored(number) for number in range(size)))
            async with store.write() as db:
                seed = Proposal(OWNER, "import:seed", "import", "none", "none", START, 0, (reading,))
                await ledger.apply(db, OWNER, await ledger.propose(db, seed), START)
        messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in SAID.values()]
        state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
        at = datetime(2026, 1, 1, tzinfo=UTC)
        saved = Saved(OWNER, "new", state=state, started_at=at, ended_at=at)
        async with ScriptedEndpoint(answer) as endpoint:
            settings = ModelSettings("scripted", base_url=endpoint.base_url, api_key="local")
            async with ModelClient(settings) as client:
                started = time.perf_counter()
                outcome = await process_session(
                    store, saved, extractor=ModelExtractor(client), judge=ModelJudge(client)
                )
                seconds = time.perf_counter() - started
            prompts = sum(len(message["content"]) for one in endpoint.requests for message in one["messages"])
        return outcome.usage.calls, prompts // 4, seconds


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="What one session costs at growing stores.")
    parser.add_argument("--sizes", nargs="+", type=int, default=[0, 1_000, 100_000])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = ["# What one session costs, by what is known already", ""]
    rows += ["| facts stored | model calls | prompt tokens | seconds, model aside |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            calls, tokens, seconds = await measure(size, Path(folder))
            rows.append(f"| {size:,} | {calls} | {tokens} | {seconds:.1f} |")
    told = "\n".join([*rows, ""])
    print(told)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
