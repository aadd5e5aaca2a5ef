"""Find words of nearly the same meaning as those of a query, by the word vectors of the local embedder.

They find texts that share no word with a question: "currency" finds "dollars". Only words that are a single token of
the embedder are compared. Other words have vectors of their parts only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy

from afterword.facts.words import lower_without_accents, lower_without_stop_words, terms, words_as_written
from afterword.recall.bm25 import Array, Related
from afterword.recall.vectors import wordllama
from afterword.text_caches import text_cache

MOST_RELATED = 20
LEAST_LIKENESS = 0.25
"""The least cosine similarity of related words."""
LEAST_LETTERS = 3


class _KnownWords(NamedTuple):
    places: Mapping[str, int]
    terms: tuple[str, ...]
    vectors: Array


def related_terms(query: str) -> Related:
    """Return the terms related to each term of a query. Raises `EmbeddingUnavailable` without `afterword[local]`."""
    related = {
        term: _related_terms_of(word)
        for word in words_as_written(lower_without_stop_words(query))
        for term in terms(word)
    }
    return {term: likeness for term, likeness in related.items() if likeness}


@text_cache(5_000)
def _related_terms_of(word: str) -> Mapping[str, float]:
    known = _known_words()
    place = known.places.get(word)
    if place is None:
        return {}
    cosines = known.vectors @ known.vectors[place]
    likeness: dict[str, float] = {}
    for other in numpy.argsort(-cosines)[: 2 * MOST_RELATED].tolist():
        if cosines[other] >= LEAST_LIKENESS and known.terms[other] != known.terms[place]:
            likeness.setdefault(known.terms[other], float(cosines[other]))
    return dict(list(likeness.items())[:MOST_RELATED])


@cache
def _known_words() -> _KnownWords:
    """Return the whole words of the embedder's tokenizer that are no stop words, in lower case."""
    model: Any = wordllama()
    tokens: dict[str, int] = {}
    for token, number in sorted(model.tokenizer.get_vocab().items(), key=lambda pair: pair[1]):
        word = lower_without_accents(token[1:])
        if token.startswith("▁") and len(word) >= LEAST_LETTERS and word.isalpha() and terms(word):
            tokens.setdefault(word, number)
    vectors = numpy.asarray(model.embedding, dtype=numpy.float32)[list(tokens.values())]
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    first_terms = tuple(terms(word)[0] for word in tokens)
    return _KnownWords({word: place for place, word in enumerate(tokens)}, first_terms, vectors / lengths)
