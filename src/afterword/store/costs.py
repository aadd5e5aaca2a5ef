"""What was spent on models: one entry a question, written before it is asked, so that nothing is spent unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, func, insert, update
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store.database.statements import executed, fetch_rows
from afterword.store.ledger import ensure_scope
from afterword.store.lookup import CHUNK
from afterword.store.tables import ScopeRow, SpendingRow

MICRO = Decimal(1_000_000)


class CallStatus(StrEnum):
    """What became of a question: still open (or cut short with its process), answered, or failed."""

    OPEN = "open"
    ANSWERED = "answered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Spending:
    """A sum of spendings. `cached_tokens` are part of `prompt_tokens`.

    `micro_usd` leaves out the `unpriced_calls`, for whose model no price was known. Of the `estimated_calls` nobody
    has reported what they cost.
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    micro_usd: int = 0
    unpriced_calls: int = 0
    estimated_calls: int = 0

    def __add__(self, other: Spending) -> Spending:
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
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def usd(self) -> Decimal | None:
        """US dollars; None where calls were made and no price is known for any of them."""
        if self.calls and self.calls == self.unpriced_calls:
            return None
        return Decimal(self.micro_usd) / MICRO


def day_of(at: datetime) -> date:
    """Return the day (UTC) to whose budget a question counts."""
    return at.astimezone(UTC).date()


def reserve_spending(
    transaction: Session, scope: Scope, source: str, *, purpose: str, model: str, at: datetime, bound: Spending
) -> int:
    """Enter a question that is about to be asked at what it may cost; return the entry's id."""
    asked = {"source": source, "purpose": purpose, "model": model, "day": day_of(at), "asked_at": at}
    of = {"scope_id": ensure_scope(transaction, scope), "status": str(CallStatus.OPEN)}
    ((entry,),) = fetch_rows(transaction, _entering(), {**of, **asked, **_values(bound)})
    return int(entry)


def settle_spending(transaction: Session, entry: int, spent: Spending, status: CallStatus) -> None:
    """Write what a question has cost in place of what it might have."""
    executed(transaction, _settling(), {"entry": entry, "status": str(status), **_values(spent)})


@cache
def _entering() -> Any:
    return insert(SpendingRow).returning(col(SpendingRow.id))


@cache
def _settling() -> Any:
    return update(SpendingRow).where(col(SpendingRow.id) == bindparam("entry"))


def assign_to_run(transaction: Session, entries: Sequence[int], run_id: int) -> None:
    """Say which run came of these questions."""
    for start in range(0, len(entries), CHUNK):
        executed(transaction, _tying(), {"entries": entries[start : start + CHUNK], "run_id": run_id})


@cache
def _tying() -> Any:
    return update(SpendingRow).where(col(SpendingRow.id).in_(bindparam("entries", expanding=True)))


def spending_on_day(transaction: Session, day: date) -> Spending:
    """Return what was spent on a day (UTC) over all scopes, open questions at what they may cost."""
    return _sums(transaction, [SpendingRow.day], col(SpendingRow.day) == day).get((day,), Spending())


def spending_by_day(transaction: Session) -> dict[date, Spending]:
    """Return what was spent on each day (UTC), oldest first."""
    return {day: spent for (day,), spent in sorted(_sums(transaction, [SpendingRow.day]).items())}


def spending_by_scope(transaction: Session) -> dict[Scope, Spending]:
    """Return what was spent on each scope. For those who run the store, never for an agent."""
    keys = [ScopeRow.tenant, ScopeRow.kind, ScopeRow.name]
    sums = _sums(transaction, keys, col(SpendingRow.scope_id) == col(ScopeRow.id))
    return {Scope.parse("/".join(key)): spent for key, spent in sums.items()}


def spending_by_source(transaction: Session, scope: Scope) -> dict[str, Spending]:
    """Return what was spent on each source (`session:ID` and the like) of a scope, failed tries included."""
    return {source: spent for (source,), spent in _sums(transaction, [SpendingRow.source], *_of(scope)).items()}


def spending_by_run(transaction: Session, scope: Scope) -> dict[int | None, Spending]:
    """Return what each run of a scope has cost; under None what came to nothing."""
    return {run_id: spent for (run_id,), spent in _sums(transaction, [SpendingRow.run_id], *_of(scope)).items()}


def _of(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return (
        col(SpendingRow.scope_id) == col(ScopeRow.id),
        col(ScopeRow.tenant) == scope.tenant,
        col(ScopeRow.kind) == str(scope.kind),
        col(ScopeRow.name) == scope.id,
    )


def _sums(
    transaction: Session, keys: Sequence[Any], *conditions: ColumnElement[bool]
) -> dict[tuple[Any, ...], Spending]:
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
    connection = transaction.connection()
    # Plain columns, since sqlmodel's select knows no more than four.
    rows = connection.execute(_selected(keys, sums).where(*conditions).group_by(*keys))
    return {tuple(row[: len(keys)]): Spending(*map(int, row[len(keys) :])) for row in rows}


def _selected(keys: Sequence[Any], sums: Sequence[Any]) -> Any:
    chosen: Any = select
    return chosen(*keys, *sums)


def _values(spent: Spending) -> dict[str, Any]:
    return {
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "cached_tokens": spent.cached_tokens,
        "completion_tokens": spent.completion_tokens,
        "micro_usd": None if spent.unpriced_calls else spent.micro_usd,
        "is_estimate": bool(spent.estimated_calls),
    }
