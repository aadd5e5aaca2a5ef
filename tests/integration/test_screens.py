"""What the commonest commands print at 60, 80 and 120 columns, as golden texts.

With AFTERWORD_TEST_WRITE_SCREENS=1 the golden texts are written anew: read what changed before you commit it.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from commands import Commands

SCREENS = {
    "facts": ("facts", "--user", "mira"),
    "facts-all": ("facts", "--user", "mira", "--all"),
    "recall": ("recall", "--user", "mira", "window seat"),
    "context": ("context", "where does she sit?", "--user", "mira"),
    "history": ("history", "74172057"),
    "why": ("why", "2026-03-02-fjords"),
    "sessions": ("sessions", "--user", "mira"),
    "runs": ("runs", "--user", "mira"),
    "review": ("review", "--user", "mira"),
    "status": ("status",),
    "scopes": ("scopes",),
}
WIDTHS = (60, 80, 120)
GOLDEN = Path(__file__).parent.parent / "golden" / "screens"


@pytest.fixture
def demonstrated(afterword: Commands) -> Commands:
    """The command line in a folder with the store of the demonstration."""
    afterword("demo", "--out", "demo")
    return afterword


def screens(afterword: Commands, width: int) -> str:
    """Return what the commands print at this width, with the day of the run replaced by one of the same length."""
    environment = {"AFTERWORD_STORE__URL": "sqlite:///demo/afterword.db", "COLUMNS": str(width)}
    printed = [f"$ afterword {' '.join(words)}\n{afterword.within(environment, *words)}" for words in SCREENS.values()]
    text = "\n".join(printed).replace(datetime.now(UTC).date().isoformat(), "2026-07-01")
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_screen_is_as_it_was(demonstrated: Commands, width: int) -> None:
    golden = GOLDEN / f"{width}.txt"
    shown = screens(demonstrated, width)
    if os.environ.get("AFTERWORD_TEST_WRITE_SCREENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_table_is_wider_than_the_terminal(width: int) -> None:
    """Prose is not wrapped, so that a pipe gets whole lines; tables and lists are."""
    lines = (GOLDEN / f"{width}.txt").read_text(encoding="utf-8").splitlines()
    ruled = [number for number, line in enumerate(lines) if line.startswith(" \u2500")]
    for number in ruled:
        assert max(map(len, lines[number - 1 : number + 4])) <= width
    assert all(len(line) <= width for line in lines if line.startswith("    "))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_gives_each_sentence_a_line_of_its_own(width: int) -> None:
    """Short statements stood between ids and dates in one line that ran on."""
    lines = (GOLDEN / f"{width}.txt").read_text(encoding="utf-8").splitlines()
    label = re.compile(r"\b(statement|quotes|text|earlier|later|reason):? ")
    beginnings = [line for line in lines if ("The user lives" in line or "home has one" in line) and label.search(line)]
    assert all(re.match(r"    \w+: ", line) for line in beginnings)
    assert bool(beginnings) == (width < 120)


def test_colours_can_be_switched_off(demonstrated: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"AFTERWORD_STORE__URL": "sqlite:///demo/afterword.db", "FORCE_COLOR": "1"}
    assert "\x1b[" in demonstrated.within(environment, "facts", "--user", "mira")
    for words in (("--no-color", "facts", "--user", "mira"), ("facts", "--user", "mira", "--no-color")):
        monkeypatch.delenv("NO_COLOR", raising=False)
        without = demonstrated.within(environment, *words)
        assert "\x1b[3" not in without.replace("\x1b[3m", "")
