"""API keys of the HTTP service: random texts, of which only the SHA-256 is stored.

When a scope is renamed or merged into another, its keys open the new scope. If that is undone, they open the old one.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, update
from sqlmodel import Session, col, select

from afterword.errors import KeyInvalid, NotFound
from afterword.facts.scopes import Scope
from afterword.store.access.tables import ApiKeyRow, MovedKeyRow
from afterword.store.database.statements import fetch_rows, insert_missing, select_columns

PREFIX = "afterword_"
USE_IS_NOTED_AFTER = timedelta(minutes=10)
"""How old the recorded last use of a key must be before a new one is recorded, so that few requests have to write."""


# Every request asks for its key, and building a statement takes longer than executing it.
_BY_DIGEST = select_columns(ApiKeyRow).where(col(ApiKeyRow.digest) == bindparam("digest"))


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key and its rights, without the key itself.

    It opens `scope`. An admin key also opens every scope of `tenant`, and what belongs to the whole tenant. A read-only
    key changes nothing.
    """

    id: str
    name: str
    tenant: str
    scope: Scope | None
    is_read_only: bool
    is_admin: bool
    created_at: datetime
    last_used_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def opens(self, scope: Scope) -> bool:
        """Return whether the key may be used for this scope."""
        return scope == self.scope or (self.is_admin and scope.tenant == self.tenant)

    def check(self, at: datetime) -> None:
        """Raise `KeyInvalid` if the key was revoked or has expired."""
        if self.revoked_at is not None:
            raise KeyInvalid(f"the key {self.id} was revoked; create a new one with `afterword keys create`")
        if self.expires_at is not None and self.expires_at <= at:
            raise KeyInvalid(f"the key {self.id} has expired; create a new one with `afterword keys create`")


def new_id_and_secret(prefix: str = PREFIX) -> tuple[str, str]:
    """Return the id of a new key or webhook, and its secret, with 256 random bits."""
    return secrets.token_hex(6), prefix + secrets.token_urlsafe(32)


def key_digest(secret: str) -> str:
    """Return the hash of a key, which is stored instead. A random key cannot be guessed, so it needs no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def add_key(transaction: Session, key: ApiKey, secret: str) -> None:
    """Store a key."""
    transaction.add(
        ApiKeyRow(
            id=key.id,
            digest=key_digest(secret),
            name=key.name,
            tenant=key.tenant,
            scope=None if key.scope is None else str(key.scope),
            is_read_only=key.is_read_only,
            is_admin=key.is_admin,
            created_at=key.created_at,
            expires_at=key.expires_at,
        )
    )


def read_keys(transaction: Session) -> list[ApiKey]:
    """Return every key, also those that are revoked or expired, oldest first."""
    rows = transaction.exec(select(ApiKeyRow).order_by(col(ApiKeyRow.created_at), col(ApiKeyRow.id)))
    return [_key_of(row.model_dump()) for row in rows]


def find_key(transaction: Session, secret: str) -> ApiKey | None:
    """Return the key with this secret, None if there is no such key."""
    rows = fetch_rows(transaction, _BY_DIGEST, {"digest": key_digest(secret)})
    return _key_of(rows[0]._mapping) if rows else None


def read_key(transaction: Session, key_id: str) -> ApiKey:
    """Return the key of this id. Raises `NotFound`."""
    return _key_of(_key_row(transaction, key_id).model_dump())


def note_key_use(transaction: Session, key_id: str, at: datetime) -> None:
    """Record that a key was used."""
    _key_row(transaction, key_id).last_used_at = at


def revoke_key(transaction: Session, key_id: str, at: datetime) -> ApiKey:
    """Revoke a key for good and return it. A key that was revoked before is not changed. Raises `NotFound`."""
    row = _key_row(transaction, key_id)
    row.revoked_at = row.revoked_at or at
    return _key_of(row.model_dump())


def _key_row(transaction: Session, key_id: str) -> ApiKeyRow:
    row = transaction.get(ApiKeyRow, key_id)
    if row is None:
        raise NotFound(f"no key {key_id!r}; see `afterword keys list`")
    return row


def _key_of(columns: Mapping[str, Any]) -> ApiKey:
    scope = None if columns["scope"] is None else Scope.parse(columns["scope"])
    return ApiKey(scope=scope, **{name: value for name, value in columns.items() if name not in ("scope", "digest")})


def move_api_keys(transaction: Session, run_id: int, scope: Scope, into: Scope) -> None:
    """Let the keys of a scope open another one, and record which, so that `move_api_keys_back` can undo it."""
    key_ids = list(transaction.exec(select(ApiKeyRow.id).where(ApiKeyRow.scope == str(scope))))
    _set_scope_of_keys(transaction, key_ids, into)
    insert_missing(transaction, MovedKeyRow, [{"run_id": run_id, "key_id": key_id} for key_id in key_ids])


def move_api_keys_back(transaction: Session, run_id: int, scope: Scope, into: Scope) -> None:
    """Let the keys that a run moved from `scope` to `into` open `scope` again."""
    moved = select(MovedKeyRow.key_id).where(MovedKeyRow.run_id == run_id)
    query = select(ApiKeyRow.id).where(col(ApiKeyRow.id).in_(moved), ApiKeyRow.scope == str(into))
    _set_scope_of_keys(transaction, list(transaction.exec(query)), scope)


def has_unrevoked_key_of_scope(transaction: Session, scope: Scope) -> bool:
    """Return whether there is a key, not revoked, that opens only this scope."""
    return transaction.exec(select(ApiKeyRow.id).where(*_key_conditions_of_scope(scope)).limit(1)).first() is not None


def revoke_keys_of_scope(transaction: Session, scope: Scope, at: datetime) -> None:
    """Revoke the keys that open only this scope. Admin keys are not revoked, because they open the whole tenant."""
    transaction.connection().execute(update(ApiKeyRow).where(*_key_conditions_of_scope(scope)).values(revoked_at=at))


def _key_conditions_of_scope(scope: Scope) -> tuple[ColumnElement[bool], ...]:
    return col(ApiKeyRow.scope) == str(scope), col(ApiKeyRow.is_admin).is_(False), col(ApiKeyRow.revoked_at).is_(None)


def _set_scope_of_keys(transaction: Session, key_ids: list[str], scope: Scope) -> None:
    moved = update(ApiKeyRow).where(col(ApiKeyRow.id).in_(key_ids)).values(scope=str(scope))
    transaction.connection().execute(moved)
