"""Making the missing vectors of facts and turns, separately from the processing of sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from afterword.errors import AfterwordError
from afterword.extractors.model.embeddings import PURPOSE
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import JobClock
from afterword.pipeline.budget import Account, CostTracker
from afterword.recall.vectors import Embedder
from afterword.store.database.engine import Store
from afterword.store.reading import scope_vectors


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """How many vectors were made, how many scopes were not finished, and the error if there was one."""

    made: int = 0
    left: int = 0
    error: AfterwordError | None = None


@dataclass(slots=True)
class VectorRefresher:
    """Makes the vectors that a store lacks, `batch` texts at once, and deletes those of other embedders.

    `new_tracker` returns the tracker that the cost is charged to, under the purpose "embedding". No further batch is
    started once `stop` returns a reason.
    """

    store: Store
    embedder: Embedder
    new_tracker: Callable[[], CostTracker]
    _: KW_ONLY
    batch: int = scope_vectors.BATCH
    clock: JobClock = field(default_factory=JobClock)
    stop: Callable[[], str | None] = lambda: None

    async def refresh(self, scopes: Sequence[Scope] | None = None) -> RefreshResult:
        """Make the missing vectors of these scopes (default: all), one after another.

        Stops at the first error, and returns it in the result. No request is sent for a scope that lacks no vectors.
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
                await self._refresh_scope(left[0], tracker, self.clock.now(), made.append)
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

    async def _refresh_scope(
        self, scope: Scope, tracker: CostTracker, at: datetime, on_made: Callable[[int], None]
    ) -> None:
        with Account(tracker, self.store, scope, PURPOSE, PURPOSE).charging_requests():
            await scope_vectors.refresh_vectors(
                self.store,
                scope,
                self.embedder,
                at=at,
                batch=self.batch,
                deletes_other_models=True,
                stop=self.stop,
                on_made=on_made,
            )
