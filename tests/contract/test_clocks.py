"""A machine whose clock is ahead neither forgets what is said later, nor stops the jobs of others."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType
from sqlmodel import Session

from afterword import open as open_afterword
from afterword.errors import ClockAhead
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import JobClock, Rhythm
from afterword.pipeline.background.leases import AttemptEnding, Job
from afterword.pipeline.background.schedule import Schedule
from afterword.store import entries, jobs, lookup
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry
from afterword.store.forgetting.erasure import Erasure, erase_in_scope

MIRA = Scope.user("mira")
JOB = Job("job", Rhythm(every_s=60.0), lambda: asyncio.sleep(0))


class Ahead(JobClock):
    """A clock that is ahead by so much."""

    def __init__(self, ahead: timedelta) -> None:
        super().__init__()
        self.ahead = ahead

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


async def test_what_is_said_now_is_kept_after_a_forgetting_by_a_clock_ahead(store: Store) -> None:
    now = datetime.now(UTC)
    await entries.add_entry(store, MIRA, Entry("Lives in Graz."), at=now)
    with pytest.raises(ClockAhead, match="set the clock"):
        await erase_in_scope(store, MIRA, Erasure.forget_everything, at=now + timedelta(days=1))
    with store.reading() as transaction:
        assert len(lookup.read_facts(transaction, MIRA, at=now)) == 1
    await erase_in_scope(store, MIRA, Erasure.forget_everything, at=now + timedelta(minutes=1))
    with store.reading() as transaction:
        assert lookup.read_facts(transaction, MIRA, at=now) == []


async def test_a_schedule_whose_clock_is_ahead_fails_and_does_no_job(store: Store) -> None:
    ahead = Schedule(store, [JOB], clock=Ahead(timedelta(days=365)))
    assert [report.ending for report in await ahead.run_once()] == [AttemptEnding.FAILED]
    assert [report.ending for report in await Schedule(store, [JOB]).run_once()] == [AttemptEnding.DONE]


@pytest.mark.parametrize("is_done", [True, False])
async def test_what_a_clock_ahead_has_written_stops_no_job(store: Store, is_done: bool) -> None:
    later = datetime.now(UTC) + timedelta(days=365)

    def write_ahead(transaction: Session) -> None:
        until = later + timedelta(minutes=2)
        assert jobs.claim_job(transaction, "job", "ahead", due_at=later, now=later, until=until)
        if is_done:
            assert jobs.complete_job(transaction, "job", "ahead", due_at=later, now=later)

    await store.write(write_ahead)
    assert [report.ending for report in await Schedule(store, [JOB]).run_once()] == [AttemptEnding.DONE]
    assert [report.ending for report in await Schedule(store, [JOB]).run_once()] == [AttemptEnding.NOT_DUE]


async def test_what_was_just_said_is_known_by_a_clock_that_stands_still_or_steps_back(store: Store) -> None:
    now = [datetime(2026, 4, 1, 12, tzinfo=UTC)]
    async with open_afterword(store=store, clock=lambda: now[0]) as app:
        mira = app.user("mira")
        for statement in ("The user owns a kite.", "The user owns a boat."):
            remembered = (await mira.remember(statement)).facts[0]
        await mira.edit(remembered.id, statement="The user owns a car.", changed=True)
        assert [fact.statement for fact in (await mira.facts()).facts] == [
            "The user owns a kite.",
            "The user owns a car.",
        ]
        memory = mira.memory()
        now[0] -= timedelta(seconds=5)
        await memory.add(MemoryContent(content="The user owns a house.", mime_type=MemoryMimeType.TEXT))
        told = [content.content for content in (await memory.query("")).results]
        assert "The user owns a car." in told
        assert "The user owns a house." in told
        now[0] -= timedelta(days=5)
        assert (await mira.facts()).facts == (), "whoever sets the clock back sees what was known then"
