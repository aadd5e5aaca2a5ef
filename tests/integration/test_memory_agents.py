"""FactMemory in real agents and teams: what they see, save and share."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import MemoryQueryEvent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.extractors.readers import read_state
from afterword.facts.transcripts import Role
from afterword.recall.block import CLOSING, OPENING
from afterword.store.database.engine import Store
from injected import (
    FACT,
    blocks,
    is_merged,
    kept,
    last_request,
    replaying,
)


@pytest.mark.parametrize("is_first", [True, False])
async def test_another_memory_beside_it_keeps_working(lena: FactMemory, is_first: bool) -> None:
    other = ListMemory(memory_contents=[MemoryContent(content="Be kind.", mime_type=MemoryMimeType.TEXT)])
    context, client = UnboundedChatCompletionContext(), replaying()
    memory: list[Memory] = [lena, other] if is_first else [other, lena]
    agent = AssistantAgent("helper", client, memory=memory, model_context=context)
    for number in range(5):
        await agent.run(task=f"question {number}")
    sent = last_request(client)
    assert len(blocks(sent)) == 1
    assert sum("Be kind." in str(message.content) for message in sent) == 5
    assert sent[1] == blocks(sent)[0]


async def test_two_scopes_keep_a_block_each(lena: FactMemory, store: Store) -> None:
    project = FactMemory(scope="default/project/apollo", store=store)
    await project.add(MemoryContent(content="Apollo ships in May.", mime_type=MemoryMimeType.TEXT))
    context, client = UnboundedChatCompletionContext(), replaying()
    agent = AssistantAgent("helper", client, memory=[lena, project], model_context=context)
    for _ in range(4):
        await agent.run(task="hello")
    sent = last_request(client)
    assert len(blocks(sent)) == len(blocks(kept(context))) == 2
    assert is_merged(sent)


async def test_the_block_follows_what_is_known_and_goes_when_nothing_is(lena: FactMemory) -> None:
    context = UnboundedChatCompletionContext()
    agent = AssistantAgent("helper", replaying(), memory=[lena], model_context=context)
    await agent.run(task="hello")
    await lena.add(MemoryContent(content="Lena lives in Graz.", mime_type=MemoryMimeType.TEXT))
    await agent.run(task="hello")
    [block] = blocks(kept(context))
    assert "Graz" in str(block.content)
    await lena.clear()
    result = await agent.run(task="hello")
    assert blocks(kept(context)) == []
    assert not any(isinstance(message, MemoryQueryEvent) for message in result.messages)


async def test_unchanged_facts_leave_the_whole_beginning_unchanged(lena: FactMemory) -> None:
    """Providers cache prompts by their beginning: what did not change must not be written anew."""
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[lena])
    for number in range(3):
        await agent.run(task=f"question {number}")
    first, second, third = (list(call["messages"]) for call in client.create_calls)
    assert third[: len(second)] == second
    assert second[: len(first)] == first


async def test_saved_and_loaded_there_is_still_one_block(lena: FactMemory) -> None:
    agent = AssistantAgent("helper", replaying(), memory=[lena])
    for _ in range(3):
        await agent.run(task="hello")
    for _ in range(3):
        state = json.loads(json.dumps(await agent.save_state()))
        client = replaying()
        agent = AssistantAgent("helper", client, memory=[lena])
        await agent.load_state(state)
        await agent.run(task="hello again")
        assert len(blocks(last_request(client))) == 1


async def test_in_a_team_every_agent_has_one_block_and_nobody_said_it(lena: FactMemory) -> None:
    contexts = [UnboundedChatCompletionContext(), BufferedChatCompletionContext(buffer_size=3)]
    agents = [
        AssistantAgent(name, replaying(), memory=[lena], model_context=context)
        for name, context in zip(("planner", "writer"), contexts, strict=True)
    ]
    team = RoundRobinGroupChat([*agents], termination_condition=MaxMessageTermination(7))
    for _ in range(3):
        await team.run(task="Plan my trip.")
    assert [len(blocks(kept(context))) for context in contexts] == [1, 1]
    state = json.loads(json.dumps(await team.save_state()))
    transcript = read_state(state)
    said = [turn.text for turn in transcript.turns if turn.role in (Role.HUMAN, Role.AGENT)]
    assert said
    assert not any(OPENING in text or CLOSING in text or FACT in text for text in said)


async def test_an_agent_with_its_memory_is_dumped_and_loaded(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    await memory.add(MemoryContent(content=FACT, mime_type=MemoryMimeType.TEXT))
    agent = AssistantAgent("helper", replaying(), memory=[memory])
    dumped = json.loads(agent.dump_component().model_dump_json())
    loaded = AssistantAgent.load_component(dumped)
    result = await loaded.run(task="hello")
    [event] = [message for message in result.messages if isinstance(message, MemoryQueryEvent)]
    assert [one.content for one in event.content] == [FACT]
    await memory.close()


@asynccontextmanager
async def served(store: Store, user: str) -> AsyncIterator[tuple[AssistantAgent, ReplayChatCompletionClient]]:
    client = replaying()
    memory = FactMemory(user=user, store=store)
    yield AssistantAgent("helper", client, memory=[memory]), client
    await memory.close()


async def test_an_agent_for_another_user_sees_nothing(lena: FactMemory, store: Store) -> None:
    async with served(store, "mara") as (agent, client):
        await agent.run(task="What do I like? What does Lena like?")
        assert FACT not in str(last_request(client))
    async with served(store, "lena") as (agent, client):
        await agent.run(task="What do I like?")
        assert FACT in str(last_request(client))


async def test_an_agent_answers_while_the_store_is_down(tmp_path: Path) -> None:
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[FactMemory(user="lena", store=f"sqlite:///{tmp_path}")])
    result = await agent.run(task="hello")
    assert result.messages[-1].to_text() == "answer 0"
