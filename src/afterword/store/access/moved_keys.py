"""Keys follow their memory: to its new name, to the memory it is merged into, and back when that is undone."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import update
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store.access.tables import ApiKeyRow, MovedKeyRow
from afterword.store.database.inserts import insert_missing


def move_keys(transaction: Session, run_id: int, scope: Scope, into: Scope) -> None:
    """Let the keys of a scope open another one, and record which, so that `move_keys_back` can undo it."""
    key_ids = list(transaction.exec(select(ApiKeyRow.id).where(ApiKeyRow.scope == str(scope))))
    _open_scope(transaction, key_ids, into)
    insert_missing(transaction, MovedKeyRow, [{"run_id": run_id, "key_id": key_id} for key_id in key_ids])


def move_keys_back(transaction: Session, run_id: int, scope: Scope, into: Scope) -> None:
    """Let the keys that a run moved from `scope` to `into` open `scope` again."""
    moved = select(MovedKeyRow.key_id).where(MovedKeyRow.run_id == run_id)
    query = select(ApiKeyRow.id).where(col(ApiKeyRow.id).in_(moved), ApiKeyRow.scope == str(into))
    _open_scope(transaction, list(transaction.exec(query)), scope)


def revoke_keys_of_scope(transaction: Session, scope: Scope, at: datetime) -> None:
    """Revoke the keys that open this scope alone. An admin key stays: it opens the whole tenant."""
    opens_it = (
        col(ApiKeyRow.scope) == str(scope),
        col(ApiKeyRow.is_admin).is_(False),
        col(ApiKeyRow.revoked_at).is_(None),
    )
    transaction.connection().execute(update(ApiKeyRow).where(*opens_it).values(revoked_at=at))


def _open_scope(transaction: Session, key_ids: list[str], scope: Scope) -> None:
    moved = update(ApiKeyRow).where(col(ApiKeyRow.id).in_(key_ids)).values(scope=str(scope))
    transaction.connection().execute(moved)
