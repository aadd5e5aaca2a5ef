"""Sessions of one scope are read ahead of each other, and stored one after another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from afterword.extractors.errors import EndpointUnavailable
from afterword.extractors.extractor import Extraction, Usage, Window
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.metering import ModelRequest
from afterword.extractors.rules import RulesExtractor
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import SESSIONS_AHEAD, Failure, run_batch
from afterword.pipeline.budget import Account, Budget, CostTracker
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import ledger, lookup, runs, sessions
from afterword.store.database.engine import Store
from batches import state
from small_talk import right_reply

LENA = Scope.user("lena")
DAY = datetime(2026, 3, 1, tzinfo=UTC)
CITIES = ("Graz", "Linz", "Wels", "Steyr", "Villach", "Leoben", "Krems")


def talks(scope: Scope = LENA, count: int = len(CITIES)) -> list[Saved]:
    days = [DAY + timedelta(days=number) for number in range(count)]
    said = [state(f"I live in {city} now.") for city in CITIES]
    return [
        Saved(scope, f"talk{number}", state=said[number], started_at=at, ended_at=at) for number, at in enumerate(days)
    ]


class Watched(RulesExtractor):
    """The rules. `before` is called with what is said before it is read; `most` is how many were read at once."""

    def __init__(self, before: Callable[[str], Awaitable[None]]) -> None:
        super().__init__()
        self.begun = self.ended = self.at_work = self.most = 0
        self._before = before

    async def extract(self, window: Window) -> Extraction:
        self.begun += 1
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            await self._before(window.turns[0].text)
            return await super().extract(window)
        finally:
            self.at_work -= 1
            self.ended += 1


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - nothing else shows it
            await asyncio.sleep(0.01)


async def told_in(store: Store, scope: Scope = LENA) -> list[str]:
    """Return the sources of the runs that count, in the order in which they were stored."""
    with store.reading() as transaction:
        made = runs.read_runs(transaction, scope)
    return [one.source for one in sorted(made, key=lambda one: one.id) if one.status == ledger.RunStatus.APPLIED]


async def test_a_later_session_is_read_sooner_and_stored_later(store: Store) -> None:
    async def the_first_last(said: str) -> None:
        await until(lambda: extractor.begun >= SESSIONS_AHEAD)
        if CITIES[0] in said:
            await until(lambda: extractor.ended >= SESSIONS_AHEAD - 1)

    extractor = Watched(the_first_last)
    ended = await run_batch(store, talks(), extractor=extractor)
    assert extractor.most == SESSIONS_AHEAD
    assert extractor.begun == len(CITIES)
    assert [one.session_id for one in ended] == [one.session_id for one in talks()]
    assert await told_in(store) == [ledger.session_run_source(one.session_id) for one in talks()]
    with store.reading() as transaction:
        found = lookup.read_facts(transaction, LENA, at=DAY + timedelta(days=30))
    assert [fact.value for fact in found if fact.is_served] == [CITIES[-1]]


async def test_what_fails_holds_up_nobody(store: Store) -> None:
    async def fails(said: str) -> None:
        if CITIES[0] in said:
            await until(lambda: extractor.ended >= SESSIONS_AHEAD - 1)
        if CITIES[0] in said or CITIES[2] in said:
            raise EndpointUnavailable("away")

    extractor = Watched(fails)
    ended = await run_batch(store, talks(), extractor=extractor)
    assert [isinstance(one, Failure) for one in ended] == [number in (0, 2) for number in range(len(CITIES))]
    assert len(await told_in(store)) == len(CITIES) - 2


async def test_what_is_saved_anew_while_it_waits_is_read_anew(store: Store) -> None:
    """Its first reading is of a state that is not there any more when its turn comes."""

    async def save(text: str, at: datetime) -> None:
        save_state = partial(sessions.save_state, component="AssistantAgent", state=state(text), at=at)
        await store.write(lambda transaction: save_state(transaction, LENA, "talk1"))

    async def meanwhile(said: str) -> None:
        if CITIES[0] in said:
            await until(lambda: extractor.ended == 1)
            await save("I live in Krems now.", DAY + timedelta(days=3))

    await save("I live in Linz now.", DAY + timedelta(days=2))
    first, second = talks(count=2)
    again = Saved(LENA, second.session_id, started_at=second.started_at, ended_at=second.ended_at)
    extractor = Watched(meanwhile)
    ended = await run_batch(store, [first, again], extractor=extractor)
    assert all(isinstance(one, SessionOutcome) and one.applied for one in ended)
    assert extractor.begun == 3
    with store.reading() as transaction:
        found = lookup.read_facts(transaction, LENA, at=DAY + timedelta(days=30))
        [kept] = sessions.read_sessions(transaction, session_id="talk1")
    assert [fact.value for fact in found if fact.is_served] == ["Krems"]
    assert kept.progress is sessions.Progress.DONE


class Crowd:
    """A model that answers none of its first questions before so many have been asked; `most` were asked at once."""

    def __init__(self, first: int) -> None:
        self.at_once = self.most = self.asked = 0
        self._first, self._all_first_asked = first, threading.Barrier(first)
        self._lock = threading.Lock()

    def __call__(self, request: Json) -> Reply:
        with self._lock:
            self.asked += 1
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            is_first = self.asked <= self._first
        if is_first:
            self._all_first_asked.wait(timeout=60)
        time.sleep(0.05)
        with self._lock:
            self.at_once -= 1
        return right_reply(request)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_model_is_never_asked_more_at_once_than_was_said(store: Store, concurrency: int) -> None:
    crowd, users = Crowd(concurrency), [Scope.user(f"user{number}") for number in range(4)]
    with ScriptedEndpoint(crowd) as endpoint:
        async with ModelClient(ModelSettings("scripted", base_url=endpoint.base_url, api_key="key")) as client:
            found = [one for scope in users for one in talks(scope, 3)]
            ended = await run_batch(store, found, extractor=ModelExtractor(client), concurrency=concurrency)
    assert all(isinstance(one, SessionOutcome) for one in ended)
    assert crowd.most == concurrency
    for scope in users:
        assert await told_in(store, scope) == [ledger.session_run_source(f"talk{number}") for number in range(3)]


async def test_what_has_nothing_new_is_done_though_its_turn_comes_after_others(store: Store) -> None:
    first = talks()
    await run_batch(store, first, extractor=RulesExtractor())
    for one, city in zip(first, CITIES, strict=True):
        kept, at = state(f"I live in {city} now."), DAY + timedelta(days=40)
        save = partial(sessions.save_state, component="AssistantAgent", state=kept, at=at)
        await store.write(partial(save, scope=LENA, session_id=one.session_id))
    days = [DAY + timedelta(days=20 + number) for number in range(len(CITIES))]
    new = [Saved(LENA, f"new{number}", state=first[number].state, started_at=at) for number, at in enumerate(days)]
    again = [Saved(LENA, one.session_id, started_at=one.started_at, ended_at=one.ended_at) for one in first]
    mixed = [one for pair in zip(new, again, strict=True) for one in pair]
    ended = await run_batch(store, mixed, extractor=RulesExtractor())
    assert all(isinstance(one, SessionOutcome) for one in ended)
    with store.reading() as transaction:
        assert {one.progress for one in sessions.read_sessions(transaction)} == {sessions.Progress.DONE}


async def test_under_a_budget_sessions_are_read_one_after_another(store: Store) -> None:
    """Side by side they could spend all of it without one of them being read to its end."""
    extractor = Watched(lambda _: asyncio.sleep(0.05))
    await run_batch(store, talks(), extractor=extractor, budget=Budget(tokens_per_run=1_000_000))
    assert extractor.most == 1


async def test_a_question_that_waits_for_a_place_costs_nothing_when_it_is_cut_short(store: Store) -> None:
    tracker, question = CostTracker(), ModelRequest("scripted", "extraction", 100, 100, answers=1)
    tracker.limit_open_requests(1)
    account = Account(tracker, store, LENA, "session:a")

    async def ask(usage: Usage) -> None:
        async with account.charging(question) as bill:
            asked.set()
            await answered.wait()
            bill.usage, bill.is_answered = usage, True

    asked, answered = asyncio.Event(), asyncio.Event()
    asking = asyncio.ensure_future(ask(Usage(1, 10, 10)))
    await asked.wait()
    waiting = asyncio.ensure_future(ask(Usage(1, 1, 1)))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert tracker.spent.calls == 0
    tracker.limit_open_requests(2)
    answered.set()
    await asking
    assert tracker.spent.calls == 1


async def test_only_so_many_questions_are_asked_at_once(store: Store) -> None:
    tracker, question = CostTracker(), ModelRequest("scripted", "extraction", 100, 100, answers=1)
    tracker.limit_open_requests(2)
    account = Account(tracker, store, LENA, "session:a")
    asked, two_asked, answered = 0, asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        nonlocal asked
        async with account.charging(question):
            asked += 1
            if asked == 2:
                two_asked.set()
            await answered.wait()

    asking = [asyncio.ensure_future(ask()) for _ in range(3)]
    await two_asked.wait()
    await asyncio.sleep(0.1)
    assert asked == 2
    answered.set()
    await asyncio.gather(*asking)
    assert asked == 3
