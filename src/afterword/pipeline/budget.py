"""Budgets for requests to models, and the recording of what each request cost.

Each request reserves its highest possible cost, in this process and in the store. When the answer has arrived, the
actual cost replaces it. So neither concurrent requests nor several processes can together exceed a budget.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

from sqlmodel import Session

from afterword.errors import StoreError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.metering import Bill, ModelRequest, metering
from afterword.extractors.model.prices import Prices, shipped_prices
from afterword.facts.scopes import Scope
from afterword.pipeline.errors import BudgetReached, PriceUnknown, TimeReached
from afterword.pipeline.grouped_writes import GroupedWrites
from afterword.store import costs
from afterword.store.access.webhooks import WebhookEvent, announce
from afterword.store.costs import CallStatus, Spending
from afterword.store.database.cancellation import was_committed
from afterword.store.database.engine import Store
from afterword.telemetry import Count, count, logs

_log = logs(__name__)

AT_ONCE = 8
"""How many requests of one `CostTracker` may be open at once by default."""
COMPLETION_LIMIT = 8_192
"""The most tokens of an answer when a budget is set, unless the model client has a limit of its own.

Without a limit the highest possible cost of a request would be unknown.
"""
SECONDS_PER_SESSION = 300.0
"""The default time limit for the work on one session. An ordinary session takes a hundredth of it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits for one run (a batch, or a session processed alone) and for one day (UTC, all processes).

    None means no limit. `prices` default to the shipped table; a limit in dollars needs a price of the model. A request
    that could exceed a limit is not sent. `seconds_per_session` limits the work on one session; the time in which a
    model answers does not count.
    """

    usd_per_run: Decimal | None = None
    usd_per_day: Decimal | None = None
    tokens_per_run: int | None = None
    tokens_per_day: int | None = None
    prices: Prices | None = None
    seconds_per_session: float | None = SECONDS_PER_SESSION

    @property
    def has_limit(self) -> bool:
        """Whether dollars or tokens are limited."""
        return any(limit is not None for limit in (self.tokens_per_run, self.tokens_per_day)) or self.has_usd_limit

    @property
    def has_usd_limit(self) -> bool:
        """Whether dollars are limited."""
        return self.usd_per_run is not None or self.usd_per_day is not None


class CostTracker:
    """Tracks what one run spends under a budget. All sessions of a run share one tracker, in one event loop.

    `spent` is the cost of the run so far. `reached` says why a request was refused because of the budget, or is None.
    """

    def __init__(
        self, budget: Budget | None = None, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.budget: Budget = budget or Budget()
        self.spent: Spending = Spending()
        self.reached: str | None = None
        self._prices = shipped_prices() if self.budget.prices is None else self.budget.prices
        self._clock = clock
        self._reserved: dict[object, Spending] = {}
        self._by_source: dict[tuple[Scope, str], Spending] = defaultdict(Spending)
        self._records, self._settled = GroupedWrites(BudgetReached), asyncio.Event()
        self._slots = asyncio.Semaphore(AT_ONCE)

    def limit_open_requests(self, at_once: int) -> None:
        """Allow this many open requests from now on. Requests that are already open do not count."""
        self._slots = asyncio.Semaphore(at_once)

    def spent_on(self, scope: Scope, source: str) -> Spending:
        """Return what this run has spent on one source, for example on one session."""
        return self._by_source.get((scope, source), Spending())

    def add_spending(self, scope: Scope, source: str, spent: Spending) -> None:
        """Add a cost to the totals of this run, for example what another process spent on a source for it."""
        self.spent += spent
        self._by_source[scope, source] += spent

    def check_price(self, model: str) -> None:
        """Raise `PriceUnknown` if dollars are limited and the model has no known price."""
        if self.budget.has_usd_limit and model not in self._prices:
            raise PriceUnknown(
                f"no price is known for model {model!r}, so no budget in dollars can be kept: give its price in the "
                f'profile as [prices."{model}"], or limit tokens_per_run and tokens_per_day instead'
            )

    def cost_of(self, model: str, usage: Usage, *, is_estimate: bool = False) -> Spending:
        """Return the cost of this usage at the price of the model."""
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

    @asynccontextmanager
    async def charging(self, account: Account, request: ModelRequest) -> AsyncIterator[Bill]:
        """Reserve the highest possible cost of a request. At the end, replace it by the cost on the yielded bill.

        Waits while too many requests are open. If the budget has no room, waits for open requests, which may turn out
        cheaper than reserved. An interrupted request keeps its reserved cost. Raises `BudgetReached` if there is still
        no room, and `PriceUnknown` as `check_price` does.
        """
        self.check_price(request.model)
        bound = self.cost_of(request.model, request.worst_case, is_estimate=True)
        bill, reservation, spent = Bill(), object(), Spending()
        try:
            entry = await self._reserve(account, request, reservation, bound)
            async with self._open_slot(account, entry):
                spent = bound
                yield bill
            spent = self.cost_of(request.model, bill.usage, is_estimate=bill.is_estimate)
            _count_usage(spent, request.model)
            await self._settle(account, entry, spent, is_answered=bill.is_answered)
        finally:
            self._reserved.pop(reservation, None)
            self._settled.set()
            self._add_spent(account, spent)

    @asynccontextmanager
    async def _open_slot(self, account: Account, entry: int) -> AsyncIterator[None]:
        """Wait while too many requests are open. If the caller is cancelled meanwhile, release its reservation."""
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            await self._settle_unsent_request(account, entry)
            raise
        try:
            yield
        finally:
            self._slots.release()

    def _add_spent(self, account: Account, spent: Spending) -> None:
        if spent.calls:
            self.add_spending(account.scope, account.source, spent)

    async def _reserve(self, account: Account, request: ModelRequest, reservation: object, bound: Spending) -> int:
        """Reserve the highest possible cost here and in the store, and return the id of the request in the store."""
        while True:
            self._settled.clear()
            try:
                reserved = sum(self._reserved.values(), start=self.spent)
                self._check_limits("run", self.budget.usd_per_run, self.budget.tokens_per_run, reserved, bound)
                self._reserved[reservation] = bound
                return await self._store_reservation(account, request, bound)
            except BudgetReached as error:
                self._reserved.pop(reservation, None)
                if not self._reserved:
                    await self._refuse_waiting_requests(account, str(error))
                    raise
            await self._settled.wait()

    async def _store_reservation(self, account: Account, request: ModelRequest, bound: Spending) -> int:
        entry = 0

        def add_entry(transaction: Session) -> None:
            nonlocal entry
            entry = self._add_reservation(account, request, bound, transaction)

        try:
            # Strict: two processes that read the day's total at once must not both find room in the budget.
            # Lasting (the default): a paid request must stay recorded even if the database server crashes.
            await self._records.write(account.store, add_entry, strict=True)
        except asyncio.CancelledError as error:
            if was_committed(error):
                await self._settle_unsent_request(account, entry)
            raise
        account.entries.append(entry)
        return entry

    async def _refuse_waiting_requests(self, account: Account, reason: str) -> None:
        """Note that the budget is reached, and wake the waiting requests, which are refused too."""
        self.reached = reason
        self._settled.set()
        with suppress(StoreError):  # the budget is enforced even if webhooks are not told
            await account.store.write(partial(self._announce_reached_budget, account), lasting=False)

    async def _settle_unsent_request(self, account: Account, entry: int) -> None:
        # Shielded: the write goes on even if the caller is cancelled a second time.
        await asyncio.shield(self._settle(account, entry, Spending(), is_answered=False))

    async def _settle(self, account: Account, entry: int, spent: Spending, *, is_answered: bool) -> None:
        status = CallStatus.ANSWERED if is_answered else CallStatus.FAILED
        settle = partial(costs.settle_spending, entry=entry, spending=spent, status=status)
        try:
            await self._records.write(account.store, settle, lasting=False)
        except StoreError as error:
            # The answer is paid for, so it is returned all the same. The store keeps the reserved cost until the run is
            # stored, or forever if no run is stored.
            account.unsettled.append(settle)
            _log.warning("the cost of a request could not be stored (%s)", type(error).__name__)

    def _add_reservation(self, account: Account, request: ModelRequest, bound: Spending, transaction: Session) -> int:
        """Store the reservation of a request. Raises `BudgetReached` if it could exceed a limit of the day."""
        at, budget = self._clock(), self.budget
        if budget.usd_per_day is not None or budget.tokens_per_day is not None:
            today = costs.spending_on_day(transaction, costs.day_of(at))
            self._check_limits("day", budget.usd_per_day, budget.tokens_per_day, today, bound)
        purpose = account.purpose or request.purpose
        return costs.reserve_spending(
            transaction, account.scope, account.source, purpose=purpose, model=request.model, at=at, bound=bound
        )

    def _announce_reached_budget(self, account: Account, transaction: Session) -> None:
        """Queue posts to webhooks that a budget is reached, once a day."""
        at = self._clock()
        day = costs.day_of(at).isoformat()
        content = {"day": day, "micro_usd": self.spent.micro_usd, "tokens": self.spent.tokens}
        announce(transaction, WebhookEvent.BUDGET_REACHED, account.scope, f"budget/{day}", content, at)

    def _check_limits(
        self, span: str, usd: Decimal | None, tokens: int | None, at_most: Spending, bound: Spending
    ) -> None:
        """Raise `BudgetReached` if a request that may cost `bound` could exceed a limit of the run or the day."""
        if usd is not None and at_most.micro_usd + bound.micro_usd > usd * costs.MICRO:
            raise BudgetReached(
                f"the {span}'s budget of {dollars(usd)} would be exceeded: {dollars(at_most.usd)} are spent or "
                f"reserved, and the next request may cost {dollars(bound.usd)}"
            )
        if tokens is not None and at_most.tokens + bound.tokens > tokens:
            raise BudgetReached(
                f"the {span}'s budget of {tokens:,} tokens would be exceeded: {at_most.tokens:,} are spent or "
                f"reserved, and the next request may take {bound.tokens:,}"
            )


@dataclass(slots=True)
class Account:
    """Charges the requests of one session, consolidation, import or proposal to a cost tracker.

    `entries` are the ids of its requests in the store, and `unsettled` writes the costs that could not be stored when
    they were known. Its `purpose`, if set, replaces the purposes of the requests.
    """

    tracker: CostTracker
    store: Store
    scope: Scope
    source: str
    purpose: str | None = None
    entries: list[int] = field(init=False, default_factory=list)
    unsettled: list[Callable[[Session], None]] = field(init=False, default_factory=list)
    _timer: asyncio.Timeout | None = field(init=False, default=None)
    _waits: int = field(init=False, default=0)
    _seconds_left: float = field(init=False, default=0.0)

    @asynccontextmanager
    async def time_limit(self) -> AsyncIterator[None]:
        """Limit the time of the block to `Budget.seconds_per_session`. Raises `TimeReached` when it is over."""
        seconds = self.tracker.budget.seconds_per_session
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                self._timer = timer
                yield
        except TimeoutError:
            if not timer.expired():
                raise
            raise TimeReached(
                f"processing the session took more than {seconds:g} s, so it was stopped and nothing of it is stored; "
                "split the session, or raise budget.seconds_per_session"
            ) from None
        finally:
            self._timer = None

    @contextmanager
    def pausing_time_limit(self) -> Iterator[None]:
        """Stop the clock of the time limit while the block runs."""
        timer, clock = self._timer, asyncio.get_running_loop()
        if timer is None or timer.expired() or (timer.when() is None and not self._waits):
            yield
            return
        if not self._waits:
            self._seconds_left = (timer.when() or 0.0) - clock.time()
            timer.reschedule(None)
        self._waits += 1
        try:
            yield
        finally:
            self._waits -= 1
            if not self._waits and not timer.expired():
                timer.reschedule(clock.time() + self._seconds_left)

    def charging_requests(self) -> AbstractContextManager[None]:
        """Charge every request that is sent inside the block to this account."""
        return metering(self)

    @property
    def completion_limit(self) -> int | None:
        """The most tokens that an answer may have; None without a budget."""
        return COMPLETION_LIMIT if self.tracker.budget.has_limit else None

    @asynccontextmanager
    async def charging(self, request: ModelRequest) -> AsyncIterator[Bill]:
        """Reserve the highest possible cost of a request. At the end, replace it by the cost on the yielded bill."""
        with self.pausing_time_limit():
            async with self.tracker.charging(self, request) as bill:
                yield bill

    def assign_to_run(self, transaction: Session, run_id: int) -> None:
        """Record that the requests so far belong to a run, in the transaction that stores the run.

        Costs that could not be stored before are stored with it.
        """
        for settle in self.unsettled:
            settle(transaction)
        costs.assign_spending_to_run(transaction, self.entries, run_id)


def as_cost_tracker(budget: Budget | CostTracker | None) -> CostTracker:
    """Return the tracker itself, or a new one for the budget."""
    return budget if isinstance(budget, CostTracker) else CostTracker(budget)


def _count_usage(spent: Spending, model: str) -> None:
    count(Count.CALLS, spent.calls, model=model)
    tokens = {"input": spent.prompt_tokens, "output": spent.completion_tokens, "cached": spent.cached_tokens}
    for token_type, number in tokens.items():
        count(Count.TOKENS, number, model=model, token_type=token_type)
    count(Count.COST, spent.micro_usd / 1_000_000, model=model)


def dollars(usd: Decimal | None) -> str:
    """Return an amount in dollars as text, with two decimals, or with four if it is small."""
    if usd is None:
        return "an unknown amount"
    return f"${usd:,.2f}" if usd == usd.quantize(Decimal("0.01")) or usd >= 100 else f"${usd:,.4f}"
