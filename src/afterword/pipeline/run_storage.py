"""Storing a judged run, and judging it again if another process changed the scope in the meantime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from sqlmodel import Session
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from afterword.errors import Overtaken, ScopeMoved
from afterword.pipeline.budget import Account
from afterword.pipeline.errors import ScopeBusy
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal

T = TypeVar("T")

TRIES = 20


async def retry_or_raise_busy(work: Callable[[], Awaitable[T]], busy_message: str) -> T:
    """Return the result of `work`. It is repeated if it raises `Overtaken`: another process changed the scope first.

    Raises `ScopeBusy` with `busy_message` after 20 tries.
    """
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(Overtaken),
        stop=stop_after_attempt(TRIES),
        # Two processes that collided would collide again if they waited equally long.
        wait=wait_random_exponential(multiplier=0.01, max=0.32),
        reraise=True,
    )
    try:
        return await retrying(work)
    except Overtaken:
        raise ScopeBusy(busy_message) from None


async def store_and_apply_run(store: Store, proposal: Proposal, account: Account, *, is_held: bool) -> int:
    """Store a run in one transaction, apply it unless it is held for a person, and return its id.

    Raises `ScopeMoved` if the scope has changed since the run was judged.
    """

    def work(transaction: Session) -> int:
        if scope_rows.revision_of(transaction, proposal.scope) != proposal.revision:
            raise ScopeMoved(f"{proposal.scope} has changed since its {proposal.purpose} was judged")
        return add_and_apply_run(transaction, proposal, account, is_held=is_held)

    return await store.write(work)


def add_and_apply_run(transaction: Session, proposal: Proposal, account: Account, *, is_held: bool) -> int:
    """Store a run, apply it unless it is held for a person, and return its id."""
    if is_held:
        run_id = ledger.propose_run(transaction, proposal, is_held=True)
    else:
        run_id, _ = ledger.propose_and_apply(transaction, proposal)
    account.assign_to_run(transaction, run_id)
    return run_id
