"""What is recorded of a chat while it is processed: it is kept with its times, told at once, and read next."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlmodel import Session

from afterword.agents.state_queue import store_and_queue_state
from afterword.extractors.agent_findings import FindingsExtraction
from afterword.extractors.candidates import Citation
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.extractors.words_called_private import NAMED_SECRET
from afterword.facts.findings import FindingPolicy
from afterword.facts.local_time import offset_seconds
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.pipeline import session
from afterword.pipeline.batch import Failure, queued_sessions, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.privacy.record_requests import HIDDEN
from afterword.store import entries, lookup, sessions
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from afterword.store.findings import stored_findings
from afterword.store.forgetting import pauses
from afterword.store.forgetting.erasure import erase_in_scope
from afterword.store.reading.recall import recall
from afterword.store.sessions import Progress
from batches import state
from researching import Researching

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GRAZ, NUTS, TEA, BYE = "I live in Graz.", "I am allergic to nuts.", "I prefer green tea.", "Good night."
BLOCK = "A note of a program."
CHAT = Saved(LENA, "chat")
Act = Callable[[], Awaitable[object]]


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


async def record(store: Store, at: int, *said: str, session_id: str = "chat") -> None:
    await store_and_queue_state(store, LENA, session_id, state(*said), component="AssistantAgent", at=minute(at))


class Interrupted(RulesExtractor):
    """The rules, during each of whose first calls something else happens. `calls` counts all."""

    def __init__(self, *acts: Act) -> None:
        super().__init__()
        self.acts = list(acts)
        self.calls = 0

    async def extract(self, window: Window) -> Extraction:
        self.calls += 1
        if self.acts:
            await self.acts.pop(0)()
        return await super().extract(window)


class Naming(Interrupted):
    """It also names a word as a secret, and turns with another word as off the record."""

    async def extract(self, window: Window) -> Extraction:
        turns = (*window.context, *window.turns)
        secrets = [Citation(turn=turn.number, quote="Zanzibar9") for turn in turns if "Zanzibar9" in turn.text]
        off_record = frozenset(turn.number for turn in turns if "diary" in turn.text)
        return replace(await super().extract(window), secrets=tuple(secrets), off_record=off_record)


async def process(store: Store, extractor: RulesExtractor | None = None, *waiting: Saved) -> SessionOutcome:
    *_, outcome = await run_batch(store, waiting or [CHAT], extractor=extractor or RulesExtractor())
    assert isinstance(outcome, SessionOutcome), outcome
    return outcome


async def values(store: Store) -> set[str]:
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=datetime.now(UTC)))
    return {fact.value for fact in facts}


async def turns(store: Store) -> list[Turn]:
    return await store.read(lambda transaction: sessions.read_turns(transaction, LENA, "chat"))


async def texts(store: Store) -> list[str]:
    return [turn.text for turn in await turns(store)]


async def progress(store: Store) -> Progress:
    found = await store.read(lambda transaction: sessions.find_session(transaction, LENA, "chat"))
    assert found is not None
    return found.progress


async def told(store: Store, query: str) -> str:
    recalled = await recall(store, LENA, query, at=datetime.now(UTC), budget_tokens=2_000)
    assert recalled.layers is not None
    return recalled.layers.text


@pytest.fixture(params=[session.PATIENT_TRIES, 0])
def patient_tries(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a session is judged without a lock."""
    monkeypatch.setattr(session, "PATIENT_TRIES", request.param)
    return int(request.param)


@pytest.mark.usefixtures("patient_tries")
async def test_it_is_kept_with_its_times_told_at_once_and_read_next(store: Store) -> None:
    await record(store, 1, GRAZ)
    await process(store, Interrupted(lambda: record(store, 2, GRAZ, NUTS)))
    assert [(turn.number, turn.text, turn.said_at) for turn in await turns(store)] == [
        (1, GRAZ, minute(1)),
        (2, NUTS, minute(2)),
    ]
    assert (await values(store), await progress(store)) == ({"Graz"}, Progress.PENDING)
    assert NUTS in await told(store, "Is there anything about nuts?")
    await process(store)
    assert await progress(store) is Progress.DONE
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=datetime.now(UTC)))
    assert {fact.value: fact.said_at for fact in facts} == {"Graz": minute(1), "nuts": minute(2)}


async def test_a_save_with_the_same_time_is_read_next_too(store: Store) -> None:
    await record(store, 1, GRAZ)
    await process(store, Interrupted(lambda: record(store, 1, GRAZ, NUTS)))
    assert (await texts(store), await progress(store)) == ([GRAZ, NUTS], Progress.PENDING)


async def test_it_is_kept_when_nothing_else_of_the_chat_is_new(store: Store) -> None:
    """An unchanged session is marked as done without a run. Another session of its scope lets it wait for its turn."""
    await record(store, 1, GRAZ)
    await process(store)
    await record(store, 2, GRAZ)
    await record(store, 3, TEA, session_id="other")
    begun = Interrupted(lambda: record(store, 4, GRAZ, NUTS))
    await process(store, begun, Saved(LENA, "other"), CHAT)
    assert await texts(store) == [GRAZ, NUTS]
    assert NUTS in await told(store, "Is there anything about nuts?")
    await process(store)
    assert (await values(store), await progress(store)) == ({"Graz", "nuts", "green tea"}, Progress.DONE)


