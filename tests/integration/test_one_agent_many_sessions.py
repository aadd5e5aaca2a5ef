"""One live agent or team that is recorded under several session ids: each session has only what was said in it."""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, FunctionCall
from autogen_core.model_context import ChatCompletionContext, UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    UserMessage,
)
from sqlmodel import SQLModel

import afterword
from afterword import Afterword, ScopeMemory
from afterword.errors import StoreError
from conversing import replying

Recorded = AssistantAgent | RoundRobinGroupChat


@pytest.fixture
async def app() -> AsyncIterator[Afterword]:
    async with afterword.open("sqlite://") as opened:
        yield opened


def agent_of(memory: ScopeMemory, name: str = "helper", context: ChatCompletionContext | None = None) -> AssistantAgent:
    return AssistantAgent(name, replying(*["Noted."] * 9), memory=[memory.memory()], model_context=context)


def team_of(memory: ScopeMemory, *names: str) -> RoundRobinGroupChat:
    return RoundRobinGroupChat([agent_of(memory, name) for name in names or ("helper",)], max_turns=1)


async def say(app: Afterword, memory: ScopeMemory, recorded: Any, session_id: str, *texts: str, **options: Any) -> None:
    async with memory.record(recorded, session_id=session_id, **options):
        for text in texts:
            await recorded.run(task=text)
    await app.run_pending()


async def known(memory: ScopeMemory) -> dict[str, str]:
    return {fact.statement: str(fact.status) for fact in (await memory.facts(status="all")).facts}


async def said(memory: ScopeMemory, session_id: str) -> list[str]:
    return [entry.turn.text for entry in (await memory.session(session_id)).turns if entry.turn.speaker == "user"]


async def everything(app: Afterword) -> str:
    """Every value of every table except vectors, states unpacked."""
    values: list[str] = []
    with (await app.store()).reading() as transaction:
        for table in SQLModel.metadata.sorted_tables:
            for row in transaction.connection().execute(table.select()).all() if table.name != "vectors" else ():
                values += [zlib.decompress(each).decode() if isinstance(each, bytes) else str(each) for each in row]
    return "\n".join(values)


async def test_words_of_an_earlier_session_are_not_said_again_in_a_later_one(app: Afterword) -> None:
    mira = app.user("mira")
    agent = agent_of(mira)
    for day, text in enumerate(("I live in Bergen.", "Hello.", "I moved to Oslo.", "Hello again.")):
        await say(app, mira, agent, f"day {day}", text)
    assert await known(mira) == {"The user lives in Bergen.": "superseded", "The user moved to Oslo.": "current"}
    assert [fact.support for fact in (await mira.facts()).facts] == [1]
    assert [await said(mira, f"day {day}") for day in (1, 2)] == [["Hello."], ["I moved to Oslo."]]


async def forget_fact(memory: ScopeMemory) -> None:
    await memory.forget(fact=(await memory.facts()).facts[0].id)


async def withdraw(memory: ScopeMemory) -> None:
    await memory.withdraw((await memory.facts()).facts[0].id)


async def forget_session(memory: ScopeMemory) -> None:
    await memory.forget(session="monday")


async def forget_everything(memory: ScopeMemory) -> None:
    await memory.forget(everything=True)


async def nothing(_: ScopeMemory) -> None: ...


async def end_pause(memory: ScopeMemory) -> None:
    await memory.resume_keeping()


@pytest.mark.parametrize("make", [agent_of, team_of])
@pytest.mark.parametrize("change", [forget_fact, withdraw, forget_session, forget_everything, nothing, end_pause])
async def test_what_was_taken_back_or_left_out_does_not_return(
    app: Afterword, make: Callable[[ScopeMemory], Recorded], change: Callable[[ScopeMemory], Awaitable[None]]
) -> None:
    mira = app.user("mira")
    recorded = make(mira)
    if change is end_pause:
        await mira.pause()
    await say(app, mira, recorded, "monday", "I like quixtea.", off_the_record=change is nothing)
    await change(mira)
    await say(app, mira, recorded, "tuesday", "I own a dog.")
    expected = {"The user owns a dog.": "current"}
    assert await known(mira) == expected | ({"The user likes quixtea.": "retracted"} if change is withdraw else {})
    assert ("quixtea" in await everything(app)) == (change is withdraw)


@pytest.mark.parametrize("make", [agent_of, team_of])
async def test_words_of_a_user_are_none_of_the_next_user_of_the_agent(
    app: Afterword, make: Callable[[ScopeMemory], Recorded]
) -> None:
    ann, bob = app.user("ann"), app.user("bob")
    recorded = make(app.user("nobody"))
    await say(app, ann, recorded, "today", "I live in Rome.")
    await say(app, bob, recorded, "today", "I like tea.")
    assert await known(bob) == {"The user likes tea.": "current"}
    assert await said(bob, "today") == ["I like tea."]
    await ann.forget(everything=True)
    assert "Rome" not in await everything(app)


