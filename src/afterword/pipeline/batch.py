"""Processing many sessions in one run: several scopes at once, and the sessions of a scope in the order of time.

The sessions come from files, from a state that the caller passes, or from the queue of recorded sessions.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import AfterwordError, NothingSelected, StoreError
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import AT_ONCE, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import BudgetReached
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.databases import is_sqlite_database
from afterword.pipeline.sources.folders import MANIFEST, find_sessions
from afterword.store import sessions
from afterword.store.database.engine import Store
from afterword.store.limits import RetryPolicy
from afterword.store.sessions import Progress
from afterword.telemetry import Count, Stage, count

_log = telemetry.logs(__name__)

SESSIONS_AHEAD = 4
"""How many sessions of one scope are extracted at once. Each is judged and stored after the session before it."""
_RETRIES = RetryPolicy()


@dataclass(frozen=True, slots=True)
class _UnprocessedSession:
    scope: Scope
    session_id: str
    reason: str


class Failure(_UnprocessedSession):
    """A session that could not be processed, and why. The reason is stored, and the session stays queued."""


class NotStarted(_UnprocessedSession):
    """A session that was not processed because the batch was stopped first. Its state is unchanged."""


class NotDue(_UnprocessedSession):
    """A session that failed before and is not tried now. `reason` says when it is tried again, or how to queue it."""


@dataclass(frozen=True, slots=True)
class SelectedSessions:
    """Sessions to process. If `are_named` (the caller named each), they are tried even if they have just failed."""

    sessions: Sequence[Saved]
    are_named: bool


async def run_batch(
    store: Store,
    saved_sessions: Sequence[Saved],
    *,
    extractor: Extractor,
    judge: Judge | None = None,
    apply: bool = True,
    budget: Budget | CostTracker | None = None,
    stop: Callable[[], str | None] = lambda: None,
    on_done: Callable[[SessionOutcome | Failure], None] = lambda _: None,
    retries: RetryPolicy = _RETRIES,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    concurrency: int = AT_ONCE,
    sessions_at_once: int | None = None,
    is_brief: bool = False,
) -> list[SessionOutcome | Failure | NotStarted]:
    """Process the sessions and return the result of each, in their order.

    A session that fails does not stop the others; `retries` says when it is due again. Once the `budget` is reached, or
    `stop` returns a reason, no further session is started, and running ones are finished. `on_done` is called with each
    result except `NotStarted`. At most `concurrency` model requests are open at once. They belong to several scopes
    and, unless a budget is set, to several sessions of one scope. At most `sessions_at_once` sessions are processed at
    once, by default twice `concurrency`. With `is_brief` the results leave out the turns, to save memory.
    """
    tracker = as_cost_tracker(budget)
    tracker.limit_open_requests(concurrency)
    batch = _Batch(store, extractor, judge, apply, tracker, stop, retries, clock, is_brief)
    return await _BatchRun(batch, saved_sessions, on_done, sessions_at_once or 2 * concurrency).run()


class _BatchRun:
    """Processes the sessions of each scope in their order, and at most `at_once` sessions at once."""

    def __init__(
        self, batch: _Batch, saved: Sequence[Saved], on_done: Callable[[SessionOutcome | Failure], None], at_once: int
    ) -> None:
        self._batch, self._saved, self._on_done = batch, saved, on_done
        self._running = asyncio.Semaphore(at_once)
        # Concurrent sessions could spend a budget without any of them being finished.
        self._ahead = 1 if batch.tracker.budget.has_limit else SESSIONS_AHEAD
        self._results: dict[int, SessionOutcome | Failure | NotStarted] = {}

    async def run(self) -> list[SessionOutcome | Failure | NotStarted]:
        by_scope: dict[Scope, list[int]] = defaultdict(list)
        for place, saved in enumerate(self._saved):
            by_scope[saved.scope].append(place)
        with telemetry.stage(Stage.BATCH, sessions=len(self._saved), scopes=len(by_scope)):
            async with asyncio.TaskGroup() as group:
                for places in by_scope.values():
                    group.create_task(self._process_scope(places, group))
        return [self._results[place] for place in range(len(self._saved))]

    async def _process_scope(self, places: Sequence[int], group: asyncio.TaskGroup) -> None:
        tasks: deque[asyncio.Task[None]] = deque(maxlen=self._ahead)
        for place in places:
            if len(tasks) == self._ahead:
                await asyncio.wait([tasks[0]])
            await self._running.acquire()
            tasks.append(group.create_task(self._process(place, tasks[-1] if tasks else None)))
            await asyncio.sleep(0)  # let other scopes start before the next session of this one

    async def _process(self, place: int, previous: asyncio.Task[None] | None) -> None:
        try:
            self._results[place] = result = await self._batch.process(self._saved[place], previous)
            if previous is not None:
                await asyncio.wait([previous])
            if not isinstance(result, NotStarted):
                self._on_done(result)
        finally:
            self._running.release()


@dataclass(frozen=True, slots=True)
class _Batch:
    """The settings of a batch: the arguments of `run_batch`."""

    store: Store
    extractor: Extractor
    judge: Judge | None
    apply: bool
    tracker: CostTracker
    stop: Callable[[], str | None]
    retries: RetryPolicy
    clock: Callable[[], datetime]
    is_brief: bool

    async def process(self, saved: Saved, previous: asyncio.Task[None] | None) -> SessionOutcome | Failure | NotStarted:
        """Process one session. An error becomes a `Failure`."""
        if reason := self.tracker.reached or self.stop():
            return NotStarted(saved.scope, saved.session_id, reason)
        begun_at = self.clock()
        processing = process_session(
            self.store,
            saved,
            extractor=self.extractor,
            judge=self.judge,
            apply=self.apply,
            budget=self.tracker,
            clock=self.clock,
            before=previous,
        )
        # Errors are returned: a bug that one session meets must not stop the others.
        (ended,) = await asyncio.gather(processing, return_exceptions=True)
        if isinstance(ended, SessionOutcome):
            return ended.brief() if self.is_brief else ended
        if isinstance(ended, BudgetReached):
            return NotStarted(saved.scope, saved.session_id, str(ended))
        if not isinstance(ended, Exception):
            raise ended  # it was cancelled
        return await self._store_failure(saved, _failure_message(saved, ended), begun_at)

    async def _store_failure(self, saved: Saved, message: str, begun_at: datetime) -> Failure:
        """Store why a session failed. If that fails too, the reason is still returned."""
        reason, at, mark = self.store.privacy.mask_text(message), self.clock(), telemetry.scope_mark(saved.scope)
        try:
            progress = await self.store.write(
                lambda transaction: sessions.mark_failed(
                    transaction, saved.scope, saved.session_id, reason, at, retries=self.retries, begun_at=begun_at
                )
            )
            if progress is Progress.SET_ASIDE:
                count(Count.SESSIONS, result="set aside")
                _log.warning("session %s of %s is set aside; see `afterword status`", saved.session_id, mark)
        except StoreError as error:
            _log.warning("the failure of a session of %s was not stored (%s)", mark, type(error).__name__)
        return Failure(saved.scope, saved.session_id, reason)


def _failure_message(saved: Saved, error: Exception) -> str:
    """Return why a session failed. A fault of afterword is logged and counted here."""
    if isinstance(error, AfterwordError):
        return f"{type(error).__name__}: {error}"
    scope = telemetry.scope_mark(saved.scope)
    _log.warning("session %s of %s failed (%s)", saved.session_id, scope, type(error).__name__)
    # The traceback may hold a user's words, so it is logged for debugging only.
    _log.debug("where it failed", exc_info=error)
    count(Count.SESSIONS, result="failed")
    return f"{type(error).__name__}: a fault of afterword, please report it"


async def queued_sessions(store: Store, *, at: datetime | None = None) -> list[Saved]:
    """Return the sessions that `record_session` saved and that are not processed yet.

    With `at`, only those that are due at that time. Without it, also failed sessions that must wait before a retry.
    """
    waiting = await store.read(lambda transaction: sessions.waiting_sessions(transaction, at=at))
    return [Saved(session.scope, session.session_id) for session in waiting]


def select_sessions(
    paths: Sequence[Path],
    *,
    session_id: str | None = None,
    scope: Scope | None = None,
    manifest: Path | None = None,
    trust_manifest: bool = False,
) -> SelectedSessions:
    """Return the sessions at these paths, or the one of them with this id.

    Raises `SourceInvalid` as `find_sessions` does, and `NothingSelected` if no session there has this id.
    """
    saved = find_sessions(paths, scope=scope, manifest=manifest, trust_manifest=trust_manifest)
    if session_id is not None:
        saved = [session for session in saved if session.session_id == session_id]
        if not saved:
            raise NothingSelected(f"no session {session_id!r} lies there; without a session id all are processed")
    are_states = manifest is None and all(
        path.is_file() and path.name != MANIFEST and not is_sqlite_database(path) for path in paths
    )
    return SelectedSessions(saved, are_named=session_id is not None or are_states)


async def sessions_to_process(
    store: Store, selection: SelectedSessions | None, at: datetime
) -> tuple[list[Saved], list[NotDue]]:
    """Return the sessions to process at this instant, and those that failed before and must wait.

    Without a selection, all recorded sessions that wait are considered. A failed session whose file has changed since
    is processed. Raises `NotFound` if the selection names a recorded session that the store does not have.
    """
    if selection is not None and selection.are_named:
        named = list(selection.sessions)

        def check_recorded(transaction: Session) -> None:
            for session in named:
                if session.path is None and session.state is None and not session.reread:
                    sessions.load_state(transaction, session.scope, session.session_id)

        await store.read(check_recorded)
        return named, []
    waiting = await queued_sessions(store) if selection is None else selection.sessions
    failed = {(row.scope, row.session_id): row for row in await store.read(sessions.failed_sessions)}
    saved_or_waiting = [_saved_if_due(saved, failed.get((saved.scope, saved.session_id)), at) for saved in waiting]
    return (
        [session for session in saved_or_waiting if isinstance(session, Saved)],
        [session for session in saved_or_waiting if isinstance(session, NotDue)],
    )


def _saved_if_due(saved: Saved, failed: sessions.SavedSession | None, at: datetime) -> Saved | NotDue:
    if failed is None or (saved.file_time is not None and saved.file_time > failed.updated_at):
        return saved
    if failed.next_try_at is None:
        reason = f"set aside after {failed.attempts} tries; `afterword retry {saved.session_id}` queues it again"
    elif failed.next_try_at > at:
        reason = f"it failed, and is tried again after {failed.next_try_at.isoformat(timespec='seconds')}"
    else:
        return saved
    return NotDue(saved.scope, saved.session_id, reason)
