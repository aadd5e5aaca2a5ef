"""Vectors as the commands make them: after what they have done, and never at its cost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from afterword.cli.output import console, instant
from afterword.composition import configured_tracker, open_embedder
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.vector_refresh import VectorRefresher
from afterword.settings import Settings
from afterword.store.database.engine import Store
from afterword.store.reading import scope_vectors
from afterword.store.reading.vector_rows import Name


@asynccontextmanager
async def refreshing(
    store: Store,
    configured: Settings,
    *,
    spending: CostTracker | None = None,
    stop: Callable[[], str | None] = lambda: None,
) -> AsyncIterator[VectorRefresher | None]:
    """Yield what makes vectors, None where no embedder is configured; `spending` is the tracker that pays for them."""
    async with open_embedder(configured.embedding) as made:
        if made is None:
            yield None
            return

        def paying() -> CostTracker:
            return spending or configured_tracker(configured, "rules")

        yield VectorRefresher(store, made, paying, batch=configured.embedding.batch, stop=stop)


async def refresh(
    store: Store,
    configured: Settings,
    scopes: Sequence[Scope] | None,
    *,
    spending: CostTracker | None = None,
    stop: Callable[[], str | None] = lambda: None,
) -> None:
    """Make the vectors that these scopes lack (None: all), and say on standard error what came of it."""
    async with refreshing(store, configured, spending=spending, stop=stop) as refresher:
        if refresher is None:
            return
        done = await refresher.refresh(scopes)
    if done.made:
        console(to_errors=True).print(f"vectors: {done.made} made")
    if done.left:
        reason = f" ({done.error})" if done.error else ""
        later = "`afterword schedule` tries again; until then recall goes by words there"
        console(to_errors=True).print(f"vectors: {done.left} memories still lack some{reason}; {later}")


async def coverage(store: Store, configured: Settings, scopes: Sequence[Scope]) -> list[dict[str, Any]]:
    """Return, for each model that has vectors and for the configured one, how many texts have and lack one."""
    async with open_embedder(configured.embedding) as made:
        wanted = (made.model, made.dimension) if made else None
    texts, vectors = 0, dict[Name, int]()
    for scope in scopes:
        found = await scope_vectors.vector_coverage(store, scope, instant(None), wanted)
        texts += found.texts
        for name, count in found.made.items():
            vectors[name] = vectors.get(name, 0) + count
    return [
        {
            "model": model,
            "dimension": dimension,
            "configured": (model, dimension) == wanted,
            "vectors": count,
            "lacking": texts - count,
        }
        for (model, dimension), count in sorted(vectors.items())
    ]
