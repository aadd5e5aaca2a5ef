"""The turns of a state are recognised by their words and their order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from afterword.privacy.seen_turns import RecognisedTurns, SeenTurn, places_among_seen

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)


def seen(words: str) -> list[SeenTurn]:
    """One turn for each word, each seen a minute after the one before. A word in brackets is a program's."""
    return [
        SeenTurn(word.strip("()"), BEGIN + timedelta(minutes=minute), is_said="(" not in word)
        for minute, word in enumerate(words.split())
    ]


def places(before: str, after: str) -> list[int | None]:
    """The places of the turns `after`; "_" stands for a turn with `[forgotten]`."""
    marks = ["" if word == "_" else word.strip("()") for word in after.split()]
    return places_among_seen(seen(before), marks, ["(" not in word for word in after.split()])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "a b", [None, None]),
        ("a b", "a b", [0, 1]),
        ("a b", "a b a b", [0, 1, None, None]),  # what follows was said again
        ("a a a", "a a", [1, 2]),  # the last ones, as in a context that loses its beginning
        ("a b c d", "c d e", [2, 3, None]),  # a context that lost its beginning
        ("a b c d", "c d a", [2, 3, None]),  # it follows turns that were seen later
        ("a b c", "_ b c d", [0, 1, 2, None]),  # an agent that was resumed
        ("a b c", "_ _ c b", [0, 1, 2, None]),
        ("a b c", "a x c", [0, None, 2]),
        ("a b c d", "c d b e", [2, 3, None, None]),
        ("a b c d", "b a c d e", [1, 0, 2, 3, None]),  # two that changed places: nothing of it is new
        ("a b c", "a c", [0, 2]),
        ("a b", "b a", [1, None]),  # as in a context that has lost its beginning
        ("a b c", "b a c", [1, 0, 2]),  # two that changed places
        ("a (m) b", "(m) a b", [1, 0, 2]),
        ("a (m) b", "a b (m) (m)", [0, 2, 1, 1]),  # a program repeats its words
        ("a (m) b", "m", [None]),
    ],
)
def test_a_turn_keeps_its_place(before: str, after: str, expected: list[int | None]) -> None:
    assert places(before, after) == expected


def test_turns_of_one_time_are_recognised_in_any_order() -> None:
    before = [SeenTurn(mark, BEGIN) for mark in "abc"]
    assert places_among_seen(before, list("cab"), [True] * 3) == [2, 0, 1]


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("a b", "a b c", "abc"),
        ("a b c", "b x c", "abxc"),
        ("b c", "a b", "abc"),
        ("a c", "a b c", "abc"),
        ("a b c d", "d e", "abcde"),
    ],
)
def test_new_turns_are_kept_in_their_order(before: str, after: str, joined: str) -> None:
    turns = tuple(SeenTurn(word, BEGIN) for word in after.split())
    recognised = RecognisedTurns(tuple(seen(before)), turns, places(before, after))
    assert "".join(turn.mark for turn in recognised.seen_and_new_turns()) == joined


def test_very_many_equal_turns_are_recognised() -> None:
    before = [SeenTurn(mark, BEGIN) for mark in ["a", *["b"] * 3000]]
    found = places_among_seen(before, ["x", *["b"] * 3001], [True] * 3002)
    known = [place for place in found if place is not None]
    assert (len(found), known) == (3002, list(range(1, 3001)))
