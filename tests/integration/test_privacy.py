"""Secrets through live agents, a model's endpoint and the command line."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import ChatAgent, Team
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.models.replay import ReplayChatCompletionClient
from sqlalchemy import select
from sqlmodel import SQLModel

import afterword
from afterword import Afterword, ExtractorAgent, FactMemory, ScopeMemory, process_session, record_session, resume
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.testing import ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.store import sessions
from afterword.store.database.engine import Store, open_store
from commands import Commands
from hashes import without_hashes

LENA = Scope.user("lena")
PASSWORD, PIN = "Krabben-77-brot", "9281"
TOLD = f"I live in Graz. My password is {PASSWORD}, my PIN is {PIN}."


def helper(*answers: str, name: str = "helper") -> AssistantAgent:
    return AssistantAgent(name, ReplayChatCompletionClient(list(answers or ("fine",) * 20)))


async def dumped(path: Path) -> str:
    """The bytes of a store's files, and what its packed columns hold."""
    raw = "\n".join(file.read_bytes().decode("latin-1") for file in path.parent.glob(f"{path.name}*"))
    unpacked: list[str] = []
    async with Store(f"sqlite:///{path}") as store:
        with store.reading() as db:
            for table in SQLModel.metadata.sorted_tables:
                for row in db.connection().execute(select(table)):
                    unpacked += [zlib.decompress(value).decode() for value in row if isinstance(value, bytes)]
    return without_hashes("\n".join([raw, *unpacked]))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "facts.db"


async def test_a_recorded_agent_leaves_no_secret_and_is_taken_up_without(path: Path) -> None:
    async with await open_store(f"sqlite:///{path}") as store:
        async with record_session(helper(f"{PASSWORD}, I see"), user="lena", session_id="s", store=store) as agent:
            await agent.run(task=TOLD)
        held = await dumped(path)
        assert not any(secret in held for secret in (PASSWORD, PIN))
        again = helper()
        await resume(again, user="lena", session_id="s", store=store)
        state = json.dumps(await again.save_state())
        assert "My password is [redacted: password], my PIN is [redacted: code]." in state
        async with record_session(again, user="lena", session_id="s", store=store):
            await again.run(task=f"And once more: my password is {PASSWORD}")
        await process_session(store, Saved(LENA, "s"), extractor=RulesExtractor())
        with store.reading() as db:
            turns = sessions.read_turns(db, LENA, "s")
    assert [turn.speaker for turn in turns] == ["user", "helper", "user", "helper"]
    held = await dumped(path)
    assert not any(secret in held for secret in (PASSWORD, PIN))


async def test_a_recorded_team_leaves_no_secret(path: Path) -> None:
    def team() -> RoundRobinGroupChat:
        members: list[ChatAgent | Team] = [
            helper(name="planner"),
            helper(f"use {PASSWORD}", *["fine"] * 5, name="writer"),
        ]
        return RoundRobinGroupChat(members, termination_condition=MaxMessageTermination(3))

    async with await open_store(f"sqlite:///{path}") as store:
        async with record_session(team(), user="lena", session_id="s", store=store) as first:
            await first.run(task=TOLD)
        assert await resume(team(), user="lena", session_id="s", store=store)
    held = await dumped(path)
    assert not any(secret in held for secret in (PASSWORD, PIN))


async def test_off_the_record_a_live_agent_leaves_nothing(path: Path) -> None:
    async with await open_store(f"sqlite:///{path}") as store:
        async with record_session(helper(), user="lena", session_id="s", store=store, off_the_record=True) as agent:
            await agent.run(task="I work at Zettelwerk.")
        with store.reading() as db:
            assert sessions.read_sessions(db) == []
        async with record_session(helper("Zettelwerk!", "ok"), user="lena", session_id="t", store=store) as agent:
            await agent.run(task="off the record: I work at Zettelwerk.")
            await agent.run(task="I live in Graz.")
        with store.reading() as db:
            kept = [turn.text for turn in sessions.read_turns(db, LENA, "t")]
    assert kept == ["[off the record]", "[off the record]", "I live in Graz.", "ok"]
    assert "Zettelwerk" not in await dumped(path)


@pytest.fixture
async def app() -> AsyncIterator[Afterword]:
    async with afterword.open("sqlite://") as opened:
        yield opened


async def hear(memory: ScopeMemory, agent: AssistantAgent, words: str, **more: Any) -> None:
    async with memory.record(agent, session_id="s", **more):
        await agent.run(task=words)


