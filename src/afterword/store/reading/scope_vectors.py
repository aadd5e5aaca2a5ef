"""Computes, stores, reads and counts the vectors of the texts of a scope, by embedding model and dimension.

Vectors of different models are never compared. A vector is deleted with the words that it was computed from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    USABLE,
    Embedder,
    EmbeddingUnavailable,
    LocalEmbedder,
    Nearness,
    Vectors,
    packed_vector,
    usable_vectors,
    vector_key,
)
from afterword.store import scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.statements import CHUNK, CompiledQuery, chunks, insert_missing, listed_name_condition
from afterword.store.reading.view_cache import view_cache_of
from afterword.store.reading.views import View
from afterword.store.tables import ScopeRow, VectorRow
from afterword.telemetry import Stage

COMPLETE = "complete"
"""The key of a row that is no vector. It notes at which revision a scope had all vectors of a model, and until when."""

VectorModel = tuple[str, int]
"""The name of an embedding model, and the dimension of its vectors."""


@dataclass(frozen=True, slots=True)
class ServedTexts:
    """The texts of a scope that agents may be told at one revision, by their vector keys.

    They are served until the instant `until`; None means for as long as the revision lasts.
    """

    scope: Scope
    revision: int
    until: datetime | None
    keys: frozenset[str]


async def store_vectors(store: Store, texts: ServedTexts, embedder: Embedder, vectors: Mapping[str, bytes]) -> bool:
    """Store these vectors and return True. If the scope has changed since `texts` was read, only return False."""

    def work(transaction: Session) -> bool:
        key = _lock_if_unchanged(transaction, texts)
        if key is not None:
            insert_missing(
                transaction, VectorRow, [_vector_row(key, embedder, name, vectors[name]) for name in vectors]
            )
        return key is not None

    return await store.write(work)


async def delete_stale_vectors(
    store: Store, texts: ServedTexts, embedder: Embedder, *, deletes_other_models: bool
) -> bool:
    """Delete the vectors of texts that are no longer served, of every model, and return True.

    `deletes_other_models` also deletes the vectors of other models and dimensions, and notes that this model has all
    vectors. If the scope has changed since `texts` was read, only return False.
    """

    def work(transaction: Session) -> bool:
        key = _lock_if_unchanged(transaction, texts)
        if key is None:
            return False
        of_scope = col(VectorRow.scope_id) == key
        keys = select(col(VectorRow.key)).where(of_scope).distinct()
        stored_keys = transaction.connection().execute(keys)
        stale = [
            name for (name,) in stored_keys if name not in texts.keys and (deletes_other_models or name != COMPLETE)
        ]
        for names in chunks(stale):
            transaction.exec(delete(VectorRow).where(of_scope, col(VectorRow.key).in_(names)))
        if deletes_other_models:
            other = or_(col(VectorRow.model) != embedder.model, col(VectorRow.dimension) != embedder.dimension)
            transaction.exec(delete(VectorRow).where(of_scope, other))
            insert_missing(transaction, VectorRow, [_vector_row(key, embedder, COMPLETE, _completeness_note(texts))])
        return True

    return await store.write(work)


def scopes_lacking_vectors(transaction: Session, embedder: Embedder, at: datetime) -> list[Scope]:
    """Return the scopes in which some texts may lack a vector of this embedder at the instant `at`."""
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
        if row.content is None or not _notes_all_vectors(row.content, row.revision, at)
    ]


def _lock_if_unchanged(transaction: Session, texts: ServedTexts) -> int | None:
    """Lock the scope against other writers and return its key, None if it has changed since `texts` was read."""
    scope_rows.lock_scope(transaction, texts.scope)
    row = scope_rows.scope_row(transaction, texts.scope)
    return row.id if row is not None and row.revision == texts.revision else None


def _completeness_note(texts: ServedTexts) -> bytes:
    """Return the note that all of these texts have a vector."""
    until = texts.until.isoformat() if texts.until else None
    return json.dumps({"revision": texts.revision, "until": until}).encode()


def _notes_all_vectors(note: bytes, revision: int, at: datetime) -> bool:
    """Return whether a note of the key `COMPLETE` says that a scope has all vectors at this revision and instant."""
    noted = json.loads(note)
    return bool(noted["revision"] == revision) and (
        noted["until"] is None or at < datetime.fromisoformat(noted["until"])
    )


def _vector_row(key: int, embedder: Embedder, name: str, content: bytes) -> dict[str, object]:
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
"""After how many seconds missing vectors are looked up again, since another process may have stored them."""

_log = telemetry.logs(__name__)


async def nearness_to_query(
    store: Store, view: View, query: str, embedder: Embedder | None
) -> tuple[Nearness | None, int]:
    """Return how near each fact and turn of the view is to the query, and how many of them lack a vector.

    The nearness is None without an embedder, without stored vectors, or if the query gets no vector. Then recall uses
    words alone. Secrets in the query are masked before it is sent to the embedder. A query that is off the record is
    not sent. A query is not masked for an embedder with `is_local`, since that sends nothing.
    """
    if embedder is None:
        return None, 0
    try:
        known = await _loaded_vectors(store, view, (embedder.model, embedder.dimension))
    except EmbeddingUnavailable as error:
        _log.warning("recall goes by words alone: %s", error)
        return None, 0
    is_sent = not getattr(embedder, "is_local", False)
    if not known.known_count or (is_sent and store.privacy.markers.requested_change(query) is not None):
        return None, known.missing_count
    try:
        [vector] = await embedder.embed([store.privacy.mask_text(query) if is_sent else query])
        near = known.nearness_to(vector)
    except AfterwordError as error:  # for example a budget that is used up
        _log.warning("recall goes by words alone: %s", error)
        return None, 0
    return near and near._replace(related=related_words(query, embedder)), known.missing_count


def related_words(query: str, embedder: Embedder | None) -> Related:
    """Return the words that are related to the words of a query. Only the local embedder knows any."""
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
    deletes_other_models: bool = False,
    stop: Callable[[], str | None] = lambda: None,
    on_made: Callable[[int], None] = lambda _: None,
) -> int:
    """Compute the vectors that a scope lacks, delete those of texts that are no longer served, and return how many
    vectors were added.

    Each batch is stored at once, and `on_made` is called with its size. `deletes_other_models` also deletes the vectors
    of other models and dimensions, once all vectors of this model are there. If the scope changes meanwhile, it is read
    again. No transaction is open while vectors are computed. Unusable vectors that are stored are computed
    again. If new vectors are unusable, the others are stored before `EmbeddingUnavailable` is raised. Raises also
    `StoreError`.
    """
    refresh = _VectorRefresh(store, embedder, batch, stop, on_made)
    for _ in range(ROUNDS):
        view = await view_cache_of(store).view(store, scope, at)
        if view.snapshot.version.key is None or await refresh.complete(view, deletes_other_models=deletes_other_models):
            break
    return refresh.made


@dataclass(slots=True)
class _VectorRefresh:
    """Computes the vectors that a scope lacks, batch by batch.

    `made` counts the vectors that were stored. `computed` holds all vectors that were computed. If the scope changes
    meanwhile, they are reused for the texts that are still there.
    """

    store: Store
    embedder: Embedder
    batch: int
    stop: Callable[[], str | None]
    on_made: Callable[[int], None]
    made: int = 0
    computed: dict[str, bytes] = field(default_factory=dict)

    async def complete(self, view: View, *, deletes_other_models: bool) -> bool:
        """Compute and store the vectors that a view lacks. Return False if its scope has changed meanwhile.

        It ends early, and returns True, when the refresh is stopped.

        Raises `EmbeddingUnavailable` if some of them are unusable.
        """
        texts = {vector_key(text): text for unit in view.served_units() for text in [unit.text_to_embed]}
        as_read = ServedTexts(view.snapshot.scope, view.snapshot.version.revision, view.until, frozenset(texts))
        usable = await self._usable_keys(as_read, view.snapshot.version.key)
        wanted = [key for key in texts if key not in usable]
        telemetry.note(wanted=len(wanted), model=self.embedder.model)
        for start in range(0, len(wanted), self.batch):
            if self.stop() is not None:
                return True
            if not await self._store_batch(as_read, {key: texts[key] for key in wanted[start : start + self.batch]}):
                return False
        view.vectors.pop((self.embedder.model, self.embedder.dimension), None)
        refused = sum(key not in self.computed for key in wanted)
        is_all = deletes_other_models and not refused
        if not await delete_stale_vectors(self.store, as_read, self.embedder, deletes_other_models=is_all):
            return False
        if refused:
            reason = f"{refused} of {len(wanted)} vectors are not {self.embedder.dimension} {USABLE}"
            raise EmbeddingUnavailable(f"{self.embedder.model}: {reason}")
        return True

    async def _usable_keys(self, texts: ServedTexts, scope_key: int | None) -> Collection[str]:
        """Return the keys of the texts that have a usable vector. Unusable vectors are deleted."""
        model = self.embedder.model, self.embedder.dimension
        stored = await self.store.read(partial(_stored_vectors, scope_key, model, None))
        of_texts = {key: content for key, content in stored.items() if key in texts.keys}
        usable = usable_vectors(of_texts, self.embedder.dimension)
        if len(usable) < len(of_texts):
            kept = replace(texts, keys=texts.keys - (of_texts.keys() - usable.keys()))
            await delete_stale_vectors(self.store, kept, self.embedder, deletes_other_models=False)
        return usable.keys()

    async def _store_batch(self, as_read: ServedTexts, texts: Mapping[str, str]) -> bool:
        """Store the vectors of some texts. Return False if the scope has changed since the texts were read."""
        asked = [key for key in texts if key not in self.computed]
        vectors = await self.embedder.embed([texts[key] for key in asked]) if asked else []
        packed = {key: packed_vector(vector) for key, vector in zip(asked, vectors, strict=True)}
        self.computed |= usable_vectors(packed, self.embedder.dimension)
        new = {key: self.computed[key] for key in texts if key in self.computed}
        if not await store_vectors(self.store, as_read, self.embedder, new):
            return False
        self.made += len(new)
        self.on_made(len(new))
        return True


async def _loaded_vectors(store: Store, view: View, model: VectorModel) -> Vectors:
    """Return the vectors of the served facts and turns of a view, from the view or from the store."""
    known = view.vectors.get(model)
    is_stale = known is not None and bool(known.missing_count) and monotonic() - known.read_at_s > READ_AGAIN_S
    if known is not None and known.is_wanted is view.is_served and not is_stale:
        return known
    read = view.readers[model] = partial(_read_vectors, model)
    return await store.read(partial(read, view))


def _read_vectors(model: VectorModel, view: View, transaction: Session) -> Vectors:
    """Return the vectors of the served facts and turns of a view, and cache them in the view.

    Only the vectors that the view does not have yet are read.
    """
    known = view.vectors.get(model) or Vectors(model[1])
    keys = {place: vector_key(view.unit_at(place).text_to_embed) for place in known.missing_places(view.is_served)}
    wanted = list(keys.values()) if len(keys) <= CHUNK else None
    contents = _stored_vectors(view.snapshot.version.key, model, wanted, transaction) if keys else {}
    made = {place: contents[key] for place, key in keys.items() if key in contents}
    vectors = view.vectors[model] = known.revised(view.is_served, made)
    return vectors


def _stored_vectors(
    scope_key: int | None, model: VectorModel, keys: Sequence[str] | None, transaction: Session
) -> dict[str, bytes]:
    """Return the stored vectors of a scope with these keys (None: all of them), by key."""
    connection, values = transaction.connection(), {"scope": scope_key, "model": model[0], "dimension": model[1]}
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
_SOME_VECTORS = CompiledQuery(_OF_SCOPE.where(listed_name_condition(col(VectorRow.key))))


@dataclass(frozen=True, slots=True)
class VectorCoverage:
    """How many texts of a scope should have a vector, and how many of them have one, by model."""

    texts: int
    made: Mapping[VectorModel, int]


async def scopes_with_vectors(store: Store) -> set[Scope]:
    """Return all scopes that have vectors, of all users. Only operators may see them."""
    query = select(col(ScopeRow.tenant), col(ScopeRow.kind), col(ScopeRow.name))
    query = query.where(exists().where(col(VectorRow.scope_id) == col(ScopeRow.id)))
    rows = await store.read(lambda transaction: transaction.connection().execute(query).all())
    return {Scope.parse("/".join(row)) for row in rows}


async def vector_coverage(
    store: Store, scope: Scope, at: datetime, wanted: VectorModel | None = None
) -> VectorCoverage:
    """Return how many texts of a scope have a vector, for each model with vectors and for the `wanted` model."""

    def work(transaction: Session) -> Sequence[Any]:
        row = scope_rows.scope_row(transaction, scope)
        columns = (col(VectorRow.model), col(VectorRow.dimension), col(VectorRow.key))
        query = select(*columns).where(col(VectorRow.scope_id) == (row.id if row else None))
        return transaction.connection().execute(query).all()

    rows = await store.read(work)
    keys: dict[VectorModel, set[str]] = {} if wanted is None else {wanted: set()}
    for row in rows:
        keys.setdefault((row.model, row.dimension), set()).add(row.key)
    if not keys:
        return VectorCoverage(0, {})
    view = await view_cache_of(store).view(store, scope, at)
    texts = {vector_key(unit.text_to_embed) for unit in view.served_units()}
    return VectorCoverage(len(texts), {name: len(stored_keys & texts) for name, stored_keys in keys.items()})
