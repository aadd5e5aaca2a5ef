"""Erasing facts on request, and comparing statements again that were compared only with erased ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

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
    erased: Counter[str] = Counter()
    touched: list[Scope] = []
    for scope in dict.fromkeys(scopes):
        receipt = await erasure.forget_requested_statements(store, scope, at=at, hidden_until=at - wait)
        if receipt is not None:
            erased.update(receipt.erased)
            touched.append(scope)
    if erased:
        await store.compact()
    await compare_again(store, touched, judge)
    return erased


async def retain_and_compare(
    store: Store, scopes: Iterable[Scope], retention: Retention, *, judge: Judge, at: datetime
) -> list[Receipt]:
    """Forget in these scopes what is older than the retention allows.

    Return a receipt for each scope in which something was forgotten.
    """
    receipts = []
    for scope in dict.fromkeys(scopes):
        receipt = await apply_retention(store, scope, retention, at=at)
        receipts += [receipt] if receipt is not None else []
    if not receipts:
        return []
    is_clean = await store.compact()
    await compare_again(store, [receipt.scope for receipt in receipts], judge)
    return [replace(receipt, is_clean=is_clean) for receipt in receipts]
