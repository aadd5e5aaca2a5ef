"""Many sessions in one run: one at a time within a scope, in time order; several scopes side by side."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.pipeline.budget import Budget, Purse, purse_of
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.session import Outcome, Saved, process_session
from afterword.store import sessions
from afterword.store.engine import Store
from afterword.store.errors import AfterwordError, StoreError
from afterword.store.scopes import Scope

logger = logging.getLogger(__name__)

SCOPES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Failure:
    """A session that could not be processed, and why; it is kept in the store and stays queued."""

    scope: Scope
    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Left:
    """A session that was not processed, since the batch was stopped before; it stays as it was, queued or not."""

    scope: Scope
    session_id: str
    reason: str


async def run_batch(
    store: Store,
    found: Sequence[Saved],
    *,
    extractor: Extractor,
    judge: Judge | None = None,
    apply: bool = True,
    budget: Budget | Purse | None = None,
    stop: Callable[[], str | None] = lambda: None,
    on_done: Callable[[Outcome | Failure], None] = lambda _: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> list[Outcome | Failure | Left]:
    """Process the sessions and return what became of each, in their order.

    A session that fails is kept with its reason and does not stop the others. Once the `budget` is reached, or `stop`
    gives a reason, no other session is begun, and those that are being processed come to their end. `on_done` is told
    of each as it ends, of none that is left.
    """
    at_once = asyncio.Semaphore(SCOPES_AT_ONCE)
    ended: dict[int, Outcome | Failure | Left] = {}
    purse = purse_of(budget)

    async def one(saved: Saved) -> Outcome | Failure | Left:
        if reason := purse.reached or stop():
            return Left(saved.scope, saved.session_id, reason)
        try:
            return await process_session(
                store, saved, extractor=extractor, judge=judge, apply=apply, budget=purse, clock=clock
            )
        except BudgetReached as error:
            return Left(saved.scope, saved.session_id, str(error))
        except AfterwordError as error:
            return await _failed(store, saved, f"{type(error).__name__}: {error}", clock())
        except Exception as error:  # one session that meets a fault of ours must not stop the others
            logger.warning("session %s of %s failed (%s)", saved.session_id, saved.scope, type(error).__name__)
            # The traceback may hold what was said, so it is for those who ask for it.
            logger.debug("where it failed", exc_info=error)
            reason = f"{type(error).__name__}: a fault of afterword, please report it"
            return await _failed(store, saved, reason, clock())

    async def in_scope(places: Sequence[int]) -> None:
        for place in places:
            async with at_once:
                ended[place] = done = await one(found[place])
                if not isinstance(done, Left):
                    on_done(done)

    by_scope: dict[Scope, list[int]] = defaultdict(list)
    for place, saved in enumerate(found):
        by_scope[saved.scope].append(place)
    async with asyncio.TaskGroup() as group:
        for places in by_scope.values():
            group.create_task(in_scope(places))
    return [ended[place] for place in range(len(found))]


async def queued(store: Store) -> list[Saved]:
    """Return the sessions that `record_session` saved and nobody has processed yet."""
    async with store.read() as db:
        waiting = await sessions.queued(db)
    return [Saved(one.scope, one.session_id) for one in waiting]


async def _failed(store: Store, saved: Saved, reason: str, at: datetime) -> Failure:
    """Keep why a session failed; where that cannot be kept either, it is at least told."""
    reason = store.privacy.text(reason)
    try:
        await store.written(lambda db: sessions.mark_failed(db, saved.scope, saved.session_id, reason, at))
    except StoreError as error:
        logger.warning("the failure of a session of %s was not kept (%s)", saved.scope, type(error).__name__)
    return Failure(saved.scope, saved.session_id, reason)
