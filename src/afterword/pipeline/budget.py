"""What may be spent on models, checked before each question; and what was spent, kept whatever became of it.

A question reserves what it may cost at most, in this process and in the store, and settles when it is answered. So
neither questions side by side nor other processes can pass a budget together.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import StoreError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.metering import Bill, ModelRequest, metering
from afterword.extractors.model.prices import Prices, shipped_prices
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import BudgetReached, PriceUnknown
from afterword.store import costs
from afterword.store.costs import CallStatus, Spending
from afterword.store.database.engine import Store
from afterword.telemetry import Count, count

logger = telemetry.logs(__name__)

AT_ONCE = 8
"""How many questions of one tracker are asked at once, where nobody says otherwise."""
COMPLETION_LIMIT = 8_192
"""The longest answer that is asked for under a budget, unless the client sets a limit of its own: without any, nobody
could say beforehand what a question may cost."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one run (a batch, or a session processed alone) and one day (UTC, all processes) may spend.

    None is no limit. `prices` are those by which dollars are counted (default: the table that comes along); a limit in
    dollars needs a price of the model. A question that could pass a limit is not asked.
    """

    usd_per_run: Decimal | None = None
    usd_per_day: Decimal | None = None
    tokens_per_run: int | None = None
    tokens_per_day: int | None = None
    prices: Prices | None = None

    @property
    def has_limit(self) -> bool:
        """Whether anything is limited."""
        return any(one is not None for one in (self.tokens_per_run, self.tokens_per_day)) or self.has_usd_limit

    @property
    def has_usd_limit(self) -> bool:
        """Whether dollars are limited."""
        return self.usd_per_run is not None or self.usd_per_day is not None


class CostTracker:
    """What one run spends under a budget. Share one among the sessions of a run; it belongs to one event loop.

    `spent` is what the run has spent so far, `reached` which limit would have been passed, None before that.
    """

    def __init__(
        self, budget: Budget | None = None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.budget = budget or Budget()
        self.spent = Spending()
        self.reached: str | None = None
        self._prices = shipped_prices() if self.budget.prices is None else self.budget.prices
        self._clock = clock
        self._open: dict[int, Spending] = {}
        self._by_source: dict[tuple[Scope, str], Spending] = defaultdict(Spending)
        self._turn, self._settled = asyncio.Lock(), asyncio.Event()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._place_of: dict[int, asyncio.Semaphore] = {}

    def limit(self, at_once: int) -> None:
        """Let only so many questions be asked at once from now on, beside those that are being asked."""
        self._places = asyncio.Semaphore(at_once)

    def spent_on(self, scope: Scope, source: str) -> Spending:
        """Return what this run has spent on a source."""
        return self._by_source.get((scope, source), Spending())

    def check(self, model: str) -> None:
        """Raise `PriceUnknown` where a limit in dollars could not be kept for a model."""
        if self.budget.has_usd_limit and model not in self._prices:
            raise PriceUnknown(
                f"no price is known for model {model!r}, so no budget in dollars can be kept: give its price in the "
                f'profile as [prices."{model}"], or limit tokens_per_run and tokens_per_day instead'
            )

    def priced(self, model: str, usage: Usage, *, is_estimate: bool = False) -> Spending:
        """Return a usage at the price of its model."""
        price = self._prices.get(model)
        return Spending(
            usage.calls,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            price.micro_usd(usage) if price else 0,
            0 if price else usage.calls,
            usage.calls if is_estimate else 0,
        )

    async def reserve(self, account: Account, question: ModelRequest) -> int:
        """Wait for a place, and enter a question at what it may cost; while others are open, wait for what they leave.

        Raises `BudgetReached` where it does not fit what is left, and `PriceUnknown`.
        """
        places = self._places
        await places.acquire()
        try:
            ticket = await self._reserved(account, question)
        except BaseException:
            places.release()
            raise
        self._place_of[ticket] = places
        return ticket

    async def _reserved(self, account: Account, question: ModelRequest) -> int:
        self.check(question.model)
        bound = self.priced(question.model, question.worst_case, is_estimate=True)
        while True:
            self._settled.clear()
            try:
                async with self._turn:
                    self._refuse("run", self.budget.usd_per_run, self.budget.tokens_per_run, self._at_most, bound)
                    # Two that look at the day's sum at once must not both find room in it.
                    ticket = await account.store.write(
                        lambda db: self._entered(db, account, question, bound), strict=True, lasting=False
                    )
                    self._open[ticket] = bound
                    return ticket
            except BudgetReached as error:
                if not self._open:
                    self.reached = str(error)
                    raise
            await self._settled.wait()

    async def settle(self, account: Account, ticket: int, model: str, bill: Bill) -> None:
        """Put what a question has cost in place of what it might have."""
        self._place_of.pop(ticket).release()
        spent = self.priced(model, bill.usage, is_estimate=bill.is_estimate)
        status = CallStatus.ANSWERED if bill.is_answered else CallStatus.FAILED
        _count(spent, model)
        try:
            await account.store.write(lambda db: costs.settle_spending(db, ticket, spent, status), lasting=False)
        except StoreError as error:
            # The answer is paid for and worth more than its bill, which stands at what it may have cost.
            logger.warning("what a question cost was not kept (%s)", type(error).__name__)
        finally:
            self._close(account, ticket, spent)

    def abandon(self, account: Account, ticket: int) -> None:
        """Count a question that was cut short at what it may have cost."""
        self._place_of.pop(ticket).release()
        self._close(account, ticket, self._open[ticket])

    @property
    def _at_most(self) -> Spending:
        return sum(self._open.values(), start=self.spent)

    def _entered(self, db: Session, account: Account, question: ModelRequest, bound: Spending) -> int:
        at, budget = self._clock(), self.budget
        if budget.usd_per_day is not None or budget.tokens_per_day is not None:
            today = costs.spending_on_day(db, costs.day_of(at))
            self._refuse("day", budget.usd_per_day, budget.tokens_per_day, today, bound)
        purpose = account.purpose or question.purpose
        return costs.reserve_spending(
            db, account.scope, account.source, purpose=purpose, model=question.model, at=at, bound=bound
        )

    def _close(self, account: Account, ticket: int, spent: Spending) -> None:
        del self._open[ticket]
        self.spent += spent
        self._by_source[account.scope, account.source] += spent
        self._settled.set()

    def _refuse(self, span: str, usd: Decimal | None, tokens: int | None, at_most: Spending, bound: Spending) -> None:
        """Raise `BudgetReached` where a question could pass a limit."""
        if usd is not None and at_most.micro_usd + bound.micro_usd > usd * costs.MICRO:
            raise BudgetReached(
                f"the {span}'s budget of {dollars(usd)} would be passed: {dollars(at_most.usd)} are spent or set "
                f"aside, and the next question may cost {dollars(bound.usd)}"
            )
        if tokens is not None and at_most.tokens + bound.tokens > tokens:
            raise BudgetReached(
                f"the {span}'s budget of {tokens:,} tokens would be passed: {at_most.tokens:,} are spent or set aside, "
                f"and the next question may take {bound.tokens:,}"
            )


class Account:
    """What one session, consolidation or proposal spends. Its `purpose`, if set, replaces those of its questions."""

    def __init__(
        self, tracker: CostTracker, store: Store, scope: Scope, source: str, purpose: str | None = None
    ) -> None:
        self.tracker, self.store = tracker, store
        self.scope, self.source, self.purpose = scope, source, purpose
        self._tickets: dict[int, str] = {}

    def open(self) -> AbstractContextManager[None]:
        """Charge to this account every question that is asked inside."""
        return metering(self)

    @property
    def completion_limit(self) -> int | None:
        """The longest answer that is asked for; None without any limit to keep."""
        return COMPLETION_LIMIT if self.tracker.budget.has_limit else None

    async def reserve(self, question: ModelRequest) -> int:
        """Set aside what a question may cost."""
        ticket = await self.tracker.reserve(self, question)
        self._tickets[ticket] = question.model
        return ticket

    async def settle(self, ticket: int, bill: Bill) -> None:
        """Keep what a question has cost."""
        await self.tracker.settle(self, ticket, self._tickets[ticket], bill)

    def abandon(self, ticket: int) -> None:
        """Keep that a question was cut short."""
        self.tracker.abandon(self, ticket)

    def tie_in(self, db: Session, run_id: int) -> None:
        """Say, in the transaction that writes a run, that it came of what was asked."""
        costs.assign_to_run(db, list(self._tickets), run_id)

    async def tie(self, run_id: int | None) -> None:
        """Say which run came of what was asked; without it, the cost is still kept as that of the source."""
        if run_id is None or not self._tickets:
            return
        try:
            await self.store.write(lambda db: self.tie_in(db, run_id))
        except StoreError as error:
            logger.warning("which questions led to run %s was not kept (%s)", run_id, type(error).__name__)


def as_cost_tracker(budget: Budget | CostTracker | None) -> CostTracker:
    """Return the tracker that was given, or a new one under the budget."""
    return budget if isinstance(budget, CostTracker) else CostTracker(budget)


def _count(spent: Spending, model: str) -> None:
    count(Count.CALLS, spent.calls, model=model)
    count(Count.TOKENS, spent.prompt_tokens, model=model, token_type="input")
    count(Count.TOKENS, spent.completion_tokens, model=model, token_type="output")
    count(Count.TOKENS, spent.cached_tokens, model=model, token_type="cached")
    count(Count.COST, spent.micro_usd / 1_000_000, model=model)


def dollars(usd: Decimal | None) -> str:
    """Return an amount for people: cents where they say enough, more digits for what is small."""
    if usd is None:
        return "an unknown amount"
    return f"${usd:,.2f}" if usd == usd.quantize(Decimal("0.01")) or usd >= 100 else f"${usd:,.4f}"
