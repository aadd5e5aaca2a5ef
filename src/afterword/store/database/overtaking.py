"""Repeating transactions that another process overtook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from afterword.errors import Overtaken, ScopeMoved
from afterword.store.database.cancellation import current_ticket
from afterword.store.migrations import VERSION_TABLE

T = TypeVar("T")

TRIES_BESIDE_OTHERS = 5
"""How often a transaction is tried beside others, before it is tried alone."""
ALONE = f"SET LOCAL lock_timeout = '500ms'; LOCK TABLE {VERSION_TABLE} IN EXCLUSIVE MODE"
"""At the beginning of a transaction on PostgreSQL it waits until no other writes, and lets none begin.

PostgreSQL refuses who waits for a row that another transaction changes. But these statements take no snapshot, so what
the others have changed is seen. Every writer first locks the version (`check_before_writing`), and nothing is locked
before that, so there can be no deadlock. The limit keeps one long transaction from stopping all others.
"""
_RETRYING = Retrying(
    # `ScopeMoved` is not retried: what the caller has read before the transaction would still be outdated.
    retry=retry_if_exception(lambda error: isinstance(error, Overtaken) and not isinstance(error, ScopeMoved)),
    stop=stop_after_attempt(20),
    # Random pauses keep two transactions from colliding again.
    wait=wait_random_exponential(multiplier=0.01, max=0.32),
    sleep=lambda pause_s: current_ticket().wait(pause_s),
    reraise=True,
)
"""Its state is kept for each thread, so all threads share it."""


def until_first(work: Callable[[bool], T]) -> T:
    """Return the result of a transaction, which is repeated if it raises `Overtaken`, 20 times at most.

    `work` is told whether it has to run alone.
    """
    result: T = _RETRYING(lambda: work(_RETRYING.statistics["attempt_number"] > TRIES_BESIDE_OTHERS))
    return result
