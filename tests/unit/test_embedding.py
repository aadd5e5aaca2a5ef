"""Vectors: near is near, what lacks one is neither near nor far, and without numpy the error says what to install."""

from __future__ import annotations

import logging
import sys

import pytest

from afterword.recall import vectors
from afterword.recall.vectors import EmbeddingUnavailable, LocalEmbedder, Vectors, packed_vector, vector_key

TEA, COFFEE, ROCKET = [1.0, 0.1, 0.0], [0.9, 0.2, 0.0], [0.0, 0.1, 1.0]


@pytest.fixture(autouse=True)
def numpy_is_there(request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.name:
        pytest.importorskip("numpy")


def test_the_nearest_is_one_and_the_farthest_nought() -> None:
    near = Vectors([TEA, COFFEE, ROCKET]).near([1.0, 0.0, 0.0])
    assert near is not None
    tea, coffee, rocket = near.at([0, 1, 2])
    assert (tea, rocket) == (1.0, 0.0)
    assert 0.5 < coffee < 1


def test_what_lacks_a_vector_is_neither_near_nor_far() -> None:
    vectors = Vectors([TEA, None, ROCKET])
    near = vectors.near([1.0, 0.0, 0.0])
    assert vectors.missing == 1
    assert near is not None
    assert near.at([0, 1, 2]) == [1.0, pytest.approx(0.5), 0.0]


def test_kept_vectors_rank_as_the_made_ones() -> None:
    stored = Vectors([packed_vector(TEA), packed_vector(COFFEE), packed_vector(ROCKET)]).near(TEA)
    made = Vectors([TEA, COFFEE, ROCKET]).near(TEA)
    assert stored is not None
    assert made is not None
    assert list(stored.at([0, 1, 2])) == pytest.approx(list(made.at([0, 1, 2])), abs=0.01)


def test_one_that_stands_out_among_many_is_found() -> None:
    near = Vectors([*[ROCKET] * 50, TEA]).near([1.0, 0.0, 0.0])
    assert near is not None
    assert list(near.nearest()) == [50]


def test_without_any_vector_there_is_no_meaning() -> None:
    pytest.importorskip("numpy")
    assert Vectors([None, None]).near(TEA) is None
    assert Vectors([]).near(TEA) is None


def test_other_words_have_another_key() -> None:
    assert vector_key("tea") == vector_key("tea") != vector_key("Tea")


async def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    monkeypatch.setitem(sys.modules, "wordllama", None)
    monkeypatch.setattr(vectors, "_loaded_wordllama", vectors._loaded_wordllama.__wrapped__)
    with pytest.raises(EmbeddingUnavailable, match=r"afterword\[local\]"):
        packed_vector(TEA)
    with pytest.raises(EmbeddingUnavailable, match=r"afterword\[local\]"):
        await LocalEmbedder().embed(["tea"])


async def test_local_vectors_tell_like_from_unlike_and_leave_logging_alone() -> None:
    pytest.importorskip("wordllama")
    handlers = list(logging.getLogger().handlers)
    local = LocalEmbedder()
    vectors = await local.embed(["a cup of tea", "a mug of coffee", "the rocket engine"])
    assert {len(vector) for vector in vectors} == {local.dimension}
    near = Vectors(vectors).near((await local.embed(["drinking tea"]))[0])
    assert near is not None
    tea, coffee, rocket = near.at([0, 1, 2])
    assert tea > coffee > rocket
    assert logging.getLogger().handlers == handlers