@pytest.mark.parametrize("make", [agent_of, team_of])
async def test_what_was_resumed_belongs_to_its_session(app: Afterword, make: Callable[[ScopeMemory], Recorded]) -> None:
    mira = app.user("mira")
    await say(app, mira, make(mira), "monday", "I live in Bergen.")
    await say(app, mira, make(mira), "tuesday", "I moved to Oslo.")
    recorded = make(mira)
    await mira.resume(recorded, session_id="monday")
    await say(app, mira, recorded, "friday", "I like tea.")
    assert await said(mira, "friday") == ["I like tea."]
    assert (await known(mira))["The user moved to Oslo."] == "current"
    await say(app, mira, recorded, "monday", "I own a dog.")
    assert await said(mira, "monday") == ["I live in Bergen.", "I own a dog."]
    again = make(mira)
    await mira.resume(again, session_id="friday")
    await say(app, mira, again, "friday", "I own a cat.")
    assert await said(mira, "friday") == ["I like tea.", "I own a cat."]


@pytest.mark.parametrize("make", [agent_of, team_of])
async def test_a_ticket_of_the_wrong_person_is_given_to_the_right_one_by_its_state(
    app: Afterword, make: Callable[[ScopeMemory], Recorded]
) -> None:
    wrong, right = app.user("ann"), app.user("bob")
    recorded, again = make(wrong), make(right)
    await say(app, wrong, recorded, "ticket", "I like tea.")
    await again.load_state(await recorded.save_state())
    await say(app, right, again, "ticket")
    await wrong.forget(session="ticket")
    await say(app, right, again, "ticket", "I own a dog.")
    assert await said(right, "ticket") == ["I like tea.", "I own a dog."]
    assert await known(wrong) == {}


@pytest.mark.parametrize("make", [agent_of, team_of])
async def test_the_same_words_count_where_they_are_said_again(
    app: Afterword, make: Callable[[ScopeMemory], Recorded]
) -> None:
    mira = app.user("mira")
    recorded = make(mira)
    await say(app, mira, recorded, "monday", "I like tea.")
    await say(app, mira, recorded, "tuesday", "I like tea.")
    assert [fact.support for fact in (await mira.facts()).facts] == [2]
    await (recorded.on_reset(CancellationToken()) if isinstance(recorded, AssistantAgent) else recorded.reset())
    await say(app, mira, recorded, "friday", "I like tea.", "I own a dog.")
    assert await said(mira, "friday") == ["I like tea.", "I own a dog."]


async def test_what_was_said_before_the_first_record_counts(app: Afterword) -> None:
    mira = app.user("mira")
    agent = agent_of(mira)
    await agent.run(task="I like tea.")
    await say(app, mira, agent, "monday", "I own a dog.")
    await agent.run(task="I own a cat.")
    await say(app, mira, agent, "tuesday")
    assert await said(mira, "monday") == ["I like tea.", "I own a dog."]
    assert await said(mira, "tuesday") == ["I own a cat."]


@pytest.mark.parametrize("make", [agent_of, team_of])
async def test_a_session_that_goes_on_after_another_keeps_both_of_its_parts(
    app: Afterword, make: Callable[[ScopeMemory], Recorded]
) -> None:
    mira = app.user("mira")
    recorded = make(mira)
    for session_id, text in (("a", "I like tea."), ("b", "I own a dog."), ("a", "I own a cat."), ("b", "Hello.")):
        await say(app, mira, recorded, session_id, text)
    assert await said(mira, "a") == ["I like tea.", "I own a cat."]
    assert await said(mira, "b") == ["I own a dog.", "Hello."]


async def test_words_that_could_not_be_saved_are_saved_under_the_next_id(app: Afterword, tmp_path: Path) -> None:
    mira = app.user("mira")
    agent = agent_of(mira)
    with pytest.raises(StoreError):
        async with afterword.record_session(agent, user="mira", session_id="a", store=f"sqlite:///{tmp_path}"):
            await agent.run(task="I like tea.")
    await say(app, mira, agent, "b")
    assert await said(mira, "b") == ["I like tea."]


async def test_what_is_recorded_for_two_people_at_once_is_in_both_memories(app: Afterword) -> None:
    ann, bob = app.user("ann"), app.user("bob")
    agent = agent_of(ann)
    async with ann.record(agent, session_id="a"), bob.record(agent, session_id="b"):
        await agent.run(task="I like tea.")
    assert [await said(ann, "a"), await said(bob, "b")] == [["I like tea."]] * 2


async def test_an_agent_of_a_team_may_be_recorded_inside_the_block_of_the_team(app: Afterword) -> None:
    mira = app.user("mira")
    helper = agent_of(mira)
    team = RoundRobinGroupChat([helper], max_turns=1)
    async with mira.record(team, session_id="team"), mira.record(helper, session_id="alone"):
        await team.run(task="I like tea.")
    again = team_of(mira)
    await mira.resume(again, session_id="team")
    assert "I like tea." in json.dumps((await again.save_state())["agent_states"]["helper"])


