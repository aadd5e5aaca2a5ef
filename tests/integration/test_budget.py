"""Sessions, judges and batches under a budget: real clients, a scripted endpoint, a store."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import select

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.errors import EndpointUnavailable, ExtractionError
from afterword.extractors.extractor import Usage, Window
from afterword.extractors.model.client import Mode, ModelClient, ModelSettings
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.model.prices import Price
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply, shown_pairs
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.budget import COMPLETION_LIMIT, Account, Budget, CostTracker
from afterword.pipeline.consolidation import consolidate_scope
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.estimate import Estimate, estimate_costs_by_scope
from afterword.pipeline.intake import Saved, prepare_session
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import costs, lookup, sessions
from afterword.store.database.engine import Store
from afterword.store.tables import SpendingRow
from batches import state

LENA = Scope.user("lena")
PRICES = {"scripted": Price(Decimal("0.15"), Decimal("0.60"), Decimal("0.075"))}
CITIES = ("Graz", "Linz", "Wels", "Steyr")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as opened:
        await opened.migrate()
        yield opened


@dataclass(frozen=True, slots=True)
class Workers:
    """An extractor and a judge over one client."""

    extractor: ModelExtractor
    judge: ModelJudge


@asynccontextmanager
async def workers(endpoint: ScriptedEndpoint, **options: Any) -> AsyncIterator[Workers]:
    settings = replace(ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema"), **options)
    async with ModelClient(settings) as client:
        yield Workers(ModelExtractor(client), ModelJudge(client))


def saved(number: int, scope: Scope = LENA) -> Saved:
    at = datetime(2026, 1, 1 + number, tzinfo=UTC)
    return Saved(scope, f"s{number}", state=state(f"I live in {CITIES[number % 4]}."), started_at=at, ended_at=at)


def home(city: str) -> Candidate:
    quote = Citation(turn=1, quote=f"I live in {city}.")
    statement = f"The user lives in {city}."
    return Candidate(
        kind=Kind.ENTITY, subject="user", attribute="home", value=city, statement=statement, evidence=[quote]
    )


def obliging(request: Json) -> Reply:
    """Finds the home, and judges that every later home is a change."""
    shown = request["messages"][1]["content"]
    if "<statements>" not in shown:
        return facts_reply(*(home(city) for city in CITIES if f"I live in {city}." in shown))
    found = [
        {"pair": pair, "reason": "moved", "relation": "changes", "same_subject": True} for pair in shown_pairs(shown)
    ]
    return Reply(json.dumps({"findings": found}))


def is_judging(request: Json) -> bool:
    return "<statements>" in request["messages"][1]["content"]


async def kept(store: Store) -> costs.Spending:
    with store.reading() as db:
        return sum(costs.spending_by_day(db).values(), start=costs.Spending())


async def test_a_run_says_what_it_has_cost_question_by_question(store: Store) -> None:
    tracker = CostTracker(Budget(prices=PRICES))
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            ended = await run_batch(
                store, [saved(0), saved(1)], extractor=both.extractor, judge=both.judge, budget=tracker
            )
    runs = [one.run_id for one in ended if isinstance(one, SessionOutcome)]
    with store.reading() as db:
        by_run = costs.spending_by_run(db, LENA)
    assert list(by_run) == runs
    assert [by_run[run].calls for run in runs] == [1, 2]
    assert sum(by_run.values(), start=costs.Spending()) == tracker.spent == await kept(store)
    usage = sum((one.usage for one in ended if isinstance(one, SessionOutcome)), start=Usage())
    assert (tracker.spent.prompt_tokens, tracker.spent.completion_tokens) == (
        usage.prompt_tokens,
        usage.completion_tokens,
    )
    assert tracker.spent.usd is not None
    assert tracker.spent.usd > 0


async def test_costs_are_booked_under_what_the_model_was_asked_for(store: Store) -> None:
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            await run_batch(store, [saved(0), saved(1)], extractor=both.extractor, judge=both.judge)
    purposes = await store.read(lambda transaction: transaction.exec(select(SpendingRow.purpose)).all())
    assert purposes == ["extraction", "extraction", "judging"]


async def test_what_a_failed_session_has_cost_is_kept_and_counts(store: Store) -> None:
    """The model answered twice, and neither answer fitted: that is paid for all the same."""
    tracker = CostTracker(Budget(prices=PRICES))
    with ScriptedEndpoint(lambda request: Reply('{"nothing": "that fits"}')) as endpoint:
        async with workers(endpoint) as both:
            (failed,) = await run_batch(store, [saved(0)], extractor=both.extractor, budget=tracker)
    assert isinstance(failed, Failure)
    assert tracker.spent.calls == len(endpoint.requests) == 2
    assert tracker.spent.completion_tokens > 0
    assert await kept(store) == tracker.spent
    with store.reading() as db:
        assert list(costs.spending_by_run(db, LENA)) == [None]


async def test_an_error_carries_what_it_has_cost() -> None:
    with ScriptedEndpoint(lambda request: Reply('{"nothing": "that fits"}')) as endpoint:
        async with ModelClient(ModelSettings("scripted", endpoint.base_url, mode="json_schema")) as client:
            with pytest.raises(ExtractionError) as caught:
                await client.ask([{"role": "user", "content": "Where?"}], Candidate)
    assert caught.value.usage.calls == 2
    assert caught.value.usage.prompt_tokens > 0


@pytest.mark.parametrize("limit", [35_000, 45_000])
async def test_a_batch_stops_before_its_budget_is_passed(store: Store, limit: int) -> None:
    """What is not processed stays queued, and the next run takes it up."""
    tracker = CostTracker(Budget(tokens_per_run=limit, prices=PRICES))
    found = [saved(number, Scope.user(f"u{number % 3}")) for number in range(18)]
    for one in found:
        with store.writing() as db:
            assert isinstance(one.state, dict)
            at = datetime(2026, 1, 1, tzinfo=UTC)
            sessions.save_state(db, one.scope, one.session_id, component="x", state=one.state, at=at)
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            ended = await run_batch(store, found, extractor=both.extractor, judge=both.judge, budget=tracker)
            left = [one for one in ended if isinstance(one, NotStarted)]
            assert 0 < len(left) < len(ended)
            assert tracker.spent.tokens <= limit
            assert tracker.reached is not None
            assert left[0].reason.startswith(f"the run's budget of {limit:,} tokens would be exceeded")
            with store.reading() as db:
                waiting = {(one.scope, one.session_id) for one in sessions.waiting_sessions(db)}
            assert waiting == {(one.scope, one.session_id) for one in left}
            with store.reading() as db:
                assert all(one.failure is None for one in sessions.read_sessions(db))
            rest = await run_batch(store, found, extractor=both.extractor, judge=both.judge)
    assert all(isinstance(one, SessionOutcome) for one in rest)


async def test_what_is_extracted_is_kept_where_nothing_is_left_to_judge_it(store: Store) -> None:
    """The extraction is paid for: its pairs are left to a consolidation."""

    def wordy(request: Json) -> Reply:
        return replace(obliging(request), content=obliging(request).content + " " * 8_000)

    with ScriptedEndpoint(wordy) as endpoint:
        async with workers(endpoint, max_completion_tokens=300) as both:
            await process_session(store, saved(0), extractor=both.extractor, judge=both.judge)
            bound = both.extractor.planned_request(await _window(store, both)).worst_case
            room = bound.prompt_tokens + bound.completion_tokens
            tracker = CostTracker(Budget(tokens_per_run=room, prices=PRICES))
            (second,) = await run_batch(store, [saved(1)], extractor=both.extractor, judge=both.judge, budget=tracker)
            assert isinstance(second, SessionOutcome)
            assert (second.applied, second.unjudged) == (True, 1)
            assert tracker.reached is not None
            short = await consolidate_scope(store, LENA, judge=both.judge, budget=Budget(tokens_per_run=100))
            assert (short.run_id, short.judged, short.unjudged) == (None, 0, 1)
            full = await consolidate_scope(store, LENA, judge=both.judge, budget=Budget(prices=PRICES))
    assert (full.judged, full.unjudged) == (1, 0)
    with store.reading() as db:
        held = lookup.read_facts(db, LENA, at=datetime(2026, 2, 1, tzinfo=UTC))
        by_source = costs.spending_by_run_source(db, LENA)
    assert {fact.value: str(fact.status) for fact in held} == {"Graz": "superseded", "Linz": "current"}
    assert by_source["consolidation"].calls == 1


async def test_no_room_for_an_extraction_is_said_from_python_too(store: Store) -> None:
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            with pytest.raises(BudgetReached):
                await process_session(store, saved(0), extractor=both.extractor, budget=Budget(tokens_per_run=1_000))
    assert endpoint.requests == []
    with store.reading() as db:
        assert sessions.read_sessions(db) == []


async def test_an_answer_is_limited_only_under_a_budget(store: Store) -> None:
    """Without a limit nobody can say beforehand what a question costs."""
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            await process_session(store, saved(0), extractor=both.extractor)
            await process_session(store, saved(1), extractor=both.extractor, budget=Budget(tokens_per_run=10**6))
        async with workers(endpoint, max_completion_tokens=700) as both:
            await process_session(store, saved(2), extractor=both.extractor, budget=Budget(tokens_per_run=10**6))
    assert [one.get("max_completion_tokens") for one in endpoint.requests] == [None, COMPLETION_LIMIT, 700]


async def test_many_scopes_at_once_keep_within_what_fits(store: Store) -> None:
    """Eight scopes ask side by side; the budget has room for the bounds of three, and for what all of them do cost."""
    together, most = [0], [0]
    lock = threading.Lock()

    def counted(request: Json) -> Reply:
        with lock:
            together[0] += 1
            most[0] = max(most[0], together[0])
        threading.Event().wait(0.05)
        with lock:
            together[0] -= 1
        return obliging(request)

    tracker = CostTracker(Budget(tokens_per_run=24_000, prices=PRICES))
    found = [saved(number, Scope.user(f"u{number}")) for number in range(8)]
    with ScriptedEndpoint(counted) as endpoint:
        async with workers(endpoint, max_completion_tokens=300) as both:
            ended = await run_batch(store, found, extractor=both.extractor, budget=tracker)
    assert all(isinstance(one, SessionOutcome) for one in ended)
    assert most[0] <= 3
    assert tracker.spent.tokens <= 24_000


async def test_a_question_that_was_given_up_counts_as_estimated(store: Store) -> None:
    tracker = CostTracker(Budget(tokens_per_day=10**6, prices=PRICES))
    with ScriptedEndpoint(lambda request: Reply(hangs=True)) as endpoint:
        async with workers(endpoint, timeout_s=0.3) as both:
            account = Account(tracker, store, LENA, "session:a")
            with account.charging_requests(), pytest.raises(EndpointUnavailable):
                await both.extractor.extract(await _window(store, both))
    assert tracker.spent.estimated_calls == 1
    assert tracker.spent.completion_tokens == COMPLETION_LIMIT
    assert await kept(store) == tracker.spent


async def test_an_endpoint_that_refuses_costs_nothing(store: Store) -> None:
    tracker = CostTracker(Budget(prices=PRICES))
    with ScriptedEndpoint(lambda request: Reply(status=503)) as endpoint:
        async with workers(endpoint) as both:
            await run_batch(store, [saved(0)], extractor=both.extractor, budget=tracker)
    assert (tracker.spent.calls, tracker.spent.tokens, tracker.spent.micro_usd) == (1, 0, 0)


async def test_tokens_that_an_endpoint_does_not_report_are_estimated(store: Store) -> None:
    tracker = CostTracker(Budget(prices=PRICES))
    with ScriptedEndpoint(lambda request: replace(obliging(request), usage=False)) as endpoint:
        async with workers(endpoint) as both:
            await run_batch(store, [saved(0)], extractor=both.extractor, budget=tracker)
    assert tracker.spent.estimated_calls == 1
    assert tracker.spent.prompt_tokens > 1_000
    assert tracker.spent.completion_tokens > 20


async def test_a_cancelled_session_is_counted_and_harms_nobody(store: Store) -> None:
    tracker = CostTracker(Budget(tokens_per_run=10**6, prices=PRICES))
    with ScriptedEndpoint(lambda request: Reply(hangs=True)) as endpoint:
        async with workers(endpoint) as both:
            task = asyncio.ensure_future(process_session(store, saved(0), extractor=both.extractor, budget=tracker))
            async with asyncio.timeout(60):
                while not endpoint.requests:  # noqa: ASYNC110 - the endpoint lives in another thread
                    await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert (tracker.spent.calls, tracker.spent.estimated_calls) == (2, 2)
    assert await kept(store) == tracker.spent


@pytest.mark.parametrize("mode", ["json_schema", "tools", "json"])
async def test_a_prompt_is_never_larger_than_was_foreseen(store: Store, mode: Mode) -> None:
    """At four bytes a token, all that is sent counted: words, schema and what wraps them."""
    with ScriptedEndpoint(obliging) as endpoint:
        async with ModelClient(ModelSettings("scripted", endpoint.base_url, max_retries=0, mode=mode)) as client:
            extractor = ModelExtractor(client)
            window = await _window(store, Workers(extractor, ModelJudge(client)))
            foreseen = extractor.planned_request(window)
            await extractor.extract(window)
    (request,) = endpoint.requests
    assert len(json.dumps(request)) / 4 <= foreseen.prompt_tokens <= len(json.dumps(request)) / 2


async def test_an_estimate_asks_nobody_and_holds(store: Store, tmp_path: Path) -> None:
    """What the run then takes lies between least and most; afterwards nothing is left to do."""
    found = [saved(number, Scope.user(f"u{number % 2}")) for number in range(6)]
    with ScriptedEndpoint(obliging) as endpoint:
        async with workers(endpoint) as both:
            before = await asyncio.to_thread((tmp_path / "afterword.db").read_bytes)
            foreseen = await _all(store, found, both)
            assert endpoint.requests == []
            assert await asyncio.to_thread((tmp_path / "afterword.db").read_bytes) == before
            tracker = CostTracker(Budget(prices=PRICES))
            await run_batch(store, found, extractor=both.extractor, judge=both.judge, budget=tracker)
            grown = replace(found[0], state=state("I live in Graz.", "I like tea."))
            again = await _all(store, [grown, *found[1:]], both)
    assert (foreseen.sessions, foreseen.windows) == ({"new": 6}, 6)
    assert foreseen.least.calls <= tracker.spent.calls <= foreseen.most.calls
    sent = sum(len(json.dumps(one)) for one in endpoint.requests if not is_judging(one)) / 4
    assert foreseen.least.prompt_tokens <= sent
    assert tracker.spent.prompt_tokens <= foreseen.most.prompt_tokens
    assert (again.sessions, again.windows) == ({"grown": 1, "unchanged": 5}, 1)


async def _all(store: Store, found: Sequence[Saved], both: Workers) -> Estimate:
    by_scope = await estimate_costs_by_scope(store, found, extractor=both.extractor, judge=both.judge)
    return sum(by_scope.values(), start=Estimate())


async def _window(store: Store, both: Workers) -> Window:
    return (await prepare_session(store, saved(0), both.extractor.version)).windows[0]
