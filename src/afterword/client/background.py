"""Builds the schedule of periodic jobs, and the workers that process sessions from a queue in PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any

from afterword.client.access.webhooks import webhook_sender
from afterword.client.resources import Resources
from afterword.errors import ArgumentInvalid
from afterword.json_form import iso_instant
from afterword.pipeline.background.due_times import Rhythm
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import JobReport, JobResult
from afterword.pipeline.background.periodic_jobs import (
    CONSOLIDATION,
    EMBEDDING,
    PENDING,
    RETENTION,
    RETRIES,
    ConsolidationRule,
    PeriodicJobs,
)
from afterword.pipeline.background.schedule import Schedule
from afterword.pipeline.background.webhook_sending import WEBHOOKS
from afterword.setting_sections import ScheduleOptions
from afterword.store.database.engine import Store

WORKER_LIBRARY = "procrastinate"


@asynccontextmanager
async def open_schedule(
    resources: Resources, halt: Halt, on_end: Callable[[JobReport], None]
) -> AsyncIterator[Schedule]:
    """Yield the schedule of the configured jobs."""
    settings, options = resources.settings, resources.settings.schedule
    rhythms = _rhythm_by_job(options)
    store = await resources.store()
    queue = waiting_sessions_enqueuer(store) if options.defer else nullcontext()
    async with resources.extractor_and_judge() as configured, queue as defer:
        chores = PeriodicJobs(
            store,
            configured.extractor,
            configured.judge,
            resources.new_tracker,
            retries=settings.retry.policy(),
            rule=ConsolidationRule(options.new_sessions, options.idle_s, options.apart_s),
            stop=halt,
            defer=defer,
            refresher=await resources.vector_refresher(stop=halt),
            erases=settings.privacy.erases_without_approval,
            erase_wait=settings.privacy.erase_wait,
            concurrency=settings.concurrency,
            retention=settings.retention.policy(),
            webhooks=webhook_sender(store, settings.webhooks, resources.now, halt),
        )
        yield Schedule(
            store, chores.jobs(rhythms), jitter_s=options.jitter_s, lease_s=options.lease_s, halt=halt, on_end=on_end
        )


def _rhythm_by_job(options: ScheduleOptions) -> dict[str, Rhythm]:
    due_times = {
        PENDING: options.pending,
        RETRIES: options.retries,
        CONSOLIDATION: options.consolidation,
        EMBEDDING: options.embedding,
        RETENTION: options.retention,
        WEBHOOKS: options.webhooks,
    }
    return {name: Rhythm.parse(text, options.timezone) for name, text in due_times.items()}


def job_report_json(report: JobReport) -> dict[str, Any]:
    """Return as JSON how and when a job ended, what it did, and why parts of it failed."""
    counts, failures = dict(report.counts), dict(report.failures)
    return {"ending": str(report.ending), "at": iso_instant(report.at), "counts": counts, "failures": failures}


async def run_worker(
    resources: Resources, *, concurrency: int, once: bool, on_begin: Callable[[str], None]
) -> JobResult:
    """Process the sessions in the workers' queue until stopped, or with `once` until it is empty. Return the counts."""
    store = await resources.store()
    check_workers_possible(store)
    from afterword.pipeline.background import workers

    settings = resources.settings
    async with resources.extractor_and_judge() as configured:
        worker = workers.Worker(
            store,
            extractor=configured.extractor,
            judge=configured.judge,
            new_tracker=resources.new_tracker,
            retries=settings.retry.policy(),
            refresher=await resources.vector_refresher(),
            erases=settings.privacy.erases_without_approval,
            erase_wait=settings.privacy.erase_wait,
        )
        async with workers.open_queue(store) as app:
            on_begin(store.shown_url)
            return await worker.run(app, concurrency=concurrency, once=once)


@asynccontextmanager
async def waiting_sessions_enqueuer(store: Store) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """Yield a function that puts the waiting sessions into the workers' queue, and returns their number.

    Raises `ArgumentInvalid` if there can be no workers.
    """
    check_workers_possible(store)
    from afterword.pipeline.background import workers

    async with workers.open_queue(store) as app:
        yield partial(workers.enqueue_waiting_sessions, app, store)


async def migrate(resources: Resources) -> tuple[str | None, str]:
    """Migrate the tables, including those of the workers' queue. Return the versions before and after."""
    opened = resources.given_store
    async with nullcontext(opened) if opened is not None else Store(resources.settings.store.url) as store:
        versions = await store.migrate()
        if store.dialect == "postgresql" and are_workers_installed():
            from afterword.pipeline.background.workers import create_queue_tables

            await create_queue_tables(store)
    return versions


def check_workers_possible(store: Store) -> None:
    """Raise `ArgumentInvalid` if workers cannot share this store, or their library is not installed."""
    if store.dialect != "postgresql":
        raise ArgumentInvalid(
            f"workers share a PostgreSQL store, but {store.shown_url} is not one; use `afterword schedule`"
        )
    if not are_workers_installed():
        raise ArgumentInvalid("workers need the extra: pip install 'afterword[workers]'")


def are_workers_installed() -> bool:
    """Whether the library that the workers need is installed."""
    return find_spec(WORKER_LIBRARY) is not None