async def kept_of(app: Afterword, memory: ScopeMemory) -> str:
    """The facts, the turns that were said, and the state that an agent would load."""
    await app.run_pending()
    facts = [fact.statement for fact in (await memory.facts()).facts]
    turns = [entry.turn.text for entry in (await memory.session("s")).turns]
    resumed = helper()
    await memory.resume(resumed, session_id="s")
    return json.dumps([facts, turns, await resumed.save_state()])


@pytest.mark.parametrize("is_told", [False, True])
async def test_what_was_said_in_a_pause_stays_out(app: Afterword, *, is_told: bool) -> None:
    """Also where the agent is told a fact, so that a block stands before the turns, and is gone the next time."""
    lena = app.user("lena")
    await lena.remember("The user owns a kite.")
    model = ReplayChatCompletionClient(["You speak Czech!", "Polish, too!"])
    agent = AssistantAgent("helper", model, memory=[lena.memory()] if is_told else None)
    await lena.pause()
    await hear(lena, agent, "I speak Czech.")
    assert (await lena.resume_keeping()) is not None
    await lena.clear()
    await hear(lena, agent, "I speak Polish.")
    kept = await kept_of(app, lena)
    assert "The user speaks Polish." in kept
    assert "Czech" not in kept


async def test_a_state_that_was_processed_in_a_pause_keeps_its_words_out(app: Afterword) -> None:
    def state(*said: str) -> dict[str, Any]:
        messages = [{"type": "UserMessage", "source": "user", "content": words} for words in said]
        return {"type": "AssistantAgentState", "llm_context": {"messages": messages}}

    lena, before = app.user("lena"), datetime.now(UTC) - timedelta(days=1)
    await lena.pause()
    await lena.process(state("I speak Czech."), session_id="s")
    await lena.process(state("I speak Greek."), session_id="before", started_at=before)
    await lena.resume_keeping()
    await lena.process(state("I speak Czech.", "I speak Polish."), session_id="s")
    await lena.process(state("I speak Greek."), session_id="before", started_at=before)
    assert {fact.value for fact in (await lena.facts()).facts} == {"Polish", "Greek"}


async def test_what_was_said_off_the_record_stays_out_of_the_same_session(app: Afterword) -> None:
    lena, agent = app.user("lena"), helper("Czech, I see.", "fine")
    await hear(lena, agent, "I speak Czech.", off_the_record=True)
    await hear(lena, agent, "I speak Polish.")
    kept = await kept_of(app, lena)
    assert "The user speaks Polish." in kept
    assert "Czech" not in kept


async def test_a_live_agent_is_heard_after_its_memory_was_forgotten(app: Afterword) -> None:
    """The block that told it a fact is gone from its context, so its turns have moved."""
    lena = app.user("lena")
    await lena.remember("The user owns a kite.")
    agent = AssistantAgent("helper", ReplayChatCompletionClient(["one", "two"]), memory=[lena.memory()])
    await hear(lena, agent, "I speak Czech.")
    await app.run_pending()
    await lena.forget(everything=True)
    await hear(lena, agent, "I live in Oslo.")
    kept = await kept_of(app, lena)
    assert "The user lives in Oslo." in kept
    assert "Czech" not in kept


async def test_a_session_is_shown_without_what_its_agent_was_told(app: Afterword) -> None:
    lena = app.user("lena")
    agent = AssistantAgent("helper", ReplayChatCompletionClient(["fine"] * 3), memory=[lena.memory()])
    for words in ("I live in Oslo.", "I speak Polish.", "I like tea."):
        await hear(lena, agent, words)
        await app.run_pending()
    shown = [entry.turn.text for entry in (await lena.session("s")).turns]
    assert shown == ["I live in Oslo.", "fine", "I speak Polish.", "fine", "I like tea.", "fine"]


async def test_a_resumed_agent_is_still_off_the_record(path: Path) -> None:
    async with await open_store(f"sqlite:///{path}") as store:
        async with record_session(helper(), user="lena", session_id="s", store=store) as agent:
            await agent.run(task="/off-record")
        again = helper()
        await resume(again, user="lena", session_id="s", store=store)
        async with record_session(again, user="lena", session_id="s", store=store):
            await again.run(task="I work at Zettelwerk.")
            await again.run(task="/on-record I live in Graz.")
        with store.reading() as db:
            turns = [turn.text for turn in sessions.read_turns(db, LENA, "s")]
    assert turns[-2:] == ["/on-record I live in Graz.", "fine"]
    assert "Zettelwerk" not in await dumped(path)


