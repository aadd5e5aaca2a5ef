"""What was spent on models. Each request is recorded before it is sent, so that no cost is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, insert, update
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store.database.statements import chunks, fetch_rows
from afterword.store.scope_rows import ensure_scope, scope_key
from afterword.store.tables import ScopeRow, SpendingRow

MICRO = Decimal(1_000_000)
# Statements that run often are built only once: building one takes longer than executing it.
_RESERVED = insert(SpendingRow).returning(col(SpendingRow.id))
_SETTLED = update(SpendingRow).where(col(SpendingRow.id) == bindparam("entry"))
_ASSIGNED = update(SpendingRow).where(col(SpendingRow.id).in_(bindparam("entries", expanding=True)))


class CallStatus(StrEnum):
    """The state of a request to a model: open (or interrupted when its process died), answered, or failed."""

    OPEN = "open"
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Spending:
    """What requests to models have cost together. `cached_tokens` are part of `prompt_tokens`.

    `micro_usd` (millionths of a US dollar) does not include the `unpriced_calls`, whose model has no known price. The
    endpoint did not report the cost of the `estimated_calls`.
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    micro_usd: int = 0
    unpriced_calls: int = 0
    estimated_calls: int = 0

    def __add__(self, other: Spending) -> Spending:
        # `astuple` would copy each value: thousands of costs are summed for one page.
        return Spending(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            self.micro_usd + other.micro_usd,
            self.unpriced_calls + other.unpriced_calls,
            self.estimated_calls + other.estimated_calls,
        )

    @property
    def tokens(self) -> int:
        """The sum of prompt and completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def usd(self) -> Decimal | None:
        """The cost in US dollars; None if there are calls and the price of none of them is known."""
        if self.calls and self.calls == self.unpriced_calls:
            return None
        return Decimal(self.micro_usd) / MICRO


def day_of(at: datetime) -> date:
    """Return the day (UTC) whose budget a request at this time uses."""
    return at.astimezone(UTC).date()


def reserve_spending(
    transaction: Session, scope: Scope, source: str, *, purpose: str, model: str, at: datetime, bound: Spending
) -> int:
    """Record a request before it is sent, with its highest possible cost (`bound`); return the id of the record."""
    values = {"source": source, "purpose": purpose, "model": model, "day": day_of(at), "asked_at": at}
    values |= {"scope_id": ensure_scope(transaction, scope), "status": str(CallStatus.OPEN), **_spending_columns(bound)}
    ((entry,),) = fetch_rows(transaction, _RESERVED, values)
    return int(entry)


def settle_spending(transaction: Session, entry: int, spending: Spending, status: CallStatus) -> None:
    """Replace the highest possible cost in the record of a request by the actual cost, and store how it ended."""
    values = {"entry": entry, "status": str(status), **_spending_columns(spending)}
    transaction.connection().execute(_SETTLED, values)


def assign_spending_to_run(transaction: Session, entries: Sequence[int], run_id: int) -> None:
    """Record that these requests were made for a run."""
    for ids in chunks(entries):
        transaction.connection().execute(_ASSIGNED, {"entries": ids, "run_id": run_id})


def spending_on_day(transaction: Session, day: date) -> Spending:
    """Return what was spent on a day (UTC) over all scopes. Open requests count with their highest possible cost."""
    return _spending_sums(transaction, [SpendingRow.day], col(SpendingRow.day) == day).get((day,), Spending())


def spending_by_day(transaction: Session, tenant: str | None = None) -> dict[date, Spending]:
    """Return what was spent on each day (UTC), oldest first; with `tenant`, only in the scopes of that tenant."""
    of_tenant = [col(SpendingRow.scope_id) == col(ScopeRow.id), col(ScopeRow.tenant) == tenant]
    sums = _spending_sums(transaction, [SpendingRow.day], *([] if tenant is None else of_tenant))
    return {day: spending for (day,), spending in sorted(sums.items())}


def spending_by_scope(transaction: Session) -> dict[Scope, Spending]:
    """Return what was spent on each scope. For operators, never for an agent."""
    keys = [ScopeRow.tenant, ScopeRow.kind, ScopeRow.name]
    sums = _spending_sums(transaction, keys, col(SpendingRow.scope_id) == col(ScopeRow.id))
    return {Scope.parse("/".join(key)): spending for key, spending in sums.items()}


def spending_of_scope(transaction: Session, scope: Scope) -> Spending:
    """Return what was spent on a scope altogether."""
    key = scope_key(transaction, scope)
    return _spending_sums(transaction, [SpendingRow.scope_id], col(SpendingRow.scope_id) == key).get((key,), Spending())


def spending_by_run_source(transaction: Session, scope: Scope, *, run_source: str | None = None) -> dict[str, Spending]:
    """Return what was spent on the runs over each source of a scope, failed attempts included.

    A source is, for example, `session:ID`. With `run_source`, only the spending on this source is returned.
    """
    conditions = [col(SpendingRow.scope_id) == scope_key(transaction, scope)]
    conditions += [] if run_source is None else [col(SpendingRow.source) == run_source]
    sums = _spending_sums(transaction, [SpendingRow.source], *conditions)
    return {of_source: spending for (of_source,), spending in sums.items()}


def spending_by_run(transaction: Session, scope: Scope) -> dict[int | None, Spending]:
    """Return the cost of each run of a scope. None is the key of costs that belong to no run."""
    is_of_scope = col(SpendingRow.scope_id) == scope_key(transaction, scope)
    return {
        run_id: spending
        for (run_id,), spending in _spending_sums(transaction, [SpendingRow.run_id], is_of_scope).items()
    }


def spending_of_runs(transaction: Session, run_ids: Sequence[int]) -> dict[int, Spending]:
    """Return the cost of each of these runs, without those that cost nothing."""
    return {
        run_id: spending
        for ids in chunks(run_ids)
        for (run_id,), spending in _spending_sums(
            transaction, [SpendingRow.run_id], col(SpendingRow.run_id).in_(ids)
        ).items()
    }


def _spending_sums(
    transaction: Session, keys: Sequence[Any], *conditions: ColumnElement[bool]
) -> dict[tuple[Any, ...], Spending]:
    """Return what was spent under these conditions, summed up for each combination of values of the `keys` columns."""
    calls = col(SpendingRow.calls)
    sums = [
        func.sum(calls),
        func.sum(SpendingRow.prompt_tokens),
        func.sum(SpendingRow.cached_tokens),
        func.sum(SpendingRow.completion_tokens),
        func.sum(func.coalesce(SpendingRow.micro_usd, 0)),
        func.sum(case((col(SpendingRow.micro_usd).is_(None), calls), else_=0)),
        func.sum(case((col(SpendingRow.is_estimate), calls), else_=0)),
    ]
    # The type of sqlmodel's `select` allows four columns at most.
    select_any: Any = select
    rows = fetch_rows(transaction, select_any(*keys, *sums).where(*conditions).group_by(*keys))
    return {tuple(row[: len(keys)]): Spending(*map(int, row[len(keys) :])) for row in rows}


def _spending_columns(spending: Spending) -> dict[str, Any]:
    return {
        "calls": spending.calls,
        "prompt_tokens": spending.prompt_tokens,
        "cached_tokens": spending.cached_tokens,
        "completion_tokens": spending.completion_tokens,
        "micro_usd": None if spending.unpriced_calls else spending.micro_usd,
        "is_estimate": bool(spending.estimated_calls),
    }
