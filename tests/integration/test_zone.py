"""The time zone of a memory, in Python and on the command line."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

import afterword
from afterword.errors import ArgumentInvalid
from afterword.settings import Settings, SettingsInvalid, load
from commands import Commands

SAID = [{"type": "UserMessage", "source": "user", "content": "I'm moving to Oslo tomorrow."}]


async def test_a_memory_has_a_zone_of_its_own(tmp_path: Path) -> None:
    settings = Settings(store={"url": f"sqlite:///{tmp_path}/afterword.db"}, zone="Europe/Vienna")
    async with afterword.open(settings=settings) as app:
        mira = app.user("mira")
        assert await mira.zone() == "Europe/Vienna"
        assert await mira.set_zone("Australia/Sydney") == "Australia/Sydney"
        messages = {"llm_context": {"messages": SAID}}
        await mira.process(messages, session_id="a", started_at="2026-03-02T08:00:00")
        (fact,) = (await mira.facts(status="all")).facts
        assert (fact.said_at.isoformat(), fact.valid_from and fact.valid_from.date()) == (
            "2026-03-02T08:00:00+11:00",
            date(2026, 3, 3),
        )
        (entered,) = (await mira.remember("Mira works at Lidl.", valid_from="2026-07-01")).facts
        stored = await mira.fact(entered.id)
        assert [at and at.date() for at in (entered.valid_from, stored.valid_from)] == [date(2026, 7, 1)] * 2
        with pytest.raises(ArgumentInvalid, match="no time zone"):
            await mira.set_zone("Mars/Olympus")
        assert await mira.set_zone(None) == "Europe/Vienna"


def test_the_command_shows_and_sets_the_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Commands(tmp_path, monkeypatch, capsys)
    run("zone", "Asia/Tokyo", "--user", "mira")
    assert json.loads(run("zone", "--user", "mira", "--json")) == {"scope": "default/user/mira", "zone": "Asia/Tokyo"}
    assert "UTC" in run("zone", "profile", "--user", "mira")


def test_an_unknown_zone_in_the_profile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERWORD_ZONE", "Mars/Olympus")
    with pytest.raises(SettingsInvalid, match="zone"):
        load()
