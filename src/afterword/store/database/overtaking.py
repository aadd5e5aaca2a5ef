"""Repeating transactions that another process overtook."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from afterword.errors import Overtaken, ScopeMoved
from afterword.store.database.cancellation import current_transaction_handle
from afterword.store.migrations import VERSION_TABLE

T = TypeVar("T")

TRIES_BESIDE_OTHERS = 5
"""How often a transaction is tried beside others, before it is tried alone."""
LOCK_OUT_WRITERS = f"SET LOCAL lock_timeout = '500ms'; LOCK TABLE {VERSION_TABLE} IN EXCLUSIVE MODE"
"""At the beginning of a transaction on PostgreSQL, waits until no other transaction writes, and lets none begin to.

PostgreSQL refuses a transaction that waits for a row which another transaction changes. But these two statements take
no snapshot, so the transaction sees what others have changed. Every writer first locks the version of the tables
(`check_and_lock_version`), and nothing is locked before that, so there can be no deadlock. The time limit keeps one
long transaction from stopping all others.
"""
_RETRYING = Retrying(
    # `ScopeMoved` is not retried: what the caller has read before the transaction would still be outdated.
    retry=retry_if_exception(lambda error: isinstance(error, Overtaken) and not isinstance(error, ScopeMoved)),
    stop=stop_after_attempt(20),
    # Random pauses keep two transactions from colliding again.
    wait=wait_random_exponential(multiplier=0.01, max=0.32),
    sleep=lambda pause_s: current_transaction_handle().wait(pause_s),
    reraise=True,
)
"""Its state is kept for each thread, so all threads share it."""


def retry_if_overtaken(work: Callable[[bool], T]) -> T:
    """Run a transaction, and repeat it if it raises `Overtaken`, at most 20 times; return its result.

    `work` is called with whether it has to keep other transactions from writing.
    """
    result: T = _RETRYING(lambda: work(_RETRYING.statistics["attempt_number"] > TRIES_BESIDE_OTHERS))
    return result
