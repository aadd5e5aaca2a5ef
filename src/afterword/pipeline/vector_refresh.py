"""Making missing vectors, apart from the processing of sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from afterword.errors import AfterwordError
from afterword.extractors.model.embeddings import PURPOSE
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import Clock
from afterword.pipeline.budget import Account, CostTracker
from afterword.recall.vectors import Embedder
from afterword.store.database.engine import Store
from afterword.store.reading import scope_vectors

_log = logging.getLogger(__name__)

PAUSE_S = 1.0
"""How long a running process waits before it makes vectors: sessions come in bursts."""
PATIENCE_S = 30.0
"""How long a process that ends waits for vectors that are being made."""


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """How many vectors were made, how many scopes were not finished, and the error if there was one."""

    made: int = 0
    left: int = 0
    error: AfterwordError | None = None


@dataclass(slots=True)
class VectorRefresher:
    """Makes the vectors that a store lacks, `batch` texts at once, and deletes those of other embedders.

    `new_tracker` makes the tracker that the cost is charged to, under the purpose "embedding". `stop`
    returns a reason to start no further batch, or None.
    """

    store: Store
    embedder: Embedder
    new_tracker: Callable[[], CostTracker]
    _: KW_ONLY
    batch: int = scope_vectors.BATCH
    clock: Clock = field(default_factory=Clock)
    stop: Callable[[], str | None] = lambda: None
    pause_s: float = PAUSE_S
    _pending_scopes: dict[Scope, None] = field(init=False, default_factory=dict)
    _task: asyncio.Task[None] | None = field(init=False, default=None)

    async def refresh(self, scopes: Sequence[Scope] | None = None) -> RefreshResult:
        """Make the missing vectors of these scopes (default: all), one after another.

        It ends at the first error, which is part of the result. Scopes that lack nothing cost nothing.
        """
        made: list[int] = []
        left: list[Scope] = [] if scopes is None else list(dict.fromkeys(scopes))
        try:
            lacking = await self.store.read(
                lambda transaction: scope_vectors.scopes_lacking_vectors(transaction, self.embedder, self.clock.now())
            )
            left = lacking if scopes is None else [scope for scope in lacking if scope in set(scopes)]
            tracker = self.new_tracker()
            while left and self.stop() is None:
                await self._refresh(left[0], tracker, self.clock.now(), made.append)
                left = left if self.stop() is not None else left[1:]
        except AfterwordError as error:
            return RefreshResult(sum(made), len(left), error)
        return RefreshResult(sum(made), len(left))

    async def refresh_or_raise(self) -> int:
        """Make all missing vectors, and return how many.

        Raises the error that prevented it: `EmbeddingUnavailable`, `BudgetReached` or a `StoreError`.
        """
        result = await self.refresh()
        if result.error is not None:
            raise result.error
        return result.made

    def note(self, scope: Scope) -> None:
        """Make the vectors of a scope in the background. An error is logged; the next refresh tries again."""
        self._pending_scopes[scope] = None
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._background())

    async def end(self) -> None:
        """Wait for the vectors that are being made, for at most half a minute."""
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=PATIENCE_S)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _background(self) -> None:
        while self._pending_scopes:
            await asyncio.sleep(self.pause_s)
            scopes, self._pending_scopes = list(self._pending_scopes), {}
            result = await self.refresh(scopes)
            if result.error is not None:
                _log.warning("vectors of %d memories are left for later: %s", result.left, result.error)

    async def _refresh(self, scope: Scope, tracker: CostTracker, at: datetime, on_made: Callable[[int], None]) -> None:
        with Account(tracker, self.store, scope, PURPOSE, PURPOSE).open():
            await scope_vectors.refresh_vectors(
                self.store,
                scope,
                self.embedder,
                at=at,
                batch=self.batch,
                is_only_model=True,
                stop=self.stop,
                on_made=on_made,
            )
