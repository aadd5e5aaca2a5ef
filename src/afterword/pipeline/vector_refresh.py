"""Vectors made beside the processing: of what is new, by whoever is configured, and never at a session's cost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from afterword.errors import AfterwordError
from afterword.extractors.model.embeddings import PURPOSE
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import Clock
from afterword.pipeline.budget import Account, CostTracker
from afterword.recall.vectors import Embedder
from afterword.store.database.engine import Store
from afterword.store.reading import vector_rows
from afterword.store.reading.scope_vectors import BATCH, refresh_vectors

logger = logging.getLogger(__name__)

PAUSE_S = 1.0
"""How long a process that goes on waits before it makes vectors of what was noted: sessions come in bursts."""
PATIENCE_S = 30.0
"""How long a process that ends waits for the vectors of what was noted."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """How many vectors were made, and how many scopes are left and why, where not all could be."""

    made: int = 0
    left: int = 0
    error: AfterwordError | None = None


class VectorRefresher:
    """Makes the vectors that a store lacks, `batch` texts at once, as the only ones that it keeps.

    `new_tracker` makes the tracker that the cost is charged to, under the purpose "embedding". `stop` gives a reason to
    begin no further batch.
    """

    def __init__(
        self,
        store: Store,
        embedder: Embedder,
        new_tracker: Callable[[], CostTracker],
        *,
        batch: int = BATCH,
        clock: Clock | None = None,
        stop: Callable[[], str | None] = lambda: None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.store, self.embedder, self.new_tracker = store, embedder, new_tracker
        self.batch, self.clock, self.stop, self.pause_s = batch, clock or Clock(), stop, pause_s
        self._noted: dict[Scope, None] = {}
        self._at_work: asyncio.Task[None] | None = None

    async def refresh(self, scopes: Sequence[Scope] | None = None) -> RefreshResult:
        """Make what these scopes lack (default: all), one after another, up to the first fault, which is returned.

        Nothing is asked where it is known that nothing is lacking.
        """
        made = 0

        def count(more: int) -> None:
            nonlocal made
            made += more

        left: list[Scope] = [] if scopes is None else list(dict.fromkeys(scopes))
        try:
            left = await self._lacking(scopes)
            tracker = self.new_tracker()
            while left and self.stop() is None:
                await self._refresh(left[0], tracker, self.clock.now(), count)
                left = left if self.stop() is not None else left[1:]
        except AfterwordError as error:
            return RefreshResult(made, len(left), error)
        return RefreshResult(made, len(left))

    async def required(self) -> None:
        """Make all that is lacking anywhere. Raises what came between: `EmbeddingUnavailable`, a budget, the store."""
        done = await self.refresh()
        if done.error is not None:
            raise done.error

    def note(self, scope: Scope) -> None:
        """Have the vectors of a scope made in the background. A fault is logged, and left to the next refresh."""
        self._noted[scope] = None
        if self._at_work is None or self._at_work.done():
            self._at_work = asyncio.ensure_future(self._background())

    async def end(self) -> None:
        """Wait until what was noted is made, not longer than half a minute."""
        if self._at_work is None:
            return
        await asyncio.wait({self._at_work}, timeout=PATIENCE_S)
        self._at_work.cancel()
        with suppress(asyncio.CancelledError):
            await self._at_work

    async def _background(self) -> None:
        while self._noted:
            await asyncio.sleep(self.pause_s)
            scopes, self._noted = list(self._noted), {}
            done = await self.refresh(scopes)
            if done.error is not None:
                logger.warning("vectors of %d memories are left for later: %s", done.left, done.error)

    async def _lacking(self, scopes: Sequence[Scope] | None) -> list[Scope]:
        found = await self.store.read(lambda db: vector_rows.lacking(db, self.embedder, self.clock.now()))
        return found if scopes is None else [one for one in found if one in set(scopes)]

    async def _refresh(self, scope: Scope, tracker: CostTracker, at: datetime, count: Callable[[int], None]) -> None:
        with Account(tracker, self.store, scope, PURPOSE, PURPOSE).open():
            await refresh_vectors(
                self.store,
                scope,
                self.embedder,
                at=at,
                batch=self.batch,
                alone=True,
                stop=self.stop,
                on_made=count,
            )
