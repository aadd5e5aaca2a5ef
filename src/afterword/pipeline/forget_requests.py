"""Erasing facts on request, and comparing statements again that were compared only with erased ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime, timedelta
from functools import partial

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import consolidate_scope
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure
from afterword.store.forgetting.erase_requests import WAIT
from afterword.store.forgetting.erasure import Receipt
from afterword.store.forgetting.retention import Retention, apply_retention

logger = telemetry.logs(__name__)


async def compare_again(store: Store, scopes: Iterable[Scope], judge: Judge) -> None:
    """Judge the pairs that an erasure has left open, if the judge makes no calls.

    Pairs that need a call are left to consolidation.
    """
    if judge.pairs_a_call is not None:
        return
    for scope in dict.fromkeys(scopes):
        try:
            await consolidate_scope(store, scope, judge=judge)
        except AfterwordError as error:  # the facts are erased; open pairs wait for the next consolidation
            logger.warning("%s could not be compared anew (%s)", telemetry.scope_mark(scope), type(error).__name__)


async def erase_and_compare(
    store: Store, scopes: Iterable[Scope], *, judge: Judge, at: datetime, wait: timedelta = WAIT
) -> Counter[str]:
    """Erase what people of these scopes asked to forget and what is hidden for as long as `wait`.

    Returns the numbers of deleted rows by table.
    """
    forget = partial(erasure.forget_requested_statements, at=at, hidden_until=at - wait)
    return await _forget_and_compare(store, scopes, judge, forget)


async def retain_and_compare(
    store: Store, scopes: Iterable[Scope], retention: Retention, *, judge: Judge, at: datetime
) -> Counter[str]:
    """Forget in these scopes what is older than the retention allows. Returns the numbers of deleted rows by table."""
    return await _forget_and_compare(store, scopes, judge, partial(apply_retention, retention=retention, at=at))


async def _forget_and_compare(
    store: Store, scopes: Iterable[Scope], judge: Judge, forget: Callable[[Store, Scope], Awaitable[Receipt | None]]
) -> Counter[str]:
    erased: Counter[str] = Counter()
    touched: list[Scope] = []
    for scope in dict.fromkeys(scopes):
        receipt = await forget(store, scope)
        if receipt is not None:
            erased.update(receipt.erased)
            touched.append(scope)
    if touched:
        await store.compact()
    await compare_again(store, touched, judge)
    return erased
