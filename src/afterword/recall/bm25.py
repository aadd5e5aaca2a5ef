"""BM25: how well documents match words. Pure.

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
"""A word in at least one of so many documents has its weights in an array over all of them, which adds up faster."""

SAMPLE = 8
"""One score of so many is sampled for a lower bound of the best scores."""

END = "."
"""No word: it stands behind each document where several are split together."""

KEPT_A_DOCUMENT, KEPT_AT_LEAST = 16, 5_000
"""So many weights are kept for each document, and at least: then all are dropped, and computed again when needed."""

SPLIT_TOGETHER = 5_000
"""So many documents are split into words at once. More take more memory."""

Array = NDArray[Any]
Related = Mapping[str, Mapping[str, float]]
"""For each word of a query the words related to it, with how like they are."""
NO_RELATED: Related = MappingProxyType({})
WordCounts = tuple[Array, Array]
"""The places of the documents that contain a word, and how often each does."""


class Postings:
    """Which documents contain which words. A document is its words, separated by white space. Immutable.

    A document is known by its place; the first one has the place `first`. `lengths` holds how many words each has.
    """

    def __init__(self, documents: Sequence[str], first: int = 0) -> None:
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        end = numbers[END]
        parts = [numpy.empty(0, dtype=numpy.int32)]
        for start in range(0, len(documents), SPLIT_TOGETHER):
            words = f" {END} ".join([*documents[start : start + SPLIT_TOGETHER], ""]).split()
            parts.append(numpy.fromiter(map(numbers.__getitem__, words), numpy.int32, len(words)))
        word_numbers = numpy.concatenate(parts)
        is_end = word_numbers == end
        self.lengths: Array = (numpy.diff(is_end.nonzero()[0], prepend=-1) - 1).astype(numpy.int32)
        # One number for each word of each document, so that one sort brings equal ones together.
        keys = word_numbers[~is_end].astype(numpy.int64)
        keys *= len(documents)
        keys += numpy.repeat(numpy.arange(len(documents), dtype=numpy.int32), self.lengths)
        keys.sort(kind="stable")
        is_first = numpy.ones(len(keys), dtype=bool)
        is_first[1:] = keys[1:] != keys[:-1]
        starts = is_first.nonzero()[0]
        distinct = keys[starts]
        self._numbers = dict(numbers)
        self._places = (distinct % max(len(documents), 1) + first).astype(numpy.int32)
        self._counts = numpy.diff(starts, append=len(keys)).astype(numpy.int32)
        self._starts = numpy.searchsorted(distinct, numpy.arange(len(numbers) + 1) * len(documents))

    def counts(self, word: str) -> WordCounts | None:
        """Return which documents contain a word, None where none does."""
        number = self._numbers.get(word)
        if number is None:
            return None
        start, end = self._starts[number], self._starts[number + 1]
        return self._places[start:end], self._counts[start:end]


class WordScores:
    """How well the selected documents match words.

    With `groups`, the number of each document's group, all selected documents of a group count as one document.
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
    def weighed(self) -> int:
        """How many words were weighed."""
        return len(self._weights)

    def sums(self, words: Iterable[str]) -> Array:
        """Return the score of each document (or group), 0 for those that contain none of the words."""
        weights = {word: self._weight(word) for word in words}
        sums = numpy.zeros(len(self._lengths))
        # Always in the same order: sums of fractions depend on it.
        for word in sorted(weights, key=lambda word: (-weights[word][0], word)):
            frequency, places, amounts = weights[word]
            if frequency:
                sums[places] += amounts
        return sums

    def related_sums(self, related: Related) -> Array:
        """Return what each document scores by related words, where it holds one that counts more than the word itself.

        A related word counts as much as it is like the word, and no more than the word if that one is less rare.
        """
        sums = numpy.zeros(len(self._lengths))
        for word in sorted(related):
            frequency, places, amounts = self._weight(word)
            best = numpy.zeros(len(sums))
            for other, likeness in related[word].items():
                frequency_of_other, places_of_other, amounts_of_other = self._weight(other)
                if frequency_of_other:
                    share = likeness * min(1.0, self._rarity(frequency) / self._rarity(frequency_of_other))
                    best[places_of_other] = numpy.maximum(best[places_of_other], share * amounts_of_other)
            if frequency:
                best[places] -= amounts
            sums += best.clip(0)
        return sums

    def _rarity(self, frequency: int) -> float:
        return math.log(1 + (self._count - frequency + 0.5) / (frequency + 0.5))

    def _weight(self, word: str) -> tuple[int, Any, Array]:
        """Return how many documents contain a word, their places (a slice for all), and its weight at each place."""
        weighed = self._weights.get(word)
        if weighed is None:
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
            if frequency * COMMON_WORD > len(self._lengths):
                everywhere = numpy.zeros(len(self._lengths))
                everywhere[places] = weights
                weighed = frequency, slice(None), everywhere
            else:
                weighed = frequency, places, weights
            self._keep(word, weighed)
        return weighed

    def _keep(self, word: str, weighed: tuple[int, Any, Array]) -> None:
        size = 1 + len(weighed[2])
        if self._kept + size > self._most_kept:
            # The old ones stay for whoever reads them in another thread.
            self._weights, self._kept = {}, 0
        self._weights[word] = weighed
        self._kept += size


def best_places(scores: Array, most: int) -> Array:
    """Return the places of the best scores above 0, at most so many, in order of the places.

    Places that tie with the first one left out are left out too.
    """
    places = (scores >= _lower_bound(scores[::SAMPLE], most)).nonzero()[0]
    if len(places) > most:
        best: Array = scores[places]
        places = places[best > _greatest_after(best, most)]
    return places


def _lower_bound(sample: Array, most: int) -> float:
    """Return a score above 0 that more than `most` documents reach, if more than `most` of the sample do."""
    least = sys.float_info.min
    return least if len(sample) <= most else max(_greatest_after(sample, most), least)


def _greatest_after(scores: Array, number: int) -> float:
    place = len(scores) - number - 1
    return float(numpy.partition(scores, place)[place])
