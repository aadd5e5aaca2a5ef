"""Requests to forget something of which no fact was made: heard, hidden, and shown to a person."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import afterword
from afterword import ScopeMemory
from afterword.errors import FileInvalid, NotFound
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Window
from afterword.facts.assertions import Kind, SpeechAct
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from batches import state
from commands import Commands
from saved import write_manifest

TOLD = "My phone number is 555 0134. I was in prison in 2019."
OTHER = "The weather is fine in Bergen."
SETTINGS = Settings(embedding=EmbeddingOptions(kind="none"))


@pytest.fixture
async def kim() -> AsyncIterator[ScopeMemory]:
    async with afterword.open("sqlite:///:memory:", settings=SETTINGS) as app:
        memory = app.user("kim")
        await say(memory, 1, TOLD, OTHER)
        yield memory


async def say(memory: ScopeMemory, day: int, *said: str) -> None:
    began = f"2026-03-{day:02}T10:00:00Z"
    await memory.process(state(*said), session_id=f"day{day}", started_at=began)


async def told(memory: ScopeMemory) -> str:
    """Return all that an agent is told, and what it finds."""
    lines = []
    for question in ("phone number", "prison", "address", "brother HIV", "fine weather", "delete everything", "forget"):
        lines.append((await memory.context(question, budget_tokens=4000)).text)
        lines += [hit.turn.text for hit in (await memory.search(question, limit=50)).hits if hit.turn]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("request_", "hidden"),
    [
        ("Please forget that I was in prison.", "prison"),
        ("Forget my phone number.", "555"),
        ("Please don't remember my phone number.", "555"),
        ("Can you forget that I was in prison?", "prison"),
    ],
)
async def test_what_was_asked_for_is_told_no_more(kim: ScopeMemory, request_: str, hidden: str) -> None:
    assert hidden in await told(kim)
    await say(kim, 2, request_)
    now = await told(kim)
    assert hidden not in now
    assert "orget" not in now
    assert "Bergen" in now
    [waiting] = (await kim.review()).erasures
    assert not waiting.finds_facts
    assert "prison" not in waiting.statement


@pytest.mark.parametrize(
    "request_",
    [
        "Forget my address.",
        "Please forget that my brother has HIV.",
        "I was in prison in 2018. Please forget that.",
        "Please forget what I just said.",
        "Please delete everything you know about me.",
        "Forget everything you know about me.",
        "Erase all my data.",
    ],
)
async def test_no_request_is_a_note_for_an_agent(kim: ScopeMemory, request_: str) -> None:
    await say(kim, 2, request_)
    assert request_ not in await told(kim)
    assert [waiting.finds_facts for waiting in (await kim.review()).erasures] == [False]


@pytest.mark.parametrize(
    "said", ["I forget that I was in prison.", "Don't forget that I was in prison.", "Forget it, I want tea.", OTHER]
)
async def test_what_is_no_request_stays(kim: ScopeMemory, said: str) -> None:
    await say(kim, 2, said)
    assert not (await kim.review()).erasures
    assert "555" in await told(kim)


async def test_a_person_dismisses_a_request(kim: ScopeMemory) -> None:
    await say(kim, 2, "Forget my phone number.")
    [waiting] = (await kim.review()).erasures
    effect = await kim.decide(waiting.id, "reject")
    assert not (await kim.review()).erasures
    now = await told(kim)
    assert "555" in now
    assert "Forget" not in now
    with pytest.raises(NotFound):
        await kim.decide(waiting.id, "reject")
    await kim.undo(effect.run.id)
    assert [again.id for again in (await kim.review()).erasures] == [waiting.id]
    assert "555" not in await told(kim)


async def test_a_person_carries_a_request_out(kim: ScopeMemory) -> None:
    await say(kim, 2, "Forget my phone number.")
    with pytest.raises(FileInvalid):
        await kim.export("kim.jsonl")
    receipt = await kim.forget(asked=True)
    assert receipt is not None
    turns = [entry.turn.text for day in ("day1", "day2") for entry in (await kim.session(day)).turns]
    assert not [text for text in turns if "555" in text or "phone" in text]
    assert OTHER in turns
    assert not (await kim.review()).erasures
    await say(kim, 3, "My phone number is 555 0199.")
    assert "0199" in await told(kim)


async def test_everything_waits_for_a_person(kim: ScopeMemory) -> None:
    await say(kim, 2, "I live in Oslo.")
    await say(kim, 3, "Please delete everything you know about me.")
    [waiting] = (await kim.review()).erasures
    assert waiting.is_everything
    assert "555" in await told(kim)
    assert await kim.forget(asked=True) is None
    assert [again.id for again in (await kim.review()).erasures] == [waiting.id]
    await kim.forget(everything=True)
    assert not (await kim.review()).erasures
    assert "555" not in await told(kim)


async def test_nothing_is_erased_by_itself_of_which_no_fact_was_made() -> None:
    settings = SETTINGS.model_copy(
        update={"privacy": SETTINGS.privacy.model_copy(update={"erase": "auto", "erase_wait_h": 0.0})}
    )
    async with afterword.open("sqlite:///:memory:", settings=settings) as app:
        memory = app.user("kim")
        await say(memory, 1, TOLD)
        await say(memory, 2, "Forget my phone number.")
        await say(memory, 3, OTHER)
        assert [waiting.due_at for waiting in (await memory.review()).erasures] == [None]
        assert "555" in (await memory.session("day1")).turns[0].turn.text


class AskingModel:
    """Proposes one request to erase, as a model does."""

    version = "asking-1"

    async def extract(self, window: Window) -> Extraction:
        asked = [turn for turn in window.turns if turn.text.startswith("Forget")]
        return Extraction(
            tuple(
                Candidate(
                    kind=Kind.ENTITY,
                    subject="user",
                    attribute="phone_number",
                    value="phone number",
                    statement="The user asked to forget the user's phone number.",
                    evidence=[Citation(turn=turn.number, quote=turn.text)],
                    act=SpeechAct.ERASE,
                )
                for turn in asked
            )
        )

    async def repair(self, window: Window, rejections: object) -> Extraction:
        return Extraction(())


async def test_a_request_that_a_model_finds_is_handled_alike() -> None:
    async with afterword.open("sqlite:///:memory:", settings=SETTINGS, extractor=AskingModel()) as app:
        memory = app.user("kim")
        await say(memory, 1, TOLD, OTHER)
        await say(memory, 2, "Forget my phone number, please, all of it.")
        assert "555" not in await told(memory)
        assert "Forget" not in await told(memory)
        assert [waiting.finds_facts for waiting in (await memory.review()).erasures] == [False]


def test_the_commands_say_that_no_fact_was_found(afterword: Commands) -> None:
    write_manifest(
        afterword.folder / "saved",
        ("one", "2026-01-05T10:00:00Z", TOLD),
        ("two", "2026-02-05T10:00:00Z", "Forget my phone number."),
        ("three", "2026-02-06T10:00:00Z", "Delete everything you know about me."),
    )
    said = "asked to be forgotten; no fact was found"
    assert afterword("run", "saved").count(said) == 2
    assert said in afterword("why", "two", "--user", "mira")
    review = afterword("review", "--user", "mira")
    assert said in review
    assert "2 to erase" in review
    assert "afterword forget --user mira" in review
    assert "erase the whole memory" in review
