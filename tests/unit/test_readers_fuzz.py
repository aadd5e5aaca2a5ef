"""Whatever a file holds, reading it gives a transcript or a named error, and nothing else."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afterword.extractors.errors import ReadError
from afterword.extractors.readers import parse_state, read_state
from afterword.facts.transcripts import Role, Transcript

GOLDEN = Path(__file__).parent.parent / "golden" / "states"
STATES = sorted(GOLDEN.glob("*/state.json"))

WRONG = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["\ud800", "\x00", "user", "[", '{"messages": []}', "x" * 50_000, "Relevant memories:\n- a"]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(
        st.sampled_from(["type", "source", "content", "role", "id"]), st.none() | st.integers(), max_size=2
    ),
)


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value inside a JSON value, the whole first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in inner for found in places(child, (*path, key)))]


def mutated(state: Any, path: tuple[Any, ...], wrong: object) -> Any:
    if not path:
        return wrong
    found = copy.deepcopy(state)
    node = found
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = wrong
    return found


def check(state: object) -> None:
    try:
        transcript = read_state(state)
    except ReadError:
        return
    assert isinstance(transcript, Transcript)
    assert [turn.number for turn in transcript.turns] == list(range(1, len(transcript.turns) + 1))
    for turn in transcript.turns:
        f"{turn.speaker}{turn.text}{turn.message_id}".encode()
        assert turn.text.strip()
        assert turn.said_at is None or turn.said_at.utcoffset() is not None
    assert set(transcript.humans) == {turn.speaker for turn in transcript.turns if turn.role is Role.HUMAN}


@given(st.data())
def test_a_wrong_value_anywhere_in_a_sound_state_crashes_nothing(data: st.DataObject) -> None:
    state = json.loads(data.draw(st.sampled_from(STATES)).read_text(encoding="utf-8"))
    for _ in range(data.draw(st.integers(1, 3))):
        state = mutated(state, data.draw(st.sampled_from(places(state))), data.draw(WRONG))
    check(state)


@given(st.data())
@settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture])
def test_a_wrong_value_anywhere_in_a_real_state_crashes_nothing(shared: Path, data: st.DataObject) -> None:
    paths = sorted((shared / "data" / "states").glob("*.json"))
    state = json.loads(data.draw(st.sampled_from(paths)).read_text(encoding="utf-8"))
    check(mutated(state, data.draw(st.sampled_from(places(state))), data.draw(WRONG)))


KEYS = [
    *("type", "agent_states", "agent_state", "llm_context", "messages", "message_thread", "message_buffer", "source"),
    *("content", "role", "name", "history", "chat_history", "tool_calls", "tool_responses", "function", "task", "user"),
    *("inner_team_state", "a/b", "models_usage", "created_at", "id", "text", "data"),
]
JSON = st.recursive(
    WRONG,
    lambda children: (
        st.lists(children, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            children,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON)
def test_any_value_made_of_known_keys_crashes_nothing(state: object) -> None:
    check(state)


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_crash_nothing(raw: bytes) -> None:
    try:
        state = parse_state(raw)
    except ReadError:
        return
    check(state)


@given(st.data())
def test_a_state_cut_anywhere_is_a_named_error(data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from(STATES)).read_bytes().rstrip()
    with pytest.raises(ReadError):
        parse_state(raw[: data.draw(st.integers(0, len(raw) - 1))])


@pytest.mark.parametrize("path", STATES, ids=[path.parent.name for path in STATES])
def test_a_golden_state_reads_into_its_turns(path: Path) -> None:
    expected = json.loads((path.parent / "turns.json").read_text(encoding="utf-8"))
    transcript = read_state(parse_state(path.read_bytes()))
    assert [[turn.speaker, turn.role.value, turn.text] for turn in transcript.turns] == expected["turns"]
    assert transcript.layout == expected["layout"]
    assert dict(transcript.skipped) == expected.get("skipped", {})


def test_there_are_golden_states() -> None:
    assert len(STATES) >= 6
