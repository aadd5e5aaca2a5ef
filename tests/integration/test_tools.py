"""The tools of a memory in real agents: what counts at once, what waits, what no page can do."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import LLMMessage, UserMessage
from autogen_core.tools import BaseTool

from afterword import FactMemory, memory_tools, process_session
from afterword.agents.tools import RecallTool, RememberTool, WithdrawTool
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.assertions import Relation, Verdict
from afterword.facts.fact import Status
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.reversible_runs import undo_run
from afterword.store import ledger, runs, scope_rows
from afterword.store.agent_requests import MAX_HELD_REQUESTS
from afterword.store.database.engine import Store
from afterword.store.scope_rows import ApprovalPolicy
from conversing import LENA, call, facts, held, know, replying, results, served, told
from kept import run, stated

RULES = RulesExtractor()
CITIES = ("Graz", "Linz", "Bergen", "Porto", "Oslo")
LIVES_IN_LINZ = call("remember", statement="The user lives in Linz.", attribute="home", value="Linz")


@pytest.fixture
def lena(store: Store) -> FactMemory:
    return FactMemory(user="lena", store=store)


# What counts at once


async def test_what_the_rules_read_in_the_message_is_remembered_at_once(lena: FactMemory, store: Store) -> None:
    asked = call("remember", statement="Lena moved to Bergen!", attribute="home", value="Bergen")
    assert await told(lena, "Hi, I live in Bergen.", asked, extractor=RULES) == [
        "Remembered: The user lives in Bergen."
    ]
    (fact,) = await facts(store)
    assert (fact.status, fact.attribute, fact.evidence[0].quote) == (Status.CURRENT, "home", "I live in Bergen.")
    assert fact.statement == "The user lives in Bergen."  # as the rules word it, not as the agent does
    assert await held(store) == []


async def test_the_next_turn_sees_it_and_a_newer_value_takes_its_place(lena: FactMemory, store: Store) -> None:
    for city in ("Graz", "Linz"):
        asked = call("remember", statement=f"The user lives in {city}.", attribute="home", value=city)
        await told(lena, f"I live in {city} now.", asked, extractor=RULES)
    assert await served(store) == ["The user lives in Linz."]
    assert [one.status for one in await facts(store)] == [Status.SUPERSEDED, Status.CURRENT]


@pytest.mark.parametrize(("user", "name"), [("u1", "user"), ("carla", "carla"), ("u1", "carla"), ("u1", "Carla R")])
async def test_what_the_only_person_says_counts_at_once_under_any_name(store: Store, user: str, name: str) -> None:
    memory = FactMemory(user=user, store=store)
    tools = memory_tools(memory, humans=[name], extractor=RULES)
    agent = AssistantAgent(
        "helper", replying(LIVES_IN_LINZ, "done"), memory=[memory], tools=tools, max_tool_iterations=2
    )
    await agent.run(task=TextMessage(source=name, content="I live in Linz."))
    assert results(agent) == ["Remembered: The user lives in Linz."]


async def test_among_several_people_a_name_that_is_not_the_owners_waits(store: Store) -> None:
    memory = FactMemory(user="u1", store=store)
    tools = memory_tools(memory, humans=["carla", "jonas"], extractor=RULES)
    agent = AssistantAgent(
        "helper", replying(LIVES_IN_LINZ, "done"), memory=[memory], tools=tools, max_tool_iterations=2
    )
    await agent.run(task=TextMessage(source="carla", content="I live in Linz."))
    assert await facts(store, Scope.user("u1")) == []
    assert len(await held(store, Scope.user("u1"))) == 1


async def test_an_example_in_the_context_is_not_the_persons_message(lena: FactMemory, store: Store) -> None:
    examples: list[LLMMessage] = [UserMessage(content="I live in Linz.", source="user")]
    agent = AssistantAgent(
        "helper",
        replying(LIVES_IN_LINZ, "done"),
        memory=[lena],
        model_context=UnboundedChatCompletionContext(examples),
        tools=memory_tools(lena, extractor=RULES),
        max_tool_iterations=2,
    )
    await agent.run(task=TextMessage(source="manager", content="Note where the user lives."))
    assert await facts(store) == []
    assert len(await held(store)) == 1


async def test_said_twice_it_is_one_fact_with_two_supporters(lena: FactMemory, store: Store) -> None:
    for _ in range(2):
        asked = call("remember", statement="The user lives in Graz.", attribute="home", value="Graz")
        await told(lena, "I live in Graz.", asked, extractor=RULES)
    (fact,) = await facts(store)
    assert fact.support == 2


@pytest.mark.parametrize("extractor", [RULES, None], ids=["at once", "after the session"])
@pytest.mark.parametrize(
    "details",
    [{"attribute": "home", "value": "Graz"}, {}, {"attribute": "city", "value": "Graz, Austria"}],
    ids=["the same value", "the sentence alone", "the same sentence under another attribute"],
)
async def test_a_request_is_satisfied_once_the_session_says_it(
    lena: FactMemory, store: Store, extractor: RulesExtractor | None, details: dict[str, str]
) -> None:
    asked = call("remember", statement="The user lives in Graz.", **details)
    agent = AssistantAgent(
        "helper",
        replying(asked, "ok"),
        memory=[lena],
        tools=memory_tools(lena, extractor=extractor),
        max_tool_iterations=2,
    )
    await agent.run(task="I live in Graz.")
    assert [fact.value for fact in await facts(store)] == (["Graz"] if extractor else [])
    saved = Saved(LENA, "monday", state=await agent.save_state(), ended_at=datetime.now(UTC))
    await process_session(store, saved, extractor=RulesExtractor())
    (fact,) = [fact for fact in await facts(store) if fact.is_served]
    assert (fact.attribute, fact.value, fact.support) == ("home", "Graz", 2 if extractor else 1)
    assert await held(store) == []


async def test_a_request_that_the_session_does_not_say_stays_in_review(lena: FactMemory, store: Store) -> None:
    agent = AssistantAgent(
        "helper",
        replying(call("remember", statement="The user lives in Linz.", attribute="home", value="Linz"), "ok"),
        memory=[lena],
        tools=memory_tools(lena),
        max_tool_iterations=2,
    )
    await agent.run(task="I live in Graz.")
    saved = Saved(LENA, "monday", state=await agent.save_state(), ended_at=datetime.now(UTC))
    await process_session(store, saved, extractor=RulesExtractor())
    assert await served(store) == ["The user lives in Graz."]
    assert [run.purpose for run in await held(store)] == ["remember"]


async def test_what_the_person_takes_back_is_retracted_and_comes_back_when_undone(
    lena: FactMemory, store: Store
) -> None:
    await know(lena, "Lena is vegetarian.", value="vegetarian", attribute="diet")
    asked = call("withdraw", note="Lena is vegetarian.")
    said = "I'm no longer vegetarian."
    assert await told(lena, said, asked, extractor=RULES) == ["Taken back: Lena is vegetarian."]
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
    assert answer.startswith("Noted for this conversation: The user is a pilot.")
    assert await served(store) == []
    (waiting,) = await held(store)
    await apply_proposal(store, waiting.id, judge=RulesJudge())
    (fact,) = await facts(store)
    assert (fact.statement, fact.status) == ("The user is a pilot.", Status.CURRENT)


async def test_a_withdrawal_that_waits_counts_once_approved_though_a_person_had_stated_it(
    lena: FactMemory, store: Store
) -> None:
    await told(lena, "I live in Linz.", LIVES_IN_LINZ, extractor=RULES)
    (answer,) = await told(lena, "Hello.", call("withdraw", note="The user lives in Linz."), extractor=RULES)
    assert answer.startswith("Noted for this conversation: no longer: The user lives in Linz.")
    assert await served(store) == ["The user lives in Linz."]
    (waiting,) = await held(store)
    await know(lena, "Lena lives in Graz.")  # the memory has changed since
    await apply_proposal(store, waiting.id, judge=RulesJudge())
    assert await served(store) == ["Lena lives in Graz."]


async def test_the_same_request_waits_once_and_is_not_asked_again_once_declined(lena: FactMemory, store: Store) -> None:
    asked = call("remember", statement="The user lives in Linz.", attribute="home", value="Linz")
    await told(lena, "Hi.", asked)
    assert "already" in (await told(lena, "Hi.", asked))[0]
    (waiting,) = await held(store)
    await store.write(lambda db: ledger.reject_run(db, LENA, waiting.id))
    assert "declined" in (await told(lena, "Hi.", asked))[0]
    assert await held(store) == []
    assert await told(lena, "I live in Linz.", asked, extractor=RULES) == ["Remembered: The user lives in Linz."]


async def test_a_flood_of_requests_does_not_bury_the_reviewer(lena: FactMemory, store: Store) -> None:
    tool = RememberTool(lena)
    answers = [
        await tool.run_json({"statement": f"The user owns ship {number}.", "quote": "x"}, CancellationToken())
        for number in range(MAX_HELD_REQUESTS + 3)
    ]
    assert len(await held(store)) == MAX_HELD_REQUESTS
    assert "Too many requests" in tool.return_value_as_string(answers[-1])


async def test_a_policy_that_holds_everything_holds_what_a_person_says_too(lena: FactMemory, store: Store) -> None:
    await store.write(lambda db: scope_rows.set_approval_policy(db, LENA, ApprovalPolicy.HOLD_ALL))
    (answer,) = await told(lena, "I live in Linz.", LIVES_IN_LINZ, extractor=RULES)
    assert answer.startswith("Noted for this conversation")
    assert (await served(store), len(await held(store))) == ([], 1)


# Several conversations, dumps, trouble


async def test_conversations_at_once_each_hear_their_own_person(store: Store) -> None:
    """One memory and one set of tools for all; what one person says vouches for nothing in another conversation."""
    memory = FactMemory(scope="default/project/apollo", store=store)
    tools = memory_tools(memory, extractor=RULES)

    async def talk(number: int) -> str:
        home, other = CITIES[number], CITIES[number - 1]
        asked = call("remember", statement=f"The user lives in {home}.", attribute="home", value=home)
        stolen = call("remember", statement=f"The user lives in {other}.", attribute="home", value=other)
        agent = AssistantAgent(
            "helper", replying(asked, stolen, "ok"), memory=[memory], tools=tools, max_tool_iterations=3
        )
        await agent.run(task=f"I live in {home}.")
        return " ".join(answer.split()[0] for answer in results(agent))

    assert await asyncio.gather(*map(talk, range(len(CITIES)))) == ["Remembered: Noted"] * len(CITIES)


async def test_tools_come_back_from_a_dump_and_decide_after_the_session(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    asked = call("remember", statement="The user likes tea.", quote="I like tea")
    agent = AssistantAgent(
        "helper", replying(asked, "ok"), memory=[memory], tools=memory_tools(memory), max_tool_iterations=2
    )
    dumped = json.loads(agent.dump_component().model_dump_json())
    loaded = AssistantAgent.load_component(dumped)
    await loaded.run(task="I like tea.")
    assert results(loaded)[0].startswith("Noted for this conversation: The user likes tea.")
    assert (await memory.query()).results == []


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


async def test_recall_shows_what_held_before_and_what_was_said(lena: FactMemory, store: Store) -> None:
    for number, said in enumerate(("I live in Bergen. The violin needs two new strings.", "I live in Oslo now.")):
        messages = [{"content": said, "source": "user", "type": "UserMessage"}]
        state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
        saved = Saved(LENA, f"s{number}", state=state, ended_at=datetime(2026, 3, 1 + number, tzinfo=UTC))
        await process_session(store, saved, extractor=RulesExtractor(), judge=RulesJudge())
    (answer,) = await told(lena, "Hi", call("recall", query="Bergen or Oslo?"))
    now, before = answer.split("Held before, and no longer:")
    assert "Oslo" in now
    assert "Bergen" not in now
    assert "until 2026-03-02, superseded" in before
    (answer,) = await told(lena, "Hi", call("recall", query="What did I say the violin needs?"))
    assert "Said then:\n- on 2026-03-01 user said: “I live in Bergen. The violin needs" in answer


async def test_a_fact_is_recalled_and_withdrawn_with_its_exceptions(lena: FactMemory, store: Store) -> None:
    seat = stated("The user wants the window seat.", 1, attribute="seat", value="window")
    nights = stated("The user wants the aisle on night trains.", 2, attribute="seat", value="aisle")
    run(store, "session:s1", (seat, nights), (Verdict(seat.id, nights.id, Relation.EXCEPTS, "nights", "test"),))
    line = f"{seat.statement} Except: {nights.statement}"
    recalled, withdrawn = await told(lena, "Hello.", call("recall", query="window"), call("withdraw", note=line))
    assert f"- {line} (" in recalled
    assert withdrawn.startswith(f"Noted for this conversation: no longer: {seat.statement}")


async def test_withdraw_takes_the_id_that_recall_shows_and_names_what_is_unknown(
    lena: FactMemory, store: Store
) -> None:
    await know(lena, "Lena is vegetarian.", value="vegetarian", attribute="diet")
    (fact,) = await facts(store)
    said = "I'm no longer vegetarian."
    asked = call("withdraw", note=fact.id[:8], quote=said)
    assert await told(lena, said, asked, extractor=RULES) == ["Taken back: Lena is vegetarian."]
    (answer,) = await told(lena, said, call("withdraw", note="Lena is vegetarian.", quote=said), extractor=RULES)
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
