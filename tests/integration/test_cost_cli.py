"""What a run costs, as the command line tells it: before, while and after; and how Ctrl-C ends one."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply
from afterword.pipeline.batch import AHEAD
from batches import state, wait_until
from commands import Commands, clean_environment

Start = Callable[..., subprocess.Popen[str]]
SESSIONS = 6
PRICES = """
[prices.scripted]
prompt_usd = 0.15
completion_usd = "0.60"
as_of = 2026-11-01
source = "made up"
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A folder with the sessions of one user, one a day."""
    folder = tmp_path / "saved"
    folder.mkdir()
    entries = []
    for number in range(SESSIONS):
        (folder / f"s{number}.json").write_text(json.dumps(state(f"This is session {number}.")))
        at = f"2026-01-{number + 1:02}T10:00:00Z"
        entries.append({"session_id": f"s{number}", "user_id": "mira", "path": f"s{number}.json"})
        entries[-1] |= {"started_at": at, "ended_at": at}
    (folder / "manifest.json").write_text(json.dumps(entries))
    return folder


def asking(endpoint: ScriptedEndpoint) -> dict[str, str]:
    """The settings by which a command asks the model at an endpoint."""
    return {
        "AFTERWORD_EXTRACTOR": "model",
        "AFTERWORD_MODEL__NAME": "scripted",
        "AFTERWORD_MODEL__BASE_URL": endpoint.base_url,
        "AFTERWORD_MODEL__MODE": "json_schema",
        "AFTERWORD_MODEL__MAX_RETRIES": "0",
    }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command in a process of its own, with a model at an endpoint; none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(endpoint: ScriptedEndpoint, *arguments: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "afterword", *arguments],
            cwd=tmp_path,
            env=clean_environment() | asking(endpoint),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def told(process: subprocess.Popen[str], expected: int = 0) -> str:
    """What a command has printed; it must have ended with this exit code."""
    output, errors = process.communicate(timeout=120)
    assert process.returncode == expected, output + errors
    return output


def nothing(request: Json) -> Reply:
    """Finds no facts."""
    return facts_reply()


def test_a_run_is_estimated_paid_for_and_accounted_for(afterword: Commands, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "afterword.toml").write_text(f"[model]\nmax_completion_tokens = 400\n{PRICES}")
    with ScriptedEndpoint(nothing) as endpoint:
        model = asking(endpoint)
        foreseen = json.loads(afterword("run", "saved", "--estimate", "--json", expected=0, **model))
        assert not (tmp_path / "afterword.db").exists()
        assert endpoint.requests == []
        assert foreseen["sessions"] == {"new": SESSIONS, "grown": 0, "unchanged": 0, "unreadable": 0}
        assert (foreseen["least"]["calls"], foreseen["most"]["calls"]) == (SESSIONS, 2 * SESSIONS)
        assert Decimal(foreseen["least"]["usd"]) < Decimal(foreseen["most"]["usd"])
        assert set(foreseen["scopes"]) == {"default/user/mira"}
        ended = json.loads(afterword("run", "saved", "--json", expected=0, **model))
        runs = json.loads(afterword("runs", "--user", "mira", "--json", expected=0, **model))
        status = json.loads(afterword("status", "--json", expected=0, **model))
        shown = afterword("status", expected=0, **model)
        again = afterword("run", "saved", "--estimate", expected=0, **model)
    spent = [one["spent"] for one in ended]
    assert [one["spent"] for one in runs] == spent
    assert all(one["calls"] == 1 and Decimal(one["usd"]) > 0 for one in spent)
    total = sum(Decimal(one["usd"]) for one in spent)
    assert Decimal(status["spent"]["total"]["usd"]) == total
    assert [Decimal(one["usd"]) for one in status["spent"]["days"].values()] == [total]
    assert [Decimal(one["spent"]["usd"]) for one in status["scopes"]] == [total]
    assert "spent by day" in shown
    assert f"{SESSIONS}" in again
    assert "$0.00" in again


def test_a_budget_stops_a_run_with_its_own_exit_code(
    start: Start, afterword: Commands, saved: Path, tmp_path: Path
) -> None:
    """Of a day's budget what failed is part, and the next run of the day finds it spent."""
    budget = '[model]\nmax_completion_tokens = 400\n[budget]\nusd_per_day = "0.003"\n'
    (tmp_path / "afterword.toml").write_text(budget + PRICES)
    with ScriptedEndpoint(lambda request: Reply('{"nothing": "that fits"}' + " " * 400)) as endpoint:
        first = told(start(endpoint, "run", "saved"), expected=3)
        asked = len(endpoint.requests)
        assert 0 < asked < 2 * SESSIONS
        second = afterword("run", "saved", expected=3, **asking(endpoint))
        assert len(endpoint.requests) == asked
        why = json.loads(told(start(endpoint, "why", "s0", "--json")))
        runs = told(start(endpoint, "runs", "--user", "mira"))
    assert "stopped: the day's budget of $0.0030 would be passed" in first
    waiting = second.count("waiting: ")
    assert waiting >= 1, "what failed waits for its next try"
    assert f"{SESSIONS - waiting} sessions left" in second
    assert "no model was asked" in second
    assert why["spent"]["calls"] == 2
    assert "which came to no run" in runs


