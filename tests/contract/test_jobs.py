"""Leases and the queue, on every database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlmodel import Session

from afterword.errors import NotFound, StateConflict
from afterword.extractors.errors import EndpointUnavailable
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.halt import Halt
from afterword.pipeline.background.leases import AttemptEnding, Job, JobResult, attempt_job
from afterword.pipeline.background.periodic_jobs import ConsolidationRule, PeriodicJobs
from afterword.pipeline.batch import queued_sessions
from afterword.pipeline.budget import Budget, CostTracker
from afterword.store import jobs, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import forgotten_statements
from afterword.store.limits import RetryPolicy

MIRA, JON = Scope.user("mira"), Scope.user("jon")
DUE = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Still(JobClock):
    """A clock that shows what the test says; waiting takes no time worth mentioning."""

    def __init__(self, at: datetime = DUE) -> None:
        super().__init__(at, 2000.0)
        self.at = at

    def now(self) -> datetime:
        return self.at


def claimed(name: str, holder: str, now: datetime, due_at: datetime = DUE) -> Callable[[Session], bool]:
    return lambda transaction: jobs.claim_job(transaction, name, holder, due_at=due_at, now=now, until=now + MINUTE)


async def test_of_many_who_claim_a_job_one_gets_it(store: Store) -> None:
    got = await asyncio.gather(*(store.write(claimed("job", f"holder {number}", DUE)) for number in range(6)))
    assert sorted(got) == [False] * 5 + [True]


async def test_a_lease_that_is_over_can_be_had_by_another_and_ends_nothing_any_more(store: Store) -> None:
    assert await store.write(claimed("job", "first", DUE))
    assert not await store.write(claimed("job", "second", DUE + MINUTE - timedelta(seconds=1)))
    assert await store.write(claimed("job", "second", DUE + MINUTE))
    assert not await store.write(
        lambda transaction: jobs.renew_lease(transaction, "job", "first", until=DUE + 9 * MINUTE)
    )
    assert not await store.write(
        lambda transaction: jobs.complete_job(transaction, "job", "first", due_at=DUE, now=DUE)
    )
    await store.write(lambda transaction: jobs.release_job(transaction, "job", "first"))
    assert await store.write(lambda transaction: jobs.renew_lease(transaction, "job", "second", until=DUE + 3 * MINUTE))
    assert await store.write(
        lambda transaction: jobs.complete_job(transaction, "job", "second", due_at=DUE, now=DUE + 2 * MINUTE)
    )


async def test_a_job_that_is_done_is_done_until_it_is_due_again(store: Store) -> None:
    assert await store.write(claimed("job", "first", DUE))
    assert await store.write(lambda transaction: jobs.complete_job(transaction, "job", "first", due_at=DUE, now=DUE))
    assert not await store.write(claimed("job", "second", DUE + 5 * MINUTE))
    assert await store.write(claimed("job", "second", DUE + 5 * MINUTE, due_at=DUE + MINUTE))
    with store.reading() as transaction:
        (one,) = jobs.read_store_wide_jobs(transaction)
    assert (one.done_for, one.last_success_at, one.holder) == (DUE, DUE, "second")


class Recorder:
    """Work that says how it went."""

    def __init__(self, work: Callable[[], Awaitable[object]] | None = None) -> None:
        self.count, self.work = 0, work

    async def __call__(self) -> None:
        self.count += 1
        if self.work is not None:
            await self.work()


async def tried(store: Store, work: Recorder, clock: JobClock, **more: Any) -> AttemptEnding:
    job = Job("job", Rhythm(every_s=60.0), work)
    return (await attempt_job(store, job, clock=clock, lease_s=60.0, **more)).ending


async def test_a_job_that_fails_is_tried_again_after_the_lease(store: Store) -> None:
    async def fails() -> None:
        raise EndpointUnavailable("the endpoint is down")

    clock, work = Still(), Recorder(fails)
    assert await tried(store, work, clock) is AttemptEnding.FAILED
    with store.reading() as transaction:
        (one,) = jobs.read_store_wide_jobs(transaction)
    assert (one.failure, one.failures, one.counts) == ("EndpointUnavailable", 1, {})
    assert (one.ended_at, one.last_success_at) == (DUE, None)
    clock.at += timedelta(seconds=59)
    assert await tried(store, work, clock) is AttemptEnding.NOT_DUE
    clock.at += timedelta(seconds=1)
    work.work = None
    assert await tried(store, work, clock) is AttemptEnding.DONE
    with store.reading() as transaction:
        (one,) = jobs.read_store_wide_jobs(transaction)
    assert (one.failure, one.failures, one.ended_at, one.last_success_at) == (None, 0, clock.at, clock.at)
    assert await tried(store, work, clock) is AttemptEnding.NOT_DUE
    assert work.count == 2


async def test_a_job_that_is_done_in_part_keeps_its_counts(store: Store) -> None:
    async def works() -> JobResult:
        return JobResult({"sessions processed": 2}, {"the endpoint is down": 2, "the state is broken": 1})

    await attempt_job(store, Job("job", Rhythm(every_s=60.0), works), clock=Still(), lease_s=60.0)
    with store.reading() as transaction:
        (one,) = jobs.read_store_wide_jobs(transaction)
    assert (one.ended_at, dict(one.counts), one.failures) == (DUE, {"sessions processed": 2}, 3)
    assert one.failure == "2 × the endpoint is down; 1 × the state is broken"


async def test_a_fault_frees_the_job_after_the_lease_and_is_raised(store: Store) -> None:
    async def breaks() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await tried(store, Recorder(breaks), Still())
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nobody goes on renewing the lease"
    with store.reading() as transaction:
        (one,) = jobs.read_store_wide_jobs(transaction)
    assert (one.holder, one.leased_until, one.failure) == (None, DUE + MINUTE, "a fault of afterword")


async def test_a_cancelled_or_stopped_job_is_free_at_once(store: Store) -> None:
    asked, halt = asyncio.Event(), Halt()

    async def waits() -> None:
        asked.set()
        await asyncio.sleep(600)

    task = asyncio.ensure_future(tried(store, Recorder(waits), JobClock()))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    async def stops() -> None:
        halt.stop("SIGTERM")

    assert await tried(store, Recorder(stops), JobClock(), stop=halt) is AttemptEnding.HANDED_BACK
    assert await tried(store, Recorder(), JobClock()) is AttemptEnding.DONE


async def test_work_whose_lease_was_taken_is_cancelled(store: Store) -> None:
    clock, cut = Still(), asyncio.Event()

    async def sleeps() -> None:
        try:
            await store.write(claimed("job", "thief", DUE + 2 * MINUTE))
            await asyncio.sleep(600)
        finally:
            cut.set()

    assert await tried(store, Recorder(sleeps), clock) is AttemptEnding.LOST
    assert cut.is_set()
    with store.reading() as transaction:
        assert jobs.read_store_wide_jobs(transaction)[0].holder == "thief"


async def record(store: Store, scope: Scope, name: str, said: str, at: datetime) -> None:
    messages = [{"content": said, "source": "user", "type": "TextMessage", "created_at": at.isoformat()}]
    with store.writing() as transaction:
        sessions.save_state(transaction, scope, name, component="x", state={"messages": messages}, at=at)


def chores(store: Store, clock: JobClock, **more: Any) -> PeriodicJobs:
    return PeriodicJobs(store, RulesExtractor(), RulesJudge(), lambda: CostTracker(Budget()), clock=clock, **more)


async def kept(store: Store, session_id: str) -> sessions.SavedSession:
    with store.reading() as transaction:
        found = sessions.find_session(transaction, MIRA, session_id)
    assert found is not None
    return found


async def test_what_people_ask_to_be_forgotten_is_erased_where_the_settings_say_so(store: Store) -> None:
    clock = Still()
    await record(store, MIRA, "a", "I live in Graz. I am allergic to peanuts.", clock.at)
    await chores(store, clock).process_waiting_sessions()
    await record(store, MIRA, "b", "Please forget that I live in Graz.", clock.at)
    await chores(store, clock).process_waiting_sessions()
    with store.reading() as transaction:
        assert forgotten_statements.read_erase_requests_in_force(transaction, MIRA), "it waits for somebody's leave"
    await chores(store, clock, erases=True).process_waiting_sessions()
    with store.reading() as transaction:
        assert forgotten_statements.read_erase_requests_in_force(transaction, MIRA), (
            "it waits for a day, so that somebody can stop it"
        )
    clock.at += timedelta(days=1)
    await chores(store, clock, erases=True).process_waiting_sessions()
    with store.reading() as transaction:
        assert not forgotten_statements.read_erase_requests_in_force(transaction, MIRA)
        assert "Graz" not in str([one.text for one in sessions.read_turns(transaction, MIRA, "a")])


async def test_the_state_of_a_job_holds_no_words_of_a_session_that_failed(store: Store) -> None:
    clock = Still()
    with store.writing() as transaction:
        sessions.save_state(transaction, MIRA, "Gnarlsburg", component="x", state={"nothing": 1}, at=clock.at)
    job = Job("pending", Rhythm(every_s=60.0), chores(store, clock).process_waiting_sessions)
    report = await attempt_job(store, job, clock=clock, lease_s=60.0)
    assert sum(report.failures.values()) == 1
    with store.reading() as transaction:
        (stored,) = jobs.read_store_wide_jobs(transaction)
    assert (stored.failures, stored.failure) == (1, "1 × LayoutUnknown")


async def test_a_session_that_fails_is_queued_again_with_growing_pauses_and_then_set_aside(store: Store) -> None:
    clock = Still()
    with store.writing() as transaction:
        sessions.save_state(transaction, MIRA, "bad", component="x", state={"nothing": 1}, at=clock.at)
    await record(store, MIRA, "good", "I live in Graz.", clock.at)
    work = chores(store, clock, retries=RetryPolicy(3, 60.0, 3600.0))
    waits = []
    for _ in range(3):
        await work.process_waiting_sessions()
        bad = await kept(store, "bad")
        assert "LayoutUnknown" in (bad.failure or "")
        waits.append(bad.next_try_at and (bad.next_try_at - clock.at).total_seconds())
        await work.queue_failed_sessions()
        assert [one.session_id for one in await queued_sessions(store, at=clock.at)] == []
        clock.at = bad.next_try_at or clock.at
        await work.queue_failed_sessions()
    assert waits == [60.0, 240.0, None]
    bad = await kept(store, "bad")
    assert (bad.progress, bad.attempts) == (sessions.Progress.SET_ASIDE, 3)
    assert await queued_sessions(store) == []
    await store.write(lambda transaction: sessions.retry_session(transaction, MIRA, "bad"))
    assert [one.session_id for one in await queued_sessions(store, at=clock.at)] == ["bad"]
    with pytest.raises(StateConflict, match="nothing to try again"):
        await store.write(lambda transaction: sessions.retry_session(transaction, MIRA, "good"))
    with pytest.raises(NotFound):
        await store.write(lambda transaction: sessions.retry_session(transaction, JON, "bad"))


async def test_a_session_that_is_saved_again_starts_anew(store: Store) -> None:
    clock = Still()
    with store.writing() as transaction:
        sessions.save_state(transaction, MIRA, "one", component="x", state={"nothing": 1}, at=clock.at)
    await chores(store, clock, retries=RetryPolicy(1)).process_waiting_sessions()
    assert await queued_sessions(store) == []
    await record(store, MIRA, "one", "I live in Graz.", clock.at + MINUTE)
    assert [one.session_id for one in await queued_sessions(store, at=clock.at)] == ["one"]


async def test_a_scope_is_consolidated_when_it_is_quiet_has_enough_new_and_was_not_lately(store: Store) -> None:
    clock = Still()
    work = chores(store, clock, rule=ConsolidationRule(3, 600.0, 86_400.0))

    async def ripe() -> list[Scope]:
        with store.reading() as transaction:
            idle_since, last_before = clock.at - timedelta(seconds=600), clock.at - timedelta(days=1)
            return jobs.scopes_to_consolidate(
                transaction, new_sessions=3, idle_since=idle_since, last_before=last_before
            )

    for number in range(3):
        await record(store, MIRA, f"m{number}", f"My shoe size is {40 + number}.", clock.at)
        await record(store, JON, f"j{number}", f"My shoe size is {40 + number}.", clock.at)
    await work.process_waiting_sessions()
    assert await ripe() == []  # not quiet yet
    clock.at += timedelta(seconds=601)
    await record(store, JON, "waits", "I live in Wels.", DUE)
    assert await ripe() == [MIRA]
    await work.consolidate_due_scopes()
    await work.process_waiting_sessions()
    assert await ripe() == []
    clock.at += timedelta(days=1)
    assert await ripe() == [JON]  # nothing new was read of the other
    for number in range(3, 5):
        await record(store, MIRA, f"m{number}", f"My shoe size is {40 + number}.", clock.at)
    await work.process_waiting_sessions()
    clock.at += timedelta(days=1)
    assert await ripe() == [JON]  # two are not enough
