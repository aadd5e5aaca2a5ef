"""What a run costs, as the command line tells it: before, while and after; and how Ctrl-C ends one."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from afterword.cli.progress import showing_progress
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import SESSIONS_AHEAD, Failure
from afterword.store.costs import Spending
from batches import state, wait_until
from commands import Commands

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


def test_a_budget_stops_a_run_with_its_own_exit_code(afterword: Commands, saved: Path, tmp_path: Path) -> None:
    """Of a day's budget what failed is part, and the next run of the day finds it spent."""
    budget = '[model]\nmax_completion_tokens = 400\n[budget]\nusd_per_day = "0.003"\n'
    (tmp_path / "afterword.toml").write_text(budget + PRICES)
    with ScriptedEndpoint(lambda request: Reply('{"nothing": "that fits"}' + " " * 400)) as endpoint:
        first = afterword("run", "saved", expected=3, **asking(endpoint))
        asked = len(endpoint.requests)
        assert 0 < asked < 2 * SESSIONS
        second = afterword("run", "saved", expected=3, **asking(endpoint))
        assert len(endpoint.requests) == asked
        why = json.loads(afterword("why", "s0", "--json", expected=0, **asking(endpoint)))
        runs = afterword("runs", "--user", "mira", expected=0, **asking(endpoint))
    assert "stopped: the day's budget of $0.0030 would be exceeded" in first
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


class CtrlC:
    """The responder of an endpoint that interrupts the command so many times once all its requests are open.

    `errors` is what the command writes to standard error.
    """

    def __init__(self, reply: Reply, errors: io.StringIO, *, times: int) -> None:
        self._reply, self._errors, self._times = reply, errors, times
        self._open, self._go_on, self._lock = 0, threading.Event(), threading.Lock()

    def __call__(self, request: Json) -> Reply:
        with self._lock:
            self._open += 1
            is_last = self._open == SESSIONS_AHEAD
        if is_last:
            for _ in range(self._times):
                os.kill(os.getpid(), signal.SIGINT)
                wait_until(lambda: "stopping" in self._errors.getvalue())
            self._go_on.set()
        self._go_on.wait(60)
        return self._reply


def test_ctrl_c_lets_what_is_at_work_end_and_says_what_is_left(
    afterword: Commands, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", errors := io.StringIO())
    with ScriptedEndpoint(CtrlC(facts_reply(), errors, times=1)) as endpoint:
        output = afterword("run", "saved", expected=130, **asking(endpoint))
        assert f"stopped: interrupted; {SESSIONS - SESSIONS_AHEAD} sessions left" in output
        assert len(endpoint.requests) == SESSIONS_AHEAD
    with ScriptedEndpoint(nothing) as endpoint:
        ended = json.loads(afterword("run", "saved", "--json", expected=0, **asking(endpoint)))
    results = [session["result"] for session in ended]
    assert results == [*["unchanged"] * SESSIONS_AHEAD, *["done"] * (SESSIONS - SESSIONS_AHEAD)]


def test_a_second_ctrl_c_hands_back_what_is_at_work(
    afterword: Commands, saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", errors := io.StringIO())
    with ScriptedEndpoint(CtrlC(Reply(hangs=True), errors, times=2)) as endpoint:
        ended = json.loads(afterword("run", "saved", "--json", expected=130, **asking(endpoint)))
    assert {(session["result"], session["reason"]) for session in ended} == {("left", "interrupted")}
    with closing(sqlite3.connect(tmp_path / "afterword.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (0,)
        assert (
            connection.execute("SELECT status, is_estimate FROM spendings").fetchall() == [("open", 1)] * SESSIONS_AHEAD
        )


def test_a_pipe_gets_lines(afterword: Commands, saved: Path) -> None:
    afterword("run", "saved", "--extractor", "rules")
    lines = afterword.errors.splitlines()
    assert lines[-1].startswith(f"{SESSIONS} of {SESSIONS} sessions, ")
    assert len(lines) == SESSIONS  # one at each tenth of the way, and none twice


def test_a_slow_run_is_counted_by_the_hour(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_progress(is_quiet=False) as progress:
        progress.begin(10)
        (task,) = progress._bar.tasks
        task.start_time = (task.start_time or 0.0) - 120
        progress.advance(Failure(Scope.user("mira"), "monday", "no answer"), Spending())
    assert "1 of 10 sessions, 30 an hour, " in capsys.readouterr().err


def test_a_terminal_shows_a_bar(afterword: Commands, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "w") as shown:
        monkeypatch.setattr(sys, "stderr", shown)
        afterword("run", "saved", "--extractor", "rules")
        drawn = os.read(controller, 65_536).decode()
    os.close(controller)
    assert "sessions" in drawn
    assert f"{SESSIONS}/{SESSIONS}" in drawn
    assert " a minute, $0.00, 0 failed" in drawn
