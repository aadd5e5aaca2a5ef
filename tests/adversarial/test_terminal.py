"""What a terminal is sent: no name of a file and no word of somebody moves the cursor or forges a line."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from commands import Commands

TITLE, CLEAR, CSI, BIDI = "\x1b]0;pwned\x07", "\x1b[2J", "\x9b31m", "\u202egnp.exe\u202c"
FORGED = "  + The user is rich."
NAMES = (f"{TITLE}{CLEAR}a", f"{BIDI}b", f"x\n{FORGED}c", "cr\rz", f"{CSI}d")
BIDIRECTIONAL = ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")


def is_unsafe(character: str) -> bool:
    is_control = unicodedata.category(character) == "Cc" and character != "\n"
    return is_control or unicodedata.bidirectional(character) in BIDIRECTIONAL


def check(printed: str) -> None:
    assert [character for character in printed if is_unsafe(character)] == []
    assert [line for line in printed.splitlines() if line.strip().startswith(FORGED.strip())] == []


@pytest.fixture
def afterword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(tmp_path, monkeypatch, capsys)


@pytest.fixture
def saved(afterword: Commands) -> Path:
    """Files with odd names and texts, of two users, one of whom has an odd name."""
    for folder in ("mira", f"{BIDI}eve"):
        (afterword.folder / "saved" / folder).mkdir(parents=True)
    for number, name in enumerate(NAMES):
        message = {"type": "UserMessage", "source": "user", "content": f"I like tea{number} {name}."}
        state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
        for folder in ("mira", f"{BIDI}eve"):
            (afterword.folder / "saved" / folder / f"{name}.json").write_text(json.dumps(state), encoding="utf-8")
    (afterword.folder / "saved" / "mira" / f"{TITLE}broken.json").write_text("{", encoding="utf-8")
    return afterword.folder / "saved"


@pytest.mark.usefixtures("saved")
def test_no_command_prints_what_a_terminal_obeys(afterword: Commands) -> None:
    def printed(*arguments: str) -> str:
        return afterword.within({}, *arguments, expected=None) + afterword.errors

    check(printed("run", "saved", "--extractor", "rules", "--dry-run"))
    check(printed("run", "saved", "--extractor", "rules"))
    check(printed("remember", f"I like {TITLE}{BIDI}gin.", "--user", "mira"))
    facts = json.loads(afterword("facts", "--user", "mira", "--json"))
    assert len(facts) > 3, "the sessions were read"
    fact = facts[0]["id"]
    for user in ("mira", f"{BIDI}eve"):
        for command in ("facts", "review", "runs", "sessions", "context"):
            check(printed(command, "--user", user))
        check(printed("facts", "--user", user, "--json"))
    for name in NAMES:
        check(printed("why", name, "--user", "mira"))
    for arguments in (
        ("status",),
        ("scopes",),
        ("doctor",),
        ("sessions", "--state", "failed"),
        ("history", fact, "--user", "mira"),
        ("edit", fact, "--value", f"{CLEAR}{CSI}", "--user", "mira"),
        ("facts", "--user", f"{TITLE}nobody"),
        ("run", f"{TITLE}nothing"),
        ("run", f"no\n{FORGED}"),
        ("run", f"saved/mira/{NAMES[0]}.json"),
        ("import", f"{TITLE}nothing"),
        ("export", f"{TITLE}{CSI}.jsonl"),
        ("backup", f"{TITLE}/no"),
    ):
        check(printed(*arguments))


@pytest.mark.usefixtures("saved")
def test_json_names_these_characters_as_they_are(afterword: Commands) -> None:
    afterword("run", "saved", "--extractor", "rules", expected=1)
    assert f"default/user/{BIDI}eve" in {scope["scope"] for scope in json.loads(afterword("sessions", "--json"))}
