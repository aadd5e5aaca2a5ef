"""The stored vectors, and the scopes whose vectors are complete. No vector outlives the words that it was made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, delete, or_, select
from sqlmodel import Session, col

from afterword.facts.scopes import Scope
from afterword.recall.vectors import Embedder
from afterword.store import scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.inserts import insert_missing
from afterword.store.tables import ScopeRow, VectorRow

CHUNK = 500
COMPLETE = "complete"
"""The key of a row that is no vector: it says at which revision a scope had all vectors of a model, and until when."""

Name = tuple[str, int]
"""A model and how many numbers its vectors have."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was served of a scope at one revision: the keys of its texts, and until when it is served so (None: for
    good)."""

    scope: Scope
    revision: int
    until: datetime | None
    keys: frozenset[str]


async def keep(store: Store, reading: Reading, embedder: Embedder, vectors: Mapping[str, bytes]) -> bool:
    """Store vectors of texts of a reading. If the scope has changed since, nothing is stored, and False is returned."""

    def work(transaction: Session) -> bool:
        key = _lock_unchanged(transaction, reading)
        if key is not None:
            insert_missing(transaction, VectorRow, [_row(key, embedder, name, vectors[name]) for name in vectors])
        return key is not None

    return await store.write(work)


async def complete(store: Store, reading: Reading, embedder: Embedder, *, alone: bool) -> bool:
    """Drop the vectors of texts that are gone, of whatever model; with `alone` also those of other models and
    dimensions, and note that this one has all.

    If the scope has changed, nothing is done, and False is returned.
    """

    def work(transaction: Session) -> bool:
        key = _lock_unchanged(transaction, reading)
        if key is None:
            return False
        of_scope = col(VectorRow.scope_id) == key
        keys = select(col(VectorRow.key)).where(of_scope).distinct()
        stored_keys = transaction.connection().execute(keys)
        stale = [name for (name,) in stored_keys if name not in reading.keys and (alone or name != COMPLETE)]
        for start in range(0, len(stale), CHUNK):
            transaction.exec(delete(VectorRow).where(of_scope, col(VectorRow.key).in_(stale[start : start + CHUNK])))
        if alone:
            other = or_(col(VectorRow.model) != embedder.model, col(VectorRow.dimension) != embedder.dimension)
            transaction.exec(delete(VectorRow).where(of_scope, other))
            until = reading.until.isoformat() if reading.until else None
            noted = json.dumps({"revision": reading.revision, "until": until}).encode()
            insert_missing(transaction, VectorRow, [_row(key, embedder, COMPLETE, noted)])
        return True

    return await store.write(work)


def lacking(transaction: Session, embedder: Embedder, at: datetime) -> list[Scope]:
    """Return the scopes that may have texts without a vector of this embedder at `at`."""
    noted = and_(
        col(VectorRow.scope_id) == col(ScopeRow.id),
        col(VectorRow.model) == embedder.model,
        col(VectorRow.dimension) == embedder.dimension,
        col(VectorRow.key) == COMPLETE,
    )
    columns = (col(ScopeRow.tenant), col(ScopeRow.kind), col(ScopeRow.name), col(ScopeRow.revision))
    query = select(*columns, col(VectorRow.content)).outerjoin_from(ScopeRow, VectorRow, noted)
    rows = transaction.connection().execute(query.where(col(ScopeRow.revision) > 0).order_by(col(ScopeRow.id)))
    return [
        Scope.parse(f"{row.tenant}/{row.kind}/{row.name}")
        for row in rows
        if row.content is None or not _is_complete(row.content, row.revision, at)
    ]


def _lock_unchanged(transaction: Session, reading: Reading) -> int | None:
    """Lock the scope against other writers and return its key; None if the scope has changed since it was read."""
    scope_rows.lock_scope(transaction, reading.scope)
    row = scope_rows.scope_row(transaction, reading.scope)
    return row.id if row is not None and row.revision == reading.revision else None


def _is_complete(content: bytes, revision: int, at: datetime) -> bool:
    noted = json.loads(content)
    return bool(noted["revision"] == revision) and (
        noted["until"] is None or at < datetime.fromisoformat(noted["until"])
    )


def _row(key: int, embedder: Embedder, name: str, content: bytes) -> dict[str, object]:
    return {
        "scope_id": key,
        "model": embedder.model,
        "dimension": embedder.dimension,
        "key": name,
        "content": content,
    }
