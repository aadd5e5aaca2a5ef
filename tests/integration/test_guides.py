"""The tutorial and the guides: every code block runs, in an empty folder, as a reader would run it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply
from afterword.facts.assertions import Kind
from commands import Commands
from page_blocks import PageRunner

DOCS = Path(__file__).parent.parent.parent / "docs"
PACKAGES = {
    "pip": "needs the package index; the names are those of pyproject.toml",
    ".": "the environment of the test is active already",
}


@dataclass(frozen=True)
class Page:
    """What a test has not, and so does otherwise than a reader of the page.

    `not_run` are the first words of commands and why they are not run; only their syntax is checked.
    `stand_ins` are commands, and what is run instead of them.
    """

    not_run: dict[str, str] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)


PAGES = {
    "tutorial.md": Page(
        not_run=PACKAGES | {"python3": "makes the environment", "mkdir": "the folder of the test", "cd": "the same"},
    ),
}


@pytest.fixture
def model() -> Iterator[ScriptedEndpoint]:
    """An endpoint that finds a new home, lets it take the place of the old one, and says a sentence otherwise."""

    def answer(request: Json) -> Reply:
        asked = str(request["messages"][-1]["content"])
        if "<statements>" in asked:
            changes = {"reason": "a new home", "relation": "changes", "same_subject": True}
            pairs = re.findall(r"^ *(\d+)\. earlier", asked, re.MULTILINE)
            return Reply(json.dumps({"findings": [{"pair": int(pair), **changes} for pair in pairs]}))
        if "<transcript>" not in asked:
            return Reply("I have made a note.")
        said = re.search(rf"^\[(\d+)\].*{QUOTE}", asked, re.MULTILINE)
        return facts_reply(*([home_in_trondheim(int(said[1]))] if said else []))

    with ScriptedEndpoint(answer) as endpoint:
        yield endpoint


QUOTE = "We ended up in Trondheim"


def home_in_trondheim(turn: int) -> Candidate:
    return Candidate(
        kind=Kind.ENTITY,
        subject="user",
        attribute="home",
        value="Trondheim",
        statement="The user lives in Trondheim.",
        evidence=[Citation(turn=turn, quote=QUOTE)],
    )


# The scripted endpoint answers under the name that was asked for.
@pytest.mark.filterwarnings("ignore:Resolved model mismatch")
@pytest.mark.parametrize("name", PAGES)
def test_every_block_runs(
    name: str,
    model: ScriptedEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = PAGES[name]
    runner = PageRunner(Commands(tmp_path, monkeypatch, capsys), capsys, page.not_run, page.stand_ins)
    runner.environment["OPENAI_BASE_URL"] = model.base_url
    runner.run(DOCS / name)


def test_no_page_is_left_out() -> None:
    pages = {str(path.relative_to(DOCS)) for path in [DOCS / "tutorial.md", *(DOCS / "guides").glob("*.md")]}
    assert pages == set(PAGES)
