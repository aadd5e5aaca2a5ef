"""Storing a judged run, and judging it again if another process changed the scope in the meantime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import TypeVar

from sqlmodel import Session

from afterword.errors import Overtaken, ScopeMoved
from afterword.pipeline.budget import Account
from afterword.pipeline.errors import ScopeBusy
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.limits import pauses_between_tries
from afterword.store.proposals import Proposal

T = TypeVar("T")


async def retry_if_overtaken(work: Callable[[], Awaitable[T]], busy: str) -> T:
    """Return the result of `work`, which is repeated while other processes change the scope first.

    Raises `ScopeBusy` with the message `busy` after 20 tries.
    """
    for pause_s in chain(pauses_between_tries(), [0.0]):
        try:
            return await work()
        except Overtaken:
            await asyncio.sleep(pause_s)
    raise ScopeBusy(busy)


async def store_run(store: Store, proposal: Proposal, account: Account, *, is_held: bool) -> int:
    """Store a run in one transaction, apply it unless it is held for a person, and return its id.

    Raises `ScopeMoved` if the scope has changed since the run was judged.
    """

    def work(transaction: Session) -> int:
        if scope_rows.revision_of(transaction, proposal.scope) != proposal.revision:
            raise ScopeMoved(f"{proposal.scope} has changed since its {proposal.purpose} was judged")
        return add_run(transaction, proposal, account, is_held=is_held)

    return await store.write(work)


def add_run(transaction: Session, proposal: Proposal, account: Account, *, is_held: bool) -> int:
    """Store a run, apply it unless it is held for a person, and return its id."""
    if is_held:
        run_id = ledger.propose_run(transaction, proposal, is_held=True)
    else:
        run_id, _ = ledger.propose_and_apply(transaction, proposal)
    account.assign_to_run(transaction, run_id)
    return run_id
