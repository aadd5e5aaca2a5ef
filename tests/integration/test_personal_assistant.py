"""The example as its users rely on it: what is said once is kept over restarts, and for nobody else."""

from __future__ import annotations

import asyncio
import runpy
import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import afterword

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
WISHES = "Please always answer in German. I prefer metric units. I prefer explanations for beginners."


@pytest.fixture(scope="module")
def example(repository: Path) -> Path:
    return repository / "examples" / "personal_assistant.py"


@pytest.fixture(scope="module")
def visit(example: Path) -> Any:
    return runpy.run_path(str(example))["visit"]


async def test_over_restarts_it_keeps_what_it_was_told_and_knows_how_long_it_was_away(
    example: Path, tmp_path: Path
) -> None:
    """A restart leaves nothing of the example but its store."""
    visits = [
        ("a", f"{WISHES} How far is Graz?", None, 0),
        ("b", "How far is Linz?", "a", 1),
        ("c", "I no longer prefer metric units. I prefer imperial units.", "b", 3),
        ("d", "How far is Oslo?", "c", 4),
    ]
    told = []
    for name, said, before, days in visits:
        restarted = runpy.run_path(str(example))["visit"]
        async with afterword.open(f"sqlite:///{tmp_path}/assistant.db") as app:
            now = MONDAY + timedelta(days=days)
            told.append(await restarted(app.user("mira"), name, said, before=before, clock=partial(_same, now)))
    assert [welcome for welcome, _ in told] == [
        "Nice to meet you.",
        *[f"Welcome back: I was away for {days}." for days in ("1 day", "2 days", "1 day")],
    ]
    assert told[1][1] == "Bis Linz sind es 200 km Luftlinie. (Luftlinie heißt: auf dem kürzesten Weg.)"
    assert told[3][1] == "Bis Oslo sind es 124 Meilen Luftlinie. (Luftlinie heißt: auf dem kürzesten Weg.)"


async def test_within_one_process_the_next_conversation_knows_it_too(visit: Any, tmp_path: Path) -> None:
    async with afterword.open(f"sqlite:///{tmp_path}/assistant.db") as app:
        await visit(app.user("mira"), "a", f"{WISHES} How far is Graz?", before=None, clock=lambda: MONDAY)
        _, answer = await visit(app.user("mira"), "b", "How far is Linz?", before="a", clock=lambda: MONDAY)
    assert answer.startswith("Bis Linz sind es 200 km")


async def test_users_at_once_have_each_their_own_assistant(visit: Any, tmp_path: Path) -> None:
    async with afterword.open(f"sqlite:///{tmp_path}/assistant.db") as app:

        def say(user: str, name: str, said: str, before: str | None) -> Any:
            return visit(app.user(user), name, said, before=before, clock=lambda: MONDAY)

        wishes = "I prefer metric units. How far is Graz?"
        await asyncio.gather(say("mira", "a", f"{WISHES} How far is Graz?", None), say("noor", "a", wishes, None))
        told = await asyncio.gather(*(say(user, "b", "How far is Linz?", "a") for user in ("mira", "noor", "otto")))
    assert [answer for _, answer in told] == [
        "Bis Linz sind es 200 km Luftlinie. (Luftlinie heißt: auf dem kürzesten Weg.)",
        "It is 200 km to Linz.",
        "It is 124 miles to Linz.",
    ]
    assert [welcome.split()[0] for welcome, _ in told] == ["Welcome", "Welcome", "Nice"]


def test_the_example_runs_as_it_is(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    assert "Bis Oslo sind es 124 Meilen" in capsys.readouterr().out


def _same(moment: datetime) -> datetime:
    return moment
