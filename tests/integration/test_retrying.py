"""What fails keeps its reason, waits longer each time, is set aside in the end, and can be put back."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from batches import state
from commands import Commands

SHORT: dict[str, Any] = {"AFTERWORD_RETRY__TRIES": "2", "AFTERWORD_RETRY__FIRST_PAUSE_S": "1000"}
NO_PAUSE: dict[str, Any] = {"AFTERWORD_RETRY__TRIES": "3", "AFTERWORD_RETRY__FIRST_PAUSE_S": "0"}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "saved" / "mira" / "bad.json"
    path.parent.mkdir(parents=True)
    path.write_text("{not json")
    os.utime(path, (time.time() - 60, time.time() - 60))
    return path


def run(afterword: Commands, *paths: str, expected: int = 0, **environment: str) -> list[dict[str, Any]]:
    told = afterword("run", *(paths or ("saved",)), "--json", expected=expected, **environment)
    found: list[dict[str, Any]] = json.JSONDecoder().raw_decode(told)[0]
    return found


def failed(afterword: Commands) -> dict[str, Any]:
    (one,) = json.loads(afterword("status", "--json"))["failed"]
    found: dict[str, Any] = one
    return found


def test_what_failed_waits_for_its_pause_unless_it_is_named(afterword: Commands, broken: Path) -> None:
    (first,) = run(afterword, expected=1, **SHORT)
    assert first["result"] == "failed"
    (waiting,) = run(afterword, **SHORT)
    assert (waiting["result"], "tried again after" in waiting["reason"]) == ("waiting", True)
    assert "waiting: bad" in afterword("run", "saved", **SHORT)
    assert failed(afterword)["tries"] == 1
    (named,) = run(afterword, str(broken), "--user", "mira", expected=1, **SHORT)
    assert named["result"] == "failed"
    assert (failed(afterword)["progress"], failed(afterword)["tries"]) == ("set aside", 2)


def test_after_the_set_number_of_tries_a_session_is_set_aside_and_can_be_put_back(
    afterword: Commands, broken: Path
) -> None:
    for _ in range(3):
        run(afterword, expected=1, **NO_PAUSE)
    (aside,) = run(afterword, **NO_PAUSE)
    assert (aside["result"], "set aside after 3 tries" in aside["reason"]) == ("waiting", True)
    assert failed(afterword) == {
        "scope": "default/user/mira",
        "session_id": "bad",
        "reason": failed(afterword)["reason"],
        "progress": "set aside",
        "tries": 3,
        "next_try_at": None,
    }
    assert "StateBroken" in failed(afterword)["reason"]
    assert "set aside" in afterword("status")
    assert json.loads(afterword("retry", "bad", "--json")) == [{"scope": "default/user/mira", "session_id": "bad"}]
    assert failed(afterword)["progress"] == "pending"
    assert [one["result"] for one in run(afterword, expected=1, **NO_PAUSE)] == ["failed"]
    assert "1 session put back" in afterword("retry", "--all", "--user", "mira")


def test_a_file_that_was_mended_is_tried_at_once(afterword: Commands, broken: Path) -> None:
    run(afterword, expected=1, **SHORT)
    broken.write_text(json.dumps(state("I live in Graz.")))
    os.utime(broken, (time.time() + 5, time.time() + 5))
    assert [one["result"] for one in run(afterword, **SHORT)] == ["done"]
    assert json.loads(afterword("status", "--json"))["failed"] == []


def test_what_cannot_be_put_back_is_said(afterword: Commands, broken: Path) -> None:
    run(afterword, expected=1, **SHORT)
    assert "no failed session" in afterword("retry", "other", expected=2)
    assert "no failed session" in afterword("retry", "bad", "--user", "jon", expected=2)
    assert "--all" in afterword("retry", expected=2)
    assert "--all" in afterword("retry", "bad", "--all", expected=2)
    assert json.loads(afterword("retry", "--all", "--user", "jon", "--json")) == []


def test_a_session_of_the_store_is_named_with_its_user(afterword: Commands) -> None:
    afterword("run")
    assert "record_session" in afterword("run", "--session", "x", "--user", "mira", expected=1)
    assert "--user" in afterword("run", "--session", "x", expected=2)
    assert json.loads(afterword("status", "--json"))["sessions"] == {}


def test_a_round_of_the_schedule_processes_what_is_due_and_says_so(afterword: Commands) -> None:
    told = json.loads(afterword("schedule", "--once", "--json"))
    assert {name: report["ending"] for name, report in told.items()} == {
        "retries": "done",
        "pending": "done",
        "consolidation": "done",
        "webhooks": "done",
    }
    again = json.loads(afterword("schedule", "--once", "--json", AFTERWORD_SCHEDULE__PENDING="0.001"))
    assert again["consolidation"]["ending"] == "not due"
    assert again["pending"]["ending"] == "done"
    jobs = json.loads(afterword("status", "--json"))["jobs"]
    assert {one["job"] for one in jobs} == {"retries", "pending", "consolidation", "webhooks"}
    assert all(one["last_success_at"] and not one["held_until"] for one in jobs)
    assert "consolidation" in afterword("status")


def test_a_rhythm_that_cannot_be_read_and_a_fleet_without_postgres_are_usage(afterword: Commands) -> None:
    afterword("run")
    assert "five cron fields" in afterword("schedule", "--once", expected=2, AFTERWORD_SCHEDULE__PENDING="often")
    for arguments in (["worker", "--once"], ["run", "--defer"]):
        assert "PostgreSQL" in afterword(*arguments, expected=2)
    assert "takes no path" in afterword("run", "saved", "--defer", expected=2)
    assert "PostgreSQL" in afterword("schedule", "--once", expected=2, AFTERWORD_SCHEDULE__DEFER="true")


def test_a_schedule_runs_where_no_signal_handler_can_be_set(afterword: Commands) -> None:
    """On Windows asyncio has none; in a thread it refuses them too."""
    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(afterword, "schedule", "--once", "--json").result()
    assert json.loads(ended)["pending"]["ending"] == "done"