async def test_a_chat_that_waits_for_another_session_is_read_only_once_more(store: Store) -> None:
    """Its turn is a good time to read it anew, but the other session is then over, however often it is saved."""
    said = [GRAZ]
    await record(store, 1, TEA, session_id="other")
    await record(store, 2, GRAZ)

    async def say_more() -> None:
        said.append(f"Project {len(said)} ships on day {len(said)}.")
        await record(store, len(said) + 1, *said)

    extractor = Interrupted(lambda: asyncio.sleep(0.1), *[say_more] * 50)
    outcome = await process(store, extractor, Saved(LENA, "other"), CHAT)
    assert (outcome.applied, outcome.turns, extractor.calls, len(said)) == (True, 2, 3, 3)
    assert (await texts(store), await progress(store)) == (said, Progress.PENDING)


@pytest.mark.usefixtures("patient_tries")
async def test_a_chat_that_is_saved_all_the_time_is_processed_all_the_same(store: Store) -> None:
    said = [GRAZ]
    await record(store, 1, GRAZ)

    async def say_more() -> None:
        said.append(f"Project {len(said)} ships on day {len(said)}.")
        await record(store, len(said), *said)

    for calls in range(1, 6):
        extractor = Interrupted(*[say_more] * 50)
        outcome = await process_session(store, CHAT, extractor=extractor, judge=RulesJudge())
        assert (outcome.applied, outcome.turns, extractor.calls) == (True, calls, 1)
        assert await texts(store) == said
        assert await progress(store) is Progress.PENDING
    await process(store)
    assert await progress(store) is Progress.DONE


@pytest.mark.usefixtures("patient_tries")
async def test_where_a_turn_is_put_before_others_the_chat_is_read_again_at_once(store: Store) -> None:
    """A memory may put its block before the turns. Quotes name turns by number, so their numbers must be right."""
    await record(store, 1, GRAZ, NUTS)
    extractor = Interrupted(lambda: record(store, 2, BLOCK, GRAZ, NUTS, TEA))
    outcome = await process(store, extractor)
    assert (extractor.calls, outcome.turns) == (2, 4)
    assert (await texts(store), await progress(store)) == ([BLOCK, GRAZ, NUTS, TEA], Progress.DONE)
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=datetime.now(UTC)))
    numbers = {fact.value: [quote.turn for quote in fact.evidence] for fact in facts}
    assert numbers == {"Graz": [2], "nuts": [3], "green tea": [4]}


@pytest.mark.usefixtures("patient_tries")
@pytest.mark.parametrize("block", [(), (BLOCK,)])
async def test_what_the_model_calls_private_is_in_no_turn_and_no_state(store: Store, block: tuple[str, ...]) -> None:
    """The next save of a live agent has the words again, since the agent has them in its context."""
    shed, diary = "The word for the shed is Zanzibar9.", "My diary says so."
    await record(store, 1, GRAZ, shed, diary)
    extractor = Naming(lambda: record(store, 2, *block, GRAZ, shed, diary, "Zanzibar9 opens it.", NUTS))
    await process(store, extractor)

    def everything_said() -> list[str]:
        hidden = [GRAZ, f"The word for the shed is {NAMED_SECRET}.", HIDDEN, f"{NAMED_SECRET} opens it.", NUTS]
        return [*block, *hidden]

    async def check(*more: str) -> None:
        expected = [*everything_said(), *more]
        saved = await store.read(lambda transaction: sessions.load_state(transaction, LENA, "chat"))
        assert await texts(store) == expected
        assert [message["content"] for message in saved["llm_context"]["messages"]] == expected

    await check()
    await record(store, 3, *block, GRAZ, shed, diary, "Zanzibar9 opens it.", NUTS, BYE)
    await check(BYE)
    await process(store, Naming())
    await check(BYE)
    assert (await values(store), await progress(store)) == ({"Graz", "nuts"}, Progress.DONE)


@pytest.mark.usefixtures("patient_tries")
async def test_what_is_forgotten_meanwhile_does_not_come_back(store: Store) -> None:
    await record(store, 1, GRAZ, NUTS)

    async def forget() -> None:
        await record(store, 2, GRAZ, NUTS, TEA)
        await erase_in_scope(store, LENA, lambda erasure: erasure.forget_before(minute(2)), at=minute(3))

    await process(store, Interrupted(forget))
    assert (await values(store), await progress(store)) == ({"green tea"}, Progress.DONE)
    assert not {GRAZ, NUTS} & set(await texts(store))


