"""Forgetting, and comparing anew what was compared only with what is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import consolidate_scope
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure

logger = telemetry.logs(__name__)


async def compare_again(store: Store, scopes: Iterable[Scope], judge: Judge) -> None:
    """Compare what is left with what it stands beside now, by a judge that costs nothing.

    What would need a call is left to consolidation.
    """
    if judge.pairs_a_call is not None:
        return
    for scope in dict.fromkeys(scopes):
        try:
            await consolidate_scope(store, scope, judge=judge)
        except AfterwordError as error:  # what was forgotten is gone; the rest waits for the next consolidation
            logger.warning("%s could not be compared anew (%s)", telemetry.scope_mark(scope), type(error).__name__)


async def erase_requested(store: Store, scopes: Iterable[Scope], *, judge: Judge, at: datetime) -> Counter[str]:
    """Forget what people of these scopes have asked to be forgotten, where the settings say that nobody has to confirm
    it; return the counts of what went, by table."""
    gone: Counter[str] = Counter()
    touched: list[Scope] = []
    for scope in dict.fromkeys(scopes):
        receipt = await erasure.forget_requested_statements(store, scope, at=at)
        if receipt is not None:
            gone.update(receipt.erased)
            touched.append(scope)
    if gone:
        await store.compact()
    await compare_again(store, touched, judge)
    return gone