async def test_what_waits_for_an_agent_of_a_team_stays_with_its_session(app: Afterword) -> None:
    mira = app.user("mira")
    team = team_of(mira, "planner", "writer")
    await say(app, mira, team, "monday", "I like tea.")
    await say(app, mira, team, "tuesday", "I own a dog.")
    await say(app, mira, team, "friday", "I own a cat.")
    assert [await said(mira, day) for day in ("tuesday", "friday")] == [["I own a dog."], ["I own a cat."]]
    again = team_of(mira, "planner", "writer")
    await mira.resume(again, session_id="friday")
    states = (await again.save_state())["agent_states"]
    contexts = json.dumps([states["planner"], states["writer"]])
    assert not [words for words in ("I like tea.", "I own a dog.") if words in contexts]
    await say(app, mira, again, "friday", "I own a van.")
    assert await said(mira, "friday") == ["I own a cat.", "I own a van."]


async def test_a_block_of_an_earlier_session_is_not_stored_again(app: Afterword) -> None:
    mira = app.user("mira")
    agent = agent_of(mira)
    await say(app, mira, agent, "monday", "I like quixtea.")
    await say(app, mira, agent, "monday", "Hello.")
    assert "quixtea" in str(await agent.save_state()).split("</afterword:memory>")[0]
    await mira.forget(everything=True)
    await say(app, mira, agent, "tuesday")
    assert "quixtea" not in await everything(app)


async def test_examples_stay_in_every_session(app: Afterword) -> None:
    mira = app.user("mira")
    examples: list[LLMMessage] = [
        UserMessage(content="I own a boat.", source="user"),
        AssistantMessage(content="ok", source="helper"),
    ]
    agent = agent_of(mira, context=UnboundedChatCompletionContext(initial_messages=list(examples)))
    await say(app, mira, agent, "monday", "I like tea.")
    await say(app, mira, agent, "tuesday", "I own a dog.")
    assert await known(mira) == {"The user likes tea.": "current", "The user owns a dog.": "current"}
    again = agent_of(mira)
    await mira.resume(again, session_id="tuesday")
    state = json.dumps(await again.save_state())
    assert ("boat" in state, "tea" in state, "dog" in state) == (True, False, True)


async def test_a_call_and_its_result_stay_together(app: Afterword) -> None:
    mira = app.user("mira")
    agent = agent_of(mira)
    context = agent.model_context
    call = FunctionCall(id="1", name="find", arguments="{}")
    result = FunctionExecutionResult(call_id="1", content="3 hotels", is_error=False, name="find")
    async with mira.record(agent, session_id="monday"):
        await context.add_message(UserMessage(content="I like tea.", source="user"))
        await context.add_message(AssistantMessage(content=[call], source="helper"))
    async with mira.record(agent, session_id="tuesday"):
        await context.add_message(FunctionExecutionResultMessage(content=[result]))
        await context.add_message(UserMessage(content="I own a dog.", source="user"))
    kinds = []
    for session_id in ("tuesday", "monday"):
        async with mira.record(agent, session_id=session_id):
            pass
        again = agent_of(mira)
        await mira.resume(again, session_id=session_id)
        kinds.append([type(message) for message in await again.model_context.get_messages()])
    assert kinds == [[UserMessage], [UserMessage, AssistantMessage, FunctionExecutionResultMessage]]


@dataclass
class Chat:
    """An agent or a manager of which only the state is known."""

    state: dict[str, Any]
    key: str

    def hear(self, text: str) -> None:
        self.state[self.key].append({"type": "UserMessage", "source": "user", "content": text})

    async def save_state(self) -> Mapping[str, Any]:
        return copy.deepcopy(self.state)

    async def load_state(self, state: Mapping[str, Any]) -> None:
        self.state = copy.deepcopy(dict(state))


async def test_an_agent_with_messages_of_its_own_kind_is_followed_too(app: Afterword) -> None:
    mira, chat = app.user("mira"), Chat({"messages": []}, "messages")
    for session_id, text in (("a", "I like tea."), ("b", "I own a dog."), ("b", "I like tea.")):
        chat.hear(text)
        async with mira.record(chat, session_id=session_id):
            pass
    assert await said(mira, "b") == ["I own a dog.", "I like tea."]
    chat.state["messages"] = []
    for text in ("I like tea.", "I own a cat."):
        chat.hear(text)
    async with mira.record(chat, session_id="c"):
        pass
    assert await said(mira, "c") == ["I like tea.", "I own a cat."], "the agent has begun anew"


async def test_the_task_of_another_session_is_left_out(app: Afterword) -> None:
    mira = app.user("mira")
    manager: dict[str, Any] = {"message_thread": [], "task": "", "facts": "", "plan": ""}
    chat = Chat(manager, "message_thread")
    team = Chat({"agent_states": {"MagenticOneOrchestrator": manager}}, "")
    for session_id, text in (("a", "I like tea."), ("b", ""), ("b", "I own a dog."), ("a", "")):
        if text:
            chat.hear(text)
            manager |= {"task": text, "facts": f"It is known: {text}", "plan": f"Think of: {text}"}
        async with mira.record(team, session_id=session_id):
            pass
        stored = Chat({}, "")
        await mira.resume(stored, session_id=session_id)
        assert ("tea" in json.dumps(stored.state), "dog" in json.dumps(stored.state)) == (
            session_id == "a",
            text == "I own a dog.",
        )
