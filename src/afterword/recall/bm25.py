"""How well documents fit words: BM25 over lists of places. Pure, and the same to the last bit with and without numpy.

The lists of a large collection are added up by numpy where it is installed (it comes with `afterword[local]`), those
of any collection where `arrays` are asked for.
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
"""From so many documents on numpy is faster, and worth being loaded."""

OFTEN = 8
"""A word that one document in so many holds has its weights in an array over all of them: that is added up faster."""

SAMPLE = 8
"""One score in so many tells from which on the best are looked for."""

Words = Sequence[str]
Weighed = tuple[Any, Any]
"""Places, and the weight of one word at each: lists, or arrays of numpy, where the places may be a slice of all."""


class TermIndex:
    """Which documents hold which words. A word is weighed when it is first asked for. Never changed once it is made.

    BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3, with
    one added inside the logarithm so that no weight is negative.
    """

    def __init__(self, documents: Iterable[Words]) -> None:
        held: defaultdict[str, list[int]] = defaultdict(list)
        lengths: list[int] = []
        for place, words in enumerate(documents):
            lengths.append(len(words))
            for word in words:
                held[word].append(place)
        self._held: dict[str, list[int]] = dict(held)
        self._lengths = array("q", lengths)  # numpy reads it where it lies
        self._begin(len(self._lengths), sum(self._lengths))

    def _begin(self, count: int, total: int) -> None:
        self._count, self._total = count, total
        self._mean = total / count if total else 1.0
        self._listed: dict[str, Weighed] = {}
        self._arrayed: dict[str, Weighed] = {}

    def revised(self, gone: Mapping[int, Words], come: Mapping[int, Words]) -> TermIndex:
        """Return these with some documents taken out of their places, and others put in: all else is shared."""
        revised = object.__new__(TermIndex)
        revised._held, revised._lengths = dict(self._held), self._lengths[:]
        for word in {word for words in gone.values() for word in words}:
            left = [place for place in self._held[word] if place not in gone]
            revised._held[word] = left
            if not left:
                del revised._held[word]
        copied: set[str] = set()
        for place, words in come.items():
            revised._lengths.extend([0] * (place + 1 - len(revised._lengths)))
            for word in words:
                if word not in copied:
                    copied.add(word)
                    revised._held[word] = list(revised._held.get(word, ()))
                revised._held[word].append(place)
        for place in gone:
            revised._lengths[place] = 0
        for place, words in come.items():
            revised._lengths[place] = len(words)
        changed = sum(map(len, come.values())) - sum(map(len, gone.values()))
        revised._begin(self._count + len(come) - len(gone), self._total + changed)
        return revised

    def scores(self, wanted: Iterable[str], most: int | None = None) -> dict[int, float]:
        """Return the score of every document that holds a wanted word, in no order.

        With `most` only so many, the best; none of those that are as good as the first that is left out.
        """
        numpy = numpy_if_installed() if len(self._lengths) >= LARGE else None
        if numpy is None:
            return _added([self._list(word) for word in self._known(wanted)], most)
        places, scores = self.arrays(numpy, wanted, most)
        return dict(zip(places.tolist(), scores.tolist(), strict=True))

    def arrays(self, numpy: Any, wanted: Iterable[str], most: int | None) -> tuple[Any, Any]:
        """Return the same as two arrays of numpy: the places of these documents, and their scores."""
        return _summed(numpy, [self._array(numpy, word) for word in self._known(wanted)], len(self._lengths), most)

    def _known(self, wanted: Iterable[str]) -> list[str]:
        # The same order wherever it is done: sums of fractions depend on it.
        held = self._held
        return sorted((word for word in wanted if word in held), key=lambda word: (-len(held[word]), word))

    def _rarity(self, count: int) -> float:
        return math.log(1 + (self._count - count + 0.5) / (count + 0.5))

    def _list(self, word: str) -> Weighed:
        if word not in self._listed:
            counts, lengths, mean = Counter(self._held[word]), self._lengths, self._mean
            rarity = self._rarity(len(counts))
            weights = [
                rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[place] / mean))
                for place, count in counts.items()
            ]
            self._listed[word] = list(counts), weights
        return self._listed[word]

    def _array(self, numpy: Any, word: str) -> Weighed:
        if word not in self._arrayed:
            held, lengths = numpy.asarray(array("q", self._held[word])), numpy.asarray(self._lengths)
            counts = numpy.bincount(held, minlength=len(lengths))
            places = (counts > 0).nonzero()[0]
            rarity = self._rarity(len(places))
            if len(places) * OFTEN > len(lengths):
                places = slice(None)
            counts = counts[places]
            weights = rarity * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths[places] / self._mean))
            self._arrayed[word] = places, weights
        return self._arrayed[word]


def _added(lists: Sequence[Weighed], most: int | None) -> dict[int, float]:
    if not lists:
        return {}
    found: dict[int, float] = dict(zip(*lists[0], strict=True))
    get = found.get
    for places, weights in lists[1:]:
        for place, weight in zip(places, weights, strict=True):
            found[place] = get(place, 0.0) + weight
    if most is None or len(found) <= most:
        return found
    values = found.values()
    floor = nlargest(most + 1, values)[-1] if len(found) > 10 * most else sorted(values)[-most - 1]
    return {place: score for place, score in found.items() if score > floor}


def _summed(numpy: Any, lists: Sequence[Weighed], size: int, most: int | None) -> tuple[Any, Any]:
    sums = numpy.zeros(size)
    for places, weights in lists:
        sums[places] += weights
    found = (sums >= _floor(numpy, sums[::SAMPLE], most)).nonzero()[0]
    scores = sums[found]
    if most is not None and len(found) > most:
        is_best = scores > _greatest(numpy, scores, most)
        return found[is_best], scores[is_best]
    return found, scores


def _floor(numpy: Any, some: Any, most: int | None) -> float:
    """Return a score above 0 that more than `most` of all documents reach if more of these do."""
    least = sys.float_info.min
    return least if most is None or len(some) <= most else max(_greatest(numpy, some, most), least)


def _greatest(numpy: Any, scores: Any, number: int) -> float:
    """Return the greatest of the scores but for so many."""
    place = len(scores) - number - 1
    return float(numpy.partition(scores, place)[place])


@cache
def numpy_if_installed() -> Any:
    """Return numpy, None where it is not installed."""
    try:
        return importlib.import_module("numpy")
    except ModuleNotFoundError:
        return None
