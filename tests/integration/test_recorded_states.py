"""Real saved states through the model extractor, replies recorded: what should be kept is, what must not be is not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.testing import ScriptedEndpoint, replayed
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store
from traps import TRAPS

OWNER = Scope.user("owner")
SAVED_AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
READ_AT = datetime(2027, 1, 1, tzinfo=UTC)
RECORDED = Path(__file__).parent.parent / "recorded" / "states.jsonl"

# What gold.json keeps of each state, as patterns that one stored fact must hold, all of them, in any order.
KEPT: Mapping[str, Sequence[Sequence[str]]] = {
    "assistant_agent": [
        ["Tomás|Tomas"],
        ["Ines", "vegetarian"],
        ["Clara|school|mornings?", "9:30|morning"],
        ["Porto", "14", "18|May"],
        ["train"],
        ["130"],
        ["quiet"],
        ["knee"],
        ["IC 523|11:30"],
        ["Casa do Conto"],
        ["window"],
        ["1,?400"],
    ],
    "assistant_agent_listmemory": [["Leipzig"]],
    "assistant_agent_buffered_context": [["Helix"], ["fish"]],
    "assistant_agent_multimodal": [
        ["Mabel|Okafor"],
        ["rear left|door|scraped|damage", "car|parked|door"],
        ["e-?mail"],
        ["hearing"],
    ],
    "team_structured_message": [["C-7788|scraped|parked|1,?850"]],
    "roundrobin_groupchat": [
        ["SQLite"],
        ["19 June|June 19|2026-06-19"],
        ["type hints"],
        ["comments"],
        ["Tuesday"],
        ["migration"],
        ["slotwise"],
        ["Priya", "product"],
        ["Jonas", r"\bops\b|operations"],
    ],
    "task_result": [["British"]],
    "message_list_history": [["British"]],
    "selector_groupchat": [
        ["Dieter Vogt|Vogt"],
        ["Ringstra"],
        ["German|simple"],
        ["washing|hose"],
        ["500"],
        ["cash"],
        ["plumber"],
    ],
    "swarm": [["43"], ["A-5521|too small|trail"], ["store credit"]],
    "magentic_one": [["Brandt"], ["40"], ["Q2"], [r"\bEU\b"], ["page|short"]],
    "society_of_mind_in_team": [["rhyme"], ["two lines|short"], ["Solveig|70"]],
    "code_executor_in_team": [["separator"]],
    "graphflow": [["Open Sans"], ["emoji"], ["300"], ["1 July|July 1"], ["Lindqvist"]],
    "nested_team": [["Gmunden|pottery"], ["1,?240"], ["1,?260"], ["back"]],
    "roundrobin_stopped_early": [["7590|Fritz"], ["fibre|fiber"], ["SMS|text message"]],
    "roundrobin_with_memory": [["Ravi", "peanut"], ["Mina", "coriander"], ["four|Friday"]],
    "memory_as_user_message_teachability": [["Kofi"], ["day shift"], ["morning"]],
    "memory_in_prompt_tutorial_pattern": [["Hartmann"], ["full sentences|formal"]],
    "adversarial": [["last working day"]],
}

LEAST_KEPT = 0.9


@pytest.fixture
async def found(shared: Path) -> dict[str, list[Fact]]:
    """What the model extractor makes of each state, in a store of its own."""
    samples = [path for path in sorted((shared / "data" / "states").glob("*.json")) if path.name != "gold.json"]
    async with ScriptedEndpoint(replayed(RECORDED)) as endpoint:
        settings = ModelSettings("relay", base_url=endpoint.base_url, api_key="local", max_retries=0)
        async with ModelClient(settings) as client:
            facts = await asyncio.gather(*(facts_of(path, client) for path in samples))
    return dict(zip((path.stem for path in samples), facts, strict=True))


async def facts_of(path: Path, client: ModelClient) -> list[Fact]:
    async with Store("sqlite://") as store:
        await store.migrate()
        saved = Saved(OWNER, path.stem, path=path, started_at=SAVED_AT, ended_at=SAVED_AT)
        await process_session(store, saved, extractor=ModelExtractor(client), judge=ModelJudge(client))
        with store.reading() as db:
            return lookup.read_facts(db, OWNER, at=READ_AT)


async def test_no_trap_is_stored_and_most_of_what_should_be_kept_is(found: dict[str, list[Fact]], shared: Path) -> None:
    told = {name: [f"{fact.statement} {fact.value}" for fact in facts] for name, facts in found.items()}
    trapped = [
        (name, trap, text)
        for name, traps in TRAPS.items()
        for trap in traps
        for text in told[name]
        if trap.casefold() in text.casefold()
    ]
    assert trapped == []
    gold = json.loads(await asyncio.to_thread((shared / "data" / "states" / "gold.json").read_text))
    assert {name.removesuffix(".json") for name, one in gold.items() if one["kept"]} == set(KEPT)
    missing = [
        (name, patterns)
        for name, wanted in KEPT.items()
        for patterns in wanted
        if not any(all(re.search(one, text, re.IGNORECASE) for one in patterns) for text in told[name])
    ]
    assert len(missing) <= (1 - LEAST_KEPT) * sum(map(len, KEPT.values())), missing
