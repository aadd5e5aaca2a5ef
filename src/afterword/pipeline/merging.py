"""Merging and renaming scopes: what one scope knows comes to count in another, as one run that can be undone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from sqlmodel import Session

from afterword.errors import StateConflict
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.undoing import missing_verdicts
from afterword.store import ledger, lookup
from afterword.store.database.engine import Store
from afterword.store.merging import moves
from afterword.store.proposals import Proposal
from afterword.store.run_effects import RunEffect, effect_between
from afterword.store.scope_rows import scope_key


async def merge_scopes(
    store: Store,
    scope: Scope,
    into: Scope,
    *,
    judge: Judge,
    is_rename: bool = False,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunEffect:
    """Move everything that is known of a scope into another one, and return the run with the facts that changed there.

    The statements of both are compared by a judge that costs nothing; pairs that need a call are left to consolidation.
    What was forgotten in either stays forgotten. Undoing the run moves everything back. With `is_rename` nothing may be
    stored for the other scope yet. Raises `NotFound` if nothing was ever stored for the scope, and `StateConflict` if
    the two are one or of different tenants, or if there is something where nothing may be.
    """

    def work(transaction: Session) -> RunEffect:
        at = clock()
        if is_rename and scope_key(transaction, into):
            raise StateConflict(f"{into} exists already; merge {scope} into it instead")
        facts_before = lookup.read_facts(transaction, into, at=at)
        moved = moves.move_everything(transaction, scope, into)
        known = lookup.read_knowledge(transaction, into)
        verdicts = missing_verdicts(transaction, known, known.assertions, into, judge) if facts_before else ()
        purpose = moves.RENAME if is_rename else moves.MERGE
        proposal = Proposal(
            scope=into,
            source=f"{purpose}:{uuid4().hex}",
            purpose=purpose,
            extractor="application",
            judge=judge.version,
            started_at=at,
            revision=known.revision,
            readings=(),
            verdicts=verdicts,
            counts={"sources": len(moved)},
        )
        run_id = ledger.propose_and_apply(transaction, proposal)
        moves.record_move(transaction, run_id, scope, into, moved)
        return effect_between(transaction, run_id, facts_before, lookup.read_facts(transaction, into, at=at))

    return await store.write(work)
