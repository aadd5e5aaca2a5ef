"""What a query is about."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.words import lower_without_stop_words, terms
from afterword.recall import bm25
from afterword.recall.bm25 import K1, B, Postings, WordScores
from afterword.recall.unit_table import UnitTable
from afterword.recall.vectors import Nearness, Vectors
from text_units import TextUnit, index_of, search_index, table_of

UNITS = [
    TextUnit("allergy", "The user has a peanut allergy. allergy peanuts"),
    TextUnit("job", "The user works as an architect in Graz. job architect"),
    TextUnit("mara", "Mara moved to Lyon. home Lyon", "Mara"),
    TextUnit("cafe", "The user reads Café Zürich reviews."),
    TextUnit("tokyo", "ユーザーは東京都に住んでいます。"),
]


def ids(query: str, units: Sequence[TextUnit] = UNITS) -> list[str]:
    return [unit.id for unit, _ in search_index(units).ranked_units(query)]


def turn(number: int, text: str, conversation: str = "one", *, asks: bool = False, name: str = "") -> TextUnit:
    return TextUnit(f"{conversation}-{number}", text, name, conversation, number, asks)


def meaning_of(table: UnitTable, by_id: dict[str, float]) -> Nearness:
    """Return a meaning that is given, by the id of a unit."""
    by_place = numpy.zeros(table.size)
    for unit_id, near in by_id.items():
        place = table.place_of(unit_id)
        if place is not None:
            by_place[place] = near
    return Nearness(by_place, (by_place > 0.5).nonzero()[0])


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
    meetings = [TextUnit(str(number), f"Team meeting number {number} is on Monday.") for number in range(9)]
    assert ids("quasar meeting", [*meetings, TextUnit("quasar", "The quasar meeting.")])[0] == "quasar"


def test_a_short_fact_about_it_comes_before_a_long_one_that_mentions_it() -> None:
    long = TextUnit(
        "long", "Among plants, rivers, bridges, towns, hills and trains the list also mentions tea somewhere."
    )
    assert ids("tea", [long, TextUnit("short", "Lena drinks tea.")]) == ["short", "long"]


def test_what_says_the_same_in_very_many_conversations_hides_nothing() -> None:
    same = [turn(1, "The boiler makes a noise.", f"chat {number}") for number in range(500)]
    found = ids("What about the boiler?", [*same, turn(1, "The boiler is a Vaillant from 2003.", "other")])
    assert len(found) == 501
    assert "other-1" in found


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
    fact = TextUnit("fact", "The telescope needs repair.", sources=(said.id,))
    assert set(ids("quasar", [said, fact])) == {said.id, "fact"}


def test_meaning_finds_what_shares_no_word_and_adds_to_what_does() -> None:
    table = table_of(UNITS)
    index = index_of(table)
    assert [unit.id for unit, _ in index.ranked_units("profession", meaning=meaning_of(table, {"job": 1.0}))] == ["job"]
    plain, near = (
        dict(index.ranked_units("peanut")),
        dict(index.ranked_units("peanut", meaning=meaning_of(table, {"allergy": 1.0}))),
    )
    assert near[UNITS[0]] > plain[UNITS[0]]


def test_a_related_word_finds_what_shares_no_word_and_counts_less_than_the_word_itself() -> None:
    units = [TextUnit("prices", "prices in dollars"), TextUnit("rate", "the currency rate"), TextUnit("cat", "a cat")]
    table = table_of(units)
    meaning = meaning_of(table, {})._replace(related={"currenc": {"dollar": 0.5, "rate": 0.4}})
    ranked = index_of(table).ranked_units("Which currency?", meaning=meaning)
    assert [unit.id for unit, _ in ranked] == ["rate", "prices"]
    assert dict(index_of(table).ranked_units("Which currency?"))[units[1]] == ranked[0][1], (
        "the word is not counted twice"
    )


WORDS = st.lists(st.sampled_from("tea jam moon lamp quasar Graz".split()), min_size=1, max_size=5).map(" ".join)
TURNS = st.builds(
    lambda number, words, room, asks, name: turn(number, words, room, asks=asks, name=name),
    *(st.integers(1, 6), WORDS, st.sampled_from("xyz"), st.booleans(), st.sampled_from(["", "Mara"])),
)
FACTS = st.builds(
    lambda number, words, sources: TextUnit(f"fact {number}", words, sources=tuple(sources)),
    *(st.integers(1, 9), WORDS, st.lists(st.sampled_from(["x-1", "y-2", "z-3", "x-4"]), max_size=2, unique=True)),
)
COLLECTIONS = st.lists(TURNS | FACTS, max_size=24, unique_by=lambda unit: unit.id)


def revised(table: UnitTable, units: Sequence[TextUnit]) -> UnitTable:
    """Return the table that holds these units, made of another one by what differs."""
    before = {table.unit_at(place).id: place for place in table.by_order.tolist()}
    same = {unit.id for unit in units if unit.id in before and table.unit_at(before[unit.id]) == unit}
    removed = [place for unit_id, place in before.items() if unit_id not in same]
    return table.revised(removed, [unit for unit in units if unit.id not in same])


@given(st.lists(COLLECTIONS, min_size=2, max_size=8), WORDS, st.sampled_from([0, 60]))
def test_a_revised_index_ranks_to_the_last_bit_like_a_new_one(
    collections: list[list[TextUnit]], query: str, common_count: int
) -> None:
    common = [TextUnit(f"common {number}", "tea and jam") for number in range(common_count)]
    table = UnitTable()
    history = []
    for units in collections:
        table = revised(table, [*units, *common])
        history.append((table, [*units, *common]))
    for past_table, units in history:  # earlier tables are as they were
        index, new = index_of(past_table), search_index(units)
        assert index.ranked_units(query) == new.ranked_units(query)
        assert index.score_parts(query, [unit.id for unit in units]) == new.score_parts(
            query, [unit.id for unit in units]
        )
        in_order = [past_table.unit_at(place) for place in past_table.by_order.tolist()]
        assert in_order == sorted(units, key=lambda unit: unit.order)


@given(st.lists(COLLECTIONS, min_size=2, max_size=6), WORDS, st.integers(0, 2**32), st.booleans())
def test_revised_vectors_rank_like_new_ones(
    collections: list[list[TextUnit]], query: str, seed: int, has_gaps: bool
) -> None:
    def vector(unit: TextUnit) -> bytes:
        chance = numpy.random.default_rng([seed, *unit.text.encode()])
        return chance.standard_normal(4).astype("<f2").tobytes()

    def with_new(vectors: Vectors, table: UnitTable) -> Vectors:
        lacking = [
            place
            for place in vectors.missing_places(table.is_alive)
            if not (has_gaps and "moon" in table.unit_at(place).text)
        ]
        return vectors.revised(table.is_alive, {place: vector(table.unit_at(place)) for place in lacking})

    table, vectors, asked = UnitTable(), Vectors(4), numpy.random.default_rng(seed).standard_normal(4).tolist()
    for units in collections:
        before, table = table, revised(table, units)
        vectors = with_new(vectors if before.lineage is table.lineage else Vectors(4), table)
        new_table = table_of(units)
        new = with_new(Vectors(4), new_table).nearness_to(asked)
        near = vectors.nearness_to(asked)
        assert (near is None) == (new is None)
        if near is not None and new is not None:
            found = {table.unit_at(place).id for place in near.nearest}
            assert found == {new_table.unit_at(place).id for place in new.nearest}
            places = [(table.place_of(unit.id), new_table.place_of(unit.id)) for unit in units]
            nearness = near.by_place[numpy.array([place for place, _ in places])]
            assert nearness == pytest.approx(new.by_place[numpy.array([place for _, place in places])], abs=1e-4)


@given(COLLECTIONS, WORDS, st.integers(0, 9))
def test_so_many_as_are_asked_for_are_the_first_of_all(units: list[TextUnit], query: str, most: int) -> None:
    assert search_index(units).ranked_units(query, most=most) == search_index(units).ranked_units(query)[:most]


@given(COLLECTIONS, WORDS, st.booleans())
def test_the_parts_of_a_score_add_up_to_it(units: list[TextUnit], query: str, is_near: bool) -> None:
    table = table_of(units)
    index = index_of(table)
    meaning = meaning_of(table, {units[0].id: 1.0, units[2].id: 0.7}) if is_near and len(units) > 2 else None
    meaning = meaning and meaning._replace(related={"tea": {"jam": 0.8}, "moon": {"lamp": 0.3, "quasar": 0.5}})
    ranked = index.ranked_units(query, meaning=meaning)
    parts = index.score_parts(query, [unit.id for unit, _ in ranked], meaning=meaning)
    for unit, score in ranked:
        assert sum(parts[unit.id].values()) == pytest.approx(score)
        assert all(parts[unit.id].values())


def test_nothing_gives_no_ranking() -> None:
    assert ids("tea", []) == []
    assert Postings([]).counts("tea") is None


@given(st.text(), st.lists(st.text(), max_size=6))
def test_any_text_can_be_ranked(query: str, statements: list[str]) -> None:
    ranked = search_index([TextUnit(str(number), text) for number, text in enumerate(statements)]).ranked_units(query)
    scores = [score for _, score in ranked]
    assert all(score > 0 for score in scores)
    assert scores == sorted(scores, reverse=True)


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), max_size=40), st.sets(st.sampled_from("abcdefg")))
def test_scores_are_those_of_the_formula(documents: list[list[str]], wanted: set[str]) -> None:
    table = table_of(
        [TextUnit(f"{place:03}", " ".join(str(ord(word)) for word in words)) for place, words in enumerate(documents)]
    )
    scores = WordScores(table.counts, table.lengths, table.is_alive).document_scores(str(ord(word)) for word in wanted)
    mean = sum(map(len, documents)) / max(len(documents), 1) or 1.0
    for words, score in zip(documents, scores, strict=True):
        expected = 0.0
        for word in wanted & set(words):
            frequency, count = sum(word in others for others in documents), words.count(word)
            rarity = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
            expected += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * len(words) / mean))
        assert score == pytest.approx(expected)


def test_terms_are_stems_without_case_accents_and_stop_words() -> None:
    assert terms("She's RUNNING the Écoles, please!") == ["run", "ecol"]
    assert lower_without_stop_words("She's RUNNING the Écoles, please!") == "running ecoles"


def test_the_weights_that_are_kept_are_bounded_and_change_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "KEPT_AT_LEAST", 30)
    units = [turn(number, f"word{number} word{number + 1} tandem") for number in range(40)]
    index = search_index(units)
    for round_ in range(3):
        for number in range(40):
            query = f"word{number} tandem unknown{round_}x{number}"
            assert index.ranked_units(query) == search_index(units).ranked_units(query)
        assert 0 < index.cached_word_count < 2 * bm25.KEPT_A_DOCUMENT * 40
    for number in range(20_000):
        index.ranked_places(f"unknown{number}")
    assert index.cached_word_count <= 2 * bm25.KEPT_A_DOCUMENT * 40