async def test_no_prompt_holds_a_secret(path: Path) -> None:
    """Neither the first question, nor the mending of what a model made up."""
    cited = [Citation(turn=1, quote=f"The password is {PASSWORD}")]
    wrong = Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="wifi",
        value=f"wifi by {PASSWORD}",
        statement=f"It is {PASSWORD}.",
        evidence=cited,
    )
    state = {
        "type": "AssistantAgentState",
        "version": "1.0.0",
        "llm_context": {
            "messages": [
                {"content": TOLD, "source": "user", "type": "UserMessage"},
                {"content": f"{PASSWORD}, noted.", "thought": None, "source": "helper", "type": "AssistantMessage"},
            ]
        },
    }
    at = datetime(2026, 3, 1, tzinfo=UTC)
    async with await open_store(f"sqlite:///{path}") as store:
        with ScriptedEndpoint([facts_reply(wrong), facts_reply(wrong)]) as endpoint:
            async with ModelClient(ModelSettings("scripted", endpoint.base_url, max_retries=0)) as client:
                saved = Saved(LENA, "s", state=state, started_at=at, ended_at=at)
                await process_session(store, saved, extractor=ModelExtractor(client), judge=ModelJudge(client))
    assert len(endpoint.requests) == 2
    sent = json.dumps(endpoint.requests, ensure_ascii=False)
    assert "My password is [redacted: password]" in sent
    assert not any(secret in sent for secret in (PASSWORD, PIN))
    held = await dumped(path)
    assert not any(secret in held for secret in (PASSWORD, PIN))


async def test_what_a_memory_is_given_is_masked(path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{path}")
    text = f"We stay in room 4, and the wifi password is {PASSWORD}."
    await memory.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
    (found,) = (await memory.query("")).results
    assert found.content == "We stay in room 4, and the wifi password is [redacted: password]."
    for never_kept in (f"The wifi password is {PASSWORD}.", "Off the record: I am ill."):
        with pytest.raises(ValueError, match="never kept"):
            await memory.add(MemoryContent(content=never_kept, mime_type=MemoryMimeType.TEXT))
    assert len((await memory.query("")).results) == 1
    await memory.close()
    assert PASSWORD not in await dumped(path)


async def test_an_extractor_agent_keeps_no_secret() -> None:
    agent = ExtractorAgent()
    said = [TOLD, "off the record: I work at Zettelwerk.", f"again {PASSWORD}"]
    for text in said:
        await agent.on_messages([TextMessage(content=text, source="user")], CancellationToken())
    state = json.dumps(await agent.save_state())
    assert not any(secret in state for secret in (PASSWORD, PIN, "Zettelwerk"))


def test_the_command_line_counts_and_never_shows(
    afterword: Commands, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state: dict[str, Any] = {
        "type": "AssistantAgentState",
        "version": "1.0.0",
        "llm_context": {
            "messages": [
                {"content": TOLD, "source": "user", "type": "UserMessage"},
                {"content": "off the record: I work at Zettelwerk.", "source": "user", "type": "UserMessage"},
            ]
        },
    }
    (tmp_path / "a.json").write_text(json.dumps(state))
    entries = [
        {"session_id": name, "user_id": "lena", "path": "a.json", "started_at": "2026-03-01T00:00:00Z"} for name in "ab"
    ]
    (tmp_path / "manifest.json").write_text(json.dumps([entries[0], {**entries[1], "off_the_record": True}]))
    told = afterword("run", "--manifest", "manifest.json") + afterword.errors
    assert "2 secrets masked" in told
    assert "1 turn off the record" in told
    assert "privacy: 2 secrets masked, 1 turns off the record" in (shown := afterword("status") + afterword.errors)
    why = afterword("why", "a") + afterword.errors
    assert "2 secrets masked" in why
    assert not any(secret in told + shown + why + caplog.text for secret in (PASSWORD, PIN, "Zettelwerk"))
    assert "masked before anything is stored" in afterword("doctor")
    plain = {"AFTERWORD_STORE__URL": "sqlite:///plain.db", "AFTERWORD_PRIVACY__REDACT": "false"}
    assert "secrets masked" not in afterword("run", "a.json", "--user", "lena", expected=0, **plain)
    assert PASSWORD in (tmp_path / "plain.db").read_bytes().decode("latin-1") + "".join(
        file.read_bytes().decode("latin-1") for file in tmp_path.glob("plain.db-wal")
    )
