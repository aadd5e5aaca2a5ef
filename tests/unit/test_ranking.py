"""What a query is about."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.words import content_words, terms
from afterword.recall import bm25, ranking
from afterword.recall.bm25 import TermIndex
from afterword.recall.ranking import MeaningScores, SearchIndex, SearchUnit, repeats_last
from afterword.recall.vectors import Vectors

UNITS = [
    SearchUnit("allergy", "The user has a peanut allergy. allergy peanuts"),
    SearchUnit("job", "The user works as an architect in Graz. job architect"),
    SearchUnit("mara", "Mara moved to Lyon. home Lyon", "Mara"),
    SearchUnit("cafe", "The user reads Café Zürich reviews."),
    SearchUnit("tokyo", "ユーザーは東京都に住んでいます。"),
]


def ids(query: str, units: Sequence[SearchUnit] = UNITS) -> list[str]:
    return [unit.id for unit, _ in SearchIndex(units).ranked(query)]


def turn(number: int, text: str, conversation: str = "one", *, asks: bool = False, name: str = "") -> SearchUnit:
    return SearchUnit(f"{conversation}-{number}", text, name, conversation, number, asks)


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
    meetings = [SearchUnit(str(number), f"Team meeting number {number} is on Monday.") for number in range(9)]
    assert ids("quasar meeting", [*meetings, SearchUnit("quasar", "The quasar meeting.")])[0] == "quasar"


def test_a_short_fact_about_it_comes_before_a_long_one_that_mentions_it() -> None:
    long = SearchUnit(
        "long", "Among plants, rivers, bridges, towns, hills and trains the list also mentions tea somewhere."
    )
    assert ids("tea", [long, SearchUnit("short", "Lena drinks tea.")]) == ["short", "long"]


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
    fact = SearchUnit("fact", "The telescope needs repair.", sources=(said.id,))
    assert set(ids("quasar", [said, fact])) == {said.id, "fact"}


def test_a_turn_comes_last_where_a_fact_before_it_says_it() -> None:
    said, other, fact = turn(1, "a"), turn(2, "b"), SearchUnit("fact", "c", sources=("one-1",))
    ordered = [unit.id for unit, _ in repeats_last([(fact, 3.0), (said, 2.0), (other, 1.0)])]
    assert ordered == ["fact", "one-2", "one-1"]


def test_meaning_finds_what_shares_no_word_and_adds_to_what_does() -> None:
    index = SearchIndex(UNITS)
    assert [unit.id for unit, _ in index.ranked("profession", meaning=Near({1: 1.0}))] == ["job"]
    plain, near = dict(index.ranked("peanut")), dict(index.ranked("peanut", meaning=Near({0: 1.0})))
    assert near[UNITS[0]] > plain[UNITS[0]]


WORDS = st.lists(st.sampled_from("tea jam moon lamp quasar Graz".split()), min_size=1, max_size=5).map(" ".join)
TURNS = st.builds(
    lambda number, words, room, asks, name: turn(number, words, room, asks=asks, name=name),
    *(st.integers(1, 6), WORDS, st.sampled_from("xyz"), st.booleans(), st.sampled_from(["", "Mara"])),
)
FACTS = st.builds(
    lambda number, words, sources: SearchUnit(f"fact {number}", words, sources=tuple(sources)),
    *(st.integers(1, 9), WORDS, st.lists(st.sampled_from(["x-1", "y-2", "z-3", "x-4"]), max_size=2, unique=True)),
)
COLLECTIONS = st.lists(TURNS | FACTS, max_size=24, unique_by=lambda unit: unit.id)


@given(st.lists(COLLECTIONS, min_size=2, max_size=5), WORDS)
def test_an_index_that_is_carried_on_ranks_to_the_last_bit_like_a_new_one(
    collections: list[list[SearchUnit]], query: str
) -> None:
    common = [SearchUnit(f"common {number}", "tea and jam") for number in range(60)]
    index: SearchIndex | None = None
    for units in collections:
        units = [*units, *common] if len(units) % 2 else [*common, *units]
        index = SearchIndex(units, before=index)
        assert index.ranked(query) == SearchIndex(units).ranked(query)
        assert index.terms == SearchIndex(units).terms


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=60), st.sets(st.sampled_from("abcdefg")))
def test_numpy_adds_up_the_same_to_the_last_bit(documents: list[list[str]], wanted: set[str]) -> None:
    pytest.importorskip("numpy")
    with pytest.MonkeyPatch.context() as patch:
        plain = [TermIndex(documents).scores(wanted, most) for most in (None, 3, 20)]
        patch.setattr(bm25, "LARGE", 0)
        assert [TermIndex(documents).scores(wanted, most) for most in (None, 3, 20)] == plain


NAMED_FACTS = st.builds(
    lambda number, words, name: SearchUnit(f"fact {number}", words, name),
    *(st.integers(1, 99), WORDS, st.sampled_from(["", "", "Mara", "Tea"])),
)


@given(
    st.lists(st.lists(NAMED_FACTS, max_size=40, unique_by=lambda unit: unit.id), min_size=1, max_size=3),
    WORDS,
    st.sampled_from(["none", "given", "vectors", "some vectors"]),
    st.integers(0, 2**32),
    st.sampled_from([None, 0, 1, 10]),
)
def test_numpy_ranks_facts_the_same_to_the_last_bit(
    collections: list[list[SearchUnit]], query: str, kind: str, seed: int, most: int | None
) -> None:
    numpy = pytest.importorskip("numpy")
    index: SearchIndex | None = None
    for units in collections:
        index = SearchIndex(units, before=index)
    assert index is not None
    made = numpy.random.default_rng(seed).integers(-2, 3, (len(index.at) + 1, 4)).astype("float32")
    vectors = [None if number % 3 == 1 and kind == "some vectors" else vector for number, vector in enumerate(made[1:])]
    near = {"none": None, "given": Near({0: 1.0, 2: 0.7} if len(index.at) > 2 else {})}
    meaning: MeaningScores | None = near[kind] if kind in near else Vectors(vectors).near(made[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "MOST_CANDIDATES", 5)
        patch.setattr(ranking, "numpy_if_installed", lambda: None)
        plain = index.ranked(query, meaning=meaning)
        patch.undo()
        patch.setattr(ranking, "MOST_CANDIDATES", 5)
        patch.setattr(ranking, "LARGE", 0)
        assert index.ranked(query, meaning=meaning, most=most) == plain[:most]


@given(COLLECTIONS, WORDS, st.integers(0, 9))
def test_so_many_as_are_asked_for_are_the_first_of_all(units: list[SearchUnit], query: str, most: int) -> None:
    assert SearchIndex(units).ranked(query, most=most) == SearchIndex(units).ranked(query)[:most]


@given(COLLECTIONS, WORDS, st.booleans())
def test_the_parts_of_a_score_add_up_to_it(units: list[SearchUnit], query: str, is_near: bool) -> None:
    index, meaning = SearchIndex(units), Near({0: 1.0, 2: 0.7}) if is_near and len(units) > 2 else None
    ranked = index.ranked(query, meaning=meaning)
    parts = index.parts(query, [unit.id for unit, _ in ranked], meaning=meaning)
    for unit, score in ranked:
        assert sum(parts[unit.id].values()) == pytest.approx(score)
        assert all(parts[unit.id].values())


def test_nothing_gives_no_ranking() -> None:
    assert ids("tea", []) == []
    assert TermIndex([]).scores(["tea"]) == {}


@given(st.text(), st.lists(st.text(), max_size=6))
def test_any_text_can_be_ranked(query: str, statements: list[str]) -> None:
    ranked = SearchIndex([SearchUnit(str(number), text) for number, text in enumerate(statements)]).ranked(query)
    scores = [score for _, score in ranked]
    assert all(score > 0 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=8), st.sets(st.sampled_from("abcdefg")))
def test_exactly_the_documents_that_hold_a_wanted_word_score(documents: list[list[str]], wanted: set[str]) -> None:
    scores = TermIndex(documents).scores(wanted)
    assert set(scores) == {place for place, words in enumerate(documents) if wanted & set(words)}
    assert all(score > 0 for score in scores.values())


def test_terms_are_stems_without_case_accents_and_stop_words() -> None:
    assert terms("She's RUNNING the Écoles, please!") == ["run", "ecol"]
    assert content_words("She's RUNNING the Écoles, please!") == "running ecoles"
