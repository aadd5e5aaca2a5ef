"""What was said is saved on every way out, and taken up again only by whom it belongs to."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent, UserProxyAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import CancellationToken
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import process_session, record_session, resume
from afterword.agents.memory import FactMemory
from afterword.errors import NotFound, ScopeInvalid, StateConflict, StoreError
from afterword.extractors.readers import read_state
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.settings import SettingsInvalid
from afterword.store import sessions
from afterword.store.database.engine import Store, open_store
from afterword.store.sessions import Progress, SavedSession

LENA = Scope.user("lena")


def helper(*answers: str, name: str = "helper") -> AssistantAgent:
    return AssistantAgent(name, ReplayChatCompletionClient(list(answers or ("fine",) * 20)))


def team(*names: str) -> RoundRobinGroupChat:
    return RoundRobinGroupChat(
        [helper(name=name) for name in names or ("planner", "writer")], termination_condition=MaxMessageTermination(3)
    )


async def saved(store: Store, session_id: str = "s1", scope: Scope = LENA) -> SavedSession:
    with store.reading() as db:
        found = sessions.find_session(db, scope, session_id)
    assert found is not None
    return found


async def words(store: Store, session_id: str = "s1", scope: Scope = LENA) -> list[str]:
    with store.reading() as db:
        state = sessions.load_state(db, scope, session_id)
    return [turn.text for turn in read_state(state).turns]


async def test_a_session_is_saved_and_queued(store: Store) -> None:
    async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
        await agent.run(task="I moved to Graz.")
    assert await words(store) == ["I moved to Graz.", "fine"]
    kept = await saved(store)
    assert kept.progress is Progress.PENDING
    assert kept.time_basis == "recorder"


async def test_a_team_is_saved_and_taken_up_where_it_stopped(store: Store) -> None:
    async with record_session(team(), user="lena", session_id="s1", store=store) as first:
        await first.run(task="Plan my trip.")
    again = team()
    assert await resume(again, user="lena", session_id="s1", store=store)
    assert json.dumps(await again.save_state()) == json.dumps(await first.save_state())
    async with record_session(again, user="lena", session_id="s1", store=store):
        await again.run(task="To Rome.")
    assert "To Rome." in await words(store)
    with store.reading() as db:
        turns = sessions.read_turns(db, LENA, "s1")
    assert len({turn.said_at for turn in turns}) >= 2, (
        "each turn has the time of the save after it was said, or its own"
    )


async def test_an_error_saves_what_was_said_and_goes_on(store: Store) -> None:
    async def conversation() -> None:
        async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
            await agent.run(task="I moved to Graz.")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await conversation()
    assert await words(store) == ["I moved to Graz.", "fine"]


async def test_cancellation_saves_what_was_said_and_goes_on(store: Store) -> None:
    said = asyncio.Event()

    async def conversation() -> None:
        async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
            await agent.run(task="I moved to Graz.")
            said.set()
            await asyncio.sleep(60)

    task = asyncio.ensure_future(conversation())
    await said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await words(store) == ["I moved to Graz.", "fine"]


class SlowToSave(AssistantAgent):
    """An agent whose saving takes a moment, long enough to be interrupted."""

    component_provider_override = "tests.SlowToSave"
    saving: asyncio.Event

    async def save_state(self) -> Mapping[str, Any]:
        self.saving.set()
        await asyncio.sleep(0.2)
        return await super().save_state()


@pytest.mark.parametrize("is_failing", [True, False])
async def test_a_cancellation_during_the_save_does_not_cut_it(store: Store, is_failing: bool) -> None:
    agent = SlowToSave("helper", ReplayChatCompletionClient(["fine"]))
    agent.saving = asyncio.Event()

    async def conversation() -> None:
        async with record_session(agent, user="lena", session_id="s1", store=store):
            await agent.run(task="I moved to Graz.")
            if is_failing:
                raise ZeroDivisionError

    task = asyncio.ensure_future(conversation())
    await agent.saving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await words(store) == ["I moved to Graz.", "fine"]


async def test_a_save_that_fails_after_a_cancellation_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = SlowToSave("helper", ReplayChatCompletionClient(["fine"]))
    agent.saving = asyncio.Event()

    async def conversation() -> None:
        async with record_session(agent, user="lena", session_id="s1", store=f"sqlite:///{tmp_path}"):
            await agent.run(task="I moved to Graz.")

    task = asyncio.ensure_future(conversation())
    await agent.saving.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "was not saved (StoreUnreachable)" in caplog.text


async def test_a_save_that_fails_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        async with record_session(helper(), user="lena", session_id="s1", store=f"sqlite:///{tmp_path}") as agent:
            await agent.run(task="I moved to Graz.")


async def test_a_conversation_may_begin_where_the_store_is_away_and_be_saved_later(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = helper()
    with pytest.raises(StoreError, match=r"'s1' was not saved: .* recording it again, in an empty block, saves it"):
        async with record_session(agent, user="lena", session_id="s1", store=f"sqlite:///{tmp_path}"):
            await agent.run(task="I moved to Graz.")
    assert "'s1' begins, but the store cannot be read now (StoreUnreachable)" in caplog.text
    async with record_session(agent, user="lena", session_id="s1", store=store):
        pass
    assert await words(store) == ["I moved to Graz.", "fine"]


async def test_a_chat_that_was_not_resumed_is_replaced_with_a_warning(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> list[str]:
        return [
            record.message for record in caplog.records if "'s1' was saved before with another chat" in record.message
        ]

    async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
        await agent.run(task="I moved to Graz.")
    again = helper()
    await resume(again, user="lena", session_id="s1", store=store)
    async with record_session(again, user="lena", session_id="s1", store=store):
        await again.run(task="I like tea.")
    assert not warnings()
    async with record_session(helper(), user="lena", session_id="s1", store=store) as fresh:
        await fresh.run(task="I own a dog.")
    assert len(warnings()) == 1
    assert "resume a session before you record it again, or use a new session id" in warnings()[0]


async def test_an_agent_that_holds_nothing_at_the_end_is_reported(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def society() -> SocietyOfMindAgent:
        return SocietyOfMindAgent("society", team("planner"), ReplayChatCompletionClient(["fine"]))

    outer = RoundRobinGroupChat([society()], max_turns=1)
    async with record_session(outer, user="lena", session_id="outer", store=store):
        await outer.run(task="I moved to Graz.")
    assert "has no messages" not in caplog.text
    assert "I moved to Graz." in await words(store, "outer")
    async with record_session(society(), user="lena", session_id="alone", store=store) as alone:
        await alone.run(task="I moved to Graz.")
    assert "session 'alone' has no messages" in caplog.text
    async with record_session(helper(), user="lena", session_id="reset", store=store) as agent:
        await agent.run(task="I moved to Graz.")
        await agent.on_reset(CancellationToken())
    assert "session 'reset' has no messages" in caplog.text
    async with record_session(helper(), user="lena", session_id="off", store=store, off_the_record=True):
        pass
    assert "session 'off' has no messages" not in caplog.text


async def test_a_save_that_fails_never_hides_the_first_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError):
        async with record_session(helper(), user="lena", session_id="s1", store=f"sqlite:///{tmp_path}"):
            raise ZeroDivisionError
    assert "was not saved (StoreUnreachable)" in caplog.text


@pytest.mark.parametrize(
    ("whose", "error"),
    [({}, ScopeInvalid), ({"user": "lena", "scope": "default/user/lena"}, ScopeInvalid), ({"user": " "}, ScopeInvalid)],
)
async def test_nothing_starts_without_a_scope(store: Store, whose: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        async with record_session(helper(), session_id="s1", store=store, **whose):
            pytest.fail("the conversation must not start")


async def test_nothing_starts_without_a_session_id(store: Store) -> None:
    with pytest.raises(StateConflict, match="session id is empty"):
        async with record_session(helper(), user="lena", session_id=" ", store=store):
            pytest.fail("the conversation must not start")


async def test_only_the_pair_of_scope_and_session_finds_a_session(store: Store) -> None:
    async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
        await agent.run(task="I moved to Graz.")
    for user, session_id in (("mara", "s1"), ("lena", "s2"), ("Lena", "s1")):
        fresh = helper()
        with pytest.raises(NotFound):
            await resume(fresh, user=user, session_id=session_id, store=store)
        assert not await resume(fresh, user=user, session_id=session_id, store=store, missing_ok=True)
        assert "Graz" not in json.dumps(await fresh.save_state())


async def test_two_users_may_use_the_same_session_id(store: Store) -> None:
    for user in ("lena", "mara"):
        async with record_session(helper(), user=user, session_id="s1", store=store) as agent:
            await agent.run(task=f"I am {user}.")
    for user in ("lena", "mara"):
        assert await words(store, scope=Scope.user(user)) == [f"I am {user}.", "fine"]


async def test_another_kind_of_component_is_refused(store: Store) -> None:
    async with record_session(helper(), user="lena", session_id="s1", store=store) as agent:
        await agent.run(task="I moved to Graz.")
    with pytest.raises(StateConflict, match="AssistantAgent"):
        await resume(team(), user="lena", session_id="s1", store=store)
    with pytest.raises(StateConflict, match="AssistantAgent"):
        async with record_session(team(), user="lena", session_id="s1", store=store):
            pytest.fail("the conversation must not start: it could not be saved")
    assert await words(store) == ["I moved to Graz.", "fine"]


async def test_a_team_with_other_participants_is_refused(store: Store) -> None:
    async with record_session(team(), user="lena", session_id="s1", store=store) as first:
        await first.run(task="Plan my trip.")
    with pytest.raises(StateConflict, match="same participants"):
        await resume(team("planner", "critic"), user="lena", session_id="s1", store=store)


async def test_people_named_to_the_recorder_are_people(store: Store) -> None:
    async with record_session(helper(), user="lena", session_id="s1", store=store, humans=["ops"]) as agent:
        await agent.run(task=TextMessage(content="I moved to Graz.", source="ops"))
    assert (await saved(store)).humans == ("ops",)


@pytest.mark.parametrize("make", [team, lambda: Swarm([helper(), helper(name="other")], max_turns=1)])
async def test_a_conversation_that_never_began_is_saved_too(store: Store, make: Any) -> None:
    async with record_session(make(), user="lena", session_id="s1", store=store):
        pass
    assert (await saved(store)).progress is Progress.PENDING


async def test_a_state_that_nobody_can_read_is_kept_all_the_same(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd:
        async def save_state(self) -> Mapping[str, Any]:
            return {"weather": 4}

        async def load_state(self, state: Mapping[str, Any]) -> None:
            assert state == {"weather": 4}

    async with record_session(Odd(), user="lena", session_id="s1", store=store):
        pass
    assert (await saved(store)).time_basis is None
    assert "could not be read" in caplog.text
    assert await resume(Odd(), user="lena", session_id="s1", store=store)


async def test_a_store_given_by_url_is_opened_and_closed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'facts.db'}"
    proxy = UserProxyAgent("user", input_func=lambda _: "yes")
    async with record_session(proxy, scope="default/user/lena", session_id="s1", store=url):
        pass
    assert await resume(proxy, user="lena", session_id="s1", store=url)


async def test_the_profile_says_where_a_session_is_saved_and_what_is_off_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for a `FactMemory`: what one stores the other must find, and a marker of the profile hides in both."""
    url = f"sqlite:///{tmp_path / 'team.db'}"
    (tmp_path / "afterword.toml").write_text(
        f'[store]\nurl = "{url}"\n[privacy]\noff_record = ["nicht notieren"]\n', encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    async with record_session(helper(), user="lena", session_id="s1") as agent:
        await agent.run(task="I moved to Graz.")
        await agent.run(task="nicht notieren: I hate quixtea.")
    again = helper()
    assert await resume(again, user="lena", session_id="s1")
    async with await open_store(url) as store:
        assert (await words(store))[0] == "I moved to Graz."
        assert "quixtea" not in str(await words(store)) + str(await again.save_state())
    assert sorted(name for name in os.listdir(tmp_path) if name.endswith(".db")) == ["team.db"]


async def test_a_profile_that_is_wrong_is_an_error_before_anything_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "afterword.toml").write_text('[privacy]\nredact = "perhaps"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsInvalid, match="redact"):
        async with record_session(helper(), user="lena", session_id="s1"):
            pytest.fail("the conversation began")


async def test_a_resumed_agent_with_memory_has_one_block_and_the_block_is_nobodys_words(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(MemoryContent(content="Lena likes tea.", mime_type=MemoryMimeType.TEXT))
    for number in range(3):
        agent = AssistantAgent("helper", ReplayChatCompletionClient(["fine"]), memory=[memory])
        await resume(agent, user="lena", session_id="s1", store=store, missing_ok=True)
        async with record_session(agent, user="lena", session_id="s1", store=store):
            await agent.run(task=f"question {number}")
    state = await agent.save_state()
    assert json.dumps(state).count("<afterword:memory") == 1
    transcript = read_state(state)
    assert [turn.text for turn in transcript.turns if turn.speaker == "user"] == [f"question {n}" for n in range(3)]


async def test_what_was_said_yesterday_is_known_today_and_what_was_recalled_is_not_learned_again(store: Store) -> None:
    """The whole circle, three times: the block in the saved state is neither a new fact nor new evidence."""
    for number in range(3):
        memory = FactMemory(user="lena", store=store)
        client = ReplayChatCompletionClient(["Noted."] * 5)
        agent = AssistantAgent("helper", client, memory=[memory])
        await resume(agent, user="lena", session_id=f"s{number - 1}", store=store, missing_ok=True)
        async with record_session(agent, user="lena", session_id=f"s{number}", store=store):
            await agent.run(task="I live in Graz." if number == 0 else f"What time is it, number {number}?")
        block = str(client.create_calls[-1]["messages"][1].content)
        assert block.startswith("<afterword:memory") == (number > 0)
        await process_session(store, Saved(LENA, f"s{number}"), extractor=RulesExtractor())
        [fact] = [one.metadata for one in (await memory.query("")).results]
        assert fact is not None
        assert {item["quote"] for item in fact["evidence"]} == {"I live in Graz."}


@pytest.mark.parametrize("knows_before", [False, True])
async def test_a_correction_stays_when_the_conversation_goes_on(tmp_path: Path, knows_before: bool) -> None:
    """The blocks of the memory come into the context between two saves, and move no turn that a quote names."""
    async with afterword.open(f"sqlite:///{tmp_path / 'facts.db'}") as app:
        lena = app.user("lena")
        if knows_before:
            await lena.remember("Lena owns a bike.")
        agent = AssistantAgent("helper", ReplayChatCompletionClient(["fine"] * 3), memory=[lena.memory()])
        for task in ("I like tea.", "What time is it?", "I own a cat."):
            async with lena.record(agent, session_id="s1"):
                await agent.run(task=task)
            await app.run_pending()
            facts = {fact.statement: fact for fact in (await lena.facts()).facts}
            if task == "I like tea.":
                cited = facts["The user likes tea."].evidence
                await lena.edit(facts["The user likes tea."].id, statement="The user likes green tea.")
            else:
                assert "The user likes green tea." in facts
                assert "The user likes tea." not in facts
        [former] = [fact for fact in (await lena.facts(status="all")).facts if fact.statement == "The user likes tea."]
        assert former.evidence[: len(cited)] == cited
