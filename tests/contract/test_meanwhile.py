"""What others do to a session while it is processed: nothing of it is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.rules import RulesExtractor
from afterword.pipeline.batch import queued, run_batch
from afterword.pipeline.session import Saved, process_session
from afterword.store import ledger, lookup, runs, sessions
from afterword.store.engine import Store
from afterword.store.scopes import Scope
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
    await store.written(
        lambda db: sessions.save_state(db, LENA, "a", component="AssistantAgent", state=state(*said), at=at)
    )


async def values(store: Store) -> set[str]:
    async with store.read() as db:
        return {fact.value for fact in await lookup.facts(db, LENA, at=datetime.now(UTC))}


async def test_who_reads_an_older_copy_takes_nothing_from_who_was_faster_with_a_newer(store: Store) -> None:
    async def other() -> None:
        await process_session(store, saved(*LONG), extractor=RulesExtractor())

    await process_session(store, saved(*SHORT), extractor=Interrupted(other))
    assert await values(store) == {"Graz", "vegetarian"}
    async with store.read() as db:
        assert [turn.text for turn in await sessions.turns(db, LENA, "a")] == list(LONG)


async def test_a_session_that_two_process_at_once_gets_one_run(store: Store) -> None:
    async def other() -> None:
        await process_session(store, saved(*LONG), extractor=RulesExtractor())

    outcome = await process_session(store, saved(*LONG), extractor=Interrupted(other))
    assert outcome.run_id is None
    async with store.read() as db:
        assert [run.source for run in await runs.runs(db, LENA)] == [ledger.source_of("a")]


async def test_a_session_that_is_saved_while_it_is_processed_stays_queued(store: Store) -> None:
    """A live agent saves after each turn; a worker may be reading the state before."""
    await save(store, *SHORT)
    one = Saved(LENA, "a", started_at=AT, ended_at=AT)
    await run_batch(store, [one], extractor=Interrupted(lambda: save(store, *LONG)))
    assert await values(store) == {"Graz"}
    assert [waiting.session_id for waiting in await queued(store)] == ["a"]
    await run_batch(store, [one], extractor=RulesExtractor())
    assert await values(store) == {"Graz", "vegetarian"}
    assert await queued(store) == []
