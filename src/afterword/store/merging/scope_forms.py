"""Merging scopes whose names are equal in NFC. Older versions kept such names apart."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup
from afterword.store.merging.moves import MERGE, RENAME, has_sources, move_everything, record_move
from afterword.store.proposals import Proposal
from afterword.store.scope_rows import scope_of_row, scope_row
from afterword.store.tables import ScopeRow

if TYPE_CHECKING:
    from afterword.store.database.engine import Store


async def merge_scope_forms(store: Store) -> tuple[Scope, ...]:
    """Move what scopes with other names than NFC hold into the scopes of their NFC names; return those scopes.

    Each scope has a transaction and a run of its own, which can be undone. Statements of the two are compared by the
    next consolidation. What was forgotten in either stays forgotten.
    """

    def outdated(transaction: Session) -> list[Scope]:
        scopes = map(scope_of_row, transaction.exec(select(ScopeRow).order_by(col(ScopeRow.id))))
        return [scope for scope in scopes if scope != scope.normal and has_sources(transaction, scope)]

    scopes = await store.read(outdated)
    for scope in scopes:
        await store.write(partial(_merge, scope))
    return tuple(scopes)


def _merge(scope: Scope, transaction: Session) -> None:
    into = scope.normal
    if not has_sources(transaction, scope):
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
    record_move(transaction, ledger.propose_and_apply(transaction, proposal), scope, into, moved)
    _take_settings(transaction, scope, into, is_rename=is_rename)


def _take_settings(transaction: Session, scope: Scope, into: Scope, *, is_rename: bool) -> None:
    """Give a new scope the settings of the former one. A pause of either holds for both."""
    former, row = scope_row(transaction, scope), scope_row(transaction, into)
    if former is None or row is None:
        return
    if is_rename:
        row.policy, row.zone = former.policy, former.zone
    if row.paused_at is None:
        row.paused_at, row.sessions_not_kept = former.paused_at, former.sessions_not_kept
    transaction.add(row)
    transaction.flush()
