"""Score how well documents match words, by BM25. Pure.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3, with one
added inside the logarithm so that no weight is negative.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy
from numpy.typing import NDArray

K1 = 0.9
B = 0.4

COMMON_WORD = 8
"""A word in more than one of 8 documents has its weights in an array over all documents, which is faster to add."""

SAMPLE = 8
"""One score of 8 is sampled to find a lower bound of the best scores."""

END = "."
"""A separator after each of several documents that are split together. It is no word."""

KEPT_A_DOCUMENT, KEPT_AT_LEAST = 16, 5_000
"""The size of the cache of weights: so many for each document, and at least so many. A full cache is emptied."""

SPLIT_TOGETHER = 5_000
"""The number of documents that are split into words at once. More would take more memory."""

Array = NDArray[Any]
Related = Mapping[str, Mapping[str, float]]
"""For each word of a query, its related words with their similarity (at most 1)."""
NO_RELATED: Related = MappingProxyType({})
WordCounts = tuple[Array, Array]
"""The places of the documents that contain a word, and how often each does."""


class Postings:
    """An inverted index, which tells which documents contain which words. Immutable.

    A document is a text of words that are separated by white space. It is identified by its place, a number that counts
    up from `first`. `lengths` holds the number of words of each document.
    """

    def __init__(self, documents: Sequence[str], first: int = 0) -> None:
        numbers, word_numbers = _numbered_words(documents)
        is_end = word_numbers == numbers[END]
        self.lengths: Array = (numpy.diff(is_end.nonzero()[0], prepend=-1) - 1).astype(numpy.int32)
        # One number for each occurrence of a word in a document, so that one sort brings equal ones together.
        keys = word_numbers[~is_end].astype(numpy.int64)
        keys *= len(documents)
        keys += numpy.repeat(numpy.arange(len(documents), dtype=numpy.int32), self.lengths)
        keys.sort(kind="stable")
        is_first = numpy.ones(len(keys), dtype=bool)
        is_first[1:] = keys[1:] != keys[:-1]
        starts = is_first.nonzero()[0]
        distinct = keys[starts]
        self._numbers = numbers
        self._places = (distinct % max(len(documents), 1) + first).astype(numpy.int32)
        self._counts = numpy.diff(starts, append=len(keys)).astype(numpy.int32)
        self._starts = numpy.searchsorted(distinct, numpy.arange(len(numbers) + 1) * len(documents))

    def counts(self, word: str) -> WordCounts | None:
        """Return the places of the documents that contain a word, with its counts there, or None if none does."""
        number = self._numbers.get(word)
        if number is None:
            return None
        start, end = self._starts[number], self._starts[number + 1]
        return self._places[start:end], self._counts[start:end]


def _numbered_words(documents: Sequence[str]) -> tuple[dict[str, int], Array]:
    """Return a number for each word, and the numbers of the words of all documents, with `END` after each document."""
    numbers: defaultdict[str, int] = defaultdict(None, {END: 0})
    numbers.default_factory = numbers.__len__
    parts = [numpy.empty(0, dtype=numpy.int32)]
    for start in range(0, len(documents), SPLIT_TOGETHER):
        words = f" {END} ".join([*documents[start : start + SPLIT_TOGETHER], ""]).split()
        parts.append(numpy.fromiter(map(numbers.__getitem__, words), numpy.int32, len(words)))
    return dict(numbers), numpy.concatenate(parts)


class WordScores:
    """Scores how well the selected documents match words.

    If `groups` has the number of each document's group, all selected documents of a group count as one document.
    """

    def __init__(
        self, counts: Callable[[str], WordCounts], lengths: Array, is_selected: Array, groups: Array | None = None
    ) -> None:
        self._counts, self._is_selected, self._groups = counts, is_selected, groups
        if groups is None:
            self._lengths, count = lengths, int(is_selected.sum())
        else:
            self._lengths = numpy.bincount(groups[is_selected], lengths[is_selected])
            count = len(numpy.unique(groups[is_selected]))
        total_length = int(lengths[is_selected].sum())
        self._count, self._mean_length = count, total_length / count if total_length else 1.0
        self._weights: dict[str, tuple[int, Any, Array]] = {}
        self._kept, self._most_kept = 0, max(KEPT_A_DOCUMENT * len(self._lengths), KEPT_AT_LEAST)

    @property
    def cached_word_count(self) -> int:
        """The number of words whose weights are cached."""
        return len(self._weights)

    def document_scores(self, words: Iterable[str]) -> Array:
        """Return the score of each document (or group), 0 for those that contain none of the words."""
        weights = {word: self._word_weights(word) for word in words}
        sums = numpy.zeros(len(self._lengths))
        # Always in the same order: sums of fractions depend on it.
        for word in sorted(weights, key=lambda word: (-weights[word][0], word)):
            frequency, places, amounts = weights[word]
            if frequency:
                sums[places] += amounts
        return sums

    def related_scores(self, related: Related) -> Array:
        """Return what related words add to the score of each document.

        A related word counts less than the word itself, in proportion to its similarity, even if it is rarer. Only the
        best related word counts, and only by what exceeds the score of the word itself.
        """
        sums = numpy.zeros(len(self._lengths))
        for word in sorted(related):
            frequency, places, amounts = self._word_weights(word)
            best = numpy.zeros(len(sums))
            for other, likeness in related[word].items():
                frequency_of_other, places_of_other, amounts_of_other = self._word_weights(other)
                if frequency_of_other:
                    share = likeness * min(1.0, self._rarity(frequency) / self._rarity(frequency_of_other))
                    best[places_of_other] = numpy.maximum(best[places_of_other], share * amounts_of_other)
            if frequency:
                best[places] -= amounts
            sums += best.clip(0)
        return sums

    def _rarity(self, frequency: int) -> float:
        return math.log(1 + (self._count - frequency + 0.5) / (frequency + 0.5))

    def _word_weights(self, word: str) -> tuple[int, Any, Array]:
        """Return how many documents contain a word, their places (a slice for all), and its weight at each place."""
        weighed = self._weights.get(word)
        if weighed is None:
            weighed = self._computed_word_weights(word)
            size = 1 + len(weighed[2])
            if self._kept + size > self._most_kept:
                # A new dict, because another thread may still read the old one.
                self._weights, self._kept = {}, 0
            self._weights[word] = weighed
            self._kept += size
        return weighed

    def _computed_word_weights(self, word: str) -> tuple[int, Any, Array]:
        places, counts = self._counts(word)
        is_selected = self._is_selected[places]
        places, counts = places[is_selected], counts[is_selected]
        if self._groups is not None:
            totals = numpy.bincount(self._groups[places], counts)
            places = totals.nonzero()[0]
            counts = totals[places]
        frequency = len(places)
        shares = B * self._lengths[places] / self._mean_length
        weights = self._rarity(frequency) * counts * (K1 + 1) / (counts + K1 * (1 - B + shares))
        if frequency * COMMON_WORD <= len(self._lengths):
            return frequency, places, weights
        everywhere = numpy.zeros(len(self._lengths))
        everywhere[places] = weights
        return frequency, slice(None), everywhere


def best_places(scores: Array, most: int) -> Array:
    """Return the places of the `most` best scores above 0, in the order of the places.

    Scores that equal the best one left out are left out too, so there may be fewer. Only if more than `most` share the
    best score, as units with the same words do, all of these are returned, and the best of the others.
    """
    places = _best_without_ties(scores, most)
    if len(places) or not scores.any():
        return places
    is_best = scores == scores.max()
    others = _best_without_ties(numpy.where(is_best, 0, scores), most)
    found: Array = numpy.union1d(is_best.nonzero()[0], others)
    return found


def _best_without_ties(scores: Array, most: int) -> Array:
    sample, lower_bound = scores[::SAMPLE], sys.float_info.min
    if len(sample) > most:
        lower_bound = max(_greatest_after_best(sample, most), lower_bound)
    places = (scores >= lower_bound).nonzero()[0]
    if len(places) > most:
        best = scores[places]
        places = places[best > _greatest_after_best(best, most)]
    return places


def _greatest_after_best(scores: Array, number: int) -> float:
    place = len(scores) - number - 1
    return float(numpy.partition(scores, place)[place])
