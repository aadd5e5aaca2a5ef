"""Keeping the vectors of a scope, by model and dimension, and asking them. Vectors of two models never meet."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import col

from afterword.store import snapshots
from afterword.store.embedding import Embedder, EmbeddingUnavailable, Nearness, Vectors, packed, vector_key
from afterword.store.engine import Store
from afterword.store.remembering import Remembered, remembered
from afterword.store.scopes import Scope
from afterword.store.tables import VectorRow
from afterword.store.views import View

BATCH = 256
CHUNK = 500

_log = logging.getLogger(__name__)


async def meaning(
    store: Store, kept: Remembered, view: View, query: str, embedder: Embedder
) -> tuple[Nearness | None, int]:
    """Return how near each unit of the view is to the query, and how many of them lack a vector.

    None where there are no vectors, or none can be made of the query: then recall goes by words alone.
    """
    try:
        known = await _vectors(store, kept, view, embedder)
        if known.missing == len(view.index.units):
            return None, known.missing
        [vector] = await embedder.embed([query])
    except EmbeddingUnavailable as error:
        _log.warning("recall goes by words alone: %s", error)
        return None, 0
    return known.near(vector), known.missing


async def refresh_vectors(store: Store, scope: Scope, embedder: Embedder, *, at: datetime) -> int:
    """Make the vectors that a scope lacks, and drop those of texts that are not served any more; return how many.

    No transaction is open while vectors are made. Raises `EmbeddingUnavailable` and `StoreError`.
    """
    view = await remembered(store).view(store, scope, at)
    texts = {vector_key(unit.text): unit.text for unit in view.index.units}
    async with store.connection(writing=False) as connection:
        key, kept = await connection.run_sync(_kept, scope, embedder)
    if key is None:
        return 0
    wanted = [text for name, text in texts.items() if name not in kept]
    rows: list[dict[str, Any]] = []
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        for text, vector in zip(batch, await embedder.embed(batch), strict=True):
            rows.append(_row(key, embedder, text, packed(vector)))
    async with store.connection(writing=True) as connection:
        await connection.run_sync(_write, key, rows, set(texts))
    view.vectors.pop((embedder.model, embedder.dimension), None)
    return len(rows)


async def _vectors(store: Store, kept: Remembered, view: View, embedder: Embedder) -> Vectors:
    name = embedder.model, embedder.dimension
    if name not in view.vectors:

        def work(connection: Connection) -> dict[str, bytes]:
            return _kept(connection, view.snapshot.scope, embedder)[1]

        found = await kept.read(store, work)
        view.vectors[name] = Vectors([found.get(vector_key(unit.text)) for unit in view.index.units])
    return view.vectors[name]


def _kept(connection: Connection, scope: Scope, embedder: Embedder) -> tuple[int | None, dict[str, bytes]]:
    key, _ = snapshots.revision(connection, scope)
    query = select(col(VectorRow.key), col(VectorRow.content)).where(
        col(VectorRow.scope_id) == key,
        col(VectorRow.model) == embedder.model,
        col(VectorRow.dimension) == embedder.dimension,
    )
    return key, {row.key: row.content for row in connection.execute(query)} if key is not None else {}


def _row(key: int, embedder: Embedder, text: str, content: bytes) -> dict[str, Any]:
    return {
        "scope_id": key,
        "model": embedder.model,
        "dimension": embedder.dimension,
        "key": vector_key(text),
        "content": content,
    }


def _write(connection: Connection, key: int, rows: Sequence[dict[str, Any]], texts: set[str]) -> None:
    """Keep new vectors, and drop those of any model whose text is gone: a vector tells of the words it was made of."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    if rows:
        connection.execute(dialect.insert(VectorRow).on_conflict_do_nothing(), list(rows))
    found = connection.execute(select(col(VectorRow.key)).where(col(VectorRow.scope_id) == key).distinct())
    stale = [name for (name,) in found if name not in texts]
    for start in range(0, len(stale), CHUNK):
        some = stale[start : start + CHUNK]
        connection.execute(delete(VectorRow).where(col(VectorRow.scope_id) == key, col(VectorRow.key).in_(some)))
