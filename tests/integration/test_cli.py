"""The command line as people and machines use it, with a real store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands import Commands, clean_environment
from saved import write_manifest, write_state


def test_the_installed_command_helps_at_once(tmp_path: Path) -> None:
    """The one process of its own. Whoever types --help must not wait for libraries that it does not use."""
    installed = Path(sys.executable).with_name("afterword")
    environment = {**clean_environment(), "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [installed, "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    for heavy in ("openai", "instructor", "apscheduler", "sqlmodel", "autogen_core", "rich.table"):
        assert f" {heavy}\n" not in done.stderr
    assert "demo" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "expected", "shown", "complaint"),
    [
        (["demo", "--json"], 0, '"result": "done"', ""),
        (["status"], 1, "", "afterword: there is no store at afterword.db"),
        (["facts"], 2, "", "afterword: say whose memory"),
    ],
)
def test_a_shell_gets_the_exit_code_and_the_two_streams(
    afterword: Commands, arguments: list[str], expected: int, shown: str, complaint: str
) -> None:
    assert shown in afterword(*arguments, expected=expected)
    assert afterword.errors.startswith(complaint)
    assert bool(afterword.errors) == bool(complaint)


def test_the_demo_tells_the_story_of_the_main_job(afterword: Commands) -> None:
    told = afterword("demo")
    for part in ("kept", "replaced", "hidden", "<afterword:memory", "lives in Bergen", "aisle"):
        assert part in told
    machine = json.loads(afterword("demo", "--json"))
    assert [one["result"] for one in machine["sessions"]] == ["done"] * 3
    assert not [fact for fact in machine["facts"] if "first class" in fact["statement"]]


def test_sessions_become_facts_that_can_be_asked_for(afterword: Commands, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    write_manifest(
        saved, ("one", "2026-01-05T10:00:00Z", "I live in Graz."), ("two", "2026-02-05T10:00:00Z", "I moved to Linz.")
    )
    ended = json.loads(afterword("run", "saved", "--json"))
    assert [(one["session_id"], one["result"], one["owner"]) for one in ended] == [
        ("one", "done", ["user"]),
        ("two", "done", ["user"]),
    ]
    again = json.loads(afterword("run", "saved", "--json"))
    assert [one["result"] for one in again] == ["unchanged", "unchanged"]
    facts = {fact["value"]: fact for fact in json.loads(afterword("facts", "--user", "mira", "--all", "--json"))}
    assert {value: fact["status"] for value, fact in facts.items()} == {"Graz": "superseded", "Linz": "current"}
    assert set(facts["Linz"]) == {
        *("id", "kind", "subject", "attribute", "value", "statement", "status", "valid_from", "valid_to"),
        *("recorded_at", "support", "evidence", "flagged", "tags"),
    }
    assert facts["Linz"]["evidence"] == [
        {"session_id": "two", "turn": 1, "speaker": "user", "quote": "I moved to Linz."}
    ]
    then = json.loads(afterword("facts", "--user", "mira", "--as-of", "2026-01-10", "--json"))
    assert [fact["value"] for fact in then] == ["Graz"]
    history = json.loads(afterword("history", facts["Graz"]["id"], "--json"))
    assert [verdict["relation"] for verdict in history["verdicts"]] == ["changes"]
    assert json.loads(afterword("why", "two", "--json"))["humans"] == ["user"]
    assert json.loads(afterword("recall", "--user", "mira", "Where in Linz?", "--json"))["facts"][0]["value"] == "Linz"
    first = json.loads(afterword("recall", "--user", "mira", "Where in Linz?", "--json"))["facts"][0]
    assert sum(first["parts"].values()) == pytest.approx(first["score"])
    assert first["parts"]["words"] == 1
    assert json.loads(afterword("status", "--json"))["sessions"] == {"done": 2}
    for command in (["facts", "--user", "mira", "--all"], ["history", facts["Graz"]["id"]], ["why", "two"], ["status"]):
        assert "Graz" in afterword(*command) or command[0] in ("status", "why")


def test_a_failing_session_is_shown_kept_and_counted(afterword: Commands, tmp_path: Path) -> None:
    saved = tmp_path / "saved" / "mira"
    write_state(saved / "good.json", "I live in Graz.")
    (saved / "bad.json").write_text("{not json")
    told = afterword("run", "saved", expected=1)
    assert "bad" in told
    assert "StateBroken" in told
    assert "times" in told  # neither file says when it was
    status = json.loads(afterword("status", "--json"))
    assert status["sessions"] == {"done": 1, "failed": 1}
    assert [one["session_id"] for one in status["failed"]] == ["bad"]


def test_a_dry_run_changes_nothing(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    (ended,) = json.loads(afterword("run", "saved", "--dry-run", "--json"))
    assert (ended["result"], [fact["value"] for fact in ended["learned"]]) == ("proposed", ["Graz"])
    assert json.loads(afterword("facts", "--user", "mira", "--all", "--json")) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nowhere"],
        ["facts"],
        ["facts", "--user", "a", "--scope", "default/user/a"],
        ["facts", "--scope", "nonsense"],
        ["recall", "--user", " ", "what"],
        ["nonsense"],
    ],
)
def test_what_cannot_be_meant_is_usage(afterword: Commands, arguments: list[str]) -> None:
    told = afterword(*arguments, expected=2)
    assert "Traceback" not in told


def test_asking_makes_no_store(afterword: Commands, tmp_path: Path) -> None:
    """A typing error in the address must not look like an empty memory."""
    for command in (["facts", "--user", "mira"], ["status"], ["history", "abcdef"], ["review", "--user", "mira"]):
        assert "no store" in afterword(*command, expected=1)
    assert not list(tmp_path.iterdir())


def test_what_is_not_there_is_said(afterword: Commands) -> None:
    afterword("run")
    for arguments in (["history", "abcdef123"], ["why", "nothing"]):
        assert "see `afterword" in afterword(*arguments, expected=1)


def test_nobody_else_sees_the_facts(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    afterword("run", "saved")
    for other in ("Mira", "mira ", "mir", "mira%", "' OR 1=1 --"):
        refused = afterword("facts", "--user", other, "--all", "--json", expected=1)
        assert "nothing was ever stored" in refused
        assert "Graz" not in refused


def test_doctor_says_what_is_wrong_and_how_to_mend_it(afterword: Commands, tmp_path: Path) -> None:
    assert all(check["ok"] for check in json.loads(afterword("doctor", "--json")))
    down = afterword("doctor", expected=1, AFTERWORD_STORE__URL="postgresql://me:secret@127.0.0.1:1/none")
    assert "does not answer" in down
    assert "secret" not in down
    (tmp_path / "afterword.toml").write_text("[store]\nurll = 'x'\n")
    assert "urll" in afterword("doctor", expected=1)
    assert "urll" in afterword("status", expected=2)


def test_every_profile_loads(afterword: Commands, repository: Path) -> None:
    profiles = sorted((repository / "configs").glob("*.toml"))
    assert len(profiles) >= 4
    for profile in profiles:
        environment = {
            "AFTERWORD_PROFILE": str(profile),
            "AFTERWORD_STORE__URL": "sqlite:///here.db",
            "OPENAI_API_KEY": "k",
        }
        checks = {one["check"]: one for one in json.loads(afterword("doctor", "--json", expected=0, **environment))}
        assert checks["settings"]["ok"]


def test_a_queue_of_nothing_is_said_and_is_no_failure(afterword: Commands) -> None:
    assert "nothing to do" in afterword("run")


def test_a_run_can_be_undone_and_a_proposal_applied(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(
        tmp_path / "saved",
        ("one", "2026-01-05T10:00:00Z", "I live in Graz."),
        ("two", "2026-02-05T10:00:00Z", "I moved to Linz."),
    )
    first, second = json.loads(afterword("run", "saved", "--json"))
    listed = json.loads(afterword("runs", "--user", "mira", "--json"))
    assert [(one["id"], one["status"]) for one in listed] == [(first["run"], "applied"), (second["run"], "applied")]
    assert json.loads(afterword("undo", str(second["run"]), "--json"))["status"] == "undone"
    facts = json.loads(afterword("facts", "--user", "mira", "--all", "--json"))
    assert [(fact["value"], fact["status"]) for fact in facts] == [("Graz", "current")]
    (shown,) = json.loads(afterword("reprocess", "two", "--json"))
    assert (shown["result"], [fact["value"] for fact in shown["learned"]]) == ("proposed", ["Linz"])
    assert json.loads(afterword("apply", str(shown["run"]), "--json"))["status"] == "applied"
    facts = json.loads(afterword("facts", "--user", "mira", "--json"))
    assert [fact["value"] for fact in facts] == ["Linz"]
    assert json.loads(afterword("reprocess", "--json")) == []
    assert json.loads(afterword("consolidate", "--json"))[0]["unjudged"] == 0
    afterword("undo", "999", expected=1)


def test_a_person_settles_edits_and_confirms(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "dated", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    write_state(tmp_path / "loose" / "mira" / "two.json", "I moved to Linz.")
    afterword("run", "dated")
    afterword("run", "loose")
    waiting = json.loads(afterword("review", "--user", "mira", "--json"))
    assert [(one["relation"], one["later"]["session_id"]) for one in waiting["contests"]] == [("changes", "two")]
    assert "I moved to Linz" in afterword("review", "--user", "mira")
    afterword("review", "--user", "mira", "--approve", "1")
    facts = {one["value"]: one for one in json.loads(afterword("facts", "--user", "mira", "--all", "--json"))}
    assert {value: fact["status"] for value, fact in facts.items()} == {"Graz": "superseded", "Linz": "current"}
    edit = ["edit", facts["Linz"]["id"], "--user", "mira", "--statement", "Mira lives in Wels.", "--value", "Wels"]
    assert "undo" in afterword(*edit)
    (now,) = json.loads(afterword("facts", "--user", "mira", "--json"))
    assert (now["value"], now["statement"]) == ("Wels", "Mira lives in Wels.")
    afterword("confirm", now["id"][:8], "--user", "mira")
    afterword("review", "--user", "mira", "--approve", "1", expected=1)
    afterword("review", "--user", "mira", "--approve", "x", expected=1)


def test_a_policy_holds_what_a_person_wants_to_see_first(afterword: Commands, tmp_path: Path) -> None:
    afterword("zone", "UTC", "--user", "mira")
    afterword("policy", "hold-all", "--user", "mira")
    assert json.loads(afterword("policy", "--user", "mira", "--json"))["policy"] == "hold-all"
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    (ended,) = json.loads(afterword("run", "saved", "--json"))
    assert ended["result"] == "held"
    assert json.loads(afterword("facts", "--user", "mira", "--json")) == []
    (held,) = json.loads(afterword("review", "--user", "mira", "--json"))["held"]
    afterword("review", "--user", "mira", "--approve", f"run:{held['id']}")
    assert [fact["value"] for fact in json.loads(afterword("facts", "--user", "mira", "--json"))] == ["Graz"]


def test_what_may_no_longer_fit_is_listed_until_a_person_stands_for_it(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(
        tmp_path / "saved",
        ("one", "2026-01-05T10:00:00Z", "I live in Graz. My dentist is Dr Moser. My shoe size is 42."),
        ("two", "2026-02-05T10:00:00Z", "I moved to Linz."),
    )
    afterword("run", "saved")
    (one,) = json.loads(afterword("review", "--user", "mira", "--json"))["dependents"]
    assert ("Moser" in one["fact"]["statement"], one["changed"]["value"]) == (True, "Graz")
    assert one["changed_at"] == "2026-02-05T10:00:00Z"
    told = afterword("review", "--user", "mira")
    assert "may no longer fit: " in told
    assert "changed on 2026-02-05 (“dentist” often depends on the home)" in told
    assert "Moser" in afterword("facts", "--user", "mira")  # pointed at, not retired
    afterword("confirm", one["fact"]["id"], "--user", "mira")
    assert json.loads(afterword("review", "--user", "mira", "--json"))["dependents"] == []


def test_what_an_agent_is_told_and_what_the_store_holds_is_shown(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    afterword("run", "saved")
    assert json.loads(afterword("scopes", "--json")) == ["default/user/mira"]
    assert "1 memory" in afterword("scopes", "mi")
    (session,) = json.loads(afterword("sessions", "--user", "mira", "--json"))
    assert (session["session_id"], session["progress"]) == ("one", "done")
    assert json.loads(afterword("sessions", "--state", "failed", "--json")) == []
    assert "one" in afterword("sessions")
    block = json.loads(afterword("context", "Where?", "--user", "mira", "--json"))
    assert (len(block["facts"]), block["left_out"]) == (1, [])
    assert "Graz" in afterword("context", "--user", "mira")
    afterword("remember", "The release is on Friday.", "--scope", "default/project/apollo", "--tag", "plan")
    assert "release" in afterword("context", "--user", "mira", "--also", "default/project/apollo")
    assert "plan" in afterword("facts", "--scope", "default/project/apollo", "--tag", "plan")
    assert "0 facts" in afterword("facts", "--scope", "default/project/apollo", "--tag", "other")
    assert "no facts with these tags" in afterword(
        "recall", "release", "--scope", "default/project/apollo", "--tag", "other"
    )


def test_facts_are_listed_by_kind_and_status(afterword: Commands) -> None:
    def listed(*options: str) -> list[str]:
        return [fact["statement"] for fact in json.loads(afterword("facts", "--user", "mira", "--json", *options))]

    afterword("remember", "The user likes tea.", "--user", "mira", "--kind", "preference")
    afterword("remember", "The user lives in Graz.", "--user", "mira")
    (graz,) = json.loads(afterword("facts", "--user", "mira", "--kind", "entity", "--json"))
    afterword("withdraw", graz["id"], "--user", "mira")
    assert listed("--kind", "preference") == ["The user likes tea."]
    assert listed("--kind", "entity") == []
    assert listed("--status", "retracted") == ["The user lives in Graz."]
    assert len(listed("--status", "retracted", "--status", "current")) == 2
    assert "use one of current, " in afterword("facts", "--user", "mira", "--status", "gone", expected=2)
    assert "not both" in afterword("facts", "--user", "mira", "--status", "current", "--all", expected=2)


def test_an_export_to_read_says_what_became_of_a_fact(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(
        tmp_path / "saved",
        ("one", "2026-01-05T10:00:00Z", "I live in Graz."),
        ("two", "2026-02-05T10:00:00Z", "I moved to Linz."),
    )
    afterword("remember", "The user likes tea.", "--user", "noor")
    assert "\n1 fact.\n" in afterword("export", "-", "--readable", "--user", "noor")
    (tea,) = json.loads(afterword("facts", "--user", "noor", "--json"))
    afterword("withdraw", tea["id"], "--user", "noor")
    shown = afterword("export", "-", "--readable", "--user", "noor")
    assert "withdrawn" in shown
    assert "retracted" not in shown
    afterword("run", "saved", "--user", "mira")
    assert "  - replaced by: The user moved to Linz.\n" in afterword("export", "-", "--readable", "--user", "mira")


def test_a_person_adds_and_withdraws_facts_and_redoes_a_run(afterword: Commands) -> None:
    added = json.loads(afterword("remember", "The user lives in Graz.", "--user", "mira", "--json"))
    (fact,) = added["facts"]
    withdrawn = json.loads(afterword("withdraw", fact["id"], "--user", "mira", "--json"))
    assert json.loads(afterword("facts", "--user", "mira", "--json")) == []
    assert "withdrawn" in afterword("facts", "--user", "mira", "--all")
    assert "was withdrawn already" in afterword("withdraw", fact["id"], "--user", "mira", expected=1)
    assert "current: The user lives in Graz." in afterword("undo", str(withdrawn["run"]))
    assert json.loads(afterword("redo", str(withdrawn["run"]), "--json"))["status"] == "applied"
    assert json.loads(afterword("facts", "--user", "mira", "--json")) == []


def test_a_paused_memory_keeps_no_session(afterword: Commands, tmp_path: Path) -> None:
    assert json.loads(afterword("pause", "--user", "mira", "--new", "--json"))["paused_at"]
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    afterword("run", "saved")
    assert json.loads(afterword("facts", "--user", "mira", "--json")) == []
    assert "1 session not kept; see `afterword resume`" in afterword("status")
    ended = json.loads(afterword("resume", "--user", "mira", "--json"))
    assert (ended["was_paused"], ended["sessions_not_kept"]) == (True, 1)
    assert "was not paused" in afterword("resume", "--user", "mira")


def test_memories_are_merged_and_renamed(afterword: Commands, tmp_path: Path) -> None:
    write_manifest(tmp_path / "saved", ("one", "2026-01-05T10:00:00Z", "I live in Graz."))
    afterword("run", "saved")
    renamed = json.loads(afterword("rename", "default/user/mira", "default/user/mira-b", "--json"))
    assert renamed["status"] == "applied"
    assert [fact["value"] for fact in json.loads(afterword("facts", "--user", "mira-b", "--json"))] == ["Graz"]
    afterword("remember", "The user likes tea.", "--user", "tom")
    merged = json.loads(afterword("merge", "default/user/tom", "default/user/mira-b", "--json"))
    assert len(json.loads(afterword("facts", "--user", "mira-b", "--json"))) == 2
    afterword("undo", str(merged["id"]))
    assert len(json.loads(afterword("facts", "--user", "mira-b", "--json"))) == 1
    assert "afterword: " in afterword("merge", "nonsense", "default/user/tom", expected=2)


@pytest.mark.parametrize(
    "command", ["facts --all --json", "facts", "status", "context", "export -", "schedule", "schedule --once", "--help"]
)
def test_a_command_whose_reader_has_gone_ends_quietly(afterword: Commands, tmp_path: Path, command: str) -> None:
    """As in `afterword facts | head -1`: nothing failed, and nothing is reported."""
    afterword("remember", "The user lives in Graz.", "--user", "mira")
    whose = ["--user", "mira"] if command.startswith(("facts", "context", "export")) else []
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "afterword", *command.split(), *whose],
            cwd=tmp_path, env=clean_environment(), stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")
