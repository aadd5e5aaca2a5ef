"""Vectors: near is near, what lacks one is neither near nor far, and an error says which extra to install."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Sequence

import numpy
import pytest

from afterword.recall import vectors
from afterword.recall.related_words import related_terms
from afterword.recall.vectors import EmbeddingUnavailable, LocalEmbedder, Nearness, Vectors, packed_vector, vector_key

TEA, COFFEE, ROCKET = [1.0, 0.1, 0.0], [0.9, 0.2, 0.0], [0.0, 0.1, 1.0]


def vectors_of(*made: Sequence[float] | None) -> Vectors:
    """Return the vectors of units at places in a row."""
    is_wanted = numpy.ones(len(made), dtype=bool)
    return Vectors(3).revised(is_wanted, {n: packed_vector(one) for n, one in enumerate(made) if one is not None})


def nearness(near: Nearness | None, count: int = 3) -> list[float]:
    """Return how near the first units are."""
    assert near is not None
    return [float(value) for value in near.by_place[numpy.arange(count)]]


def test_the_nearest_is_one_and_the_farthest_nought() -> None:
    tea, coffee, rocket = nearness(vectors_of(TEA, COFFEE, ROCKET).nearness_to([1.0, 0.0, 0.0]))
    assert (tea, rocket) == (1.0, 0.0)
    assert 0.5 < coffee < 1


def test_what_lacks_a_vector_is_neither_near_nor_far() -> None:
    vectors = vectors_of(TEA, None, ROCKET)
    assert vectors.missing_count == 1
    assert nearness(vectors.nearness_to([1.0, 0.0, 0.0])) == [1.0, pytest.approx(0.5), 0.0]


def test_one_that_stands_out_among_many_is_found() -> None:
    near = vectors_of(*[ROCKET] * 50, TEA).nearness_to([1.0, 0.0, 0.0])
    assert near is not None
    assert list(near.nearest) == [50]


def alike(topic: int, unrelated: float, own: float = 1.0) -> list[float]:
    """Return a vector of length 1 for one of six topics. Vectors of two topics have about the cosine `unrelated`.

    `own` is the part of the topic, and the rest is the text's own.
    """
    rest = [
        math.sqrt((1 - unrelated) * part) if place == topic else 0.0 for part in (own, 1 - own) for place in range(6)
    ]
    return [math.sqrt(unrelated), *rest]


def near_topics(asked: Sequence[float], *made: Sequence[float]) -> list[int]:
    """Return the places of the vectors that are near the one that is asked for."""
    packed = {place: packed_vector(one) for place, one in enumerate(made)}
    near = Vectors(13).revised(numpy.ones(len(made), dtype=bool), packed).nearness_to(asked)
    assert near is not None
    assert all(near.by_place[near.nearest] > 0.25)
    return list(near.nearest)


@pytest.mark.parametrize("unrelated", [0.1, 0.4, 0.75])
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_one_that_is_plainly_near_is_found_among_few_with_any_embedder(count: int, unrelated: float) -> None:
    made = [alike(topic, unrelated, own=0.6) for topic in range(count)]
    assert near_topics(alike(1, unrelated, own=0.6), *made) == [1]
    assert near_topics(alike(1, unrelated), *made) == [1]


@pytest.mark.parametrize("unrelated", [0.1, 0.4, 0.75])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_among_few_that_are_unrelated_none_is_found(count: int, unrelated: float) -> None:
    made = [alike(topic, unrelated + 0.02 * topic) for topic in range(count)]
    assert near_topics(alike(5, unrelated), *made) == []


def test_of_few_a_fact_and_the_turn_that_says_it_are_both_found() -> None:
    fact, turn, *others = alike(1, 0.3, own=0.9), alike(1, 0.3, own=0.8), *(alike(topic, 0.3) for topic in (2, 3, 4, 5))
    for count in (2, 4, 8):
        assert near_topics(alike(1, 0.3), fact, turn, *(others * 2)[:count]) == [0, 1]


def test_a_single_text_is_found_if_its_vector_is_nearly_that_of_the_question() -> None:
    assert near_topics(alike(1, 0.1), alike(1, 0.1, own=0.9)) == [0]
    assert near_topics(alike(1, 0.1), alike(1, 0.1, own=0.5)) == []
    assert near_topics(alike(1, 0.1), *[alike(1, 0.1, own=0.9)] * 2) == [0, 1]


def test_an_opposite_text_does_not_make_the_others_near() -> None:
    assert near_topics(alike(5, 0.1), [-number for number in alike(5, 0.1)], *[alike(n, 0.1) for n in range(3)]) == []


def test_without_any_vector_there_is_no_meaning() -> None:
    assert vectors_of(None, None).nearness_to(TEA) is None
    assert vectors_of().nearness_to(TEA) is None


def test_other_words_have_another_key() -> None:
    assert vector_key("tea") == vector_key("tea") != vector_key("Tea")


async def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    monkeypatch.setattr(vectors, "_loaded_wordllama", vectors._loaded_wordllama.__wrapped__)
    with pytest.raises(EmbeddingUnavailable, match=r"afterword\[local\]"):
        await LocalEmbedder().embed(["tea"])


def test_related_words_are_those_of_like_meaning_and_only_of_words_that_are_known_whole() -> None:
    pytest.importorskip("wordllama")
    related = related_terms("In which currency do they pay? Qwyzzl!")
    assert {"dollar", "euro", "money"} <= related["currenc"].keys()
    assert "qwyzzl" not in related
    assert all(term not in words for term, words in related.items())


async def test_local_vectors_tell_like_from_unlike_and_leave_logging_alone() -> None:
    pytest.importorskip("wordllama")
    handlers = list(logging.getLogger().handlers)
    local = LocalEmbedder()
    vectors = await local.embed(["a cup of tea", "a mug of coffee", "the rocket engine"])
    assert {len(vector) for vector in vectors} == {local.dimension}
    packed = {place: packed_vector(vector) for place, vector in enumerate(vectors)}
    known = Vectors(local.dimension).revised(numpy.ones(3, dtype=bool), packed)
    near = known.nearness_to((await local.embed(["drinking tea"]))[0])
    tea, coffee, rocket = nearness(near)
    assert tea > coffee > rocket
    assert near is not None
    assert list(near.nearest) == [0]
    assert logging.getLogger().handlers == handlers
