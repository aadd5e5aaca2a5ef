"""Calls and results of tools are hidden, blanked and masked in a saved state as in the turns read from it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from afterword.extractors.readers import read_state
from afterword.privacy.off_record import hide_off_record, hide_off_record_in_state
from afterword.privacy.policy import Privacy
from afterword.privacy.record_requests import HIDDEN, Markers
from afterword.privacy.state_blanking import StateBlanking, blank_saved_state

MARKERS = Markers()
CALL = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"city": "Ulm", "size": 4312}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def result(content: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}


def conversation(*contents: Any) -> dict[str, Any]:
    """Messages of a person and an assistant in turn; the person begins."""
    return {
        "messages": [
            {"role": "assistant" if number % 2 else "user", "content": content}
            for number, content in enumerate(contents)
        ]
    }


def hidden(state: dict[str, Any]) -> dict[str, Any]:
    return hide_off_record_in_state(state, MARKERS, {"user"})


ASIDE = "off the record: I have Parkinson, find me a clinic"
OPENLY = "I live in Graz."
CONVERSATIONS = {
    "a result answers an aside": conversation(
        ASIDE, [words("I look."), CALL], [result("Clinic Sunrise, open daily.")], "Sunrise treats that, daily.", OPENLY
    ),
    "words stand beside the result": conversation(
        ASIDE, [words("I look."), CALL], [result("Clinic Sunrise."), words("Thanks.")], "You are welcome.", OPENLY
    ),
    "the aside stands beside a result": conversation(
        OPENLY, [words("I look."), CALL], [result("It rains in Ulm."), words(ASIDE)], "Clinic Sunrise.", OPENLY
    ),
    "a later call repeats it": conversation(
        ASIDE,
        "Fine.",
        OPENLY,
        [words("I look."), {**CALL, "input": {"query": "Parkinson"}}],
        [result([words("Parkinson is treated there.")])],
        "Done.",
    ),
    "nothing is off the record": conversation(OPENLY, [words("I look."), CALL], [result("It rains.")], "It rains."),
}


@pytest.mark.parametrize("state", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_state_hides_what_its_turns_hide(state: dict[str, Any]) -> None:
    """The turns read from the hidden state are the hidden turns. Only a hidden call still names its tool there."""
    turns = hide_off_record(read_state(state).turns, MARKERS)
    from_state = read_state(hidden(state)).turns
    assert [turn.role for turn in from_state] == [turn.role for turn in turns]
    for turn, read in zip(turns, from_state, strict=True):
        assert read.text == ("call search({})" if turn.text == HIDDEN and read.text.startswith("call") else turn.text)
    assert not {"Parkinson", "Sunrise"} & set(json.dumps(hidden(state)).replace(".", " ").replace('"', " ").split())


def test_what_is_hidden_keeps_calls_and_results_together() -> None:
    calls = json.dumps(hidden(CONVERSATIONS["a result answers an aside"]))
    assert calls.count("toolu_1") == 2
    assert "Ulm" not in calls


ARGUMENTS = '{"query": "Parkinson"}'
REQUEST = {"id": "c1", "name": "search", "arguments": ARGUMENTS}
ANSWER = {"call_id": "c1", "name": "search", "content": "Parkinson is treated there.", "is_error": False}
REPEATED: dict[str, list[dict[str, Any]]] = {
    "AutoGen's events": [
        {"type": "ToolCallRequestEvent", "source": "bot", "content": [REQUEST]},
        {"type": "ToolCallExecutionEvent", "source": "bot", "content": [ANSWER]},
    ],
    "AutoGen's model context": [
        {"type": "AssistantMessage", "source": "bot", "content": [REQUEST], "thought": "It is Parkinson."},
        {"type": "FunctionExecutionResultMessage", "content": [ANSWER]},
    ],
    "AutoGen's code": [
        {"type": "CodeExecutionEvent", "source": "bot", "result": {"exit_code": 0, "output": "found Parkinson"}}
    ],
    "OpenAI": [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": ARGUMENTS}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Parkinson is treated there."},
    ],
    "OpenAI, formerly": [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ARGUMENTS}}
    ],
    "OpenAI's responses": [
        {"type": "function_call", "call_id": "c1", "name": "search", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c1", "output": "Parkinson is treated there."},
    ],
    "Agent Framework": [
        {
            "type": "chat_message",
            "role": "assistant",
            "contents": [{"type": "function_call", "call_id": "c1", "name": "f", "arguments": ARGUMENTS}],
        },
        {
            "type": "chat_message",
            "role": "tool",
            "contents": [{"type": "function_result", "call_id": "c1", "result": "Parkinson is treated there."}],
        },
    ],
    "code that a user proxy of v0.2 ran": [
        {"role": "user", "content": "exitcode: 0 (execution succeeded)\nCode output: found Parkinson"}
    ],
}


@pytest.mark.parametrize("messages", REPEATED.values(), ids=REPEATED)
def test_no_call_or_result_repeats_what_was_off_the_record(messages: list[dict[str, Any]]) -> None:
    aside, openly = {"role": "user", "content": ASIDE}, {"role": "user", "content": OPENLY}
    at_once = json.dumps(hidden({"messages": [aside, *messages, openly]}))
    later = json.dumps(hidden({"messages": [aside, {"role": "assistant", "content": "Fine."}, openly, *messages]}))
    for shown in (at_once, later):
        assert "Parkinson" not in shown
        assert OPENLY in shown


@pytest.mark.parametrize("empty", ["", " ", []])
def test_an_empty_message_does_not_end_what_is_off_the_record(empty: str | list[Any]) -> None:
    answer = "Sunrise treats that, daily."  # it repeats no word of the aside, by which it would be hidden in any case
    assert "Sunrise" not in json.dumps(hidden(conversation(ASIDE, "Fine.", empty, answer, OPENLY)))
    assert "Sunrise" in json.dumps(hidden(conversation(ASIDE, "Fine.", OPENLY, answer, OPENLY)))


@pytest.mark.parametrize(
    ("forgotten", "arguments"),
    [("4312", {}), ("Ulm", {"city": "[forgotten]", "size": 4312})],
    ids=["a number", "a word"],
)
def test_forgotten_words_leave_the_arguments_of_a_tool(forgotten: str, arguments: dict[str, Any]) -> None:
    blanking = StateBlanking(lambda text: text.replace(forgotten, "[forgotten]"), [], [])
    blanked = blank_saved_state(conversation([CALL]), blanking.blank, blanking.without_pictures_if_emptied)
    assert blanked["messages"][0]["content"][0] == {**CALL, "input": arguments}


def test_words_are_forgotten_in_every_string_of_the_arguments() -> None:
    """A line break is two characters in JSON, and hides where a word begins."""
    call = {**CALL, "input": {"text": ["Notes:\nOslo is home"], "person": "Karl Quixley"}}
    blanking = StateBlanking(lambda text: re.sub(r"\bOslo\b", "[forgotten]", text), [], ["imovedtoulmwithkarlquixley"])
    shown = json.dumps(blank_saved_state(conversation([call]), blanking.blank))
    assert "Oslo" not in shown
    assert "Quixley" not in shown


def test_short_words_go_with_a_turn_that_was_forgotten_as_a_whole() -> None:
    blanking = StateBlanking(lambda text: text, [], ["callsearchcityulmsize4312"])
    assert blank_saved_state(conversation([CALL]), blanking.blank)["messages"][0]["content"][0]["input"] == {}


def test_a_message_whose_words_are_forgotten_keeps_its_calls() -> None:
    blanking = StateBlanking(lambda text: text, [], ["ihatequixtea"])
    state = conversation([words("I hate quixtea."), {"type": "image"}, CALL])
    blanked = blank_saved_state(state, blanking.blank, blanking.without_pictures_if_emptied)
    assert blanked["messages"][0]["content"] == [words("[forgotten]"), CALL]


def test_a_secret_that_is_told_beside_a_result_is_masked_in_turn_and_state() -> None:
    question = [words("What is your PIN?"), CALL]
    for content in ([result("Clinic Sunrise is open."), words("4711")], [words("4711")]):
        state = conversation("Hello.", question, content)
        assert "4711" not in str(read_state(state).turns)
        assert "4711" not in json.dumps(Privacy().mask_state(state))


def test_of_equal_words_only_those_that_were_forgotten_leave_a_state() -> None:
    """A call that says them once counts once."""
    said = "I hate quixtea."
    state = conversation([{**CALL, "input": {"text": said}}], "Fine.", [words(said)])
    blanking = StateBlanking(lambda text: text, [(said, "[forgotten]"), (said, said)], [])
    shown = blank_saved_state(state, blanking.blank, blanking.without_pictures_if_emptied)["messages"]
    assert shown[0]["content"][0]["input"] == {"text": "[forgotten]"}
    assert shown[2]["content"] == [words(said)]
