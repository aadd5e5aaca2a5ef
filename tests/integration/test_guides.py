"""The tutorial and the guides: every code block runs, in an empty folder, as a reader would run it."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply, shown_pairs
from afterword.facts.assertions import Kind
from commands import Commands
from page_blocks import PageRunner

DOCS = Path(__file__).parent.parent.parent / "docs"


@dataclass(frozen=True)
class Page:
    """What a test does otherwise than a reader of the page.

    `not_run` are the beginnings of commands whose syntax alone is checked, and what they would need. `stand_ins` are
    the beginnings of commands, and what is run in their place.
    """

    not_run: dict[str, str] = field(default_factory=dict)
    stand_ins: dict[str, str] = field(default_factory=dict)


DOCKER = "needs Docker"
OTHER_LIBRARY = "needs the other library"
PAGES = {
    "tutorial.md": Page(
        {
            "pip install": "needs the package index",
            "python3 -m venv": "makes the environment, which the test is in",
            ". ": "the same",
            "mkdir ": "makes the folder, which the test is in",
            "cd ": "the same",
        }
    ),
    "guides/after-every-session.md": Page(),
    "guides/on-a-schedule.md": Page(
        {"sudo systemctl": "needs systemd", "journalctl": "needs systemd"},
        {"afterword schedule": "afterword schedule --once"},  # the other one runs until it is stopped
    ),
    "guides/web-application.md": Page(),
    "guides/other-frameworks.md": Page(
        {
            "python chats.py": "the folder `agents` of this repository has the name of the SDK's package",
            "afterword run chats.db": "needs a database of the Agents SDK",
        }
    ),
    "guides/team-of-agents.md": Page(),
    "guides/support-team.md": Page(),
    "guides/self-hosted-service.md": Page(stand_ins={"afterword serve --host": "afterword serve --help"}),
    "guides/docker.md": Page({"docker ": DOCKER, "curl ": DOCKER, "echo ": "needs openssl"}),
    "guides/many-machines.md": Page(
        {"createdb": "the database of the test is there"},
        {
            "afterword schedule": "afterword schedule --once",
            "afterword worker --concurrency": "afterword worker --once --concurrency 8",
        },
    ),
    "guides/local-models.md": Page(dict.fromkeys(("OLLAMA_CONTEXT_LENGTH", "vllm ", "llama-server "), "needs a model")),
    "guides/privacy-and-forgetting.md": Page(),
    "guides/review-by-people.md": Page(stand_ins={"afterword inspect": "afterword inspect --help"}),
    "guides/moving-from-other-libraries.md": Page(
        {f"python export_{name}.py": OTHER_LIBRARY for name in ("mem0", "langmem", "graphiti", "zep", "chromadb")}
    ),
}


@pytest.fixture
def model() -> Iterator[ScriptedEndpoint]:
    """An endpoint that finds a new home, lets it take the place of the old one, and says a sentence otherwise."""

    def answer(request: Json) -> Reply:
        asked = str(request["messages"][-1]["content"])
        if "<statements>" in asked:
            changes = {"reason": "a new home", "relation": "changes", "same_subject": True}
            return Reply(json.dumps({"findings": [{"pair": pair, **changes} for pair in shown_pairs(asked)]}))
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
    request: pytest.FixtureRequest,
) -> None:
    page = PAGES[name]
    runner = PageRunner(Commands(tmp_path, monkeypatch, capsys), capsys, page.not_run, page.stand_ins)
    runner.environment["OPENAI_BASE_URL"] = model.base_url
    runner.replaced |= {"http://127.0.0.1:11434/v1": model.base_url, "examples/": f"{DOCS.parent}/examples/"}
    if "many-machines" in name:
        runner.replaced["postgresql://afterword@localhost/afterword"] = str(request.getfixturevalue("empty_postgres"))
    runner.run(DOCS / name)


def test_no_page_is_left_out() -> None:
    pages = {str(path.relative_to(DOCS)) for path in [DOCS / "tutorial.md", *(DOCS / "guides").glob("*.md")]}
    assert pages == set(PAGES)


def test_every_extra_that_a_page_installs_exists() -> None:
    extras = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for name in PAGES:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert set(re.findall(r"pip install '(?:\.|afterword)\[(\w+)\]'", text)) <= set(extras), name


def test_every_message_that_a_page_explains_is_one_of_the_program() -> None:
    texts = [
        node.value
        for path in (DOCS.parent / "src" / "afterword").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    for name in PAGES:
        _, _, table = (DOCS / name).read_text(encoding="utf-8").partition("## What can go wrong")
        for message in re.findall(r"^\| [^|\n]*?\"([^\"|\n]+)\"", table, re.MULTILINE):
            for part in filter(None, message.split("...")):
                assert any(part in text for text in texts), f"{name}: {part}"
