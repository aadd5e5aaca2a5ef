"""What the command line logs: on standard error, as configured, with the ids of what was done and no word of a user."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from batches import state
from commands import Commands

MARKER = "Zanzibarquux"


@pytest.fixture
def afterword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Run a command in an empty folder; return what it writes to standard error."""
    commands = Commands(tmp_path, monkeypatch, capfd)

    def run(*arguments: str, **environment: str) -> str:
        commands(*arguments, expected=0, **environment)
        return commands.errors

    level = logging.getLogger("afterword").level
    yield run
    logging.getLogger("afterword").setLevel(level)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    (tmp_path / "saved" / "mira").mkdir(parents=True)
    (tmp_path / "saved" / "mira" / "one.json").write_text(json.dumps(state(f"I live in {MARKER}.")))
    return "saved"


def test_json_lines_carry_the_ids_and_no_word_of_a_user(afterword: Any, saved: str) -> None:
    told = afterword("--log-format", "json", "--log-level", "info", "run", saved)
    (line,) = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    # Another test of this process may have set a tracer.
    ids = line.keys() - {"trace_id", "span_id"}
    assert ids == {"time", "level", "logger", "message", "stage", "scope", "session_id", "run_id"}
    assert (line["message"], line["level"], line["session_id"], line["run_id"]) == ("session done", "info", "one", 1)
    assert line["stage"] == "afterword.session"
    assert MARKER not in told


def test_the_environment_configures_and_the_option_wins(afterword: Any, saved: str) -> None:
    told = afterword("--log-format", "text", "run", saved, AFTERWORD_LOG__FORMAT="json", AFTERWORD_LOG__LEVEL="info")
    assert " INFO session done [stage=afterword.session scope=" in told
    assert "session_id=one run_id=1]" in told


def test_nothing_is_logged_where_all_is_well(afterword: Any, saved: str) -> None:
    assert "session done" not in afterword("run", saved)


def test_the_library_writes_nothing_by_itself(tmp_path: Path) -> None:
    """Python writes warnings to a terminal where nobody has set up logging; that is for applications to decide."""
    program = "import logging, afterword; logging.getLogger('afterword.store').warning('aha')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
