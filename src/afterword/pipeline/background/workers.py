"""Workers: they share sessions through a Procrastinate queue in the same PostgreSQL database.

A job of the queue contains only the key of a session. Jobs of one scope run one after another (`lock`), and a session
is in the queue only once (`queueing_lock`). If a worker dies, a job may run twice, but a session that is done is not
processed again. The store, not the queue, decides when a failed session is tried again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException, UniqueViolation
from procrastinate.jobs import Status
from procrastinate.signals import on_stop

from afterword import telemetry
from afterword.errors import StoreError, StoreOutdated, StoreUnreachable
from afterword.extractors.extractor import Extractor
from afterword.extractors.judge import Judge
from afterword.facts.scopes import Scope
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import JobResult
from afterword.pipeline.batch import Failure, NotStarted, run_batch
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.consolidation import erase_requested_and_compare
from afterword.pipeline.intake import Saved
from afterword.pipeline.vector_refresh import VectorRefresher
from afterword.store import sessions
from afterword.store.access.webhooks import announce_failed_sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting.forgotten_statements import ERASE_WAIT
from afterword.store.limits import RetryPolicy
from afterword.store.migrations import ADVISORY_LOCK

_log = telemetry.logs(__name__)

QUEUE = "afterword"
SESSION, SWEEP, MEND = "afterword.session", "afterword.sweep", "afterword.mend"
STALLED_AFTER_S = 30.0
"""How long a worker may be silent before its jobs are given to other workers."""
POLL_S = 0.2
CONNECTIONS = 4
"""How many connections a queue may open."""
PATIENCE_S = 7.0
"""How long running sessions may take to end when a worker is stopped; then they are handed back. A worker waits as long
for a connection."""
PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
"""How long a worker pauses while the database does not answer: each time twice as long."""


def unopened_queue(store: Store) -> App:
    """Return the queue of a PostgreSQL store, not open yet. Open it with `async with app.open_async()`."""
    limits: dict[str, Any] = {"min_size": 1, "max_size": CONNECTIONS}
    limits |= {"timeout": PATIENCE_S, "reconnect_timeout": PATIENCE_S}
    return App(connector=PsycopgConnector(conninfo=store.libpq_address, **limits))


@asynccontextmanager
async def open_queue(store: Store) -> AsyncIterator[App]:
    """Open the queue. Raises `StoreOutdated` if its tables are missing, and `StoreUnreachable` without a database."""
    app = unopened_queue(store)
    try:
        async with app.open_async():
            if not await _has_tables(app):
                raise StoreOutdated("the store has no queue for workers yet; run `afterword migrate`")
            yield app
    except (ConnectorException, psycopg.Error) as error:
        raise StoreUnreachable(f"the queue in {store.shown_url} does not answer ({type(error).__name__})") from None


async def create_queue_tables(store: Store) -> bool:
    """Create the queue's tables if they are missing. Return whether they were. Several processes may do so at once."""
    async with await psycopg.AsyncConnection.connect(store.libpq_address, autocommit=True) as lock:
        await lock.execute("SELECT pg_advisory_lock(%s)", (ADVISORY_LOCK,))
        async with unopened_queue(store).open_async() as app:
            if await _has_tables(app):
                return False
            await app.schema_manager.apply_schema_async()
            return True


async def _has_tables(app: App) -> bool:
    row = await app.connector.execute_query_one_async("SELECT to_regclass('procrastinate_jobs') AS name")
    return row["name"] is not None


async def enqueue_waiting_sessions(app: App, store: Store) -> int:
    """Add every waiting session to the queue, unless it is in it. Return how many were added."""
    waiting = await store.read(sessions.pending_session_and_scope_keys)
    return sum([await _enqueue_session(app, key, scope_key) for key, scope_key in waiting])


async def _enqueue_session(app: App, key: int, scope_key: int) -> bool:
    job = app.configure_task(
        SESSION, queue=QUEUE, lock=f"scope:{scope_key}", queueing_lock=f"session:{scope_key}:{key}"
    )
    try:
        await job.defer_async(session=key)
    except AlreadyEnqueued:
        return False
    return True


async def _has_open_jobs(app: App) -> bool:
    query = "SELECT count(*) AS open FROM procrastinate_jobs WHERE task_name = %(task)s AND status IN ('todo', 'doing')"
    row = await app.connector.execute_query_one_async(query, task=SESSION)
    return bool(row["open"])


async def retry_stalled_jobs(app: App, *, silent_s: float = STALLED_AFTER_S) -> int:
    """Queue the jobs of dead workers again, for other workers. Return how many there were."""
    stalled = list(await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=silent_s))
    for job in stalled:
        try:
            await app.job_manager.retry_job(job)
        except UniqueViolation:  # the session is already in the queue again
            await app.job_manager.finish_job(job, status=Status.ABORTED, delete_job=True)
    return len(stalled)


async def _cancel_until_done(working: asyncio.Future[None]) -> None:
    while not working.done():
        # Procrastinate loses a cancellation that comes while it registers the worker, so the worker is cancelled again.
        # The pause is long, because a cancellation would also interrupt a worker that is handing its sessions back.
        working.cancel()
        await asyncio.wait({working}, timeout=2 * PATIENCE_S)


