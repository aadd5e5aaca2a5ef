"""Recorded replies of a large language model, played back byte for byte through the whole pipeline.

`tests/recorded/scenarios.jsonl` holds what a model answered for the open scenarios: 49 extractions and the judging of
their sessions, each under the hash of its request. `tests/recorded/new_scenarios.jsonl` holds the same for
`tests/scenarios`, which were written by somebody who had not seen the prompts. A prompt, a schema or a pair that
changes asks for what is not recorded, and fails here.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from afterword.evaluation.scenarios.scenario import read_scenarios
from afterword.evaluation.scorer import fact_json_for_scorers
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Pair
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.testing import ScriptedEndpoint, replayed
from afterword.facts.assertions import Verdict
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import run_batch
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.folders import find_sessions
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.reading.told_memory import read_facts_with_ended_parts

pytestmark = pytest.mark.asyncio(loop_scope="module")

Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]

RECORDED = Path(__file__).parent.parent / "recorded" / "scenarios.jsonl"
RECORDED_NEW = RECORDED.with_name("new_scenarios.jsonl")
NEW_SCENARIOS = RECORDED.parent.parent / "scenarios"


@dataclass(frozen=True, slots=True)
class Replay:
    """What recorded replies made of scenarios."""

    store: Store
    outcomes: list[SessionOutcome]
    states: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def replay(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Replay]:
    """The open scenarios through the whole pipeline, every model reply from the recording."""
    made = await replayed_pipeline(shared / "data" / "scenarios", RECORDED, shared, tmp_path_factory.mktemp("replay"))
    yield made
    await made.store.close()


async def replayed_pipeline(scenarios: Path, recorded: Path, shared: Path, folder: Path) -> Replay:
    states = folder / "states"
    tool = [sys.executable, str(shared / "tools" / "scenario_states.py"), str(scenarios), "--out", str(states)]
    await asyncio.to_thread(subprocess.run, tool, check=True, capture_output=True, timeout=120)
    store = Store(f"sqlite:///{folder}/afterword.db")
    await store.migrate()
    async with ScriptedEndpoint(replayed(recorded)) as endpoint:
        settings = ModelSettings("relay", base_url=endpoint.base_url, api_key="local", max_retries=0)
        async with ModelClient(settings) as client:
            found = find_sessions([states])
            ended = await run_batch(store, found, extractor=ModelExtractor(client), judge=ModelJudge(client))
    assert [one for one in ended if not isinstance(one, SessionOutcome)] == []
    return Replay(store, [one for one in ended if isinstance(one, SessionOutcome)], states)


class JudgeByPair:
    """Gives the recorded verdict on a pair, whatever the batch; what was never judged stands beside."""

    pairs_a_call: int | None = None

    def __init__(self, version: str, verdicts: list[Verdict]) -> None:
        self.version = version
        self._given = {(one.earlier_id, one.later_id): one for one in verdicts}

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        ids = [(earlier.id, later.id) for earlier, later in pairs]
        return [self._given[pair] for pair in ids if pair in self._given], Usage()


@pytest.mark.parametrize("orders_each", [1, pytest.param(7, marks=pytest.mark.soak)])
async def test_the_order_of_arrival_changes_nothing(
    replay: Replay, shared: Path, tmp_path: Path, canonical: Canonical, orders_each: int
) -> None:
    """The same extractions and verdicts, however the sessions come in: in an order of arrival, or shuffled.

    The replay itself takes them in the order of time.
    """
    store = replay.store
    shuffled = random.Random(11)
    async with ScriptedEndpoint(replayed(RECORDED)) as endpoint:
        settings = ModelSettings("relay", base_url=endpoint.base_url, api_key="local", max_retries=0)
        async with ModelClient(settings) as client:
            for path in sorted((shared / "data" / "scenarios").glob("*.json")):
                scenario = json.loads(path.read_text())
                scope = Scope.user(scenario["user_id"])
                expected = await canonical(store, scope)
                with store.reading() as db:
                    known = lookup.read_knowledge(db, scope)
                judge = JudgeByPair(ModelJudge(client).version, list(known.verdicts))
                sessions = {one.session_id: one for one in find_sessions([replay.states / scenario["id"]])}
                orders = [scenario["arrival"]] if scenario.get("arrival") else []
                orders += [shuffled.sample(list(sessions), len(sessions)) for _ in range(orders_each - len(orders))]
                for number, order in enumerate(orders):
                    async with Store(f"sqlite:///{tmp_path}/{scenario['id']}-{number}.db") as other:
                        await other.migrate()
                        found = [sessions[session_id] for session_id in order]
                        await run_batch(other, found, extractor=ModelExtractor(client), judge=judge)
                        assert await canonical(other, scope) == expected, (scenario["id"], order)


async def scored(store: Store, scenarios: Path, shared: Path, tmp_path: Path) -> dict[str, Any]:
    """Return what a scoring tool that knows nothing of afterword says of the stored facts."""
    out = tmp_path / "facts"
    await asyncio.to_thread(out.mkdir)
    for scenario in await asyncio.to_thread(read_scenarios, [scenarios]):
        ended_at = max(session.ended_at for session in scenario.sessions)
        with store.reading() as db:
            facts = lookup.read_facts(db, Scope.user(scenario.user_id), at=ended_at)
        facts += await read_facts_with_ended_parts(store, Scope.user(scenario.user_id), at=ended_at)
        (out / f"{scenario.id}.json").write_text(json.dumps([fact_json_for_scorers(fact) for fact in facts]))
    tool = [sys.executable, str(shared / "tools" / "score_scenarios.py"), str(scenarios)]
    command = [*tool, "--facts", str(out), "--json"]
    told = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=120)
    total: dict[str, Any] = json.loads(told.stdout)["total"]
    return total


async def test_scenarios_that_nobody_had_in_view_when_the_prompts_were_written(shared: Path, tmp_path: Path) -> None:
    made = await replayed_pipeline(NEW_SCENARIOS, RECORDED_NEW, shared, tmp_path)
    total = await scored(made.store, NEW_SCENARIOS, shared, tmp_path)
    await made.store.close()
    assert (total["evidence_ok"]["share"], total["grounded_in_user"]["share"]) == (1, 1)
    assert total["not_facts_stored"]["n"] == 0
    assert total["fact_recall"]["share"] >= 0.88
    assert total["current_recall"]["share"] >= 0.9
    assert total["update_correct"]["share"] >= 0.87
    assert total["retracted_gone"]["share"] == 1
    assert total["wrongly_retired"]["n"] <= 6, "what was told of one occasion is over when the occasion is"


async def test_the_recording_gives_the_facts_that_were_scored(replay: Replay, shared: Path, tmp_path: Path) -> None:
    sessions = len(replay.outcomes)
    assert sessions == 49
    assert sum(outcome.usage.calls for outcome in replay.outcomes) <= 2 * sessions, (
        "one extraction and at most one judging a session"
    )
    total = await scored(replay.store, shared / "data" / "scenarios", shared, tmp_path)
    assert (total["evidence_ok"]["share"], total["grounded_in_user"]["share"]) == (1, 1)
    assert total["not_facts_stored"]["n"] == 0
    assert total["fact_recall"]["share"] >= 0.96
    assert total["current_recall"]["share"] >= 0.99
    assert total["update_correct"]["share"] >= 0.95
    assert total["retracted_gone"]["share"] == 1
    assert total["wrongly_retired"]["n"] == 0
    assert total["kind_correct"]["share"] >= 0.83
    assert total["unmatched"]["share"] <= 0.36, "what is left of sentences is true, and no gold fact"
    assert total["duplicates"] <= 19
    assert total["words_per_fact"] <= 20
    assert total["facts_per_session"] <= 6
