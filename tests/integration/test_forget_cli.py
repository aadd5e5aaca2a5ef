"""Forgetting from the command line: shown first, done with --yes, kept by tombstones after a restored backup."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import Commands
from saved import write_manifest

WORD = "Gnarlsburg"


@pytest.fixture
def told(afterword: Commands, tmp_path: Path) -> Callable[..., None]:
    """Process one session of Mira's, in which she says these sentences."""

    def tell(session_id: str, on: str, *said: str, **environment: str) -> None:
        write_manifest(tmp_path / session_id, (session_id, on, *said))
        afterword("run", str(tmp_path / session_id), expected=0, **environment)

    return tell


def values(afterword: Commands) -> set[str]:
    return {fact["value"] for fact in json.loads(afterword("facts", "--user", "mira", "--all", "--json"))}


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("afterword.db*"))


def test_nothing_is_forgotten_before_it_was_shown(
    afterword: Commands, told: Callable[..., None], tmp_path: Path
) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    (shown,) = json.loads(afterword("forget", "--user", "mira", "--session", "a", "--json", expected=1))
    assert shown["done"] is False
    assert WORD in values(afterword)
    (done,) = json.loads(afterword("forget", "--user", "mira", "--session", "a", "--yes", "--json"))
    assert (done["done"], done["files_clean"], done["erased"]) == (True, True, shown["erased"])
    assert values(afterword) == set()
    assert WORD.encode() not in bytes_of(tmp_path)
    assert WORD not in json.dumps(done)


def test_a_restored_session_of_which_every_word_was_forgotten_is_forgotten_again(
    afterword: Commands, told: Callable[..., None], tmp_path: Path
) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.")
    told("b", "2026-03-02T10:00:00Z", "I am allergic to peanuts.")
    afterword("backup", "backup.db")
    (home,) = (
        fact["id"] for fact in json.loads(afterword("facts", "--user", "mira", "--json")) if fact["value"] == WORD
    )
    afterword("forget", "--user", "mira", "--fact", home, "--yes")
    afterword("forget", "--tombstones", "stones.jsonl")
    for suffix in ("-wal", "-shm"):
        (tmp_path / f"afterword.db{suffix}").unlink(missing_ok=True)
    shutil.move(tmp_path / "backup.db", tmp_path / "afterword.db")
    afterword("forget", "--replay", "stones.jsonl", expected=0)
    assert WORD not in values(afterword)
    assert len(values(afterword)) == 1
    assert WORD.encode() not in bytes_of(tmp_path)


def test_one_fact_goes_by_its_id(afterword: Commands, told: Callable[..., None], tmp_path: Path) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    facts = json.loads(afterword("facts", "--user", "mira", "--json"))
    (home,) = (fact["id"] for fact in facts if fact["value"] == WORD)
    afterword("forget", "--user", "mira", "--fact", home[:8], "--yes")
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    assert values(afterword) == {fact["value"] for fact in facts} - {WORD}
    assert WORD.encode() not in bytes_of(tmp_path)


def test_a_restored_backup_forgets_again(afterword: Commands, told: Callable[..., None], tmp_path: Path) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    told("b", "2026-03-02T10:00:00Z", "I always take the window seat.")
    shutil.copy(tmp_path / "afterword.db", tmp_path / "old.db")
    home = next(one["id"] for one in json.loads(afterword("facts", "--user", "mira", "--json")) if one["value"] == WORD)
    afterword("forget", "--user", "mira", "--fact", home, "--yes")
    afterword("forget", "--user", "mira", "--session", "b", "--yes")
    left = values(afterword)
    afterword("forget", "--tombstones", "stones.jsonl")
    assert WORD not in (tmp_path / "stones.jsonl").read_text()
    for file in tmp_path.glob("afterword.db*"):
        file.unlink()
    shutil.move(tmp_path / "old.db", tmp_path / "afterword.db")
    assert values(afterword) > left
    afterword("forget", "--replay", "stones.jsonl")
    assert values(afterword) == left
    assert WORD.encode() not in bytes_of(tmp_path)


def test_a_request_waits_or_is_carried_out_at_once(
    afterword: Commands, told: Callable[..., None], tmp_path: Path
) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    told("b", "2026-03-02T10:00:00Z", f"Please forget that I live in {WORD}.")
    (scope,) = json.loads(afterword("status", "--json"))["scopes"]
    assert scope["to_forget"] == 1
    assert "1 to erase" in afterword("review", "--user", "mira")
    assert "forget --asked" in afterword("status")
    assert scope["erase_due_at"] is None
    auto: dict[str, Any] = {"AFTERWORD_PRIVACY__ERASE": "auto"}
    told("c", "2026-03-03T10:00:00Z", "I always take the window seat.", **auto)
    (scope,) = json.loads(afterword("status", "--json", **auto))["scopes"]
    assert (scope["to_forget"], scope["erase_due_at"] is None) == (1, False)
    assert "erased by itself" in " ".join(afterword("status", **auto).split())
    (waiting,) = json.loads(afterword("review", "--user", "mira", "--json", **auto))["erasures"]
    assert waiting["due_at"] == scope["erase_due_at"]
    assert WORD not in waiting["statement"]
    assert waiting["id"] in afterword("review", "--user", "mira", **auto)
    afterword("run", **auto, AFTERWORD_PRIVACY__ERASE_WAIT_H="0")
    assert WORD.encode() in bytes_of(tmp_path), "a run without sessions touches no memory"
    told("d", "2026-03-04T10:00:00Z", "I speak Dutch.", **auto, AFTERWORD_PRIVACY__ERASE_WAIT_H="0")
    (scope,) = json.loads(afterword("status", "--json"))["scopes"]
    assert scope["to_forget"] == 0
    assert WORD.encode() not in bytes_of(tmp_path)
    assert "nothing to forget" in afterword("forget", "--asked", "--yes")


