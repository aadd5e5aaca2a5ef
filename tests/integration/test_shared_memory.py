"""One scope read by many agents and teams at once, and a project's scope beside each user's own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.memory import Memory
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import LLMMessage
from hypothesis import given
from hypothesis import strategies as st

from afterword import FactMemory
from afterword.agents.memory_content import RecallOutcome
from afterword.agents.shared_recall import budget_shares
from afterword.errors import ScopeInvalid
from afterword.recall.block import OPENING
from afterword.recall.tokens import tokens_by_byte_size
from afterword.store.database.engine import Store
from conversing import know, replying

APOLLO = "default/project/apollo"


@pytest.fixture
async def store(store: Store) -> Store:
    for whose, fact in (("lena", "Lena likes tea."), ("mara", "Mara likes chess.")):
        await know(FactMemory(user=whose, store=store), fact)
    await know(FactMemory(scope=APOLLO, store=store), "Apollo ships in May.")
    return store


def blocks(messages: Sequence[LLMMessage]) -> list[str]:
    return [str(one.content) for one in messages if str(one.content).startswith(OPENING)]


async def shown(memory: Memory, context: ChatCompletionContext | None = None) -> list[str]:
    kept = context or UnboundedChatCompletionContext()
    await memory.update_context(kept)
    return blocks(await kept.get_messages())


async def test_the_user_comes_first_then_the_project(store: Store) -> None:
    lena, apollo = await shown(FactMemory(user="lena", also=[APOLLO], store=store))
    assert ("tea" in lena, "May" in apollo) == (True, True)
    assert (OPENING + ' scope="user-' in lena, OPENING + ' scope="project-' in apollo) == (True, True)


async def test_two_memories_of_one_agent_stand_in_their_order_however_often(store: Store) -> None:
    context, client = UnboundedChatCompletionContext(), replying(*["fine"] * 5)
    memory: list[Memory] = [FactMemory(user="lena", store=store), FactMemory(scope=APOLLO, store=store)]
    agent = AssistantAgent("helper", client, memory=memory, model_context=context)
    for _ in range(5):
        await agent.run(task="hello")
        lena, apollo = blocks(context._messages)
        assert ("tea" in lena, "May" in apollo) == (True, True)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
async def test_a_context_that_hides_its_start_gets_what_it_has_room_for(size: int, store: Store) -> None:
    context, client = BufferedChatCompletionContext(buffer_size=size), replying(*["fine"] * 6)
    memory = FactMemory(user="lena", also=[APOLLO], store=store)
    agent = AssistantAgent("helper", client, memory=[memory], model_context=context)
    for number in range(6):
        await agent.run(task=f"question {number}")
        sent = client.create_calls[-1]["messages"]
        assert sent[-1].content == f"question {number}"
        assert len(blocks(sent)) == len(blocks(context._messages)) == (1 if size == 2 else 2)
        assert "tea" in blocks(sent)[0]


async def test_each_user_of_a_project_sees_their_own_and_the_projects(store: Store) -> None:
    for whose, own, others in (("lena", "tea", "chess"), ("mara", "chess", "tea")):
        text = "\n".join(await shown(FactMemory(user=whose, also=[APOLLO], store=store)))
        assert (own in text, "May" in text, others in text) == (True, True, False)


async def test_what_is_added_or_cleared_is_the_users_alone(store: Store) -> None:
    memory = FactMemory(user="lena", also=[APOLLO], store=store)
    await know(memory, "Lena lives in Graz.")
    project = FactMemory(scope=APOLLO, store=store)
    assert [one.content for one in (await project.query()).results] == ["Apollo ships in May."]
    await memory.clear()
    assert [one.content for one in (await memory.query()).results] == ["Apollo ships in May."]


async def test_a_question_goes_to_all_of_its_scopes(store: Store) -> None:
    memory = FactMemory(user="lena", also=[APOLLO], store=store)
    found = await memory.query("When does Apollo ship?")
    assert [(one.content, (one.metadata or {})["scope_kind"]) for one in found.results] == [
        ("Apollo ships in May.", "project"),
        ("Lena likes tea.", "user"),
    ]
    assert (found.stored, (await memory.recall("telescope")).outcome) == (2, RecallOutcome.NOTHING_RELEVANT)


async def test_both_blocks_keep_to_one_budget_and_neither_starves(store: Store) -> None:
    project = FactMemory(scope=APOLLO, store=store)
    memory = FactMemory(user="lena", also=[APOLLO], store=store, budget_tokens=400)
    for number in range(40):
        await know(memory, f"Lena owns item {number}.")
        await know(project, f"Apollo needs part {number}.")
    both = await shown(memory)
    assert [one.count("\n- ") > 5 for one in both] == [True, True]
    assert sum(tokens_by_byte_size(one) for one in both) <= 400


@given(needs=st.lists(st.integers(0, 500), min_size=1, max_size=5), budget=st.integers(0, 1000))
def test_shares_fill_the_budget_and_give_nobody_more_than_needed(needs: list[int], budget: int) -> None:
    given = budget_shares(needs, budget)
    assert all(0 <= share <= need for share, need in zip(given, needs, strict=True))
    assert sum(given) <= budget
    assert sum(given) == sum(needs) or sum(given) > budget - len(needs)


def test_another_tenant_is_never_read_beside() -> None:
    with pytest.raises(ScopeInvalid, match="another tenant"):
        FactMemory(user="lena", also=["acme/project/apollo"])


async def test_a_dump_keeps_what_is_read_beside(tmp_path: Path, store: Store) -> None:
    memory = FactMemory(user="lena", also=[APOLLO, APOLLO], store=store)
    dumped = json.loads(memory.dump_component().model_dump_json())
    assert dumped["config"]["also"] == [APOLLO]
    assert len(await shown(Memory.load_component(dumped))) == 2


async def test_two_agents_of_a_team_and_many_teams_at_once_share_one_memory(store: Store) -> None:
    """While somebody else writes: every request has each block once, and nobody sees a half-written memory."""
    memory = FactMemory(user="lena", also=[APOLLO], store=store)

    async def chat(number: int) -> list[list[str]]:
        clients = [replying(*["fine"] * 4) for _ in range(2)]
        agents = [
            AssistantAgent(name, client, memory=[memory])
            for name, client in zip(("planner", "writer"), clients, strict=True)
        ]
        team = RoundRobinGroupChat([*agents], termination_condition=MaxMessageTermination(5))
        for turn in range(2):
            await team.run(task=f"Team {number}, question {turn}.")
        return [blocks(one["messages"]) for client in clients for one in client.create_calls]

    async def write() -> list[list[str]]:
        for number in range(10):
            await know(FactMemory(scope=APOLLO, store=store), f"Apollo needs part {number}.")
        return []

    requests = [
        one for chatted in await asyncio.gather(*(chat(number) for number in range(8)), write()) for one in chatted
    ]
    assert len(requests) == 8 * 8
    for both in requests:
        assert len(both) == 2
        assert both[0].count("Lena likes tea.") == both[1].count("Apollo ships in May.") == 1
    assert "Apollo needs part 9." in (await shown(memory))[1]
