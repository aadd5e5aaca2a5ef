"""The open scenarios through the whole pipeline with the offline rules, in any order of arrival."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from afterword.evaluation.scorer import fact_json_for_scorers
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.sources.folders import find_sessions
from afterword.store import lookup
from afterword.store.database.engine import Store

Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]


@pytest.fixture(scope="module")
def states(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every open scenario as the saved states that AutoGen writes, with manifests."""
    out = tmp_path_factory.mktemp("states")
    tool = [sys.executable, str(shared / "tools" / "scenario_states.py")]
    subprocess.run(
        [*tool, str(shared / "data" / "scenarios"), "--out", str(out)], check=True, capture_output=True, timeout=120
    )
    return out


def scenarios(shared: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((shared / "data" / "scenarios").glob("*.json"))]


def ended_at(scenario: dict[str, Any]) -> datetime:
    return max(datetime.fromisoformat(session["ended_at"]) for session in scenario["sessions"])


async def process(store: Store, sessions: list[Saved]) -> None:
    failed = [one for one in await run_batch(store, sessions, extractor=RulesExtractor()) if isinstance(one, Failure)]
    assert failed == []


async def test_the_rules_store_nothing_wrong_on_the_open_scenarios(shared: Path, states: Path, tmp_path: Path) -> None:
    """The scoring tool stands outside of the project; so does the gold. The rules read few of its sentences."""
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as store:
        await store.migrate()
        await process(store, find_sessions([states]))
        for scenario in scenarios(shared):
            with store.reading() as db:
                facts = lookup.read_facts(db, Scope.user(scenario["user_id"]), at=ended_at(scenario))
            (tmp_path / f"{scenario['id']}.json").write_text(
                json.dumps([fact_json_for_scorers(fact) for fact in facts])
            )
    tool = [sys.executable, str(shared / "tools" / "score_scenarios.py"), str(shared / "data" / "scenarios")]
    command = [*tool, "--facts", str(tmp_path), "--json"]
    told = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=120)
    total = json.loads(told.stdout)["total"]
    assert (total["evidence_ok"]["share"], total["grounded_in_user"]["share"]) == (1, 1)
    assert total["not_facts_stored"]["n"] == 0
    assert total["wrongly_retired"]["n"] == 0


@pytest.mark.parametrize("orders_each", [2, pytest.param(8, marks=pytest.mark.soak)])
async def test_the_order_of_arrival_changes_nothing(
    shared: Path, states: Path, tmp_path: Path, canonical: Canonical, orders_each: int
) -> None:
    shuffled = random.Random(7)
    for scenario in scenarios(shared):
        in_order = find_sessions([states / scenario["id"]])
        by_id = {one.session_id: one for one in in_order}
        orders = [in_order]
        if scenario.get("arrival"):
            orders.append([by_id[session_id] for session_id in scenario["arrival"]])
        orders += [shuffled.sample(in_order, len(in_order)) for _ in range(orders_each - len(orders))]
        dumps = []
        for number, order in enumerate(orders):
            async with Store(f"sqlite:///{tmp_path}/{scenario['id']}-{number}.db") as store:
                await store.migrate()
                await process(store, list(order))
                dumps.append(await canonical(store, Scope.user(scenario["user_id"])))
        assert all(dump == dumps[0] for dump in dumps), scenario["id"]
