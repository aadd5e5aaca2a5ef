"""A session in windows, and what their keys depend on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.windows import CONTEXT_TOKENS, TOKENS_PER_TURN, cut_windows, halve_window, window_key
from afterword.facts.transcripts import Role, Transcript, Turn
from afterword.recall.tokens import tokens_by_byte_size

SPEAKERS = ("maya", "user", "assistant")
SAID_AT = datetime(2026, 3, 9, 8, 0, tzinfo=UTC)


def transcript(*texts: str) -> Transcript:
    turns = tuple(
        Turn(number, SPEAKERS[number % 3], Role.AGENT if number % 3 == 2 else Role.HUMAN, text, SAID_AT)
        for number, text in enumerate(texts, start=1)
    )
    return Transcript(turns, "test", humans=("user", "maya"))


TEXTS = st.lists(st.text(max_size=120), max_size=25)


@given(texts=TEXTS, more=TEXTS, budget=st.integers(20, 90))
def test_growth_changes_the_last_window_only(texts: list[str], more: list[str], budget: int) -> None:
    """Unchanged windows must not cost a call when a session is processed again after it went on."""
    before = cut_windows(transcript(*texts), ("user",), budget_tokens=budget)
    after = cut_windows(transcript(*texts, *more), ("user",), budget_tokens=budget)
    assert before[:-1] == after[: max(len(before) - 1, 0)]


@given(texts=TEXTS, budget=st.integers(20, 90))
def test_every_word_is_in_exactly_one_window_and_no_window_exceeds_its_budget(texts: list[str], budget: int) -> None:
    found = cut_windows(transcript(*texts), ("user",), budget_tokens=budget)
    read: dict[int, str] = {}
    for window in found:
        assert sum(tokens_by_byte_size(turn.text) + TOKENS_PER_TURN for turn in window.turns) <= budget
        assert sum(tokens_by_byte_size(turn.text) + TOKENS_PER_TURN for turn in window.context) <= CONTEXT_TOKENS
        for turn in window.turns:
            read[turn.number] = read.get(turn.number, "") + turn.text
    assert list(read.values()) == texts
    assert [window.ordinal for window in found] == list(range(1, len(found) + 1))


def test_a_turn_longer_than_a_window_is_split_at_a_space_and_keeps_its_number() -> None:
    found = cut_windows(transcript("word " * 200), (), budget_tokens=100)
    assert len(found) > 1
    assert {turn.number for window in found for turn in window.turns} == {1}
    assert all(window.turns[0].text.endswith(" ") for window in found)


def test_the_context_holds_the_nearest_turns_before_in_order() -> None:
    found = cut_windows(transcript(*(f"turn {number} " + "x" * 600 for number in range(1, 13))), (), budget_tokens=600)
    numbers = [turn.number for turn in found[2].context]
    assert numbers == list(range(numbers[0], found[2].turns[0].number))
    assert len(numbers) == 4


def test_where_the_nearest_turn_is_too_long_its_end_is_the_context() -> None:
    found = cut_windows(transcript("x" * 9_000 + " the end", "And now?"), (), budget_tokens=3_015)
    assert [turn.number for turn in found[1].context] == [1]
    assert found[1].context[0].text.endswith("the end")


def test_a_window_knows_only_who_has_spoken_so_far() -> None:
    """A person who joins later must not change the windows before."""
    turns = (Turn(1, "user", Role.HUMAN, "a" * 240), Turn(2, "maya", Role.HUMAN, "b" * 240))
    first, second = cut_windows(Transcript(turns, "test", humans=("user", "maya")), ("user",), budget_tokens=90)
    assert (first.humans, second.humans) == (("user",), ("user", "maya"))


def test_an_empty_session_has_no_window() -> None:
    assert cut_windows(Transcript((), "test"), ()) == []


def test_a_budget_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="holds no turn"):
        cut_windows(transcript("Hello."), (), budget_tokens=10)


def test_the_key_depends_on_words_times_people_and_version_but_not_on_the_place() -> None:
    [window] = cut_windows(transcript("Hello.", "Hi."), ("user",))
    key = window_key(window, "rules-1")
    later = tuple(replace(turn, said_at=datetime(2026, 3, 10, tzinfo=UTC)) for turn in window.turns)
    others = [
        window_key(window, "rules-2"),
        window_key(replace(window, turns=later), "rules-1"),
        window_key(replace(window, owners=()), "rules-1"),
        window_key(replace(window, humans=()), "rules-1"),
        window_key(replace(window, turns=(), context=window.turns), "rules-1"),
        window_key(replace(window, turns=window.turns[:1]), "rules-1"),
    ]
    assert len({key, *others}) == 7
    assert window_key(replace(window, ordinal=9), "rules-1") == key


@pytest.mark.parametrize(("text", "estimate"), [("", 0), ("abc", 1), ("abcd", 2), ("äöü", 2), ("\ud800", 1)])
def test_the_estimate_is_a_third_of_the_bytes_rounded_up(text: str, estimate: int) -> None:
    assert tokens_by_byte_size(text) == estimate


@given(texts=st.lists(st.text(max_size=1_500), min_size=1, max_size=12))
def test_halving_keeps_every_word_in_order_until_nothing_is_left_to_halve(texts: list[str]) -> None:
    [window] = cut_windows(transcript(*texts), ("user",), budget_tokens=100_000)
    parts, small = [window], []
    while parts:
        halves = halve_window(parts[0])
        small += [] if halves else [parts[0]]
        parts[:1] = halves or ()
    read: dict[int, str] = {}
    for part in small:
        assert part.turns
        assert sum(tokens_by_byte_size(turn.text) + TOKENS_PER_TURN for turn in part.context) <= CONTEXT_TOKENS
        for turn in part.turns:
            read[turn.number] = read.get(turn.number, "") + turn.text
    assert list(read.values()) == texts


def test_a_window_is_halved_at_the_border_of_turns_nearest_its_middle() -> None:
    [window] = cut_windows(transcript("a" * 900, "b" * 300, "c" * 300, "d" * 900), ("user",))
    first, second = halve_window(window) or (window, window)
    assert [[turn.number for turn in half.turns] for half in (first, second)] == [[1, 2], [3, 4]]
    assert [turn.number for turn in second.context] == [1, 2]


def test_a_turn_alone_is_halved_after_a_sentence() -> None:
    [window] = cut_windows(transcript("One two three. " * 60), ("user",))
    first, second = halve_window(window) or (window, window)
    assert first.turns[0].text.endswith("three. ")
    assert (first.turns[0].number, second.turns[0].number) == (1, 1)
    assert second.context[0].text == first.turns[0].text
