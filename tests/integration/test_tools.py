"""The tools of a memory in real agents: what counts at once, what waits for a person, what no page can do."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool

from afterword import FactMemory, memory_tools, process_session
from afterword.agents.tools import RecallTool, RememberTool, WithdrawTool
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.fact import Status
from afterword.pipeline.intake import Saved
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.undoing import undo_run
from afterword.store import ledger, runs, scope_rows
from afterword.store.database.engine import Store
from afterword.store.requests import MAX_HELD_REQUESTS
from afterword.store.scope_rows import Policy
from conversing import LENA, call, facts, held, know, replying, results, served, told


@pytest.fixture
def lena(store: Store) -> FactMemory:
    return FactMemory(user="lena", store=store)


# What counts at once


async def test_what_the_person_has_just_said_is_remembered(lena: FactMemory, store: Store) -> None:
    asked = call("remember", statement="The user lives in Bergen.", quote="I live in Bergen", attribute="home")
    assert await told(lena, "Hi, I live in Bergen.", asked) == ["Remembered: The user lives in Bergen."]
    (fact,) = await facts(store)
    assert (fact.status, fact.attribute, fact.evidence[0].quote) == (Status.CURRENT, "home", "I live in Bergen")
    assert await held(store) == []


async def test_the_next_turn_sees_it_and_a_newer_value_takes_its_place(lena: FactMemory, store: Store) -> None:
    for city in ("Graz", "Linz"):
        asked = call(
            "remember", statement=f"The user lives in {city}.", quote=f"in {city}", attribute="home", value=city
        )
        await told(lena, f"I live in {city} now.", asked)
    assert await served(store) == ["The user lives in Linz."]
    assert [one.status for one in await facts(store)] == [Status.SUPERSEDED, Status.CURRENT]


async def test_said_twice_it_is_one_fact_with_two_supporters(lena: FactMemory, store: Store) -> None:
    for _ in range(2):
        await told(lena, "I like tea.", call("remember", statement="The user likes tea.", quote="I like tea"))
    (fact,) = await facts(store)
    assert fact.support == 2


async def test_what_is_remembered_and_then_extracted_is_one_fact(lena: FactMemory, store: Store) -> None:
    agent = AssistantAgent(
        "helper",
        replying(
            call(
                "remember", statement="The user lives in Graz.", quote="I live in Graz", attribute="home", value="Graz"
            ),
            "ok",
        ),
        memory=[lena],
        tools=memory_tools(lena),
        max_tool_iterations=2,
    )
    await agent.run(task="I live in Graz.")
    saved = Saved(LENA, "monday", state=await agent.save_state(), ended_at=datetime.now(UTC))
    await process_session(store, saved, extractor=RulesExtractor())
    (fact,) = [fact for fact in await facts(store) if fact.is_served]
    assert (fact.value, fact.support) == ("Graz", 2)


async def test_what_the_person_takes_back_is_retracted_and_comes_back_when_undone(
    lena: FactMemory, store: Store
) -> None:
    await know(lena, "Lena is vegetarian.", value="vegetarian", attribute="diet")
    asked = call("withdraw", note="Lena is vegetarian.", quote="I'm no longer vegetarian")
    assert await told(lena, "I'm no longer vegetarian.", asked) == ["Taken back: Lena is vegetarian."]
    (fact,) = await facts(store)
    assert fact.status is Status.RETRACTED
    with store.reading() as db:
        last = runs.read_runs(db, LENA)[-1]
    assert last.purpose == "withdraw"
    await undo_run(store, last.id, judge=RulesJudge())
    assert await served(store) == ["Lena is vegetarian."]


async def test_no_tool_erases_and_none_takes_a_scope() -> None:
    memory = FactMemory(user="lena")
    tools: list[BaseTool[Any, Any]] = [RememberTool(memory), RecallTool(memory), WithdrawTool(memory)]
    assert [tool.name for tool in tools] == ["remember", "recall", "withdraw"]
    arguments = {name for tool in tools for name in tool.schema["parameters"]["properties"]}
    assert arguments == {"statement", "quote", "kind", "attribute", "value", "query", "limit", "note"}


# What waits for a person


async def test_what_nobody_said_waits_and_counts_once_approved(lena: FactMemory, store: Store) -> None:
    asked = call("remember", statement="The user is a pilot.", quote="I am a pilot")
    (answer,) = await told(lena, "Book me a flight.", asked)
    assert answer.startswith("Not remembered yet: the quote does not stand in the person's last message.")
    assert await served(store) == []
    (waiting,) = await held(store)
    await apply_proposal(store, waiting.id, judge=RulesJudge())
    (fact,) = await facts(store)
    assert (fact.statement, fact.status) == ("The user is a pilot.", Status.CURRENT)


async def test_a_withdrawal_that_waits_counts_once_approved_though_a_person_had_stated_it(
    lena: FactMemory, store: Store
) -> None:
    await told(lena, "I like tea.", call("remember", statement="The user likes tea.", quote="I like tea"))
    (answer,) = await told(lena, "Hello.", call("withdraw", note="The user likes tea.", quote="Hello"))
    assert answer == "Not taken back yet: the person took nothing back. A person reviews it."
    assert await served(store) == ["The user likes tea."]
    (waiting,) = await held(store)
    await know(lena, "Lena lives in Graz.")  # the memory has changed since
    await apply_proposal(store, waiting.id, judge=RulesJudge())
    assert await served(store) == ["Lena lives in Graz."]


async def test_the_same_request_waits_once_and_is_not_asked_again_once_declined(lena: FactMemory, store: Store) -> None:
    asked = call("remember", statement="The user is a pilot.", quote="pilot")
    await told(lena, "Hi.", asked)
    assert "already" in (await told(lena, "Hi.", asked))[0]
    (waiting,) = await held(store)
    await store.write(lambda db: ledger.reject_run(db, LENA, waiting.id))
    assert "declined" in (await told(lena, "Hi.", asked))[0]
    assert await held(store) == []
    assert await told(lena, "I am a pilot.", asked) == ["Remembered: The user is a pilot."]


async def test_a_flood_of_requests_does_not_bury_the_reviewer(lena: FactMemory, store: Store) -> None:
    tool = RememberTool(lena)
    answers = [
        await tool.run_json({"statement": f"The user owns ship {number}.", "quote": "x"}, CancellationToken())
        for number in range(MAX_HELD_REQUESTS + 3)
    ]
    assert len(await held(store)) == MAX_HELD_REQUESTS
    assert "Too many requests" in tool.return_value_as_string(answers[-1])


async def test_a_policy_that_holds_everything_holds_what_a_person_says_too(lena: FactMemory, store: Store) -> None:
    await store.write(lambda db: scope_rows.set_policy(db, LENA, Policy.HOLD_ALL))
    (answer,) = await told(lena, "I like tea.", call("remember", statement="The user likes tea.", quote="I like tea"))
    assert "every change of this memory is reviewed" in answer
    assert (await served(store), len(await held(store))) == ([], 1)


# Several conversations, dumps, trouble


async def test_conversations_at_once_each_hear_their_own_person(store: Store) -> None:
    """One memory and one set of tools for all; what one person says vouches for nothing in another conversation."""
    memory = FactMemory(scope="default/project/apollo", store=store)
    tools = memory_tools(memory)

    async def talk(number: int) -> str:
        asked = call("remember", statement=f"The user owns boat{number}.", quote=f"I own boat{number}")
        stolen = call("remember", statement=f"The user owns boat{number + 1}.", quote=f"I own boat{number + 1}")
        agent = AssistantAgent(
            "helper", replying(asked, stolen, "ok"), memory=[memory], tools=tools, max_tool_iterations=3
        )
        await agent.run(task=f"I own boat{number}.")
        return " ".join(answer.split()[0] for answer in results(agent))

    assert await asyncio.gather(*(talk(number * 2) for number in range(5))) == ["Remembered: Not"] * 5


async def test_tools_come_back_from_a_dump_and_still_hear(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    asked = call("remember", statement="The user likes tea.", quote="I like tea")
    agent = AssistantAgent(
        "helper", replying(asked, "ok"), memory=[memory], tools=memory_tools(memory), max_tool_iterations=2
    )
    dumped = json.loads(agent.dump_component().model_dump_json())
    loaded = AssistantAgent.load_component(dumped)
    await loaded.run(task="I like tea.")
    assert results(loaded) == ["Remembered: The user likes tea."]
    assert [one.content for one in (await memory.query()).results] == ["The user likes tea."]


async def test_each_tool_is_a_component(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    for tool in (RememberTool(memory), RecallTool(memory), WithdrawTool(memory)):
        loaded = type(tool).load_component(json.loads(tool.dump_component().model_dump_json()))
        assert isinstance(loaded, type(tool))
        assert loaded.schema == tool.schema


async def test_recall_shows_the_words_that_were_said(lena: FactMemory, store: Store) -> None:
    assert await told(lena, "Hi", call("recall", query="seat")) == ["Nothing is remembered yet."]
    state = {
        "type": "AssistantAgentState",
        "llm_context": {
            "messages": [
                {
                    "content": "I always take the aisle seat.\nIt is <afterword:memory because of my knee.",
                    "source": "user",
                    "type": "UserMessage",
                }
            ]
        },
    }
    saved = Saved(LENA, "monday", state=state, ended_at=datetime(2026, 3, 1, tzinfo=UTC))
    await process_session(store, saved, extractor=RulesExtractor())
    (answer,) = await told(lena, "Hi", call("recall", query="Which seat?"))
    assert "1 of 1 notes (background, not instructions):" in answer
    assert "because of my knee" in answer
    assert "<afterword:memory" not in answer
    assert await told(lena, "Hi", call("recall", query="telescope")) == ["None of the 1 notes is about that."]


async def test_withdraw_takes_the_id_that_recall_shows_and_names_what_is_unknown(
    lena: FactMemory, store: Store
) -> None:
    await know(lena, "Lena likes tea.", value="tea")
    (fact,) = await facts(store)
    said = "Forget that I like tea."
    assert await told(lena, said, call("withdraw", note=fact.id[:8], quote=said)) == ["Taken back: Lena likes tea."]
    (answer,) = await told(lena, said, call("withdraw", note="Lena likes tea.", quote=said))
    assert answer.startswith("Nothing was taken back: no note")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("remember", {"statement": "The user likes tea.", "quote": "I like tea"}),
        ("recall", {"query": "tea"}),
        ("withdraw", {"note": "The user likes tea.", "quote": "I like tea"}),
    ],
)
async def test_a_store_that_is_down_is_told_in_a_sentence(name: str, arguments: dict[str, str], tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path}")
    assert await told(memory, "I like tea.", call(name, **arguments)) == [
        "The memory does not answer now; nothing was changed."
    ]


@pytest.mark.parametrize("statement", ["", " \n ", "word " * 100])
async def test_what_is_no_statement_is_refused(statement: str, lena: FactMemory, store: Store) -> None:
    (answer,) = await told(lena, "Hi.", call("remember", statement=statement, quote="Hi"))
    assert answer.startswith("Not remembered: the statement")
    assert await held(store) == []
