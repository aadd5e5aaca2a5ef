"""BM25: how well documents match words. Pure, with the same results to the last bit with and without numpy.

For a large collection the scores are added up by numpy where it is installed (it comes with `afterword[local]`).
"""

from __future__ import annotations

import importlib
import math
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from heapq import nlargest
from typing import Any

K1 = 0.9
B = 0.4
LARGE = 3_000
"""From this many documents on numpy is faster, and worth being loaded."""

COMMON_WORD = 8
"""A word in at least one of so many documents has its weights in an array over all of them, which adds up faster."""

SAMPLE = 8
"""One score of so many is sampled for a lower bound of the best scores."""

Words = Sequence[str]
WordWeights = tuple[Any, Any]
"""Places, and the weight of one word at each: lists, or arrays of numpy, where the places may be a slice of all."""


class TermIndex:
    """Which documents contain which words. A document is known by its place. Immutable.

    BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3, with
    one added inside the logarithm so that no weight is negative. A word is weighed when it is first asked for.
    """

    def __init__(self, documents: Iterable[Words]) -> None:
        places: defaultdict[str, list[int]] = defaultdict(list)
        lengths: list[int] = []
        for place, words in enumerate(documents):
            lengths.append(len(words))
            for word in words:
                places[word].append(place)
        self._places: dict[str, list[int]] = dict(places)
        self._lengths = array("q", lengths)  # numpy reads it without a copy
        self._reset(len(lengths), sum(lengths))

    def _reset(self, count: int, total_length: int) -> None:
        self._count, self._total_length = count, total_length
        self._mean_length = total_length / count if total_length else 1.0
        self._weight_lists: dict[str, WordWeights] = {}
        self._weight_arrays: dict[str, WordWeights] = {}

    def revised(self, removed: Mapping[int, Words], added: Mapping[int, Words]) -> TermIndex:
        """Return the index after documents were removed from their places, and others added. It shares all else."""
        revised = object.__new__(TermIndex)
        revised._places, revised._lengths = dict(self._places), self._lengths[:]
        for word in {word for words in removed.values() for word in words}:
            remaining = [place for place in self._places[word] if place not in removed]
            revised._places[word] = remaining
            if not remaining:
                del revised._places[word]
        for place in removed:
            revised._lengths[place] = 0
        copied: set[str] = set()
        for place, words in added.items():
            revised._lengths.extend([0] * (place + 1 - len(revised._lengths)))
            revised._lengths[place] = len(words)
            for word in words:
                if word not in copied:
                    copied.add(word)
                    revised._places[word] = list(revised._places.get(word, ()))
                revised._places[word].append(place)
        growth = sum(map(len, added.values())) - sum(map(len, removed.values()))
        revised._reset(self._count + len(added) - len(removed), self._total_length + growth)
        return revised

    def scores(self, wanted: Iterable[str], most: int | None = None) -> dict[int, float]:
        """Return the score of every document that contains a wanted word, in no order.

        With `most`, return at most so many, the best. Documents that tie with the first one left out are left out too.
        """
        numpy = numpy_if_installed() if len(self._lengths) >= LARGE else None
        if numpy is None:
            return _sum_lists([self._weight_list(word) for word in self._known(wanted)], most)
        places, scores = self.arrays(numpy, wanted, most)
        return dict(zip(places.tolist(), scores.tolist(), strict=True))

    def arrays(self, numpy: Any, wanted: Iterable[str], most: int | None) -> tuple[Any, Any]:
        """Return the same as two arrays of numpy: the places of these documents, and their scores."""
        weights = [self._weight_array(numpy, word) for word in self._known(wanted)]
        return _sum_arrays(numpy, weights, len(self._lengths), most)

    def _known(self, wanted: Iterable[str]) -> list[str]:
        # Always in the same order: sums of fractions depend on it.
        places = self._places
        return sorted((word for word in wanted if word in places), key=lambda word: (-len(places[word]), word))

    def _rarity(self, count: int) -> float:
        return math.log(1 + (self._count - count + 0.5) / (count + 0.5))

    def _weight_list(self, word: str) -> WordWeights:
        if word not in self._weight_lists:
            counts, lengths, mean = Counter(self._places[word]), self._lengths, self._mean_length
            rarity = self._rarity(len(counts))
            weights = [
                rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[place] / mean))
                for place, count in counts.items()
            ]
            self._weight_lists[word] = list(counts), weights
        return self._weight_lists[word]

    def _weight_array(self, numpy: Any, word: str) -> WordWeights:
        if word not in self._weight_arrays:
            lengths = numpy.asarray(self._lengths)
            counts = numpy.bincount(numpy.asarray(array("q", self._places[word])), minlength=len(lengths))
            places = (counts > 0).nonzero()[0]
            rarity = self._rarity(len(places))
            if len(places) * COMMON_WORD > len(lengths):
                places = slice(None)
            counts = counts[places]
            weights = rarity * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths[places] / self._mean_length))
            self._weight_arrays[word] = places, weights
        return self._weight_arrays[word]


def _sum_lists(word_weights: Sequence[WordWeights], most: int | None) -> dict[int, float]:
    if not word_weights:
        return {}
    scores: dict[int, float] = dict(zip(*word_weights[0], strict=True))
    get = scores.get
    for places, weights in word_weights[1:]:
        for place, weight in zip(places, weights, strict=True):
            scores[place] = get(place, 0.0) + weight
    if most is None or len(scores) <= most:
        return scores
    values = scores.values()
    best_left_out = nlargest(most + 1, values)[-1] if len(scores) > 10 * most else sorted(values)[-most - 1]
    return {place: score for place, score in scores.items() if score > best_left_out}


def _sum_arrays(numpy: Any, word_weights: Sequence[WordWeights], size: int, most: int | None) -> tuple[Any, Any]:
    sums = numpy.zeros(size)
    for places, weights in word_weights:
        sums[places] += weights
    candidates = (sums >= _lower_bound(numpy, sums[::SAMPLE], most)).nonzero()[0]
    scores = sums[candidates]
    if most is not None and len(candidates) > most:
        is_best = scores > _greatest_after(numpy, scores, most)
        return candidates[is_best], scores[is_best]
    return candidates, scores


def _lower_bound(numpy: Any, sample: Any, most: int | None) -> float:
    """Return a score above 0 that more than `most` documents reach, if more than `most` of the sample do."""
    least = sys.float_info.min
    return least if most is None or len(sample) <= most else max(_greatest_after(numpy, sample, most), least)


def _greatest_after(numpy: Any, scores: Any, number: int) -> float:
    """Return the greatest score after the first `number` ones."""
    place = len(scores) - number - 1
    return float(numpy.partition(scores, place)[place])


@cache
def numpy_if_installed() -> Any:
    """Return numpy, or None where it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ModuleNotFoundError:
        return None
