"""What others do to a session while it is processed: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import pytest

from afterword.extractors.errors import EndpointUnavailable
from afterword.extractors.extractor import Extraction, Usage, Window
from afterword.extractors.judge import Pair
from afterword.extractors.rules import RulesExtractor
from afterword.facts.assertions import Relation, Verdict
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, queued_sessions, run_batch
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import PATIENT_TRIES, process_session
from afterword.store import entries, ledger, lookup, runs, sessions
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from batches import state

LENA = Scope.user("lena")
AT = datetime(2026, 3, 1, tzinfo=UTC)
SHORT, LONG = ("I live in Graz.",), ("I live in Graz.", "I'm vegetarian.")


class Interrupted(RulesExtractor):
    """The rules, during whose first call something else happens."""

    def __init__(self, act: Callable[[], Awaitable[object]]) -> None:
        super().__init__()
        self._acts = [act]

    async def extract(self, window: Window) -> Extraction:
        while self._acts:
            await self._acts.pop()()
        return await super().extract(window)


def saved(*said: str) -> Saved:
    return Saved(LENA, "a", state=state(*said), started_at=AT, ended_at=AT)


async def save(store: Store, *said: str) -> None:
    at = datetime.now(UTC)
    await store.write(
        lambda transaction: sessions.save_state(
            transaction, LENA, "a", component="AssistantAgent", state=state(*said), at=at
        )
    )


async def values(store: Store) -> set[str]:
    with store.reading() as transaction:
        return {fact.value for fact in lookup.read_facts(transaction, LENA, at=datetime.now(UTC))}


async def test_who_reads_an_older_copy_takes_nothing_from_who_was_faster_with_a_newer(store: Store) -> None:
    async def other() -> None:
        await process_session(store, saved(*LONG), extractor=RulesExtractor())

    await process_session(store, saved(*SHORT), extractor=Interrupted(other))
    assert await values(store) == {"Graz", "vegetarian"}
    with store.reading() as transaction:
        assert [turn.text for turn in sessions.read_turns(transaction, LENA, "a")] == list(LONG)


async def test_a_session_that_two_process_at_once_gets_one_run(store: Store) -> None:
    async def other() -> None:
        await process_session(store, saved(*LONG), extractor=RulesExtractor())

    outcome = await process_session(store, saved(*LONG), extractor=Interrupted(other))
    assert outcome.run_id is None
    with store.reading() as transaction:
        assert [run.source for run in runs.read_runs(transaction, LENA)] == [ledger.session_run_source("a")]


async def test_a_session_that_is_saved_while_it_is_processed_stays_queued(store: Store) -> None:
    """A live agent saves after each turn; a worker may be reading the state before."""
    await save(store, *SHORT)
    one = Saved(LENA, "a", started_at=AT, ended_at=AT)
    await run_batch(store, [one], extractor=Interrupted(lambda: save(store, *LONG)))
    assert await values(store) == {"Graz"}
    assert [waiting.session_id for waiting in await queued_sessions(store)] == ["a"]
    await run_batch(store, [one], extractor=RulesExtractor())
    assert await values(store) == {"Graz", "vegetarian"}
    assert await queued_sessions(store) == []


async def test_a_failure_takes_nothing_from_who_has_done_the_session_meanwhile(store: Store) -> None:
    """Several processes work off one queue: what one of them has done is not failed because another's model was ill."""
    await save(store, *SHORT)
    one = Saved(LENA, "a", started_at=AT, ended_at=AT)

    async def other() -> None:
        await run_batch(store, [one], extractor=RulesExtractor())
        raise EndpointUnavailable("no answer")

    (ended,) = await run_batch(store, [one], extractor=Interrupted(other))
    assert isinstance(ended, Failure)
    with store.reading() as transaction:
        kept = sessions.find_session(transaction, LENA, "a")
    assert kept is not None
    assert (kept.progress, kept.failure, kept.attempts) == (sessions.Progress.DONE, None, 0)


class Overtaking:
    """A judge that needs calls, and during each of which somebody else writes into the scope."""

    pairs_a_call: int | None = 40
    version = "overtaking-1"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = 0

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        self.calls += 1
        city = f"City {self.calls}"
        await entries.add_entry(self._store, LENA, Entry(f"Lives in {city}.", attribute="home", value=city), at=AT)
        return [Verdict(one.id, other.id, Relation.BESIDE, "both", self.version) for one, other in pairs], Usage(1)


async def test_a_session_that_is_always_overtaken_gets_its_turn(store: Store) -> None:
    """After some tries it lets the others wait; what only a call could judge is left, and counted."""
    if store.is_in_memory:
        pytest.skip("a store in memory has one connection: nobody else can write into it")
    await entries.add_entry(store, LENA, Entry("Lives in Linz.", attribute="home", value="Linz"), at=AT)
    judge = Overtaking(store)
    outcome = await process_session(store, saved(*SHORT), extractor=RulesExtractor(), judge=judge)
    assert outcome.applied
    assert judge.calls == PATIENT_TRIES
    assert outcome.unjudged >= 1
    assert await values(store) == {"Graz", "Linz"} | {f"City {number}" for number in range(1, judge.calls + 1)}
