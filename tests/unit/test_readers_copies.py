"""One utterance is one turn, however often a team saved it."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.readers import read_state
from afterword.facts.transcripts import Role, Transcript

AGENTS = ("planner", "coder", "critic")
# Few texts, so that the same person often says the same thing again.
UTTERANCES = st.lists(
    st.tuples(st.sampled_from(["user", "priya", *AGENTS]), st.sampled_from(["ok", "yes", "Use SQLite.", "{}", "no"])),
    min_size=1,
    max_size=25,
)


def threaded(source: str, text: str, number: int, *, with_id: bool = True) -> dict[str, Any]:
    message: dict[str, Any] = {"source": source, "models_usage": None, "content": text, "type": "TextMessage"}
    return {**message, "id": str(uuid.UUID(int=number))} if with_id else message


def in_context(agent: str, source: str, text: str) -> dict[str, Any]:
    kind = "AssistantMessage" if source == agent else "UserMessage"
    return {"content": text, "source": source, "type": kind}


def team(
    said: list[tuple[str, str]], read: list[int], *, with_ids: bool = True, with_thread: bool = True
) -> dict[str, Any]:
    """Save a conversation of which each agent has read a part; the rest waits in its buffer."""
    thread = [threaded(*item, number, with_id=with_ids) for number, item in enumerate(said)]
    states: dict[str, Any] = {
        agent: {
            "agent_state": {"llm_context": {"messages": [in_context(agent, *item) for item in said[:count]]}},
            "message_buffer": thread[count:],
        }
        for agent, count in zip(AGENTS, read, strict=True)
    }
    states["RoundRobinGroupChatManager"] = {"message_thread": thread if with_thread else []}
    return {"type": "TeamState", "agent_states": states}


def utterances(transcript: Transcript) -> list[tuple[str, str]]:
    return [(turn.speaker, turn.text) for turn in transcript.turns]


@given(UTTERANCES, st.lists(st.integers(0, 25), min_size=3, max_size=3), st.booleans(), st.booleans())
def test_copies_in_contexts_and_buffers_add_nothing(
    said: list[tuple[str, str]], read: list[int], with_ids: bool, with_thread: bool
) -> None:
    state = team(said, read, with_ids=with_ids, with_thread=with_thread)
    assert utterances(read_state(state)) == said


@given(UTTERANCES, st.lists(st.integers(0, 25), min_size=3, max_size=3))
def test_copies_in_a_team_inside_a_team_add_nothing(said: list[tuple[str, str]], read: list[int]) -> None:
    inner = team(said, read)
    thread = inner["agent_states"]["RoundRobinGroupChatManager"]["message_thread"]
    outer = {"inner_team": {"agent_state": inner}, "RoundRobinGroupChatManager": {"message_thread": thread}}
    assert utterances(read_state({"agent_states": outer})) == said


@given(UTTERANCES, st.data())
def test_what_the_thread_lost_at_its_start_is_filled_in_before_it(
    said: list[tuple[str, str]], data: st.DataObject
) -> None:
    state = team(said, [25, 25, 25], with_ids=False)
    states = state["agent_states"]
    lost = data.draw(st.integers(0, len(said)))
    states["RoundRobinGroupChatManager"]["message_thread"] = states["RoundRobinGroupChatManager"]["message_thread"][
        lost:
    ]
    assert sorted(utterances(read_state(state))) == sorted(said)


def test_what_only_a_context_has_stands_among_its_neighbours() -> None:
    state = team([("user", "one"), ("planner", "two"), ("user", "three")], [3, 3, 3])
    context = state["agent_states"]["planner"]["agent_state"]["llm_context"]["messages"]
    call = {"id": "c1", "name": "look_up", "arguments": "{}"}
    context.insert(1, {"type": "AssistantMessage", "source": "planner", "content": [call], "thought": "Let me look."})
    result = {"content": "found", "name": "look_up", "call_id": "c1", "is_error": False}
    context.insert(2, {"type": "FunctionExecutionResultMessage", "content": [result]})
    assert [(turn.speaker, turn.role, turn.text) for turn in read_state(state).turns] == [
        ("user", Role.HUMAN, "one"),
        ("planner", Role.THOUGHT, "Let me look."),
        ("planner", Role.TOOL, "call look_up({})"),
        ("planner", Role.TOOL, "found"),
        ("planner", Role.AGENT, "two"),
        ("user", Role.HUMAN, "three"),
    ]


def test_the_same_words_under_two_ids_are_two_turns() -> None:
    messages = [threaded("user", "ok", 1), threaded("user", "ok", 2), threaded("user", "ok", 2)]
    assert utterances(read_state(messages)) == [("user", "ok")] * 2
    states = {"a": {"message_buffer": [threaded("user", "ok", 3)]}, "GraphManager": {"message_thread": messages}}
    assert utterances(read_state({"agent_states": states})) == [("user", "ok")] * 3


def test_an_object_in_the_thread_and_its_text_in_a_context_are_one_turn() -> None:
    content = {"claim": "C-1", "open": [1, 2]}
    thread = [{"source": "writer", "type": "StructuredMessage[Claim]", "content": content, "id": "x"}]
    context = [{"type": "AssistantMessage", "source": "writer", "content": '{"claim": "C-1", "open": [1, 2]}'}]
    states = {
        "writer": {"agent_state": {"llm_context": {"messages": context}}},
        "RoundRobinGroupChatManager": {"message_thread": thread},
    }
    assert utterances(read_state({"agent_states": states})) == [("writer", '{"claim":"C-1","open":[1,2]}')]


@pytest.mark.parametrize("task", ["Compare the two.", "Compare the two. In one page."])
def test_a_task_is_told_once_whether_or_not_the_thread_has_it(task: str) -> None:
    said = [threaded("user", "Compare the two.", 1), threaded("user", "In one page.", 2)]
    manager = {"message_thread": said, "task": task, "facts": "guesses", "plan": "-"}
    states = {"MagenticOneOrchestrator": manager, "coder": {"agent_state": {"type": "BaseState"}}}
    assert len(read_state({"agent_states": states}).turns) == 2
    manager["message_thread"] = [threaded("MagenticOneOrchestrator", f"The request is: {task}", 1)]
    turns = read_state({"agent_states": states}).turns
    assert [(turn.speaker, turn.role) for turn in turns] == [
        ("user", Role.HUMAN),
        ("MagenticOneOrchestrator", Role.AGENT),
    ]
