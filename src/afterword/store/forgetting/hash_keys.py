"""The keys of the store's hashes: its own, and those that came with tombstones from other stores."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

from sqlmodel import Session, col, select

from afterword.privacy.tombstones import TombstoneKey
from afterword.store.database.statements import fetch_rows, insert_missing, select_columns
from afterword.store.forgetting.tables import TombstoneKeyRow

_KEY_BYTES = 32
_KEYS = select_columns(TombstoneKeyRow)


def read_hash_keys(transaction: Session) -> list[TombstoneKey]:
    """Return the keys with which the tombstones in this store were hashed, the store's own first."""
    rows = sorted(fetch_rows(transaction, _KEYS), key=lambda row: (not row.is_own, row.id))
    return [TombstoneKey(row.id, bytes.fromhex(row.key)) for row in rows]


def ensure_store_key(transaction: Session) -> TombstoneKey:
    """Return the store's own key, and create it if there is none yet. Its id identifies the store."""
    query = select(TombstoneKeyRow).where(col(TombstoneKeyRow.is_own)).order_by(TombstoneKeyRow.id).limit(1)
    row = transaction.exec(query).first()
    if row is None:
        secret = secrets.token_bytes(_KEY_BYTES)
        row = TombstoneKeyRow(id=_key_id(secret), key=secret.hex(), is_own=True)
        transaction.add(row)
        transaction.flush()
    return TombstoneKey(row.id, bytes.fromhex(row.key))


def add_imported_keys(transaction: Session, keys: Iterable[bytes]) -> None:
    """Store the hash keys of other stores."""
    rows = [{"id": _key_id(secret), "key": secret.hex(), "is_own": False} for secret in keys]
    insert_missing(transaction, TombstoneKeyRow, rows)


def _key_id(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:16]
