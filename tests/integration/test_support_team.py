"""The support team as its customers rely on it: each is known, after a restart too, and by their own words alone."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import afterword


@pytest.fixture
def spoken(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """What everybody said while the example ran."""
    example = repository / "examples" / "support_team.py"
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path)])
    runpy.run_path(str(example), run_name="__main__")
    return capsys.readouterr().out


async def test_each_customer_is_known_by_their_own_words(spoken: str, tmp_path: Path) -> None:
    tickets = spoken.split("\nmira, ticket-4\n")
    assert "clerk: Guten Tag. Is it about the Speedport?" in tickets[1]
    async with afterword.open(f"sqlite:///{tmp_path}/support.db") as app:
        known = {name: {fact.statement for fact in (await app.user(name).facts()).facts} for name in ("mira", "otto")}
        ticket = await app.user("mira").session("ticket-1")
    assert known == {
        "mira": {"The user's router is a Speedport.", "The user wants the assistant to always answer in German."},
        "otto": {"The user's router is an Archer."},
    }
    assert ticket.session.humans == ("customer",)
    said = [entry.turn.text for entry in ticket.turns if entry.turn.speaker == "customer"]
    assert said[-1] == "It still blinks.", "the ticket went on after the restart"
