"""Entering a run that was judged beforehand: only into the memory that it was judged against."""

from __future__ import annotations

from sqlmodel import Session

from afterword.errors import ScopeMoved
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal


async def entered(store: Store, proposal: Proposal, *, is_held: bool) -> int:
    """Store a run in one transaction, let it count unless it is held, and return its id.

    Raises `ScopeMoved` where the scope has changed since the run was judged: judge it again.
    """

    def work(db: Session) -> int:
        if scope_rows.revision_of(db, proposal.scope) != proposal.revision:
            raise ScopeMoved(f"{proposal.scope} has changed since its {proposal.purpose} was judged")
        run_id = ledger.propose_run(db, proposal, is_held=is_held)
        if not is_held:
            ledger.apply_run(db, proposal.scope, run_id, proposal.started_at)
        return run_id

    return await store.write(work)