def test_a_request_can_be_stopped(afterword: Commands, told: Callable[..., None], tmp_path: Path) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    told("b", "2026-03-02T10:00:00Z", f"Please forget that I live in {WORD}.")
    before = values(afterword)
    (waiting,) = json.loads(afterword("review", "--user", "mira", "--json"))["erasures"]
    afterword("review", "--user", "mira", "--approve", waiting["id"], expected=2)
    afterword("review", "--user", "mira", "--reject", waiting["id"])
    assert values(afterword) == before | {WORD}
    told(
        "c",
        "2026-03-03T10:00:00Z",
        "I speak Dutch.",
        AFTERWORD_PRIVACY__ERASE="auto",
        AFTERWORD_PRIVACY__ERASE_WAIT_H="0",
    )
    assert WORD.encode() in bytes_of(tmp_path)
    assert json.loads(afterword("review", "--user", "mira", "--json"))["erasures"] == []
    afterword("review", "--user", "mira", "--reject", waiting["id"], expected=1)


def test_what_is_to_go_must_be_said(afterword: Commands, told: Callable[..., None]) -> None:
    told("a", "2026-03-01T10:00:00Z", "I am allergic to peanuts.")
    afterword("forget", "--yes", expected=2)
    afterword("forget", "--user", "mira", "--session", "a", "--fact", "abcdef", "--yes", expected=2)
    assert "no session" in afterword("forget", "--user", "mira", "--session", "z", "--yes", expected=1)
    afterword("forget", "--before", "2026-03-02", "--yes")
    assert values(afterword) == set()


def test_memories_without_anything_to_forget_are_not_listed(afterword: Commands, told: Callable[..., None]) -> None:
    told("a", "2024-03-01T10:00:00Z", "I live in Oslo.")
    afterword("remember", "The user likes tea.", "--user", "noor")
    shown = afterword("forget", "--before", "2025-01-01", expected=1)
    assert "nothing was forgotten yet" in shown
    assert "noor" not in shown
    assert "nothing to forget" in afterword("forget", "--before", "2020-01-01")


def test_what_is_older_than_the_settings_allow_is_shown_and_goes(
    afterword: Commands, told: Callable[..., None]
) -> None:
    told("a", "2024-03-01T10:00:00Z", f"I live in {WORD}.")
    assert "nothing to forget" in afterword("forget", "--retention", "--yes")
    settings = {"AFTERWORD_RETENTION__SESSION_DAYS": "30"}
    (shown,) = json.loads(afterword.within(settings, "forget", "--retention", "--json", expected=1))
    assert (shown["done"], values(afterword)) == (False, {WORD})
    (done,) = json.loads(afterword.within(settings, "forget", "--retention", "--user", "mira", "--yes", "--json"))
    assert (done["done"], values(afterword)) == (True, set())


@pytest.mark.parametrize("other", [("--tombstones", "stones.jsonl"), ("--clean",), ("--replay", "stones.jsonl")])
def test_what_is_to_be_erased_is_never_passed_over(
    afterword: Commands, told: Callable[..., None], tmp_path: Path, other: tuple[str, ...]
) -> None:
    """`--session` beside `--tombstones` wrote the file, forgot nothing and ended with 0."""
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.")
    refused = afterword("forget", "--user", "mira", "--session", "a", "--yes", *other, expected=2)
    assert "name one of" in refused
    assert not (tmp_path / "stones.jsonl").exists()
    if other[0] != "--tombstones":
        assert "concern the whole store" in afterword("forget", "--user", "mira", *other, expected=2)


def test_a_replay_that_erases_nothing_says_so(afterword: Commands, told: Callable[..., None]) -> None:
    told("a", "2026-03-01T10:00:00Z", f"I live in {WORD}.", "I am allergic to peanuts.")
    home = next(one["id"] for one in json.loads(afterword("facts", "--user", "mira", "--json")) if one["value"] == WORD)
    receipt = afterword("forget", "--user", "mira", "--fact", home, "--yes")
    assert receipt.startswith("default/user/mira: forgotten: 1 fact; also removed: ")
    assert "_" not in receipt, "no name of a table"
    afterword("forget", "--tombstones", "stones.jsonl")
    assert "erased: nothing" in afterword("forget", "--replay", "stones.jsonl")
    assert "nothing changed" in afterword.errors
