"""Many sessions in one run: several scopes side by side, and within a scope in time order, read ahead of their turn."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import AfterwordError, StoreError
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import AT_ONCE, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import SessionOutcome, process_session
from afterword.store import sessions
from afterword.store.database.engine import Store
from afterword.store.retry_schedule import Retries
from afterword.store.sessions import Progress
from afterword.telemetry import Count, Stage, count

logger = telemetry.logs(__name__)

AHEAD = 4
"""How many sessions of one scope are read at once: what they say waits for the sessions before them to be stored."""
_RETRIES = Retries()


@dataclass(frozen=True, slots=True)
class Failure:
    """A session that could not be processed, and why; it is kept in the store and stays queued."""

    scope: Scope
    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotStarted:
    """A session that was not processed, since the batch was stopped before; it stays as it was, queued or not."""

    scope: Scope
    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class NotDue:
    """A session that failed before and is not to be tried yet, or not until somebody puts it back."""

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
    budget: Budget | CostTracker | None = None,
    stop: Callable[[], str | None] = lambda: None,
    on_done: Callable[[SessionOutcome | Failure], None] = lambda _: None,
    retries: Retries = _RETRIES,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    concurrency: int = AT_ONCE,
    is_brief: bool = False,
) -> list[SessionOutcome | Failure | NotStarted]:
    """Process the sessions and return what became of each, in their order.

    A session that fails is kept with its reason and does not stop the others; `retries` says when it is due again.
    Once the `budget` is reached, or `stop` gives a reason, no other session is begun, and those that are being
    processed come to their end. `on_done` is told of each as it ends, of none that is left. A model is asked so many
    questions at once as `concurrency` says: of several scopes, and, where nothing limits what is spent, of the next
    sessions of one, whose answers wait until the sessions before them are stored. Where `is_brief`, nobody is handed
    the turns that were read, only their number: those of many sessions would take up much memory.
    """
    tracker = as_cost_tracker(budget)
    tracker.limit(concurrency)
    batch = _Batch(store, extractor, judge, apply, tracker, stop, retries, clock, is_brief)
    at_work = asyncio.Semaphore(2 * concurrency)
    # Sessions that are read side by side could spend a budget without any of them being read to its end.
    ahead = 1 if tracker.budget.has_limit else AHEAD
    ended: dict[int, SessionOutcome | Failure | NotStarted] = {}

    async def one(place: int, before: asyncio.Task[None] | None) -> None:
        try:
            ended[place] = done = await batch.process(found[place], before)
            if before is not None:
                await asyncio.wait([before])
            if not isinstance(done, NotStarted):
                on_done(done)
        finally:
            at_work.release()

    async def in_scope(places: Sequence[int], group: asyncio.TaskGroup) -> None:
        tasks: deque[asyncio.Task[None]] = deque(maxlen=ahead)
        for place in places:
            if len(tasks) == ahead:
                await asyncio.wait([tasks[0]])
            await at_work.acquire()
            tasks.append(group.create_task(one(place, tasks[-1] if tasks else None)))
            await asyncio.sleep(0)  # other scopes first, before the next session of this one

    by_scope: dict[Scope, list[int]] = defaultdict(list)
    for place, saved in enumerate(found):
        by_scope[saved.scope].append(place)
    with telemetry.stage(Stage.BATCH, sessions=len(found), scopes=len(by_scope)):
        async with asyncio.TaskGroup() as group:
            for places in by_scope.values():
                group.create_task(in_scope(places, group))
    return [ended[place] for place in range(len(found))]


@dataclass(frozen=True, slots=True)
class _Batch:
    """What is the same for every session of a batch; the fields are the arguments of `run_batch`."""

    store: Store
    extractor: Extractor
    judge: Judge | None
    apply: bool
    tracker: CostTracker
    stop: Callable[[], str | None]
    retries: Retries
    clock: Callable[[], datetime]
    is_brief: bool

    async def process(self, saved: Saved, before: asyncio.Task[None] | None) -> SessionOutcome | Failure | NotStarted:
        """Process one session, whatever comes of it."""
        if reason := self.tracker.reached or self.stop():
            return NotStarted(saved.scope, saved.session_id, reason)
        begun_at = self.clock()
        try:
            return await self._outcome(saved, before)
        except BudgetReached as error:
            return NotStarted(saved.scope, saved.session_id, str(error))
        except AfterwordError as error:
            told = f"{type(error).__name__}: {error}"
        except Exception as error:  # one session that meets a fault of ours must not stop the others
            logger.warning("session %s of %s failed (%s)", saved.session_id, saved.scope, type(error).__name__)
            # The traceback may hold what was said, so it is for those who ask for it.
            logger.debug("where it failed", exc_info=error)
            count(Count.SESSIONS, result="failed")
            told = f"{type(error).__name__}: a fault of afterword, please report it"
        return await self._failed(saved, told, begun_at)

    async def _outcome(self, saved: Saved, before: asyncio.Task[None] | None) -> SessionOutcome:
        outcome = await process_session(
            self.store,
            saved,
            extractor=self.extractor,
            judge=self.judge,
            apply=self.apply,
            budget=self.tracker,
            clock=self.clock,
            before=before,
        )
        return outcome.brief() if self.is_brief else outcome

    async def _failed(self, saved: Saved, told: str, begun_at: datetime) -> Failure:
        """Keep why a session failed; where that cannot be kept either, it is at least told."""
        reason, at = self.store.privacy.mask_text(told), self.clock()

        def work(db: Session) -> Progress:
            return sessions.mark_failed(
                db, saved.scope, saved.session_id, reason, at, retries=self.retries, begun_at=begun_at
            )

        try:
            if await self.store.write(work) is Progress.SET_ASIDE:
                count(Count.SESSIONS, result="set aside")
                logger.warning("session %s of %s is set aside; see `afterword status`", saved.session_id, saved.scope)
        except StoreError as error:
            logger.warning("the failure of a session of %s was not kept (%s)", saved.scope, type(error).__name__)
        return Failure(saved.scope, saved.session_id, reason)


async def queued_sessions(store: Store, *, at: datetime | None = None) -> list[Saved]:
    """Return the sessions that `record_session` saved and nobody has processed yet.

    With `at` those that are due then; else also those whose pause after a failure has not passed.
    """
    waiting = await store.read(lambda db: sessions.waiting_sessions(db, at=at))
    return [Saved(one.scope, one.session_id) for one in waiting]


async def due_sessions(store: Store, found: Sequence[Saved], at: datetime) -> list[Saved | NotDue]:
    """Return the sessions in their order; in place of those that failed and are not to be tried yet, or no more, why.

    What was written anew since it failed is another matter, and due.
    """
    kept = await store.read(lambda db: {(one.scope, one.session_id): one for one in sessions.failed_sessions(db)})
    return [_due(saved, kept.get((saved.scope, saved.session_id)), at) for saved in found]


def _due(saved: Saved, kept: sessions.SavedSession | None, at: datetime) -> Saved | NotDue:
    if kept is None or (saved.file_time is not None and saved.file_time > kept.updated_at):
        return saved
    if kept.next_try_at is None:
        reason = f"set aside after {kept.attempts} tries; `afterword retry {saved.session_id}` puts it back"
    elif kept.next_try_at > at:
        reason = f"it failed, and is tried again after {kept.next_try_at.isoformat(timespec='seconds')}"
    else:
        return saved
    return NotDue(saved.scope, saved.session_id, reason)
