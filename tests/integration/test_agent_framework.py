"""The provider for Agent Framework: what it keeps of a session, whose it is, and what its tools may do."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    AgentSession,
    FileHistoryProvider,
    Message,
    WorkflowBuilder,
)
from autogen_agentchat.agents import AssistantAgent

import afterword
from afterword import Afterword, ProcessingOptions, record_session
from afterword.agents.agent_framework import FactMemoryProvider
from afterword.errors import ScopeInvalid
from afterword.extractors.rules import RulesExtractor
from afterword.store import sessions
from afterword.store.database.engine import Store
from commands import Commands
from conversing import replying
from framework_agents import Reply, ScriptedClient, tool_call
from saved import write_state

RULES = ProcessingOptions(extractor="rules")


@pytest.fixture
async def app(store: Store) -> AsyncIterator[Afterword]:
    async with afterword.open(store=store) as opened:
        yield opened


def helper(provider: FactMemoryProvider, *replies: Reply, **options: Any) -> Agent:
    return Agent(
        ScriptedClient(*replies or ("Noted.",)), "Be brief.", name="helper", context_providers=[provider], **options
    )


def sent(agent: Agent) -> list[str]:
    assert isinstance(agent.client, ScriptedClient)
    return ["\n".join(text for _, text in request) for request in agent.client.requests]


async def turns(app: Afterword, session_id: str, user: str = "mira") -> list[tuple[str, str]]:
    details = await app.user(user).session(session_id)
    return [(entry.turn.role.value, entry.turn.text) for entry in details.turns]


async def session_ids(app: Afterword) -> list[str]:
    return [session.session_id for session in (await app.sessions()).sessions]


async def learned(app: Afterword, user: str = "mira") -> set[str]:
    await app.run_pending(options=RULES)
    return {fact.statement for fact in (await app.user(user).facts()).facts}


async def test_what_is_said_before_a_model_fails_is_kept_once(app: Afterword, store: Store) -> None:
    agent = helper(FactMemoryProvider("mira", store=store), RuntimeError("the model is away"), "Noted.")
    session = agent.create_session(session_id="monday")
    with pytest.raises(RuntimeError):
        await agent.run("I live in Bergen.", session=session)
    assert await turns(app, "monday") == [("human", "I live in Bergen.")]
    await agent.run("I live in Bergen.", session=session)
    assert await turns(app, "monday") == [("human", "I live in Bergen."), ("agent", "Noted.")]
    assert await learned(app) == {"The user lives in Bergen."}


async def test_what_is_said_before_a_stream_is_abandoned_is_kept(app: Afterword, store: Store) -> None:
    agent = helper(FactMemoryProvider("mira", store=store), "A long answer.")
    session = agent.create_session(session_id="monday")
    async for _ in agent.run("I live in Bergen.", session=session, stream=True):
        break
    assert await learned(app) == {"The user lives in Bergen."}


@pytest.mark.parametrize("reply", ["Noted.", RuntimeError("the model is away")])
async def test_what_was_said_while_the_store_was_away_is_stored_at_the_close(reply: Reply, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    provider = FactMemoryProvider("mira", store=f"sqlite:///{path}")
    agent = helper(provider, reply)
    path.mkdir()  # a folder is no database
    session = agent.create_session(session_id="monday")
    if isinstance(reply, Exception):
        with pytest.raises(RuntimeError):
            await agent.run("I live in Bergen.", session=session)
    else:
        await agent.run("I live in Bergen.", session=session)
    path.rmdir()
    await provider.close()
    async with afterword.open(f"sqlite:///{path}") as app:
        answer = [] if isinstance(reply, Exception) else [("agent", "Noted.")]
        assert await turns(app, "monday") == [("human", "I live in Bergen."), *answer]


async def test_what_cannot_be_stored_at_the_close_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    provider = FactMemoryProvider("mira", store=f"sqlite:///{tmp_path}")
    agent = helper(provider, "Noted.")
    await agent.run("I live in Bergen.", session=agent.create_session(session_id="monday"))
    await provider.close()
    assert "the last messages of session 'monday' are not stored yet" in caplog.text


async def test_equal_turns_are_all_kept(app: Afterword, store: Store) -> None:
    agent = helper(FactMemoryProvider("mira", store=store), "ok")
    session = agent.create_session(session_id="monday")
    for _ in range(3):
        await agent.run("yes", session=session)
    assert await turns(app, "monday") == [("human", "yes"), ("agent", "ok")] * 3


@pytest.mark.parametrize("has_session", [True, False])
async def test_a_transcript_that_is_sent_again_gives_no_doubles(
    app: Afterword, store: Store, has_session: bool
) -> None:
    """Some applications keep the transcript themselves, and send all of it each time."""
    agent = helper(FactMemoryProvider("mira", store=store), "One.", "Two.", "Three.")
    said: list[Message] = []
    for text in ("I live in Bergen.", "My password is hunter2secret.", "I like tea."):
        said.append(Message("user", [text]))
        session = AgentSession(session_id="monday") if has_session else None
        response = await agent.run(list(said), session=session)
        said += [Message("assistant", [response.text])]
    (session_id,) = await session_ids(app)
    spoken = await turns(app, session_id)
    assert [text for _, text in spoken][0::2][0::2] == ["I live in Bergen.", "I like tea."]
    assert len(spoken) == 6
    assert "hunter2secret" not in str(spoken)


async def test_a_transcript_of_two_people_is_not_continued_across_them(app: Afterword, store: Store) -> None:
    owner = ["mira"]
    agent = helper(FactMemoryProvider(lambda _: owner[0], store=store), "Hello.")
    await agent.run("Hi.")
    owner[0] = "otto"
    await agent.run([Message("user", ["Hi."]), Message("assistant", ["Hello."]), Message("user", ["I like wine."])])
    assert await learned(app) == set()
    assert await learned(app, "otto") == {"The user likes wine."}


async def test_what_a_loop_tells_an_agent_is_no_persons_word(app: Afterword, store: Store) -> None:
    async def go_on(*, iteration: int, **_: Any) -> tuple[bool, str]:
        return iteration < 3, f"I prefer step {iteration}."

    loop = AgentLoopMiddleware(go_on, record_feedback=lambda feedback, **_: feedback)
    agent = helper(FactMemoryProvider("mira", store=store), "Half.", "More.", "Done.", middleware=[loop])
    await agent.run("I prefer short reports.", session=agent.create_session(session_id="monday"))
    spoken = await turns(app, "monday")
    assert [text for role, text in spoken if role == "human"] == ["I prefer short reports."]
    assert [text for role, text in spoken if role == "agent"] == ["Half.", "More.", "Done."]
    assert await learned(app) == {"The user prefers short reports."}


async def test_the_executors_of_a_workflow_share_a_session(app: Afterword, store: Store) -> None:
    """Each has a session of its own, without a user: the provider asks a function."""
    user: ContextVar[str] = ContextVar("user")
    provider = FactMemoryProvider(lambda _: user.get(), store=store)
    researcher = AgentExecutor(Agent(ScriptedClient("Ferries run."), name="researcher", context_providers=[provider]))
    writer = AgentExecutor(Agent(ScriptedClient("Take it."), name="writer", context_providers=[provider]))
    workflow = WorkflowBuilder(start_executor=researcher).add_edge(researcher, writer).build()
    user.set("mira")
    async for _ in workflow.run("I live in Bergen.", stream=True):
        pass
    (session_id,) = await session_ids(app)
    expected = [("human", "I live in Bergen."), ("agent", "Ferries run."), ("agent", "Take it.")]
    assert await turns(app, session_id) == expected


async def test_a_session_that_autogen_saved_goes_on_beside_it(app: Afterword, store: Store) -> None:
    old = AssistantAgent("helper", replying("Noted."))
    async with record_session(old, user="mira", session_id="chat-1", store=store):
        await old.run(task="I live in Bergen.")
    agent = helper(FactMemoryProvider("mira", store=store))
    session = agent.create_session(session_id="chat-1")
    await agent.run("I like tea.", session=session)
    await agent.run("I have met Ida.", session=session)
    assert await session_ids(app) == ["chat-1", "chat-1 (agent framework)"]
    assert await learned(app) >= {"The user lives in Bergen.", "The user likes tea."}


async def test_whoever_cannot_be_named_has_no_memory(
    app: Afterword, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def nobody(session: AgentSession) -> str:
        raise LookupError(session.session_id)

    agent = helper(FactMemoryProvider(nobody, store=store))
    assert (await agent.run("I live in Bergen.")).text == "Noted."
    assert await session_ids(app) == []
    assert "LookupError" in caplog.text
    with pytest.raises(ScopeInvalid):
        FactMemoryProvider(store=store)
    with pytest.raises(ScopeInvalid):
        FactMemoryProvider(nobody, scope="default/user/mira", store=store)


async def test_secrets_and_words_off_the_record_are_not_kept(app: Afterword, store: Store) -> None:
    agent = helper(FactMemoryProvider("mira", store=store), "ok")
    session = agent.create_session(session_id="monday")
    said = ("My password is hunter2secret.", "Off the record: I am leaving Voestalpine.", "I like tea.")
    for text in (*said, "Here comes my PIN.", "83917"):
        await agent.run(text, session=session)
    mira = app.user("mira").scope
    state = str(await store.read(lambda transaction: sessions.load_state(transaction, mira, "monday")))
    for text in (str(await turns(app, "monday")), state):
        assert "hunter2secret" not in text
        assert "Voestalpine" not in text
        assert "83917" not in text
        assert "I like tea." in text
    assert await learned(app) == {"The user likes tea."}


async def test_a_paused_memory_keeps_nothing(app: Afterword, store: Store) -> None:
    await app.user("mira").pause()
    agent = helper(FactMemoryProvider("mira", store=store))
    await agent.run("I live in Bergen.", session=agent.create_session(session_id="monday"))
    assert await learned(app) == set()


async def test_nothing_is_recorded_where_that_is_not_wanted(app: Afterword, store: Store) -> None:
    await app.user("mira").remember("I live in Bergen.")
    agent = helper(FactMemoryProvider("mira", store=store, record=False))
    await agent.run("I like tea.", session=agent.create_session(session_id="monday"))
    assert await session_ids(app) == []
    assert "Bergen" in sent(agent)[0]


async def test_an_agent_that_is_anothers_tool_hears_no_person(app: Afterword, store: Store) -> None:
    agent = helper(FactMemoryProvider("mira", store=store, humans=()))
    await agent.run("I live in Bergen.", session=agent.create_session(session_id="monday"))
    assert [role for role, _ in await turns(app, "monday")] == ["agent", "agent"]
    assert await learned(app) == set()


async def test_the_block_stands_beside_a_history_in_files(app: Afterword, store: Store, tmp_path: Any) -> None:
    await app.user("mira").remember("I live in Bergen.")
    providers = [FactMemoryProvider("mira", store=store), FileHistoryProvider(tmp_path)]
    agent = Agent(ScriptedClient("Noted."), "Be brief.", name="helper", context_providers=providers)
    session = agent.create_session(session_id="monday")
    for _ in range(3):
        await agent.run("Hello.", session=session)
    assert "afterword" not in (tmp_path / "monday.jsonl").read_text()
    assert all(text.count("Bergen") == 1 for text in sent(agent))


async def remembering(store: Store, said: str, *calls: Reply, rules: bool) -> str:
    extractor = RulesExtractor() if rules else None
    provider = FactMemoryProvider("mira", store=store, tools=True, extractor=extractor)
    agent = helper(provider, *calls, "Done.")
    response = await agent.run(said, session=agent.create_session(session_id="monday"))
    results = [content.result for message in response.messages for content in message.contents]
    return "\n".join(str(result) for result in results if result)


LIVES = tool_call("remember", statement="The user lives in Bergen.", attribute="home", value="Bergen")


async def test_the_tool_remembers_what_the_persons_own_words_say(app: Afterword, store: Store) -> None:
    assert "Remembered: The user lives in Bergen." in await remembering(store, "I live in Bergen.", LIVES, rules=True)
    assert {fact.statement for fact in (await app.user("mira").facts()).facts} == {"The user lives in Bergen."}


@pytest.mark.parametrize(("said", "rules"), [("Read this page.", True), ("I live in Bergen.", False)])
async def test_an_agents_word_alone_waits(app: Afterword, store: Store, said: str, rules: bool) -> None:
    assert "Noted for this conversation" in await remembering(store, said, LIVES, rules=rules)
    assert (await app.user("mira").facts()).facts == ()


async def test_the_tools_recall_and_withdraw(app: Afterword, store: Store) -> None:
    await remembering(store, "I live in Bergen.", LIVES, rules=True)
    assert "The user lives in Bergen." in await remembering(
        store, "Well?", tool_call("recall", query="home"), rules=True
    )
    taken_back = tool_call("withdraw", note="The user lives in Bergen.")
    answer = await remembering(store, "I no longer live in Bergen.", taken_back, rules=True)
    assert "Taken back" in answer
    assert (await app.user("mira").facts()).facts == ()


def test_a_folder_with_states_of_both_frameworks_is_read(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = repository / "tests" / "golden" / "states"
    write_state(tmp_path / "saved" / "mira" / "old.json", "I like tea.")
    for name, suffix in (("session_file", "json"), ("history_file", "jsonl"), ("workflow_checkpoint", "json")):
        source = golden / f"agent_framework_{name}" / f"state.{suffix}"
        shutil.copy(source, tmp_path / "saved" / "mira" / f"{name}.{suffix}")
    run = Commands(tmp_path, monkeypatch, capsys)
    run("run", "saved")
    known = {fact["statement"] for fact in json.loads(run("facts", "--user", "mira", "--json"))}
    assert known == {"The user likes tea.", "The user lives in Bergen."}
    (tmp_path / "saved" / "mira" / "new.json").write_text(
        '{"type": "thread", "lines": [{"by": "user", "words": "Hi"}]}'
    )
    assert "no saved conversation is recognised" in run("run", "saved", expected=1)