@dataclass(slots=True, kw_only=True)
class Worker:
    """Processes the sessions in the queue. `new_tracker` returns the cost tracker of one session.

    With a `refresher`, vectors of new facts are made after each session. With `erases`, facts that people asked to
    forget are erased once they have been hidden for `erase_wait`.
    """

    store: Store = field(kw_only=False)
    extractor: Extractor
    judge: Judge
    new_tracker: Callable[[], CostTracker]
    retries: RetryPolicy
    refresher: VectorRefresher | None = None
    erases: bool = False
    erase_wait: timedelta = ERASE_WAIT
    _processed: int = field(init=False, default=0)
    _failures: Counter[str] = field(init=False, default_factory=Counter)

    async def run(self, app: App, *, concurrency: int = 4, once: bool = False) -> JobResult:
        """Work until SIGTERM or Ctrl-C, or with `once` until the queue is empty, on `concurrency` sessions at once.

        Return how many sessions were processed, and why others failed. If the database does not answer, the worker goes
        on as soon as it does; with `once` an error is raised.

        Waiting sessions are put into the queue every minute, and jobs of dead workers are retried every 10 s.
        """
        self._register_tasks(app)
        halt, pause_s = Halt(), PAUSE_S
        with on_stop(partial(halt.stop, "a signal")):
            while halt() is None:
                try:
                    await retry_stalled_jobs(app)
                    await self._queue_waiting_sessions(app)
                    pause_s = PAUSE_S
                    if once and not await _has_open_jobs(app):
                        break
                    await self._run_procrastinate(app, halt, concurrency, once=once)
                except (ConnectorException, StoreUnreachable):
                    if once:
                        raise
                if not once and halt() is None:
                    _log.warning("the queue in %s does not answer; it is tried again", self.store.shown_url)
                    await halt.wait(pause_s)
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return JobResult({"sessions processed": self._processed}, self._failures)

    async def _run_procrastinate(self, app: App, halt: Halt, concurrency: int, *, once: bool) -> None:
        """Work until a stop is requested or the database does not answer, or with `once` until the queue is empty."""
        working = asyncio.ensure_future(
            app.run_worker_async(
                queues=[QUEUE],
                concurrency=concurrency,
                shutdown_graceful_timeout=PATIENCE_S,
                stalled_worker_timeout=STALLED_AFTER_S,
                delete_jobs="always",
                install_signal_handlers=False,
            )
        )
        try:
            while not working.done() and halt() is None and (not once or await _has_open_jobs(app)):
                await asyncio.wait({working}, timeout=POLL_S)
        finally:
            await _cancel_until_done(working)
        with suppress(asyncio.CancelledError):
            await working

    def _register_tasks(self, app: App) -> None:
        async def sweep(timestamp: int) -> None:  # noqa: ARG001 - the queue passes it by name
            await self._queue_waiting_sessions(app)

        async def retry_dead_workers(timestamp: int) -> None:  # noqa: ARG001 - the queue passes it by name
            await retry_stalled_jobs(app)

        app.task(name=SESSION, queue=QUEUE)(self.process)
        app.periodic(cron="* * * * *")(app.task(name=SWEEP, queue=QUEUE, queueing_lock=SWEEP)(sweep))
        app.periodic(cron="* * * * * */10")(app.task(name=MEND, queue=QUEUE, queueing_lock=MEND)(retry_dead_workers))

    async def _queue_waiting_sessions(self, app: App) -> None:
        await self.store.write(lambda transaction: sessions.requeue_due_failed_sessions(transaction, datetime.now(UTC)))
        await enqueue_waiting_sessions(app, self.store)

    async def process(self, session: int) -> None:
        """Process the session with this key, unless it is done or not due."""
        row = await self.store.read(lambda transaction: sessions.session_by_pk(transaction, session))
        if row is None or row.progress is not sessions.Progress.PENDING:
            return
        (result,) = await run_batch(
            self.store,
            [Saved(row.scope, row.session_id)],
            extractor=self.extractor,
            judge=self.judge,
            budget=self.new_tracker(),
            retries=self.retries,
        )
        if isinstance(result, Failure):
            await self._count_and_announce_failure(result)
        elif not isinstance(result, NotStarted):
            self._processed += 1
        await self._update_scope(row.scope)

    async def _count_and_announce_failure(self, failure: Failure) -> None:
        self._failures[failure.reason] += 1
        with suppress(StoreError):  # the failure itself is stored already
            await self.store.write(
                partial(announce_failed_sessions, scope=failure.scope, failed_sessions=1, at=datetime.now(UTC))
            )

    async def _update_scope(self, scope: Scope) -> None:
        """Erase what people of the scope asked to forget, and make the vectors of its new facts."""
        if self.erases:
            await erase_requested_and_compare(
                self.store, [scope], judge=self.judge, at=datetime.now(UTC), wait=self.erase_wait
            )
        if self.refresher is not None:
            refreshed = await self.refresher.refresh([scope])
            if refreshed.error is not None:
                _log.warning("the vectors of a memory are left for later: %s", refreshed.error)