@pytest.mark.usefixtures("patient_tries")
async def test_what_is_said_in_a_pause_that_begins_meanwhile_is_not_kept(store: Store) -> None:
    await record(store, 1, GRAZ)

    async def pause() -> None:
        await record(store, 2, GRAZ, NUTS)
        await store.write(lambda transaction: pauses.pause_scope(transaction, LENA, minute(3)))
        await record(store, 4, GRAZ, NUTS, TEA)

    await process(store, Interrupted(pause))
    assert (await texts(store), await values(store)) == ([GRAZ, NUTS], set())
    await store.write(lambda transaction: pauses.end_pause(transaction, LENA))
    await record(store, 5, GRAZ, NUTS, TEA, BYE)
    await process(store)
    assert (await values(store), await progress(store)) == ({"Graz", "nuts"}, Progress.DONE)


async def test_it_is_kept_when_another_process_has_read_it_by_then(store: Store) -> None:
    await record(store, 1, GRAZ)

    async def other() -> None:
        await record(store, 2, GRAZ, NUTS)
        await process(store)

    await process(store, Interrupted(other))
    assert await texts(store) == [GRAZ, NUTS]
    assert (await values(store), await progress(store)) == ({"Graz", "nuts"}, Progress.DONE)


async def test_it_is_kept_when_the_scope_has_changed_as_well(store: Store) -> None:
    await record(store, 1, GRAZ)

    async def change() -> None:
        await record(store, 2, GRAZ, NUTS)
        await entries.add_entry(store, LENA, Entry("Drinks tea.", attribute="drink", value="tea"), at=NOON)

    await process(store, Interrupted(change))
    assert (await values(store), await progress(store)) == ({"Graz", "nuts", "tea"}, Progress.DONE)


async def test_saves_and_processing_that_run_side_by_side_lose_nothing(store: Store) -> None:
    said = list[str]()
    is_over = asyncio.Event()

    async def chat() -> None:
        for number in range(25):
            said.append(f"Project {number} ships on day {number}.")
            await record(store, number, *said)
            await asyncio.sleep(0)
        is_over.set()

    async def work() -> None:
        while not is_over.is_set():
            if await queued_sessions(store):
                await process(store, Interrupted(*[lambda: asyncio.sleep(0.002)] * 9))
            await asyncio.sleep(0)

    await asyncio.gather(chat(), work(), work())
    await process(store)
    assert [(turn.text, turn.said_at) for turn in await turns(store)] == [
        (text, minute(number)) for number, text in enumerate(said)
    ]
    assert (await progress(store), await queued_sessions(store)) == (Progress.DONE, [])


async def test_findings_of_a_chat_that_is_saved_meanwhile_are_stored(store: Store) -> None:
    """They are read after the facts are stored, so a later turn may be stored by then, too."""
    policy = FindingPolicy(("researcher",))
    await store.write(lambda transaction: stored_findings.set_finding_policy(transaction, LENA, policy))
    found = ("researcher", "Found out (violin strings): Nylgut strings last twice as long as steel strings.")

    async def save(at: int, *said: tuple[str, str]) -> None:
        messages = [{"type": "TextMessage", "source": source, "content": text} for source, text in said]
        team = {"type": "TeamState", "agent_states": {"manager": {"message_thread": messages}}}
        await store_and_queue_state(store, LENA, "chat", team, component="Team", at=minute(at))

    class Asked(Researching):
        async def extract_findings(self, window: Window, agents: Sequence[str], *, advice: bool) -> FindingsExtraction:
            await save(2, ("user", "home: Graz"), found, ("user", "drink: tea"))
            return await super().extract_findings(window, agents, advice=advice)

    await save(1, ("user", "home: Graz"), found)
    extractor = Asked()
    await process_session(store, CHAT, extractor=extractor, judge=RulesJudge())
    kept = await store.read(lambda transaction: stored_findings.read_findings(transaction, LENA))
    assert ["Nylgut" in each.statement for each in kept] == [True]
    assert (len(await turns(store)), await progress(store)) == (3, Progress.PENDING)


async def test_a_chat_whose_stored_turns_an_older_version_has_lost_is_read_when_it_is_tried_again(store: Store) -> None:
    await record(store, 1, GRAZ)
    await record(store, 2, GRAZ, NUTS)

    def lose(transaction: Session) -> None:
        first = sessions.read_turns(transaction, LENA, "chat")[:1]
        row = sessions.find_session(transaction, LENA, "chat")
        assert row is not None
        old: Transcript = sessions.transcript_of_session(first, row)
        sessions.save_transcript(transaction, LENA, "chat", old, minute(2), is_done=False)
        sessions.mark_failed(transaction, LENA, "chat", "SourceInvalid: it has no times", minute(2))
        sessions.retry_session(transaction, LENA, "chat")

    await store.write(lose)
    ended = await run_batch(store, await queued_sessions(store), extractor=RulesExtractor())
    assert not isinstance(ended[0], Failure)
    assert [(turn.text, turn.said_at, offset_seconds(turn.said_at)) for turn in await turns(store)] == [
        (GRAZ, minute(1), None),
        (NUTS, minute(2), None),
    ]
    assert (await values(store), await progress(store)) == ({"Graz", "nuts"}, Progress.DONE)
