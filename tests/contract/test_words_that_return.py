"""What was forgotten, or said in a pause or off the record, stays out when a live agent saves its state again."""

from __future__ import annotations

import random
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import SQLModel

import afterword
from afterword import Afterword, ScopeMemory
from afterword.privacy.blanking import FORGOTTEN

WORDS = ("yes", "no", "I speak Czech.", "hello")
STEPS = ("say", "say", "pause", "off the record", "forget the session", "forget everything", "process")
CALL = [{"id": "1", "name": "find", "arguments": '{"city": "Gnarlsburg"}'}]
RESULT = [{"content": "Gnarlsburg has 3 hotels", "call_id": "1", "is_error": False, "name": "find"}]
PICTURE = {"data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}


@dataclass
class Agent:
    """What `record` needs of an agent: its state. A string is a message of the user, a dictionary any message.

    With a `window`, its context has only so many of the last messages.
    """

    said: list[Any] = field(default_factory=list)
    window: int = 0

    async def save_state(self) -> dict[str, Any]:
        messages = [
            {"type": "UserMessage", "source": "user", "content": said} if isinstance(said, str) else said
            for said in self.said[-self.window :]
        ]
        return {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": messages}}

    async def load_state(self, state: Any) -> None:
        self.said = [message["content"] for message in state["llm_context"]["messages"]]


@pytest.fixture
async def app(shared_url: str) -> AsyncIterator[Afterword]:
    async with afterword.open(shared_url) as opened:
        yield opened


async def save(memory: ScopeMemory, agent: Agent, *said: Any, off_the_record: bool = False) -> None:
    agent.said += said
    async with memory.record(agent, session_id="chat", off_the_record=off_the_record):
        pass


async def everything(app: Afterword) -> str:
    """Every value of every table except vectors, states unpacked."""
    kept: list[str] = []
    with (await app.store()).reading() as transaction:
        for table in SQLModel.metadata.sorted_tables:
            for row in transaction.connection().execute(table.select()).all() if table.name != "vectors" else ():
                kept += [zlib.decompress(one).decode() if isinstance(one, bytes) else str(one) for one in row]
    return "\n".join(kept)


async def turns(memory: ScopeMemory) -> list[str]:
    return [entry.turn.text for entry in (await memory.session("chat")).turns]


async def resumed(memory: ScopeMemory) -> list[str]:
    agent = Agent()
    await memory.resume(agent, session_id="chat")
    return agent.said


async def history(
    memory: ScopeMemory, app: Afterword, choice: random.Random, window: int = 0
) -> tuple[list[str], list[str]]:
    """Live through some random steps; return what the store may hold of each turn, and what it holds."""
    agent, may_hold = Agent(window=window), list[str]()
    for _ in range(choice.randint(3, 8)):
        step, words = choice.choice(STEPS), choice.choice(WORDS)
        if step == "say":
            may_hold.append(words)
            await save(memory, agent, words)
        elif step == "pause":
            await memory.pause()
            for words in choice.choices(WORDS, k=choice.randint(1, 2)):
                may_hold.append(FORGOTTEN)
                await save(memory, agent, words)
            await memory.resume_keeping()
        elif step == "off the record":
            may_hold.append(FORGOTTEN)
            await save(memory, agent, words, off_the_record=True)
        elif step == "process":
            await app.run_pending()
        elif any(words != FORGOTTEN for words in may_hold):
            await (memory.forget(session="chat") if step == "forget the session" else memory.forget(everything=True))
            may_hold = [FORGOTTEN] * len(may_hold)
    may_hold.append("goodbye then")
    await save(memory, agent, "goodbye then")
    return may_hold[-window:], await resumed(memory)


@pytest.mark.parametrize("seed", range(40))
async def test_the_same_few_words_again_and_again_are_told_apart(seed: int) -> None:
    async with afterword.open("sqlite://") as app:
        memory = app.user("lena")
        may_hold, holds = await history(memory, app, random.Random(seed))
        assert holds == may_hold
        stored = await turns(memory)
        assert [text for text in stored if text != FORGOTTEN] == [text for text in may_hold if text != FORGOTTEN]


@pytest.mark.parametrize("seed", range(20))
async def test_a_context_that_loses_its_beginning_is_followed(seed: int) -> None:
    async with afterword.open("sqlite://") as app:
        may_hold, holds = await history(app.user("lena"), app, random.Random(seed), window=4)
        assert holds == may_hold


async def test_the_same_sentence_in_two_pauses_stays_out_of_both(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent()
    for words in ("I like tea.", "I like milk."):
        await lena.pause()
        await save(lena, agent, "I speak Czech.")
        await lena.resume_keeping()
        await save(lena, agent, words)
    assert await turns(lena) == [FORGOTTEN, "I like tea.", FORGOTTEN, "I like milk."]
    await save(lena, agent, "I speak Czech.")
    assert (await turns(lena))[-1] == "I speak Czech.", "said again after the pauses, it is kept"


LEFT_OUT = {
    "without letters": ["🏳️‍🌈 ☪", "?!"],
    "as the placeholder": ["Forgotten!"],
    "a call of a tool": [
        "I will visit Gnarlsburg.",
        {"type": "AssistantMessage", "source": "bot", "content": CALL, "thought": "a town: Gnarlsburg"},
        {"type": "FunctionExecutionResultMessage", "content": RESULT},
    ],
    "a picture": [{"type": "UserMessage", "source": "user", "content": ["I speak Gnarlish.", PICTURE, "And you?"]}],
}


@pytest.mark.parametrize("way", ["forgotten", "paused", "off the record"])
@pytest.mark.parametrize("said", LEFT_OUT.values(), ids=list(LEFT_OUT))
async def test_nothing_of_it_stays_in_the_state(app: Afterword, said: Sequence[Any], way: str) -> None:
    lena, agent = app.user("lena"), Agent()
    if way == "paused":
        await lena.pause()
    await save(lena, agent, *said, off_the_record=way == "off the record")
    if way == "paused":
        await lena.resume_keeping()
    if way == "forgotten":
        await app.run_pending()
        await lena.forget(session="chat")
    await save(lena, agent, "I live in Oslo.")
    await app.run_pending()
    stored = await everything(app)
    assert not [word for word in ("🏳", "Forgotten!", "Gnarl", PICTURE["data"]) if word in stored]
    assert [text for text in await turns(lena) if text != FORGOTTEN] == ["I live in Oslo."]


async def test_the_same_text_is_kept_where_it_was_said_after_the_date(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent()
    messages = [
        {
            "type": "UserMessage",
            "source": "user",
            "content": "I live in Oslo.",
            "created_at": f"2026-0{month}-01T09:00:00Z",
        }
        for month in (1, 3)
    ]
    await save(lena, agent, *messages)
    await lena.forget(before="2026-02-01")
    assert await turns(lena) == [FORGOTTEN, "I live in Oslo."]
    await save(lena, agent, "I like tea.")
    assert await turns(lena) == [FORGOTTEN, "I live in Oslo.", "I like tea."]


async def test_a_renamed_memory_knows_the_turns_of_its_sessions(app: Afterword) -> None:
    agent = Agent()
    await save(app.user("lena"), agent, "I speak Czech.", "yes")
    await app.rename(app.user("lena").scope, "default/user/helena")
    await app.user("helena").forget(session="chat")
    await save(app.user("helena"), agent, "yes")
    assert await turns(app.user("helena")) == [FORGOTTEN, FORGOTTEN, "yes"]
    run = (await app.user("helena").runs()).runs[0]
    await app.undo(run.run.id)
    await save(app.user("lena"), agent, "I speak Czech.")
    assert await turns(app.user("lena")) == [FORGOTTEN, FORGOTTEN, "yes", "I speak Czech."]


async def test_a_fact_of_a_session_that_was_forgotten_before_a_rename_was_undone_stays_out(app: Afterword) -> None:
    lena, helena, agent = app.user("lena"), app.user("helena"), Agent()
    await save(lena, agent, "I work at Gnarlix.")
    rename = await app.rename(lena.scope, helena.scope)
    await save(helena, agent, "Please forget that I work at Gnarlix.")
    await app.run_pending()
    await helena.forget(asked=True)
    await helena.forget(session="chat")
    await app.undo(rename.run.id)
    await save(lena, agent, "I live in Oslo.")
    assert "Gnarlix" not in await everything(app)
    assert await turns(lena) == [FORGOTTEN, FORGOTTEN, "I live in Oslo."]


async def test_the_same_word_with_other_punctuation_is_new_where_it_is_said_again(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent()
    await save(lena, agent, "Yes!", "yes", "Yes.")
    await lena.forget(session="chat")
    await save(lena, agent, "I like tea.", "yes")
    assert await turns(lena) == [FORGOTTEN, FORGOTTEN, FORGOTTEN, "I like tea.", "yes"]


@pytest.mark.parametrize("said", ["I like quixtea.", "I prefer quixtea.", "I own a quixtea."])
@pytest.mark.parametrize("is_change", [False, True])
@pytest.mark.parametrize("words", [{"statement": "The user likes coffee."}, {"value": "coffee"}])
async def test_an_edited_fact_keeps_no_word_of_a_forgotten_session(
    app: Afterword, words: dict[str, str], said: str, *, is_change: bool
) -> None:
    lena = app.user("lena")
    await save(lena, Agent(), said)
    await app.run_pending()
    (fact,) = (await lena.facts()).facts
    await lena.edit(fact.id, **words, changed=is_change)
    await lena.forget(session="chat")
    (edited,) = (await lena.facts()).facts
    assert "coffee" in edited.statement
    assert "quixtea" not in await everything(app)


@pytest.mark.parametrize("what", ["fact", "session"])
@pytest.mark.parametrize("said", ["I hate quixtea.", "I prefer quixtea.", "I own a quixtea."])
async def test_the_state_of_another_session_keeps_no_attribute_of_a_forgotten_fact(
    app: Afterword, said: str, what: str
) -> None:
    lena, agent = app.user("lena"), Agent()
    await lena.process(await Agent([said]).save_state(), session_id="first")
    (fact,) = (await lena.facts()).facts
    results = (await lena.memory().query("quixtea")).results
    told = [result.model_dump(mode="json") for result in results]
    await save(lena, agent, {"type": "MemoryQueryEvent", "source": "bot", "content": told}, "hello")
    assert fact.attribute in await everything(app)
    await (lena.forget(fact=fact.id) if what == "fact" else lena.forget(session="first"))
    await save(lena, agent, "I live in Oslo.")
    assert "quixtea" not in await everything(app)


async def paused_and_kept(memory: ScopeMemory) -> Agent:
    agent = Agent()
    await save(memory, agent, "I like tea.")
    await memory.pause()
    await save(memory, agent, "I speak Czech.")
    await memory.resume_keeping()
    await save(memory, agent, "I live in Oslo.")
    return agent


async def test_what_was_said_in_a_pause_stays_out_of_an_imported_memory(app: Afterword, tmp_path: Path) -> None:
    agent = await paused_and_kept(app.user("lena"))
    await app.export(tmp_path / "all.jsonl")
    async with afterword.open("sqlite://") as there:
        await there.import_(tmp_path / "all.jsonl")
        await save(there.user("lena"), agent, "bye")
        assert await turns(there.user("lena")) == ["I like tea.", FORGOTTEN, "I live in Oslo.", "bye"]


async def test_what_was_said_in_a_pause_stays_out_of_a_restored_backup(app: Afterword, tmp_path: Path) -> None:
    agent = await paused_and_kept(app.user("lena"))
    await app.write_tombstones(tmp_path / "tombstones.jsonl")
    async with afterword.open("sqlite://") as restored:
        await save(restored.user("lena"), Agent(), "I like tea.")
        await restored.replay_tombstones(tmp_path / "tombstones.jsonl")
        await save(restored.user("lena"), agent, "bye")
        assert await turns(restored.user("lena")) == ["I like tea.", FORGOTTEN, "I live in Oslo.", "bye"]


async def test_a_session_with_a_given_start_tells_new_turns_from_those_of_a_pause(app: Afterword) -> None:
    lena, begin = app.user("lena"), "2026-01-05T09:00:00Z"
    said = ["I like tea."]
    await lena.process(await Agent(said).save_state(), session_id="chat", started_at=begin)
    await lena.pause()
    said.append("I speak Czech.")
    await lena.process(await Agent(said).save_state(), session_id="chat", started_at=begin)
    await lena.resume_keeping()
    said.append("I live in Oslo.")
    await lena.process(await Agent(said).save_state(), session_id="chat", started_at=begin)
    assert await turns(lena) == ["I like tea.", FORGOTTEN, "I live in Oslo."]
    await lena.forget(session="chat")
    said.append("I own a cat.")
    await lena.process(await Agent(said).save_state(), session_id="chat", started_at=begin)
    assert (await turns(lena))[-1] == "I own a cat."


async def test_a_session_of_a_rename_that_was_undone_is_saved(app: Afterword) -> None:
    agent = Agent()
    await save(app.user("lena"), agent, "I like tea.")
    await app.rename(app.user("lena").scope, "default/user/helena")
    await app.user("helena").pause()
    await save(app.user("helena"), agent, "I speak Czech.")
    await app.user("helena").resume_keeping()
    await app.undo((await app.user("helena").runs()).runs[0].run.id)
    await save(app.user("lena"), agent, "I live in Oslo.")
    await app.user("lena").forget(session="chat")
    await save(app.user("lena"), agent, "I own a cat.")
    assert await turns(app.user("lena")) == [FORGOTTEN, FORGOTTEN, FORGOTTEN, "I own a cat."]


async def test_a_summary_that_a_program_makes_in_a_pause_stays_out(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent()
    await lena.pause()
    await save(lena, agent, "I speak Gnarlish.", {"type": "SystemMessage", "content": "The user speaks Gnarlish."})
    await lena.resume_keeping()
    await save(lena, agent, "I live in Oslo.")
    assert "Gnarlish" not in await everything(app)


async def test_a_turn_off_the_record_hides_no_words_of_an_agent_that_begins_anew(app: Afterword) -> None:
    lena = app.user("lena")
    await save(lena, Agent(), "I play the viola.", "Off the record: I am tired.", "Back on the record. I like tea.")
    anew = ["I live in Oslo.", "I am allergic to nuts.", "I speak Czech."]
    await save(lena, Agent(), *anew)
    await app.run_pending()
    assert [text for text in await turns(lena) if text in anew] == anew


@pytest.mark.parametrize(
    "request_and_end", [("Off the record: ", ""), ("Off the record from now on. ", "Back on the record. ")]
)
@pytest.mark.parametrize("window", range(3, 8))
@pytest.mark.parametrize("is_repeated", [True, False])
async def test_a_context_that_loses_the_request_stays_off_the_record(
    window: int, request_and_end: tuple[str, str], *, is_repeated: bool
) -> None:
    request, end = request_and_end
    private = [f"{request}I speak Gnarlish.", *(["I live in Gnarlsburg.", "yes"] if end else [])]
    open_words = [f"{end}I live in Oslo.", "I like tea.", "I own a cat.", "hello", "I speak Czech."]
    async with afterword.open("sqlite://") as app:
        lena, agent = app.user("lena"), Agent(window=window)
        for words in ("I play chess.", *private, *open_words):
            answer = f"Noted: {words}" if is_repeated else "Noted."
            await save(lena, agent, words, {"type": "AssistantMessage", "source": "bot", "content": answer})
            assert "Gnarl" not in await everything(app)
        await app.run_pending()
        stored = await turns(lena)
        assert "Gnarl" not in await everything(app)
        assert [text for text in stored if text in open_words] == open_words


async def test_a_resumed_agent_that_has_lost_a_turn_off_the_record_is_recognised(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent()
    await save(lena, agent, *(f"I like tea number {number}." for number in range(6)))
    await lena.forget(session="chat")
    await save(lena, agent, "I live in Gnarlsburg.", "hello")
    await save(lena, agent, "I speak Gnarlish.", off_the_record=True)
    await lena.resume(agent, session_id="chat")
    await lena.forget(session="chat")
    await save(lena, agent, "I live in Oslo.", "I speak Czech.")
    assert "Gnarl" not in await everything(app)
    assert [text for text in await turns(lena) if text != FORGOTTEN] == ["I live in Oslo.", "I speak Czech."]


async def test_an_answer_that_was_off_the_record_as_well_moves_no_later_turn(app: Afterword) -> None:
    lena, agent = app.user("lena"), Agent(window=3)
    sayings = ["I like tea.", "Off the record from now on.", "I speak Gnarlish.", "Back on the record. hello"]
    sayings += ["I live in Oslo.", "I own a cat.", "I speak Czech.", "I play chess."]
    for words in sayings:
        await save(lena, agent, words, {"type": "AssistantMessage", "source": "bot", "content": "Sure."})
    await app.run_pending()
    shown = [entry.turn.text for entry in (await lena.session("chat")).turns if entry.turn.role == "human"]
    assert shown == [*sayings[:1], "[off the record from now on]", "[off the record]", *sayings[3:]]
