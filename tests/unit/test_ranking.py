"""What a query is about."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.store.ranking import Index, Postings, Unit, said_once
from afterword.store.words import content_words, terms

UNITS = [
    Unit("allergy", "The user has a peanut allergy. allergy peanuts"),
    Unit("job", "The user works as an architect in Graz. job architect"),
    Unit("mara", "Mara moved to Lyon. home Lyon", "Mara"),
    Unit("cafe", "The user reads Café Zürich reviews."),
    Unit("tokyo", "ユーザーは東京都に住んでいます。"),
]


def ids(query: str, units: Sequence[Unit] = UNITS) -> list[str]:
    return [unit.id for unit, _ in Index(units).ranked(query)]


def turn(number: int, text: str, conversation: str = "one", *, asks: bool = False, name: str = "") -> Unit:
    return Unit(f"{conversation}-{number}", text, name, conversation, number, asks)


class Near:
    """A meaning that is given."""

    def __init__(self, nearness: dict[int, float]) -> None:
        self._nearness = nearness

    def nearest(self) -> list[int]:
        return [place for place, near in self._nearness.items() if near > 0.5]

    def at(self, places: Sequence[int]) -> list[float]:
        return [self._nearness.get(place, 0.0) for place in places]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("Am I allergic to anything? My allergies?", "allergy"),
        ("peanut butter", "allergy"),
        ("Where do ARCHITECTS work?", "job"),
        ("where does mara live", "mara"),
        ("cafe zurich", "cafe"),
        ("東京に何がありますか", "tokyo"),
    ],
)
def test_what_shares_the_words_comes_first(query: str, best: str) -> None:
    assert ids(query)[0] == best


@pytest.mark.parametrize("query", ["", "  ", "quantum chromodynamics", "what is the user and who am I", "?!"])
def test_what_shares_no_words_is_not_found(query: str) -> None:
    """Words that stand in every question are no reason to call a fact relevant."""
    assert ids(query) == []


def test_rare_words_weigh_more_than_common_ones() -> None:
    meetings = [Unit(str(number), f"Team meeting number {number} is on Monday.") for number in range(9)]
    assert ids("quasar meeting", [*meetings, Unit("quasar", "The quasar meeting.")])[0] == "quasar"


def test_a_short_fact_about_it_comes_before_a_long_one_that_mentions_it() -> None:
    long = Unit("long", "Among plants, rivers, bridges, towns, hills and trains the list also mentions tea somewhere.")
    assert ids("tea", [long, Unit("short", "Lena drinks tea.")]) == ["short", "long"]


def test_an_answer_is_found_by_the_question_before_it() -> None:
    said = [turn(1, "Where did you spend the holiday?", asks=True), turn(2, "In Lyon."), turn(9, "It rained.")]
    assert "one-2" in ids("holiday", said)
    assert "one-9" not in ids("holiday", said)


def test_turns_of_another_conversation_are_no_neighbours() -> None:
    said = [turn(1, "Where did you spend the holiday?"), turn(2, "In Lyon.", "two")]
    assert ids("holiday", said) == ["one-1"]


def test_of_two_like_turns_the_one_of_whom_is_named_comes_first() -> None:
    said = [turn(1, "I paint.", name="Tom"), turn(1, "I paint.", "two", name="Mara")]
    assert ids("what does Mara paint", said)[0] == "two-1"


def test_a_fact_is_found_by_the_turn_it_rests_on() -> None:
    said = turn(1, "The quasar broke.")
    fact = Unit("fact", "The telescope needs repair.", sources=(said.id,))
    assert set(ids("quasar", [said, fact])) == {said.id, "fact"}


def test_a_turn_comes_last_where_a_fact_before_it_says_it() -> None:
    said, other, fact = turn(1, "a"), turn(2, "b"), Unit("fact", "c", sources=("one-1",))
    ordered = [unit.id for unit, _ in said_once([(fact, 3.0), (said, 2.0), (other, 1.0)])]
    assert ordered == ["fact", "one-2", "one-1"]


def test_meaning_finds_what_shares_no_word_and_adds_to_what_does() -> None:
    index = Index(UNITS)
    assert [unit.id for unit, _ in index.ranked("profession", meaning=Near({1: 1.0}))] == ["job"]
    plain, near = dict(index.ranked("peanut")), dict(index.ranked("peanut", meaning=Near({0: 1.0})))
    assert near[UNITS[0]] > plain[UNITS[0]]


def test_an_index_made_with_known_terms_ranks_alike() -> None:
    index = Index(UNITS)
    assert Index(UNITS, known=index.terms).ranked("peanut allergy") == index.ranked("peanut allergy")


def test_nothing_gives_no_ranking() -> None:
    assert ids("tea", []) == []
    assert Postings([]).scores(["tea"]) == {}


@given(st.text(), st.lists(st.text(), max_size=6))
def test_any_text_can_be_ranked(query: str, statements: list[str]) -> None:
    ranked = Index([Unit(str(number), text) for number, text in enumerate(statements)]).ranked(query)
    scores = [score for _, score in ranked]
    assert all(score > 0 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8), st.sets(st.sampled_from("abcdefg")))
def test_exactly_the_documents_that_hold_a_wanted_word_score(documents: list[list[str]], wanted: set[str]) -> None:
    found = Postings(documents).scores(wanted)
    assert set(found) == {place for place, words in enumerate(documents) if wanted & set(words)}
    assert all(score > 0 for score in found.values())


def test_terms_are_stems_without_case_accents_and_stop_words() -> None:
    assert terms("She's RUNNING the Écoles, please!") == ["run", "ecol"]
    assert content_words("She's RUNNING the Écoles, please!") == "running ecoles"
