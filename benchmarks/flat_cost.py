"""Does a session cost the same however much is known? Model calls, prompt tokens and seconds at growing stores.

    python benchmarks/flat_cost.py [--stores 1x0 1x1000 1x10000 1x100000 100x10000] [--out benchmarks/flat_cost.md]

One scope is filled with invented facts of other attributes, and a few of the same, ten a session; then sessions of
three new facts are processed against a scripted endpoint, which counts requests and the characters of every prompt.
Cold is the first session after the store was opened, warm the median of the ten that follow. A store of 100x10000 is
one of a hundred scopes of ten thousand facts each, of which one has the sessions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import insert, update
from sqlmodel import col

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Rejection, Usage, Window
from afterword.extractors.judge import Pair
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts_reply, shown_pairs
from afterword.facts.assertions import Assertion, Authority, Evidence, EvidenceKind, Kind, SpeechAct, Verdict
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import store_assertions
from afterword.store.tables import RunRow, RunWindowRow, ScopeRow, WindowAssertionRow, WindowRow

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
        act=SpeechAct.STATE,
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
        findings = [
            {"pair": one, "reason": "-", "relation": "beside", "same_subject": True} for one in shown_pairs(shown)
        ]
        return Reply(content=json.dumps({"findings": findings}))
    found = []
    for turn, (attribute, text) in enumerate(SAID.items(), 1):
        citation = Citation(turn=turn, quote=text)
        statement = f"The user says: {text}"
        one = Candidate(
            kind=Kind.ENTITY, subject="user", attribute=attribute, value=text, statement=statement, evidence=[citation]
        )
        found.append(one)
    return facts_reply(*found)


async def seed(store: Store, scope: Scope, size: int, first: int) -> None:
    """Fill a scope with facts, ten a session, in bulk."""
    said = [replace(stored(number), id=f"a{first + number:08d}", scope=scope) for number in range(size)]
    with store.writing() as db:
        scope_id = scope_rows.ensure_scope(db, scope)
        connection = db.connection()
        store_assertions(db, scope_id, said, START)
        sources = [(first + number, f"import:{number}") for number in range(0, size, 10)]
        same = {"scope_id": scope_id, "extractor": "none", "judge": "none", "purpose": "import", "status": "applied"}
        runs = [
            {"id": key, "source": source, "started_at": START, "applied_revision": key - first, "counts": {}, **same}
            for key, source in sources
        ]
        windows = [{"id": key, "scope_id": scope_id, "source": source, "key": source} for key, source in sources]
        connection.execute(insert(RunRow), runs)
        connection.execute(insert(WindowRow), windows)
        connection.execute(
            insert(RunWindowRow), [{"run_id": key, "ordinal": 0, "window_id": key} for key, _ in sources]
        )
        ties = [{"window_id": first + number // 10 * 10, "assertion_id": one.id} for number, one in enumerate(said)]
        connection.execute(insert(WindowAssertionRow), ties)
        connection.execute(update(ScopeRow).where(col(ScopeRow.id) == scope_id).values(revision=size))
        ledger.derive_and_store_facts(db, scope)


def session(number: int) -> Saved:
    """Return a session of three facts, worded as every other, on a day of its own."""
    messages = [{"content": text, "source": "user", "type": "UserMessage"} for text in SAID.values()]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)
    return Saved(OWNER, f"new {number}", state=state, started_at=at, ended_at=at)


@dataclass(slots=True)
class Watch:
    """Seconds that have passed, and seconds of this process's own work."""

    passed_s: float = 0.0
    worked_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add what passes meanwhile."""
        passed, worked = time.perf_counter(), time.process_time()
        yield
        self.passed_s += time.perf_counter() - passed
        self.worked_s += time.process_time() - worked


class Asked:
    """An extractor and a judge, and how long they were at it."""

    def __init__(self, extractor: ModelExtractor, judge: ModelJudge) -> None:
        self._extractor, self._judge = extractor, judge
        self.version, self.pairs_a_call = f"{extractor.version} {judge.version}", judge.pairs_a_call
        self.watch = Watch()

    async def extract(self, window: Window) -> Extraction:
        """Ask the extractor."""
        with self.watch.running():
            return await self._extractor.extract(window)

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Ask the extractor once more."""
        with self.watch.running():
            return await self._extractor.repair(window, rejections)

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Ask the judge."""
        with self.watch.running():
            return await self._judge.judge(pairs)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a session costs: calls and prompt tokens (characters by four) of the first, seconds of the first and of a
    later one, model aside, and of both the seconds of this process's own work."""

    calls: int
    tokens: int
    cold_s: float
    cold_worked_s: float
    warm_s: float
    worked_s: float


async def measure(size: int, scopes: int, folder: Path) -> Cost:
    """Return what a session costs where each of so many scopes holds so many facts."""
    path = f"sqlite:///{folder}/{size}-{scopes}.db"
    async with Store(path) as store:
        await store.migrate()
        for number in range(scopes if size else 0):
            await seed(store, OWNER if number == 0 else Scope.user(f"u{number}"), size, 1 + number * size)
    os.sync()  # else the first commits wait until the disk has written all that was filled in
    async with Store(path) as store, ScriptedEndpoint(answer) as endpoint:
        settings = ModelSettings("scripted", base_url=endpoint.base_url, api_key="local", mode="json_schema")
        async with ModelClient(settings) as client:
            asked = Asked(ModelExtractor(client), ModelJudge(client))
            taken: list[tuple[float, float]] = []
            costs: list[tuple[int, int]] = []
            for number in range(11):
                watch, asked.watch = Watch(), Watch()
                with watch.running():
                    outcome = await process_session(store, session(number), extractor=asked, judge=asked)
                taken.append((watch.passed_s - asked.watch.passed_s, watch.worked_s - asked.watch.worked_s))
                prompts = sum(len(message["content"]) for one in endpoint.requests for message in one["messages"])
                costs.append((outcome.usage.calls, prompts // 4))
                endpoint.requests.clear()
    warm, worked = zip(*taken[1:], strict=True)
    return Cost(*costs[0], *taken[0], median(warm), median(worked))


async def main() -> None:
    """Run the benchmark and print (and write) its table."""
    parser = argparse.ArgumentParser(description="What one session costs at growing stores.")
    parser.add_argument("--stores", nargs="+", default=["1x0", "1x1000", "1x10000", "1x100000"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows = ["# Cost of one session, by how much is known already", ""]
    rows += ["| scopes | facts in each | model calls | prompt tokens | cold s | its CPU s | warm s | its CPU s |"]
    rows += ["|---|---|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for store in options.stores:
            scopes, size = map(int, store.split("x"))
            cost = await measure(size, scopes, Path(folder))
            seconds = f"{cost.cold_s:.2f} | {cost.cold_worked_s:.2f} | {cost.warm_s:.3f} | {cost.worked_s:.3f}"
            rows.append(f"| {scopes} | {size:,} | {cost.calls} | {cost.tokens} | {seconds} |")
    told = "\n".join([*rows, ""])
    print(told)  # noqa: T201 - a benchmark prints its result
    if options.out:
        options.out.write_text(told, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
