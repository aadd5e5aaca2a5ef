"""Keys of the service: random texts, of which only the SHA-256 is stored."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy
from sqlalchemy import Select, bindparam
from sqlmodel import Session, col, select

from afterword.errors import KeyInvalid, NotFound
from afterword.facts.scopes import Scope
from afterword.store.access.tables import ApiKeyRow
from afterword.store.database.compiled_queries import CompiledQuery, moment

PREFIX = "afterword_"
USE_IS_NOTED_AFTER = timedelta(minutes=10)
"""How old the recorded last use of a key is before a new one is written: not every request writes."""


def _by_digest() -> Select[Any]:
    columns: list[Any] = [
        *(ApiKeyRow.id, ApiKeyRow.name, ApiKeyRow.tenant, ApiKeyRow.scope, ApiKeyRow.is_read_only),
        *(ApiKeyRow.is_admin, ApiKeyRow.created_at, ApiKeyRow.last_used_at, ApiKeyRow.expires_at),
        ApiKeyRow.revoked_at,
    ]
    return sqlalchemy.select(*map(col, columns)).where(col(ApiKeyRow.digest) == bindparam("digest"))


_BY_DIGEST = CompiledQuery(_by_digest)
"""Every request asks for its key."""


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
        """Whether the key may be used for this scope."""
        return scope == self.scope or (self.is_admin and scope.tenant == self.tenant)

    def check(self, at: datetime) -> None:
        """Raise `KeyInvalid` if the key was revoked or has expired."""
        if self.revoked_at is not None:
            raise KeyInvalid(f"the key {self.id} was revoked; `afterword keys create` makes another one")
        if self.expires_at is not None and self.expires_at <= at:
            raise KeyInvalid(f"the key {self.id} has expired; `afterword keys create` makes another one")


def new_secret() -> tuple[str, str]:
    """Return the id of a new key, and the key itself, with 256 random bits."""
    return secrets.token_hex(6), PREFIX + secrets.token_urlsafe(32)


def key_digest(secret: str) -> str:
    """Return what is stored of a key. A random key needs no slow hash: it cannot be guessed."""
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
    return [_key_of(row) for row in rows]


def find_key(transaction: Session, secret: str) -> ApiKey | None:
    """Return the key that is presented, None if there is no such key."""
    rows = _BY_DIGEST.ask(transaction.connection(), digest=key_digest(secret))
    if not rows:
        return None
    key_id, name, tenant, scope, is_read_only, is_admin, *instants = rows[0]
    created_at, last_used_at, expires_at, revoked_at = (None if at is None else moment(at) for at in instants)
    if created_at is None:
        raise TypeError("a key has the instant of its making")
    owner = None if scope is None else Scope.parse(scope)
    rights = bool(is_read_only), bool(is_admin)
    return ApiKey(key_id, name, tenant, owner, *rights, created_at, last_used_at, expires_at, revoked_at)


def read_key(transaction: Session, key_id: str) -> ApiKey:
    """Return the key of this id. Raises `NotFound`."""
    return _key_of(_key_row(transaction, key_id))


def note_use(transaction: Session, key_id: str, at: datetime) -> None:
    """Record that a key was used."""
    _key_row(transaction, key_id).last_used_at = at


def revoke_key(transaction: Session, key_id: str, at: datetime) -> ApiKey:
    """Revoke a key for good and return it. A revoked key stays as it is. Raises `NotFound`."""
    row = _key_row(transaction, key_id)
    row.revoked_at = row.revoked_at or at
    transaction.flush()
    return _key_of(row)


def _key_row(transaction: Session, key_id: str) -> ApiKeyRow:
    row = transaction.get(ApiKeyRow, key_id)
    if row is None:
        raise NotFound(f"no key {key_id!r}; see `afterword keys list`")
    return row


def _key_of(row: ApiKeyRow) -> ApiKey:
    values = row.model_dump(exclude={"digest", "scope"})
    return ApiKey(scope=None if row.scope is None else Scope.parse(row.scope), **values)
