"""Findings of agents through a model's endpoint, the command line, a real agent's tool, and the example."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
from pathlib import Path

import pytest

import afterword as package
from afterword import FactMemory, ModelClient, ModelExtractor, ModelSettings, Scope
from afterword.extractors.model.extractor import FINDINGS_PROMPT
from afterword.extractors.model.prompts import load_prompt
from afterword.extractors.testing import Reply, ScriptedEndpoint, facts_reply
from afterword.facts.findings import FindingPolicy
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import costs
from afterword.store.database.engine import Store
from afterword.store.findings import stored_findings
from commands import Commands
from conversing import LENA, call, told
from researching import day, state

STRINGS = "Nylgut strings last twice as long as steel strings."


async def test_a_model_is_asked_with_a_prompt_of_its_own_and_its_cost_is_booked_apart(store: Store) -> None:
    answer = {"findings": [{"statement": STRINGS, "topic": "strings", "evidence": [{"turn": 2, "quote": STRINGS}]}]}
    policy = FindingPolicy(("researcher",))
    await store.write(lambda transaction: stored_findings.set_finding_policy(transaction, LENA, policy))
    saved = Saved(LENA, "a", state=state(("user", "Which?"), ("researcher", STRINGS)), started_at=day(1))
    with ScriptedEndpoint([facts_reply(), Reply(json.dumps(answer))]) as endpoint:
        settings = ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema")
        async with ModelClient(settings) as client:
            for _ in range(2):
                await process_session(store, saved, extractor=ModelExtractor(client))
    system, user = endpoint.requests[1]["messages"]
    assert system["content"] == load_prompt(FINDINGS_PROMPT)
    assert user["content"].startswith('Agents: "researcher". Write down: findings only, no advice.\n')
    assert len(endpoint.requests) == 2
    (finding,) = await store.read(lambda transaction: stored_findings.read_findings(transaction, LENA))
    assert finding.statement == STRINGS
    spent = await store.read(lambda transaction: costs.spending_by_run_source(transaction, LENA))
    assert {source: each.calls for source, each in spent.items()} == {"session:a": 1, "findings:a": 1}


async def test_an_agent_saves_what_it_found_by_a_tool(store: Store) -> None:
    memory = FactMemory(user="lena", store=store, timeout_s=60)
    from afterword.agents.finding_tool import SaveFindingTool

    asked = call("save_finding", statement=STRINGS, topic="strings")
    tools = [SaveFindingTool(memory)]
    (refused,) = await told(memory, "Find it out.", asked, tools=tools)
    assert refused == "Not saved: this memory keeps no findings of this agent now."
    policy = FindingPolicy(("helper",))
    await store.write(lambda transaction: stored_findings.set_finding_policy(transaction, LENA, policy))
    assert await told(memory, "Find it out.", asked, tools=tools) == ["Saved for later conversations."]
    result = await memory.query("Which strings last?")
    assert [(content.content, (content.metadata or {})["layer"]) for content in result.results] == [(STRINGS, "found")]


def test_the_command_line_sets_lists_decides_and_forgets(afterword: Commands) -> None:
    mira = ("--user", "mira")
    assert "findings of no agent" in afterword("agents", "--none", *mira)
    assert "researcher" in afterword("agents", "researcher", *mira, "--with-tools", "keep", "--advice", "--days", "30")

    async def save() -> None:
        async with package.open(f"sqlite:///{afterword.folder}/afterword.db") as app:
            await app.scope(Scope.user("mira")).save_finding(STRINGS, agent="researcher", topic="strings")

    asyncio.run(save())
    (finding,) = json.loads(afterword("findings", *mira, "--json"))["findings"]
    assert (finding["statement"], finding["status"]) == (STRINGS, "current")
    assert STRINGS in afterword("context", *mira)
    assert '"layer": "found"' in afterword("recall", *mira, "strings", "--json")
    assert afterword("findings", *mira, "--drop", finding["id"]).startswith("dropped")
    assert STRINGS not in afterword("context", *mira)
    assert STRINGS.split()[0] in afterword("findings", finding["id"][:8], *mira)
    assert "words of other people are told" in afterword("others", "tell", *mira)
    afterword("forget", *mira, "--finding", finding["id"], "--yes")
    assert json.loads(afterword("findings", *mira, "--all", "--json"))["findings"] == []


def test_the_example_runs_as_it_is(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = repository / "examples" / "researcher_and_writer.py"
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert "Found by agents (not said by the user):" in printed
    assert "writer: I would send the next issue on Thursday morning, with four links." in printed
