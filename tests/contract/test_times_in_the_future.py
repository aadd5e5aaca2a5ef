"""Nothing was said in the future: such a time is refused, or taken as unknown, and hides nothing that is said later."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from sqlmodel import Session, col

import afterword
from afterword import Afterword, Failure
from afterword.errors import ArgumentInvalid
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from afterword.store.database.engine import Store
from afterword.store.forgetting.tables import TombstoneRow
from afterword.store.migrations import VERSION_TABLE
from service import said

SETTINGS = Settings(embedding=EmbeddingOptions(kind="none"))
SAID_AT = "2026-03-01T10:00:00Z"
OSLO, TEA = "I live in Oslo.", "I like green tea."
NOW = datetime.now(UTC)
LATER = NOW + timedelta(days=200)


@pytest.fixture
async def app(shared_url: str) -> AsyncIterator[Afterword]:
    async with afterword.open(shared_url, settings=SETTINGS) as opened:
        yield opened


async def values(app: Afterword) -> set[str]:
    return {fact.value for fact in (await app.user("ada").facts()).facts}


def with_times(state: dict[str, Any], *times: datetime | None) -> dict[str, Any]:
    for message, at in zip(state["llm_context"]["messages"], times, strict=True):
        if at is not None:
            message["created_at"] = at.isoformat()
    return state


@pytest.mark.parametrize("before", [LATER, LATER.date(), LATER.date().isoformat()], ids=["instant", "date", "text"])
async def test_nothing_is_forgotten_up_to_a_day_in_the_future(app: Afterword, before: Any) -> None:
    ada = app.user("ada")
    await ada.process(said(OSLO), session_id="a", started_at=SAID_AT)
    for ask in (ada.forget, ada.preview_forget, app.forget, app.preview_forget):
        with pytest.raises(ArgumentInvalid, match="lies in the future"):
            await ask(before=before)
    assert await values(app) == {"Oslo"}
    await ada.forget(before=datetime.now(UTC))
    await ada.process(said(TEA), session_id="b")
    assert await values(app) == {"green tea"}


async def test_what_comes_after_the_upgrade_is_kept_where_a_day_in_the_future_was_named(shared_url: str) -> None:
    async with afterword.open(shared_url, settings=SETTINGS) as app:
        await app.user("ada").process(said(OSLO), session_id="a", started_at=SAID_AT)
        await app.user("ada").forget(before=NOW.date())

    def name_a_later_day(transaction: Session) -> None:
        transaction.connection().execute(update(TombstoneRow).where(col(TombstoneRow.until) < NOW).values(until=LATER))
        transaction.connection().exec_driver_sql("DROP TABLE seen_sessions")
        transaction.connection().exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0023'")

    async with Store(shared_url) as store:
        with store.writing() as transaction:
            name_a_later_day(transaction)
        await store.migrate()
    async with afterword.open(shared_url, settings=SETTINGS) as app:
        await app.user("ada").process(said(OSLO), session_id="a", started_at=SAID_AT)
        assert await values(app) == set()
        await app.user("ada").process(said(TEA), session_id="b")
        assert await values(app) == {"green tea"}


async def test_a_session_that_begins_in_the_future_is_refused_with_its_time(app: Afterword, tmp_path: Path) -> None:
    ada = app.user("ada")
    for ask in (ada.process, ada.queue):
        with pytest.raises(ArgumentInvalid, match="started_at=2062-01-01T00:00:00"):
            await ask(said(OSLO), session_id="a", started_at="2062-01-01")
    (tmp_path / "a.json").write_text(json.dumps(said(OSLO)))
    entry = {"session_id": "a", "path": "a.json", "user_id": "ada", "started_at": "2062-01-01T00:00:00Z"}
    (tmp_path / "manifest.json").write_text(json.dumps([entry]))
    (done,) = (await ada.process(manifest=tmp_path / "manifest.json")).sessions
    assert isinstance(done.result, Failure)
    assert "a.json" in done.result.reason
    assert "started_at is 2062-01-01T00:00:00+00:00" in done.result.reason
    assert await values(app) == set()


async def test_the_time_of_a_turn_that_lies_in_the_future_is_taken_as_unknown(app: Afterword) -> None:
    ada = app.user("ada")
    state = with_times(said("I prefer window seats.", TEA), LATER, NOW - timedelta(days=30))
    (done,) = (await ada.process(state, session_id="a")).sessions
    assert done.result_name == "done"
    assert await values(app) == {"window seats", "green tea"}
    assert (await ada.session("a")).session.skipped == {"time in the future": 1}
    assert all(fact.said_at < NOW for fact in (await ada.facts()).facts)
    await ada.queue(with_times(said(OSLO), LATER), session_id="b", started_at=SAID_AT)
    await ada.process("b")
    assert "Oslo" in await values(app)


async def test_a_clock_that_is_set_ahead_takes_what_is_said_then(shared_url: str) -> None:
    async with afterword.open(shared_url, settings=SETTINGS, clock=lambda: LATER) as app:
        await app.user("ada").process(said(OSLO), session_id="a", started_at=LATER - timedelta(days=1))
        assert await values(app) == {"Oslo"}
        await app.user("ada").queue(said(TEA), session_id="b")
        await app.user("ada").process("b")
        (tea,) = [fact for fact in (await app.user("ada").facts()).facts if fact.value == "green tea"]
        assert tea.said_at == LATER


class Conversation:
    """Something whose state can be saved."""

    async def save_state(self) -> dict[str, Any]:
        return said(TEA)

    async def load_state(self, state: Any) -> None: ...


async def test_what_is_recorded_has_the_time_of_the_clock_that_was_given(shared_url: str) -> None:
    past = datetime(2026, 2, 3, 8, tzinfo=UTC)
    async with afterword.open(shared_url, settings=SETTINGS, clock=lambda: past) as app:
        async with app.user("ada").record(Conversation(), session_id="a"):
            pass
        await app.user("ada").process("a")
        assert [(fact.value, fact.said_at) for fact in (await app.user("ada").facts()).facts] == [("green tea", past)]


async def test_a_session_that_was_stored_with_a_time_in_the_future_gets_a_better_one(shared_url: str) -> None:
    async with afterword.open(shared_url, settings=SETTINGS, clock=lambda: LATER) as app:
        await app.user("ada").process(with_times(said(OSLO), LATER), session_id="a")
        await app.user("ada").process(said(TEA), session_id="b", started_at=LATER)
    async with afterword.open(shared_url, settings=SETTINGS) as app:
        assert await values(app) == set()
        await app.user("ada").process(with_times(said(OSLO), LATER), session_id="a", started_at=SAID_AT)
        await app.user("ada").process(said(TEA), session_id="b", started_at=SAID_AT)
        assert await values(app) == {"Oslo", "green tea"}


async def test_a_session_that_was_kept_before_a_pause_is_not_counted_as_left_out(app: Afterword) -> None:
    ada = app.user("ada")
    await ada.process(said(OSLO), session_id="a", started_at=SAID_AT)
    await ada.pause()
    await ada.process(said(OSLO), session_id="a", started_at=SAID_AT)
    await ada.queue(said(OSLO), session_id="a", started_at=SAID_AT)
    await ada.process(said(TEA), session_id="b", started_at=SAID_AT)
    ended = await ada.resume_keeping()
    assert ended is not None
    assert ended.sessions_not_kept == 1
