"""What an upgrade changes in stored scopes after the migrations.

Facts are derived again if the rules for deriving facts have changed. Scopes whose names are equal in Unicode NFC are
merged, because older versions stored them as different scopes.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlmodel import Session, col, select

from afterword.facts.fact import FactChange, fact_changes
from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup
from afterword.store.merging.moves import (
    copy_settings,
    has_movable_sources,
    move_everything,
    record_move_and_reassign_api_keys,
)
from afterword.store.proposals import Proposal
from afterword.store.runs import MERGE, RENAME
from afterword.store.scope_rows import (
    DERIVATION,
    change_scope,
    lock_scope,
    raise_revision,
    record_changed_facts,
    revision_and_stamp_of,
    scope_of_row,
    scope_row,
)
from afterword.store.tables import ScopeRow

if TYPE_CHECKING:
    from afterword.store.database.engine import Store

SOURCE = "derivation"


async def derive_facts_of_outdated_scopes(store: Store) -> Mapping[Scope, tuple[FactChange, ...]]:
    """Derive the facts again in every scope whose facts older rules derived; return the changed facts by scope.

    Each scope has a transaction of its own. After an interruption, the next upgrade continues with the other scopes.
    """
    changes: dict[Scope, tuple[FactChange, ...]] = {}
    for scope in await store.read(_outdated_scopes):
        changed = await store.write(partial(_derive_again, scope))
        if changed:
            changes[scope] = changed
    return changes


def _outdated_scopes(transaction: Session) -> list[Scope]:
    rows = transaction.exec(select(ScopeRow).where(col(ScopeRow.derivation) < DERIVATION))
    return [scope_of_row(row) for row in rows]


def _derive_again(scope: Scope, transaction: Session) -> tuple[FactChange, ...]:
    """Derive the facts of a scope again, unless another process was faster; return the changed facts."""
    scope_id, at = lock_scope(transaction, scope), datetime.now(UTC)
    if scope_row(transaction, scope).derivation >= DERIVATION:
        return ()
    before = lookup.read_facts(transaction, scope, at=at)
    fact_ids = ledger.derive_and_store_facts(transaction, scope)
    change_scope(transaction, scope_id, derivation=DERIVATION)
    if fact_ids:
        raise_revision(transaction, scope_id)
        version = revision_and_stamp_of(transaction, scope)
        record_changed_facts(transaction, scope_id, version, source=SOURCE, fact_ids=fact_ids, is_unlinked=False)
    return fact_changes(before, lookup.read_facts(transaction, scope, at=at))


async def merge_scope_forms(store: Store) -> tuple[Scope, ...]:
    """Merge every scope whose name is not in NFC into the scope with the NFC name; return the scopes that were merged.

    Each merge has a transaction and a run of its own, and can be undone. The next consolidation compares the statements
    of the two scopes. What was forgotten in either scope stays forgotten.
    """
    scopes = await store.read(_unnormalised_scopes)
    for scope in scopes:
        await store.write(partial(_merge, scope))
    return tuple(scopes)


def _unnormalised_scopes(transaction: Session) -> list[Scope]:
    scopes = map(scope_of_row, transaction.exec(select(ScopeRow).order_by(col(ScopeRow.id))))
    return [scope for scope in scopes if scope != scope.normal and has_movable_sources(transaction, scope)]


def _merge(scope: Scope, transaction: Session) -> None:
    into = scope.normal
    if not has_movable_sources(transaction, scope):
        return  # another process was faster
    is_rename = scope_row(transaction, into) is None
    moved = move_everything(transaction, scope, into)
    purpose = RENAME if is_rename else MERGE
    proposal = Proposal(
        scope=into,
        source=f"{purpose}:{uuid4().hex}",
        purpose=purpose,
        extractor="application",
        judge="application",
        started_at=datetime.now(UTC),
        revision=lookup.read_knowledge(transaction, into).revision,
        readings=(),
        counts={"sources": len(moved)},
    )
    run_id, _ = ledger.propose_and_apply(transaction, proposal)
    record_move_and_reassign_api_keys(transaction, run_id, scope, into, moved)
    copy_settings(transaction, scope, into, is_rename=is_rename)
