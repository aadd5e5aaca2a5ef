"""The commands for what goes on by itself: schedule, retry."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from sqlmodel import Session

from afterword import settings
from afterword.cli import embedding, fleet
from afterword.cli.app import FAILED
from afterword.cli.output import UsageInvalid, chosen_scope, console, opened, print_json
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import Rhythm
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import Ending, Job
from afterword.pipeline.background.periodic_jobs import (
    CONSOLIDATION,
    EMBEDDING,
    PENDING,
    RETRIES,
    ConsolidationRule,
    PeriodicJobs,
)
from afterword.pipeline.background.schedule import Schedule, Timing
from afterword.settings import ScheduleOptions, Settings
from afterword.store import sessions


def schedule(*, once: bool, as_json: bool) -> None:
    """Do what is due, until stopped or `once`; exit with 1 where `once` a job failed."""
    # APScheduler logs a failed job's traceback, which may hold what was said.
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)
    ended = asyncio.run(_schedule(settings.load(), once=once, as_json=as_json))
    if as_json and once:
        print_json({name: str(ending) for name, ending in ended.items()})
    if Ending.FAILED in ended.values():
        sys.exit(FAILED)


async def _schedule(configured: Settings, *, once: bool, as_json: bool) -> dict[str, Ending]:
    options, kind, halt = configured.schedule, configured.extractor, Halt()
    rhythms = rhythms_of(options)
    async with (
        opened(create=True) as store,
        open_extractor_and_judge(kind, configured.model) as workers,
        fleet.handing_over(store, wanted=options.defer) as defer,
        embedding.refreshing(store, configured, stop=halt) as refresher,
    ):
        chores = PeriodicJobs(
            store,
            workers.extractor,
            workers.judge,
            partial(configured_tracker, configured, kind),
            retries=configured.retry.policy(),
            rule=ConsolidationRule(options.new_sessions, options.idle_s, options.apart_s),
            stop=halt,
            defer=defer,
            refresher=refresher,
            erases=configured.privacy.erases,
            concurrency=configured.concurrency,
        )
        told = _quiet if as_json and once else _told
        timing = Timing(options.jitter_s, options.lease_s)
        made = Schedule(store, chores.jobs(rhythms), timing=timing, halt=halt, on_end=told)
        with stopping(halt):
            if once:
                return await made.run_once()
            console().print(f"scheduling on {store.shown_url}; SIGTERM or Ctrl-C stops it")
            await made.run()
    return {}


def rhythms_of(options: ScheduleOptions) -> Mapping[str, Rhythm]:
    """Return the rhythm of each job. Raises `RhythmInvalid`."""
    named = {
        PENDING: options.pending,
        RETRIES: options.retries,
        CONSOLIDATION: options.consolidation,
        EMBEDDING: options.embedding,
    }
    return {name: Rhythm.parse(text, options.timezone) for name, text in named.items()}


@contextmanager
def stopping(halt: Halt) -> Iterator[None]:
    """Take SIGTERM and Ctrl-C as the wish to stop."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, halt.stop, number.name)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _told(job: Job, ending: Ending) -> None:
    console().print(f"{job.name}: {ending}")
    sys.stdout.flush()


def _quiet(_job: Job, _ending: Ending) -> None:
    """Say nothing: what came of it is printed at the end."""


def retry(session_id: str | None, user: str | None, scope: str | None, *, everything: bool, as_json: bool) -> None:
    """Put one session back that failed or was set aside, or all of them."""
    whose = chosen_scope(user, scope)
    if (session_id is None) != everything:
        raise UsageInvalid("name one session, or --all")

    def fits(one: sessions.SavedSession) -> bool:
        return session_id in (None, one.session_id) and whose in (None, one.scope)

    async def work() -> list[tuple[Scope, str]]:
        async with opened() as store:
            return await store.write(partial(_put_back, fits, session_id))

    put = asyncio.run(work())
    if as_json:
        print_json([{"scope": str(of), "session_id": name} for of, name in put])
    else:
        console().print(f"{len(put)} sessions put back; `afterword run` tries those that were recorded, or give a path")


def _put_back(
    fits: Callable[[sessions.SavedSession], bool], session_id: str | None, db: Session
) -> list[tuple[Scope, str]]:
    troubled = [one for one in sessions.failed_sessions(db) if fits(one)]
    if session_id is not None and len(troubled) != 1:
        found = "no failed session" if not troubled else f"{len(troubled)} memories with a failed session"
        raise UsageInvalid(f"{found} {session_id!r}; see `afterword status`, and say whose with --user or --scope")
    for one in troubled:
        sessions.retry_session(db, one.scope, one.session_id)
    return [(one.scope, one.session_id) for one in troubled]
