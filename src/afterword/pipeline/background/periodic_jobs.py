"""The periodic jobs: processing waiting sessions, retrying failed ones, consolidating scopes, making vectors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlmodel import Session

from afterword import telemetry
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import Clock, Rhythm
from afterword.pipeline.background.leases import Job
from afterword.pipeline.batch import run_batch
from afterword.pipeline.budget import AT_ONCE, CostTracker
from afterword.pipeline.consolidation import consolidate_scope
from afterword.pipeline.forget_requests import erase_and_compare, retain_and_compare
from afterword.pipeline.intake import Saved
from afterword.pipeline.vector_refresh import VectorRefresher
from afterword.store import jobs, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.erase_requests import WAIT
from afterword.store.forgetting.erasure import scopes_with_requests
from afterword.store.forgetting.retention import Retention
from afterword.store.retry_schedule import Retries
from afterword.store.scope_rows import read_scopes

logger = telemetry.logs(__name__)

PENDING, RETRIES, CONSOLIDATION = "pending", "retries", jobs.CONSOLIDATION
EMBEDDING, RETENTION = "embedding refresh", "retention"


@dataclass(frozen=True, slots=True)
class ConsolidationRule:
    """When a scope is consolidated: after this many new sessions, this long after the last one, and this long after the
    last consolidation."""

    new_sessions: int = 5
    idle_s: float = 600.0
    apart_s: float = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class PeriodicJobs:
    """The periodic work on one store.

    `new_tracker` makes the cost tracker of one batch. `stop` returns a reason to begin nothing more, or None. With
    `defer`, waiting sessions are handed to it and not processed here. Without a `refresher` no vectors are made. With
    `erases`, facts that people asked to be forgotten are erased once they are hidden for `erase_wait`. `retention` says
    how long sessions and facts are kept.
    """

    store: Store
    extractor: Extractor
    judge: Judge
    new_tracker: Callable[[], CostTracker]
    retries: Retries = field(default_factory=Retries)
    rule: ConsolidationRule = field(default_factory=ConsolidationRule)
    clock: Clock = field(default_factory=Clock)
    stop: Callable[[], str | None] = lambda: None
    defer: Callable[[], Awaitable[object]] | None = None
    refresher: VectorRefresher | None = None
    concurrency: int = AT_ONCE
    erases: bool = False
    erase_wait: timedelta = WAIT
    retention: Retention = field(default_factory=Retention)

    async def pending(self) -> None:
        """Process the recorded sessions, or hand them to workers."""
        if self.defer is not None:
            await self.defer()
            await self._erase()
            return
        waiting = await self.store.read(
            lambda transaction: sessions.waiting_sessions(transaction, progress=(sessions.Progress.PENDING,))
        )
        await run_batch(
            self.store,
            [Saved(session.scope, session.session_id) for session in waiting],
            extractor=self.extractor,
            judge=self.judge,
            budget=self.new_tracker(),
            stop=self.stop,
            retries=self.retries,
            clock=self.clock.now,
            concurrency=self.concurrency,
            is_brief=True,
        )
        await self._erase()

    async def retry(self) -> None:
        """Queue failed sessions again whose pause has passed."""
        await self.store.write(lambda transaction: sessions.requeue_failed_sessions(transaction, self.clock.now()))

    async def consolidation(self) -> None:
        """Consolidate the scopes that are due for it, one after another."""
        tracker = self.new_tracker()
        for scope in await self._scopes_to_consolidate():
            if self.stop() is not None or tracker.reached:
                return
            try:
                await consolidate_scope(self.store, scope, judge=self.judge, budget=tracker, clock=self.clock.now)
            except ExtractionError as error:  # the other scopes must not wait for this one; it stays due
                logger.warning("%s could not be consolidated (%s)", telemetry.scope_mark(scope), type(error).__name__)
                continue
            if not tracker.reached:
                await self._mark(scope, self.clock.now())

    async def retain(self) -> None:
        """Forget the sessions and facts that are older than the retention allows."""
        scopes = await self.store.read(read_scopes)
        await retain_and_compare(self.store, scopes, self.retention, judge=self.judge, at=self.clock.now())

    async def _erase(self) -> None:
        """Erase what people asked to be forgotten, once it has been hidden for as long as `erase_wait`."""
        if self.erases:
            scopes = await self.store.read(scopes_with_requests)
            at = self.clock.now()
            await erase_and_compare(self.store, scopes, judge=self.judge, at=at, wait=self.erase_wait)

    async def _scopes_to_consolidate(self) -> list[Scope]:
        now, rule = self.clock.now(), self.rule
        idle_since, last_before = now - timedelta(seconds=rule.idle_s), now - timedelta(seconds=rule.apart_s)
        return await self.store.read(
            lambda transaction: jobs.scopes_to_consolidate(
                transaction, new_sessions=rule.new_sessions, idle_since=idle_since, last_before=last_before
            )
        )

    async def _mark(self, scope: Scope, at: datetime) -> None:
        def work(transaction: Session) -> None:
            jobs.mark_consolidated(transaction, scope, at)

        await self.store.write(work)

    def jobs(self, rhythms: Mapping[str, Rhythm]) -> list[Job]:
        """Return the jobs with their rhythms. Retries come first: the same round processes what they queue again."""
        work_by_name: dict[str, Callable[[], Awaitable[object]]] = {
            RETRIES: self.retry,
            PENDING: self.pending,
            CONSOLIDATION: self.consolidation,
        }
        if self.refresher is not None:
            work_by_name[EMBEDDING] = self.refresher.refresh_or_raise
        if self.retention.is_on:
            work_by_name[RETENTION] = self.retain
        return [Job(name, rhythms[name], work) for name, work in work_by_name.items()]
