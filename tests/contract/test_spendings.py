"""The ledger of what was spent, and budgets over it, on every database."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

import kept
from afterword.extractors.extractor import Usage
from afterword.extractors.model.metering import ModelRequest
from afterword.extractors.model.prices import Price
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import Account, Budget, CostTracker
from afterword.pipeline.errors import BudgetReached, PriceUnknown
from afterword.store import costs
from afterword.store.database.engine import Store
from servers import Server

LENA, JON = Scope.user("lena"), Scope.user("jon")
PRICES = {"m": Price(Decimal(1), Decimal(10))}
QUESTION = ModelRequest("m", "extraction", prompt_tokens=1_000, completion_limit=100, answers=1)
"""At most 1,100 tokens and 2,000 millionths of a dollar."""
COST = Usage(1, 500, 50)
"""550 tokens, 1,000 millionths of a dollar."""
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def tracker(limits: Budget | None = None, *, at: datetime = NOON) -> CostTracker:
    return CostTracker(replace(limits or Budget(), prices=PRICES), clock=lambda: at)


async def ask(account: Account, question: ModelRequest = QUESTION, *, is_answered: bool = True) -> None:
    async with account.charging(question) as bill:
        await asyncio.sleep(0)
        bill.usage, bill.is_answered = COST, is_answered


async def total(store: Store) -> costs.Spending:
    with store.reading() as transaction:
        return costs.spending_on_day(transaction, NOON.date())


async def test_what_was_asked_is_summed_by_day_scope_source_and_run(store: Store) -> None:
    today, tomorrow = tracker(), tracker(at=NOON + timedelta(days=1))
    await ask(Account(today, store, LENA, "session:a"))
    await ask(Account(today, store, LENA, "session:a"), is_answered=False)
    await ask(Account(tomorrow, store, JON, "session:b"))
    with store.reading() as transaction:
        days, scopes = costs.spending_by_day(transaction), costs.spending_by_scope(transaction)
        sources, runs = costs.spending_by_run_source(transaction, LENA), costs.spending_by_run(transaction, LENA)
    one = costs.Spending(1, 500, 0, 50, 1_000)
    assert days == {NOON.date(): one + one, date(2026, 5, 2): one}
    assert scopes == {LENA: one + one, JON: one}
    assert (sources, runs) == ({"session:a": one + one}, {None: one + one})


async def test_an_open_question_counts_at_what_it_may_cost_until_it_is_settled(store: Store) -> None:
    account = Account(tracker(), store, LENA, "session:a")
    async with account.charging(QUESTION) as bill:
        assert await total(store) == costs.Spending(1, 1_000, 0, 100, 2_000, estimated_calls=1)
        bill.usage, bill.is_answered = COST, True
    assert await total(store) == costs.Spending(1, 500, 0, 50, 1_000)


async def test_a_cost_that_could_not_be_stored_is_stored_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with Store(f"sqlite:///{path}") as store:
        await store.migrate()
        account = Account(tracker(), store, LENA, "session:a")
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TRIGGER refuse BEFORE UPDATE ON spendings BEGIN DELETE FROM missing; END")
            await ask(account)
            assert (await total(store)).micro_usd == 2_000
            other.execute("DROP TRIGGER refuse")
        run_id = kept.run(store, "session:a", ())
        await store.write(partial(account.assign_to_run, run_id=run_id))
        assert await total(store) == costs.Spending(1, 500, 0, 50, 1_000)


async def test_what_was_sent_stays_booked_though_the_server_crashes(
    postgres_server: Server, postgres_store_url: str
) -> None:
    if postgres_server.own is None:
        pytest.skip("AFTERWORD_TEST_POSTGRES names a server that is not this test's to crash")
    async with Store(postgres_store_url) as store, Account(tracker(), store, LENA, "session:a").charging(QUESTION):
        await asyncio.to_thread(postgres_server.crash)
        async with Store(postgres_store_url) as after_the_crash:
            assert (await total(after_the_crash)).estimated_calls == 1


async def test_a_question_cut_short_stays_at_what_it_may_have_cost(store: Store) -> None:
    spending = tracker()
    account = Account(spending, store, LENA, "session:a")
    with pytest.raises(TimeoutError):
        async with account.charging(QUESTION):
            raise TimeoutError
    assert (await total(store)).micro_usd == spending.spent.micro_usd == 2_000


async def test_a_question_that_waits_for_its_place_is_booked_and_costs_nothing_if_it_is_never_sent(
    store: Store,
) -> None:
    spending = tracker()
    spending.limit_open_requests(1)
    account = Account(spending, store, LENA, "session:a")
    async with account.charging(QUESTION):
        waiting = asyncio.create_task(ask(account))
        async with asyncio.timeout(30):
            while (await total(store)).calls < 2:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert (await total(store)).micro_usd == 2_000
    assert spending.spent.micro_usd == 0


async def test_whenever_a_question_is_cancelled_before_it_is_sent_it_costs_nothing(store: Store) -> None:
    spending = tracker()
    spending.limit_open_requests(1)
    account = Account(spending, store, LENA, "session:a")
    async with account.charging(QUESTION):
        for steps in range(30):
            waiting = asyncio.create_task(ask(account))
            for _ in range(steps):
                await asyncio.sleep(0.0005)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert (await total(store)).micro_usd == 2_000, f"after {steps} steps"
    assert spending.spent.micro_usd == 0


@pytest.mark.parametrize(
    "limits",
    [
        Budget(usd_per_run=Decimal("0.004")),
        Budget(usd_per_day=Decimal("0.004")),
        Budget(tokens_per_run=2_200),
        Budget(tokens_per_day=2_200),
    ],
)
async def test_a_question_that_could_pass_a_limit_is_not_asked(store: Store, limits: Budget) -> None:
    spending = tracker(limits)
    account = Account(spending, store, LENA, "session:a")
    for _ in range(3):
        await ask(account)
    with pytest.raises(BudgetReached, match="would be exceeded"):
        await ask(account)
    assert spending.reached is not None
    assert (await total(store)).calls == 3


async def test_a_new_run_has_its_own_budget_and_the_day_is_the_same(store: Store) -> None:
    limits = Budget(tokens_per_run=1_500, tokens_per_day=2_000)
    await ask(Account(tracker(limits), store, LENA, "session:a"))
    await ask(Account(tracker(limits), store, JON, "session:b"))
    with pytest.raises(BudgetReached, match="the day's budget of 2,000 tokens"):
        await ask(Account(tracker(limits), store, LENA, "session:c"))
    await ask(Account(tracker(limits, at=NOON + timedelta(days=1)), store, LENA, "session:c"))


async def test_questions_at_once_wait_for_what_others_leave_and_never_pass_the_budget(store: Store) -> None:
    """Two fit at their bounds, so the others wait; nine fit at what they do cost."""
    spending = tracker(Budget(tokens_per_run=5_500))
    accounts = [Account(spending, store, LENA, f"session:{number}") for number in range(12)]
    ended = await asyncio.gather(*(ask(one) for one in accounts), return_exceptions=True)
    refused = [one for one in ended if isinstance(one, BaseException)]
    assert all(isinstance(one, BudgetReached) for one in refused)
    assert (len(refused), spending.spent.tokens) == (3, 9 * 550)


async def test_processes_side_by_side_cannot_pass_the_day_together(store: Store) -> None:
    """Two trackers know nothing of each other but the store."""
    limit = Decimal("0.010")
    trackers = [tracker(Budget(usd_per_day=limit)) for _ in range(2)]
    accounts = [Account(one, store, LENA, f"session:{number}") for number in range(8) for one in trackers]
    ended = await asyncio.gather(*(ask(one) for one in accounts), return_exceptions=True)
    assert {type(one) for one in ended} == {type(None), BudgetReached}
    spent = (await total(store)).micro_usd
    assert 8_000 <= spent <= limit * costs.MICRO


async def test_dollars_cannot_be_limited_without_a_price(store: Store) -> None:
    unknown = ModelRequest("nobody-knows", "extraction", 10, 10, 1)
    with pytest.raises(PriceUnknown, match=r'prices."nobody-knows"'):
        await ask(Account(tracker(Budget(usd_per_run=Decimal(1))), store, LENA, "session:a"), unknown)
    await ask(Account(tracker(Budget(tokens_per_run=5_000)), store, LENA, "session:a"), unknown)
    assert ((await total(store)).usd, (await total(store)).unpriced_calls) == (None, 1)
