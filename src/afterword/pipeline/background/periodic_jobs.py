"""The periodic jobs: processing waiting sessions, retrying failed ones, consolidating scopes, making vectors.

Further jobs erase what people asked to forget, erase what is older than the retention allows, and send webhooks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from afterword import telemetry
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.leases import Job, JobResult
from afterword.pipeline.background.webhook_sending import WEBHOOKS, WebhookSender
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.budget import AT_ONCE, CostTracker
from afterword.pipeline.consolidation import apply_retention_and_compare, consolidate_scope, erase_requested_and_compare
from afterword.pipeline.intake import Saved
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.vector_refresh import VectorRefresher
from afterword.store import jobs, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.forgotten_statements import ERASE_WAIT, scopes_that_ever_had_erase_requests
from afterword.store.forgetting.retention import Retention
from afterword.store.limits import RetryPolicy
from afterword.store.scope_rows import read_scopes

_log = telemetry.logs(__name__)

PENDING, RETRIES, CONSOLIDATION = "pending", "retries", jobs.CONSOLIDATION
EMBEDDING, RETENTION = "embedding refresh", "retention"


@dataclass(frozen=True, slots=True)
class ConsolidationRule:
    """When a scope is due for consolidation.

    It needs `new_sessions` new sessions, `idle_s` seconds since the last one, and `apart_s` since the last
    consolidation.
    """

    new_sessions: int = 5
    idle_s: float = 600.0
    apart_s: float = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class PeriodicJobs:
    """The periodic work on one store.

    `new_tracker` returns the cost tracker of one batch. Once `stop` returns a reason, nothing more is begun. `defer`
    hands waiting sessions to workers, so that they are not processed here. Without a `refresher` no vectors are made.
    With `erases`, facts that people asked to forget are erased once they have been hidden for `erase_wait`. `retention`
    says how long sessions and facts are kept. Without `webhooks` no posts are sent.
    """

    store: Store
    extractor: Extractor
    judge: Judge
    new_tracker: Callable[[], CostTracker]
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    rule: ConsolidationRule = field(default_factory=ConsolidationRule)
    clock: JobClock = field(default_factory=JobClock)
    stop: Callable[[], str | None] = lambda: None
    defer: Callable[[], Awaitable[int]] | None = None
    refresher: VectorRefresher | None = None
    concurrency: int = AT_ONCE
    erases: bool = False
    erase_wait: timedelta = ERASE_WAIT
    retention: Retention = field(default_factory=Retention)
    webhooks: WebhookSender | None = None

    async def process_waiting_sessions(self) -> JobResult:
        """Process the recorded sessions, or hand them to workers."""
        if self.defer is not None:
            return JobResult({"sessions handed to workers": await self.defer(), **await self._erase_on_request()})
        waiting = await self.store.read(
            lambda transaction: sessions.waiting_sessions(transaction, progress=(sessions.Progress.PENDING,))
        )
        results = await self._process([Saved(session.scope, session.session_id) for session in waiting])
        failures = Counter(result.reason for result in results if isinstance(result, Failure))
        left = sum(isinstance(result, NotStarted) for result in results)
        counts = {"sessions processed": len(results) - failures.total() - left, **({"left": left} if left else {})}
        return JobResult({**counts, **await self._erase_on_request()}, failures)

    async def _process(self, saved_sessions: Sequence[Saved]) -> list[SessionOutcome | Failure | NotStarted]:
        return await run_batch(
            self.store,
            saved_sessions,
            extractor=self.extractor,
            judge=self.judge,
            budget=self.new_tracker(),
            stop=self.stop,
            retries=self.retries,
            clock=self.clock.now,
            concurrency=self.concurrency,
            is_brief=True,
        )

    async def queue_failed_sessions(self) -> JobResult:
        """Queue failed sessions again whose pause has passed."""
        queued = await self.store.write(
            lambda transaction: sessions.requeue_due_failed_sessions(transaction, self.clock.now())
        )
        return JobResult({"sessions queued again": queued})

    async def consolidate_due_scopes(self) -> JobResult:
        """Consolidate the scopes that are due, one after another."""
        tracker, consolidated, failures = self.new_tracker(), 0, Counter[str]()
        for scope in await self._scopes_to_consolidate():
            if self.stop() is not None or tracker.reached:
                break
            try:
                await consolidate_scope(self.store, scope, judge=self.judge, budget=tracker, clock=self.clock.now)
            except ExtractionError as error:  # the other scopes must not wait for this one; it stays due
                _log.warning("%s could not be consolidated (%s)", telemetry.scope_mark(scope), type(error).__name__)
                failures[str(error)] += 1
                continue
            if not tracker.reached:
                await self.store.write(partial(jobs.mark_consolidated, scope=scope, at=self.clock.now()))
                consolidated += 1
        return JobResult({"memories consolidated": consolidated}, failures)

    async def _scopes_to_consolidate(self) -> Sequence[Scope]:
        now = self.clock.now()
        due = partial(
            jobs.scopes_to_consolidate,
            new_sessions=self.rule.new_sessions,
            idle_since=now - timedelta(seconds=self.rule.idle_s),
            last_before=now - timedelta(seconds=self.rule.apart_s),
        )
        return await self.store.read(due)

    async def make_missing_vectors(self) -> JobResult:
        """Make the missing vectors. Raises `EmbeddingUnavailable`, `BudgetReached` or a `StoreError`."""
        return JobResult({"vectors made": 0 if self.refresher is None else await self.refresher.refresh_or_raise()})

    async def forget_by_retention(self) -> JobResult:
        """Forget the sessions and facts that are older than the retention allows."""
        scopes = await self.store.read(read_scopes)
        erased = await apply_retention_and_compare(
            self.store, scopes, self.retention, judge=self.judge, at=self.clock.now()
        )
        return JobResult({"rows erased": erased.total()})

    async def _erase_on_request(self) -> dict[str, int]:
        """Erase what people asked to forget, once it has been hidden for as long as `erase_wait`.

        Returns the number of erased rows under the name that a job reports, or nothing if there were none.
        """
        if not self.erases:
            return {}
        scopes = await self.store.read(scopes_that_ever_had_erase_requests)
        erased = await erase_requested_and_compare(
            self.store, scopes, judge=self.judge, at=self.clock.now(), wait=self.erase_wait
        )
        return {"rows erased on request": erased.total()} if erased else {}

    def jobs(self, rhythms: Mapping[str, Rhythm]) -> list[Job]:
        """Return the jobs with their rhythms. Retries come first: the same round processes what they queue again."""
        work_by_name: dict[str, Callable[[], Awaitable[JobResult | None]]] = {
            RETRIES: self.queue_failed_sessions,
            PENDING: self.process_waiting_sessions,
            CONSOLIDATION: self.consolidate_due_scopes,
        }
        if self.refresher is not None:
            work_by_name[EMBEDDING] = self.make_missing_vectors
        if self.retention.is_on:
            work_by_name[RETENTION] = self.forget_by_retention
        if self.webhooks is not None:
            work_by_name[WEBHOOKS] = self.webhooks.send_due_posts
        # Failures to send posts are not announced: each announcement would be another post.
        return [Job(name, rhythms[name], work, is_announced=name != WEBHOOKS) for name, work in work_by_name.items()]
