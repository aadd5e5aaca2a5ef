"""What is taken off a reply before it is read, and what is left for the model to say again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.model.replies import LONGEST_REPLY, clean_completion, joined_arguments, unwrapped_json

ANSWER = '{"facts": [{"value": "a } in a string"}]}'


@pytest.mark.parametrize("text", [ANSWER, f"```json\n{ANSWER}\n```", f"Sure!\n{ANSWER}", f"{{oops}} {ANSWER} Bye."])
def test_one_answer_is_found_in_its_wrapping(text: str) -> None:
    assert json.loads(unwrapped_json(text)) == json.loads(ANSWER)


@pytest.mark.parametrize("text", ["", "no", '{"facts": [', f"{ANSWER} or {ANSWER}", 'for example {"facts": []}', "[1]"])
def test_what_is_not_clearly_one_answer_is_left_as_it_is(text: str) -> None:
    assert unwrapped_json(text) == text


def test_an_empty_answer_is_an_answer() -> None:
    assert unwrapped_json('{"facts": []}') == '{"facts": []}'


def test_what_is_longer_than_any_answer_is_not_read() -> None:
    assert unwrapped_json(" " * (LONGEST_REPLY + 1)) == ""


@given(st.text(alphabet='{}[]":,ab1 `\n', max_size=300))
def test_whatever_stands_there_nothing_is_made_up(text: str) -> None:
    """What comes out stands in what went in, or says the same as an object in it."""
    got = unwrapped_json(text)
    assert got == text or isinstance(json.loads(got), dict)


@pytest.mark.parametrize("text", ["{" * LONGEST_REPLY, '{"a":' * (LONGEST_REPLY // 5), "{}" * (LONGEST_REPLY // 2)])
def test_hostile_braces_take_no_time(text: str) -> None:
    assert unwrapped_json(text) == text


def test_several_calls_are_joined_or_not_read_at_all() -> None:
    assert json.loads(joined_arguments(['{"facts": [1]}', '{"facts": [2]}'])) == {"facts": [1, 2]}
    for parts in (['{"facts": [1]}', "{"], ['{"facts": [1]}', '{"other": []}'], ['{"a": 1}', '{"a": 2}']):
        assert joined_arguments(parts) == ""


@pytest.mark.parametrize("odd", [None, 5, "x", SimpleNamespace(choices=[None]), SimpleNamespace(choices=5)])
def test_what_is_no_completion_is_left_alone(odd: object) -> None:
    clean_completion(odd)
