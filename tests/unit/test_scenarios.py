"""Scenario files, the messages that they become, and the scorecard's text."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from afterword.evaluation.report import BEGIN, END, markdown_table, replace_scorecard
from afterword.evaluation.scenarios.saved_messages import saved_messages
from afterword.evaluation.scenarios.scenario import Session, Story, read_scenarios
from afterword.extractors.readers import read_state
from afterword.facts.transcripts import Role
from afterword.pipeline.errors import SourceInvalid
from scenarios import moved, scenario, session, write


def test_a_story_has_no_gold() -> None:
    """The pipeline gets stories: what it does not get it cannot read."""
    story = scenario().story()
    assert type(story) is Story
    assert "gold" not in story.model_dump()


def test_scenarios_come_from_files_and_folders_by_name(tmp_path: Path) -> None:
    folder = write(tmp_path / "all", moved("b"), moved("a"))
    assert [read.id for read in read_scenarios([folder])] == ["a", "b"]
    assert [read.id for read in read_scenarios([folder / "b.json"])] == ["b"]


def broken(**changed: Any) -> dict[str, Any]:
    return {**moved(), **changed}


@pytest.mark.parametrize(
    ("scenario_json", "says"),
    [
        (broken(id="../up"), "usable as a file name"),
        (broken(sessions=[]), "sessions"),
        (broken(sessions=[session("one"), session("one")]), "'one' is used twice"),
        (broken(arrival=["one"]), "arrival"),
        (broken(sessions=[{**session("one"), "container": "chat"}]), "container"),
        (broken(gold={"facts": [], "not_facts": [{"statement": "x", "why": "y", "keywords": [["("]]}]}), "expression"),
        (broken(gold=None), "gold"),
    ],
)
def test_what_cannot_be_scored_is_refused_by_file_and_place(
    tmp_path: Path, scenario_json: dict[str, Any], says: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(scenario_json))
    with pytest.raises(SourceInvalid, match=says) as refused:
        read_scenarios([tmp_path])
    assert "x.json" in str(refused.value)


def test_no_scenario_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceInvalid, match="no scenario"):
        read_scenarios([tmp_path])
    with pytest.raises(SourceInvalid, match="cannot be read"):
        read_scenarios([tmp_path / "none.json"])
    with pytest.raises(SourceInvalid, match="'moved'"):
        read_scenarios([write(tmp_path / "a", moved()), write(tmp_path / "b", moved())])


@pytest.mark.parametrize("container", ["assistant", "round_robin", "selector", "swarm", "team", "v02", "openai"])
def test_every_kind_of_session_is_read_back_as_it_was_said(container: str) -> None:
    spoken = Session.model_validate(session("one", "I live in Graz.", "I like tea.", container=container))
    messages = json.loads(json.dumps(saved_messages(spoken)))
    transcript = read_state(messages, humans=spoken.humans)
    said = [(turn.role, turn.text) for turn in transcript.turns]
    assert said == [
        (Role.HUMAN if message.role == "user" else Role.AGENT, message.content) for message in spoken.messages
    ]


def test_a_team_spreads_its_times_over_the_session() -> None:
    spoken = Session.model_validate(session("one", "a", "b", "c", container="round_robin"))
    transcript = read_state(json.loads(json.dumps(saved_messages(spoken))), humans=spoken.humans)
    times = [turn.said_at for turn in transcript.turns]
    assert times == [spoken.started_at + timedelta(minutes=6 * place) for place in range(6)]


def test_a_team_that_ends_its_turn_with_tools_says_their_results_and_hands_over() -> None:
    spoken = session("one", container="swarm")
    spoken["messages"] = [
        {"role": "user", "source": "user", "content": "Cancel it."},
        {"role": "tool_call", "source": "desk", "name": "transfer_to_billing", "call_id": "1", "arguments": {}},
        {"role": "tool_result", "source": "desk", "name": "transfer_to_billing", "call_id": "1", "content": "Over."},
        {"role": "memory", "content": "1. The user pays by card.\n2. The user is Ana."},
        {"role": "tool_call", "source": "billing", "name": "cancel", "call_id": "2", "arguments": {"id": 7}},
        {"role": "tool_result", "source": "billing", "name": "cancel", "call_id": "2", "content": "Cancelled."},
    ]
    messages = json.loads(json.dumps(saved_messages(Session.model_validate(spoken))))
    assert [(message["type"], message["source"]) for message in messages] == [
        ("TextMessage", "user"),
        ("ToolCallRequestEvent", "desk"),
        ("ToolCallExecutionEvent", "desk"),
        ("HandoffMessage", "desk"),
        ("MemoryQueryEvent", "billing"),
        ("ToolCallRequestEvent", "billing"),
        ("ToolCallExecutionEvent", "billing"),
        ("ToolCallSummaryMessage", "billing"),
    ]


def test_a_block_is_written_between_its_markers_and_nowhere_else() -> None:
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_scorecard(text, "new", "x") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}{BEGIN}", f"{BEGIN}{BEGIN}{END}"])
def test_a_file_without_its_markers_is_refused(text: str) -> None:
    with pytest.raises(SourceInvalid, match=r"notes\.md needs one line"):
        replace_scorecard(text, "new", "notes.md")


def test_a_table_lines_up() -> None:
    assert markdown_table(["", "one"], [["a long name", "1"]]) == [
        "|             | one |",
        "| ----------- | --- |",
        "| a long name | 1   |",
    ]
