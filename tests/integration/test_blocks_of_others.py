"""A conversation that goes on: only the memories that the agent has now are told to its model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.model_context import BufferedChatCompletionContext, ChatCompletionContext

from afterword import Afterword, ScopeMemory
from afterword import open as open_afterword
from afterword.agents.memory import FactMemory
from afterword.store import sessions
from afterword.store.database.engine import Store
from injected import CONTEXTS, blocks, kept, last_request, replaying

PROJECT = "default/project/apollo"
SECRET = "Mira is pregnant."


async def turn(
    session: ScopeMemory,
    words: str,
    memory: list[FactMemory],
    context: Callable[[], ChatCompletionContext] | None = None,
) -> str:
    """Go on with the conversation "chat", and return what the model is shown."""
    client = replaying()
    agent = AssistantAgent("helper", client, memory=memory or None, model_context=context() if context else None)
    await session.resume(agent, session_id="chat", missing_ok=True)
    async with session.record(agent, session_id="chat"):
        await agent.run(task=words)
    return str(last_request(client))


@pytest.fixture
async def app(store: Store) -> AsyncIterator[Afterword]:
    async with open_afterword(store=store) as opened_app:
        yield opened_app


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
async def test_who_goes_on_with_a_chat_is_not_told_the_notes_of_the_one_before(
    app: Afterword, make: Callable[[], ChatCompletionContext]
) -> None:
    mira, otto, project = app.user("mira"), app.user("otto"), app.scope(PROJECT)
    await mira.remember(SECRET)
    await otto.remember("Otto likes tea.")
    await project.remember("The launch is in May.")
    await turn(project, "When is the launch?", [mira.memory(also=[PROJECT])], make)
    shown = await turn(project, "Who does the press work?", [otto.memory(also=[PROJECT])], make)
    assert SECRET not in shown


async def test_a_state_that_the_application_keeps_itself_brings_no_block_along(app: Afterword) -> None:
    mira, otto = app.user("mira"), app.user("otto")
    await mira.remember(SECRET)
    await otto.remember("Otto likes tea.")
    agent = AssistantAgent("helper", replaying(), memory=[mira.memory()])
    await agent.run(task="Hello.")
    state = json.loads(json.dumps(await agent.save_state()))
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[otto.memory()])
    await agent.load_state(state)
    for _ in range(2):
        await agent.run(task="And now?")
        assert SECRET not in str(last_request(client))
        assert len(blocks(last_request(client))) == 1


async def test_a_block_of_another_memory_goes_while_the_store_is_down(app: Afterword, tmp_path: Path) -> None:
    mira = app.user("mira")
    await mira.remember(SECRET)
    agent = AssistantAgent("helper", replaying(), memory=[mira.memory()])
    await agent.run(task="Hello.")
    state = await agent.save_state()
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[FactMemory(user="otto", store=f"sqlite:///{tmp_path}")])
    await agent.load_state(state)
    await agent.run(task="And now?")
    assert SECRET not in str(last_request(client))


async def test_an_agent_that_has_no_memory_any_more_is_told_none(app: Afterword) -> None:
    mira = app.user("mira")
    await mira.remember(SECRET)
    assert SECRET in await turn(mira, "Hello.", [mira.memory()])
    assert SECRET not in await turn(mira, "And now?", [])


async def test_a_scope_that_is_read_no_more_is_not_told(app: Afterword) -> None:
    mira, project = app.user("mira"), app.scope(PROJECT)
    await project.remember("The code name is Falcon.")
    assert "Falcon" in await turn(mira, "Hello.", [mira.memory(also=[PROJECT])])
    assert "Falcon" not in await turn(mira, "And now?", [mira.memory()])


async def test_a_renamed_memory_is_told_under_its_new_name_alone(app: Afterword) -> None:
    old = app.user("old")
    await old.remember("The user lives in Bergen.")
    await turn(old, "Hello.", [old.memory()])
    await app.rename("default/user/old", "default/user/new")
    new = app.user("new")
    assert (await turn(new, "And now?", [new.memory()])).count("The user lives in Bergen.") == 1


async def test_two_memories_of_one_agent_are_both_told_in_every_turn(app: Afterword) -> None:
    mira, otto = app.user("mira"), app.user("otto")
    await mira.remember("Mira likes coffee.")
    await otto.remember("Otto likes tea.")
    shown = [await turn(mira, f"Question {number}.", [mira.memory(), otto.memory()]) for number in range(3)]
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[mira.memory(), otto.memory()])
    await mira.resume(agent, session_id="chat")
    for number in range(3):
        await agent.run(task=f"Question {number}.")
        shown.append(str(last_request(client)))
    for each in shown:
        assert each.count("<afterword:memory") == 2
        assert each.index("Mira likes coffee.") < each.index("Otto likes tea.")


async def test_a_team_that_is_resumed_has_the_blocks_of_its_present_memories(app: Afterword) -> None:
    mira, otto, project = app.user("mira"), app.user("otto"), app.scope(PROJECT)
    await mira.remember(SECRET)
    await otto.remember("Otto likes tea.")
    for who in (mira, otto, mira):
        contexts = [BufferedChatCompletionContext(buffer_size=9) for _ in range(2)]
        agents = [
            AssistantAgent(name, replaying(), memory=[who.memory()], model_context=context)
            for name, context in zip(("planner", "writer"), contexts, strict=True)
        ]
        team = RoundRobinGroupChat([*agents], termination_condition=MaxMessageTermination(3))
        await project.resume(team, session_id="team", missing_ok=True)
        async with project.record(team, session_id="team"):
            await team.run(task="Plan the launch.")
        for context in contexts:
            assert [SECRET in str(block.content) for block in blocks(kept(context))] == [who is mira]


async def test_turns_are_recognised_where_a_block_has_gone(app: Afterword) -> None:
    mira, project = app.user("mira"), app.scope(PROJECT)
    await mira.remember(SECRET)
    words = ["When is the launch?", "Who does the press work?", "When is the launch?", "And the rest?"]
    for number, said in enumerate(words):
        await turn(project, said, [mira.memory()] if number % 2 == 0 else [])
        await project.process("chat")
    details = await project.session("chat")
    assert [each.turn.text for each in details.turns if each.turn.role == "human"] == words


async def test_forgetting_empties_the_block_in_the_saved_state(app: Afterword, store: Store) -> None:
    mira, project = app.user("mira"), app.scope(PROJECT)
    await mira.remember(SECRET)
    await turn(project, "When is the launch?", [mira.memory()])

    async def saved() -> str:
        return str(await store.read(lambda db: sessions.load_state(db, project.scope, "chat", "AssistantAgent")))

    assert SECRET in await saved(), "the saved state keeps what was told, so that it is never learned again"
    await mira.forget(fact=(await mira.facts()).facts[0].id)
    assert "pregnant" not in await saved()