def test_a_budget_in_dollars_needs_a_price(afterword: Commands, saved: Path, tmp_path: Path) -> None:
    (tmp_path / "afterword.toml").write_text("[budget]\nusd_per_run = 1\n")
    with ScriptedEndpoint(nothing) as endpoint:
        told = afterword("run", "saved", expected=2, **asking(endpoint))
    assert endpoint.requests == []
    assert "no price is known for model 'scripted'" in told


def test_ctrl_c_lets_what_is_at_work_end_and_says_what_is_left(start: Start, saved: Path, tmp_path: Path) -> None:
    go_on = threading.Event()

    def held(request: Json) -> Reply:
        go_on.wait(60)
        return facts_reply()

    with ScriptedEndpoint(held) as endpoint:
        process = start(endpoint, "run", "saved")
        wait_until(lambda: len(endpoint.requests) == AHEAD)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "stopping" in process.stderr.readline()
        go_on.set()
        output = told(process, expected=130)
        assert f"stopped: interrupted; {SESSIONS - AHEAD} sessions left" in output
        assert len(endpoint.requests) == AHEAD
        assert [one["result"] for one in json.loads(told(start(endpoint, "run", "saved", "--json")))] == [
            *["unchanged"] * AHEAD,
            *["done"] * (SESSIONS - AHEAD),
        ]


def test_a_second_ctrl_c_hands_back_what_is_at_work(start: Start, saved: Path, tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda request: Reply(hangs=True)) as endpoint:
        process = start(endpoint, "run", "saved", "--json")
        wait_until(lambda: len(endpoint.requests) == AHEAD)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "stopping" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        ended: list[dict[str, Any]] = json.loads(told(process, expected=130))
    assert {(one["result"], one["reason"]) for one in ended} == {("left", "interrupted")}
    with sqlite3.connect(tmp_path / "afterword.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        assert connection.execute("SELECT status, is_estimate FROM spendings").fetchall() == [("open", 1)] * AHEAD


def test_a_terminal_shows_a_bar_and_a_pipe_gets_lines(start: Start, saved: Path) -> None:
    with ScriptedEndpoint(nothing) as endpoint:
        process = start(endpoint, "run", "saved", "--extractor", "rules")
        _, lines = process.communicate(timeout=120)
        assert lines.splitlines()[-1].startswith(f"{SESSIONS} of {SESSIONS} sessions, ")
        assert len(lines.splitlines()) == SESSIONS  # one at each tenth of the way, and none twice
        controller, terminal = pty.openpty()
        shown = start(endpoint, "run", "saved", "--extractor", "rules", stderr=terminal)
        shown.communicate(timeout=120)
        os.close(terminal)
        drawn = os.read(controller, 65_536).decode()
        os.close(controller)
    assert "sessions" in drawn
    assert f"{SESSIONS}/{SESSIONS}" in drawn
    assert " a minute, $0.00, 0 failed" in drawn
