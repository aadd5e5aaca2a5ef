"""Making, storing, searching and counting the vectors of a scope, by model and dimension.

Vectors of two models are never compared. No vector outlives the words that it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any

from sqlalchemy import and_, bindparam, delete, exists, or_, select
from sqlmodel import Session, col

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.facts.scopes import Scope
from afterword.recall.bm25 import NO_RELATED, Related
from afterword.recall.related_words import related_terms
from afterword.recall.vectors import (
    Embedder,
    EmbeddingUnavailable,
    LocalEmbedder,
    Nearness,
    Vectors,
    packed_vector,
    vector_key,
)
from afterword.store import scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.statements import CHUNK, CompiledQuery, chunks, has_listed_name, insert_missing
from afterword.store.reading.view_cache import view_cache_of
from afterword.store.reading.views import View
from afterword.store.tables import ScopeRow, VectorRow
from afterword.telemetry import Stage

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
        for names in chunks(stale):
            transaction.exec(delete(VectorRow).where(of_scope, col(VectorRow.key).in_(names)))
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


BATCH = 256
ROUNDS = 10
READ_AGAIN_S = 30.0
"""After how long vectors are read again where some are missing: another process may have made them."""

_log = telemetry.logs(__name__)


async def meaning(store: Store, view: View, query: str, embedder: Embedder | None) -> tuple[Nearness | None, int]:
    """Return how near each unit of the view is to the query, and how many of them lack a vector.

    None without an embedder, where there are no vectors, or none can be made of the query: then recall goes by words
    alone. Secrets in the query are masked before it is sent; what is off the record is not sent at all. An embedder
    with `is_local` sends nothing.
    """
    if embedder is None:
        return None, 0
    try:
        known = await _vectors(store, view, embedder)
    except EmbeddingUnavailable as error:
        _log.warning("recall goes by words alone: %s", error)
        return None, 0
    is_sent = not getattr(embedder, "is_local", False)
    if not known.made or (is_sent and store.privacy.markers.read(query) is not None):
        return None, known.missing
    try:
        [vector] = await embedder.embed([store.privacy.mask_text(query) if is_sent else query])
    except AfterwordError as error:  # a budget, too, may refuse the question
        _log.warning("recall goes by words alone: %s", error)
        return None, 0
    near = known.near(vector)
    return near and near._replace(related=related_words(query, embedder)), known.missing


def related_words(query: str, embedder: Embedder | None) -> Related:
    """Return the words related to those of a query, none where the embedder is not the local one."""
    try:
        return related_terms(query) if isinstance(embedder, LocalEmbedder) else NO_RELATED
    except EmbeddingUnavailable:
        return NO_RELATED


@telemetry.staged(Stage.VECTORS, "scope")
async def refresh_vectors(
    store: Store,
    scope: Scope,
    embedder: Embedder,
    *,
    at: datetime,
    batch: int = BATCH,
    alone: bool = False,
    stop: Callable[[], str | None] = lambda: None,
    on_made: Callable[[int], None] = lambda _: None,
) -> int:
    """Make the vectors that a scope lacks, and drop those of texts that are not served any more; return how many.

    Each batch is kept as it comes, and `on_made` is told its size. With `alone` the vectors of other models and
    dimensions are dropped once nothing lacks one of this. What changes meanwhile is looked at again; no transaction is
    open while vectors are made, and none is kept of words that are gone. Raises `EmbeddingUnavailable`, `StoreError`.
    """
    made, spare, model = 0, dict[str, bytes](), (embedder.model, embedder.dimension)
    for _ in range(ROUNDS):
        view = await view_cache_of(store).view(store, scope, at)
        texts = {vector_key(text): text for unit in view.served_units() for text in [unit.text]}
        if view.snapshot.key is None:
            return made
        stored = await store.read(partial(_stored_vectors, view.snapshot.key, model, None))
        as_read = Reading(scope, view.snapshot.revision, view.until, frozenset(texts))
        wanted = [name for name in texts if name not in stored]
        telemetry.note(wanted=len(wanted), model=embedder.model)
        for start in range(0, len(wanted), batch):
            if stop() is not None:
                return made
            some = wanted[start : start + batch]
            asked = [name for name in some if name not in spare]
            vectors = await embedder.embed([texts[name] for name in asked]) if asked else []
            spare |= {name: packed_vector(vector) for name, vector in zip(asked, vectors, strict=True)}
            if not await keep(store, as_read, embedder, {name: spare[name] for name in some}):
                break  # the scope has moved on: what was paid for is kept for the texts that are still there
            made += len(some)
            on_made(len(some))
        else:
            view.vectors.pop(model, None)
            if await complete(store, as_read, embedder, alone=alone):
                return made
    return made


async def _vectors(store: Store, view: View, embedder: Embedder) -> Vectors:
    name = embedder.model, embedder.dimension
    known = view.vectors.get(name)
    is_stale = known is not None and bool(known.missing) and monotonic() - known.read_at_s > READ_AGAIN_S
    if known is not None and known.is_wanted is view.is_served and not is_stale:
        return known
    read = view.readers[name] = partial(_read_vectors, name)
    return await store.read(partial(read, view))


def _read_vectors(name: Name, view: View, transaction: Session) -> Vectors:
    """Return the vectors of what is served: those that are known already, and those that are stored by now. The view
    keeps them."""
    known = view.vectors.get(name) or Vectors(name[1])
    keys = {place: vector_key(view.unit(place).text) for place in known.lacks(view.is_served)}
    wanted = list(keys.values()) if len(keys) <= CHUNK else None
    contents = _stored_vectors(view.snapshot.key, name, wanted, transaction) if keys else {}
    made = {place: contents[key] for place, key in keys.items() if key in contents}
    vectors = view.vectors[name] = known.revised(view.is_served, made)
    return vectors


def _stored_vectors(
    scope_key: int | None, name: Name, keys: Sequence[str] | None, transaction: Session
) -> dict[str, bytes]:
    """Return the vectors of a scope that are kept under these keys (None: all of them)."""
    connection, values = transaction.connection(), {"scope": scope_key, "model": name[0], "dimension": name[1]}
    some = (
        VECTOR_ROWS.ask(connection, **values) if keys is None else _SOME_VECTORS.ask_listed(connection, keys, **values)
    )
    return {key: bytes(content) for key, content in some}


_OF_SCOPE = select(col(VectorRow.key), col(VectorRow.content)).where(
    col(VectorRow.scope_id) == bindparam("scope"),
    col(VectorRow.model) == bindparam("model"),
    col(VectorRow.dimension) == bindparam("dimension"),
)
VECTOR_ROWS = CompiledQuery(_OF_SCOPE)
_SOME_VECTORS = CompiledQuery(_OF_SCOPE.where(has_listed_name(col(VectorRow.key))))


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    """How many texts of a scope can be found by meaning, and how many of them have a vector, by model."""

    texts: int
    made: Mapping[Name, int]


async def scopes_with_vectors(store: Store) -> set[Scope]:
    """Return the scopes that have vectors. For operators, never for an agent."""
    query = select(col(ScopeRow.tenant), col(ScopeRow.kind), col(ScopeRow.name))
    query = query.where(exists().where(col(VectorRow.scope_id) == col(ScopeRow.id)))
    rows = await store.read(lambda transaction: transaction.connection().execute(query).all())
    return {Scope.parse("/".join(row)) for row in rows}


async def vector_coverage(store: Store, scope: Scope, at: datetime, wanted: Name | None = None) -> VectorCoverage:
    """Return how many texts have a vector, of each model that has any and of the one that is wanted."""

    def work(transaction: Session) -> Sequence[Any]:
        row = scope_rows.scope_row(transaction, scope)
        columns = (col(VectorRow.model), col(VectorRow.dimension), col(VectorRow.key))
        query = select(*columns).where(col(VectorRow.scope_id) == (row.id if row else None))
        return transaction.connection().execute(query).all()

    rows = await store.read(work)
    keys: dict[Name, set[str]] = {} if wanted is None else {wanted: set()}
    for row in rows:
        keys.setdefault((row.model, row.dimension), set()).add(row.key)
    if not keys:
        return VectorCoverage(0, {})
    view = await view_cache_of(store).view(store, scope, at)
    texts = {vector_key(unit.text) for unit in view.served_units()}
    return VectorCoverage(len(texts), {name: len(stored_keys & texts) for name, stored_keys in keys.items()})
