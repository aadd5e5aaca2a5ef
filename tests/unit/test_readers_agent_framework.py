"""Saved forms of Agent Framework: what is read of them, and what is never decoded or taken for a person's words."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from afterword.extractors.errors import LayoutUnknown, StateBroken
from afterword.extractors.readers import parse_state, read_file, read_state
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis
from afterword.pipeline.errors import SourceInvalid
from afterword.pipeline.sources.folders import find_sessions

GOLDEN = Path(__file__).parent.parent / "golden" / "states"


def state(name: str) -> Any:
    return parse_state((GOLDEN / f"agent_framework_{name}" / "state.json").read_bytes())


def said(role: str, text: str, **properties: Any) -> dict[str, Any]:
    contents = [{"type": "text", "text": text, "additional_properties": {}}]
    return {"type": "message", "role": role, "contents": contents, "additional_properties": properties}


def test_a_history_file_reads_into_its_turns() -> None:
    folder = GOLDEN / "agent_framework_history_file"
    expected = json.loads((folder / "turns.json").read_text())
    transcript = read_file(folder / "state.jsonl")
    assert [[turn.speaker, turn.role.value, turn.text] for turn in transcript.turns] == expected["turns"]
    assert transcript.layout == "Agent Framework messages"


def test_a_history_that_was_cut_is_an_error_that_names_the_line() -> None:
    lines = (GOLDEN / "agent_framework_history_file" / "state.jsonl").read_bytes()
    with pytest.raises(StateBroken, match="line 4 is not valid JSON"):
        parse_state(lines.rstrip()[:-5])


def test_a_history_of_one_line_is_read() -> None:
    assert read_state(parse_state(json.dumps(said("user", "I live in Bergen.")).encode())).humans == ("user",)


def test_messages_carry_no_times_and_checkpoints_do() -> None:
    assert read_state(state("session_file")).time_basis is None
    transcript = read_state(state("workflow_checkpoint"))
    assert transcript.time_basis is TimeBasis.TURNS
    assert {turn.said_at.isoformat() for turn in transcript.turns if turn.said_at} == {
        state("workflow_checkpoint")["timestamp"]
    }


def test_ids_that_compaction_assigns_later_are_not_kept() -> None:
    assert {turn.message_id for turn in read_state(state("compacted")).turns} == {None}


def test_a_message_of_several_executors_is_one_turn() -> None:
    texts = [turn.text for turn in read_state(state("workflow_checkpoint")).turns]
    assert len(texts) == len(set(texts)) == 3


class Harmful:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_what_is_pickled_in_a_checkpoint_is_never_decoded(tmp_path: Path) -> None:
    mark = tmp_path / "decoded"
    pickled = {"__pickled__": base64.b64encode(pickle.dumps(Harmful(mark))).decode(), "__type__": "x:Y"}
    checkpoint = state("workflow_checkpoint")
    executors = checkpoint["state"]["_executor_state"]
    executors["writer"]["full_conversation"] = [pickled]
    executors["other"] = pickled
    checkpoint["messages"] = {"researcher": [pickled]}
    transcript = read_state(checkpoint)
    assert not mark.exists()
    assert len(transcript.turns) == 3
    assert transcript.skipped == {"pickled content": 2}


def test_an_agents_words_in_the_user_role_are_the_agents() -> None:
    """A workflow may pass an agent's message on in the user role, with its name."""
    first, second = said("assistant", "Noted."), said("user", "I prefer Oslo.")
    first["author_name"] = second["author_name"] = "planner"
    turns = read_state([first, second]).turns
    assert [turn.role for turn in turns] == [Role.AGENT, Role.AGENT]


def test_a_person_who_says_something_like_a_loop_text_is_heard() -> None:
    turns = read_state([said("user", "Progress so far: I moved to Bergen.")]).turns
    assert [turn.role for turn in turns] == [Role.HUMAN]


def test_a_session_with_a_layout_of_its_own_is_an_error() -> None:
    with pytest.raises(LayoutUnknown, match="Agent Framework"):
        read_state({"type": "thread", "thread": {"lines": ["hello"]}})


def test_a_folder_of_sessions_and_histories(tmp_path: Path) -> None:
    for name, source, suffix in (
        ("monday", "session_of_history_file", "json"),
        ("monday", "history_file", "jsonl"),
        ("~session-nvuxeyjpge", "session_file", "json"),
    ):
        (tmp_path / f"{name}.{suffix}").write_bytes(
            (GOLDEN / f"agent_framework_{source}" / f"state.{suffix}").read_bytes()
        )
    saved = find_sessions([tmp_path], scope=Scope.user("mira"))
    assert sorted(session.session_id for session in saved) == ["mira/1", "monday"]
    (tmp_path / "monday.json").write_bytes((tmp_path / "~session-nvuxeyjpge.json").read_bytes())
    with pytest.raises(SourceInvalid, match="both session 'monday'"):
        find_sessions([tmp_path], scope=Scope.user("mira"))
