"""Deriving the facts of every scope again after an upgrade has changed the rules by which they are derived."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from sqlmodel import Session, col, select

from afterword.facts.fact_changes import FactChange, fact_changes
from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup
from afterword.store.scope_changes import record_changed_facts
from afterword.store.scope_rows import DERIVATION, lock_scope, raise_revision, scope_of_row, version_of
from afterword.store.tables import ScopeRow

if TYPE_CHECKING:
    from afterword.store.database.engine import Store

SOURCE = "derivation"


async def derive_outdated_scopes(store: Store) -> Mapping[Scope, tuple[FactChange, ...]]:
    """Derive the facts of all scopes that older rules derived; return the facts that changed, where any did.

    Each scope has a transaction of its own. What was interrupted goes on at the next upgrade.
    """

    def outdated(transaction: Session) -> list[Scope]:
        rows = transaction.exec(select(ScopeRow).where(col(ScopeRow.derivation) < DERIVATION))
        return [scope_of_row(row) for row in rows]

    def derive(scope: Scope, transaction: Session) -> tuple[FactChange, ...]:
        scope_id, at = lock_scope(transaction, scope), datetime.now(UTC)
        row = transaction.get_one(ScopeRow, scope_id)
        if row.derivation >= DERIVATION:
            return ()
        before = lookup.read_facts(transaction, scope, at=at)
        fact_ids = ledger.derive_facts(transaction, scope)
        row.derivation = DERIVATION
        transaction.add(row)
        transaction.flush()
        if fact_ids:
            raise_revision(transaction, scope_id)
            version = version_of(transaction, scope)
            record_changed_facts(transaction, scope_id, version, source=SOURCE, fact_ids=fact_ids, is_unlinked=False)
        return fact_changes(before, lookup.read_facts(transaction, scope, at=at))

    changes: dict[Scope, tuple[FactChange, ...]] = {}
    for scope in await store.read(outdated):
        changed = await store.write(partial(derive, scope))
        if changed:
            changes[scope] = changed
    return changes
