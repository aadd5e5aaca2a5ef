"""What a query is about: facts and turns in one ranked list. Pure, so that every database ranks alike.

A unit (a fact, or a turn that a fact rests on) scores by its words (BM25) and, where there are vectors, by its meaning;
both are set to the best unit of the query, and added. What stands around a unit counts too: a turn is read in its
conversation, a fact with the turns it rests on. `benchmarks/recall_quality.md` says what each part gives.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from afterword.store.words import terms as terms

K1 = 0.9
B = 0.4
MOST_CANDIDATES = 300


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part adds to a score, where the best unit by words has 1.

    `neighbours` holds what a turn gets of the turns beside it: (distance in turns, negative where the other comes
    later, share).
    """

    dense: float = 0.4
    neighbours: tuple[tuple[int, float], ...] = ((1, 0.25), (-1, 0.1), (2, 0.1), (-2, 0.1))
    conversation: float = 0.2
    named: float = 0.2
    asking: float = 0.1
    fact: float = 0.1
    sources: float = 0.3


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that can be found: `text` holds the words that find it, date and speaker included.

    `name` is who speaks or whom it is about; `conversation` and `number` say where a turn stands, facts have none.
    `asks` marks a question that another person answers. `sources` are the ids of the turns that a fact rests on.
    """

    id: str
    text: str
    name: str = ""
    conversation: str | None = None
    number: int = 0
    asks: bool = False
    sources: tuple[str, ...] = ()


class Meaning(Protocol):
    """How near each unit is to the query in meaning: 0 the farthest, 1 the nearest."""

    def nearest(self) -> Iterable[int]:
        """Return the places of the units that stand out."""

    def at(self, places: Sequence[int]) -> Sequence[float]:
        """Return the nearness of the units at these places."""


class Postings:
    """Which documents hold which words. A word is weighed when it is first asked for."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._held: defaultdict[str, list[int]] = defaultdict(list)
        self._weighed: dict[str, tuple[tuple[int, float], ...]] = {}
        self._lengths: list[int] = []
        for place, words in enumerate(documents):
            self._lengths.append(len(words))
            for word in words:
                self._held[word].append(place)
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def scores(self, wanted: Iterable[str]) -> dict[int, float]:
        """Return the score of every document that holds a wanted word.

        BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), section 3,
        with one added inside the logarithm so that no weight is negative.
        """
        lists = sorted((self._weigh(word) for word in wanted if word in self._held), key=len, reverse=True)
        found: dict[int, float] = dict(lists[0]) if lists else {}
        for weighed in lists[1:]:
            for place, weight in weighed:
                found[place] = found.get(place, 0.0) + weight
        return found

    def _weigh(self, word: str) -> tuple[tuple[int, float], ...]:
        if word not in self._weighed:
            counts = Counter(self._held[word])
            total = len(self._lengths)
            rarity = math.log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
            self._weighed[word] = tuple(
                (place, rarity * count * (K1 + 1) / (count + self._damping(place))) for place, count in counts.items()
            )
        return self._weighed[word]

    def _damping(self, place: int) -> float:
        return K1 * (1 - B + B * self._lengths[place] / self._mean)


class Index:
    """The units of one scope, ready to be asked.

    `known` holds the terms of texts that another index has made already.
    """

    def __init__(self, units: Sequence[Unit], *, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self.units = tuple(units)
        known = known or {}
        self.terms = {unit.text: known.get(unit.text) or terms(unit.text) for unit in self.units}
        self._postings = Postings(self.terms[unit.text] for unit in self.units)
        self._names = [frozenset(terms(unit.name)) if unit.name else frozenset() for unit in self.units]
        rooms: dict[str, list[str]] = {}
        for unit in self.units:
            if unit.conversation is not None:
                rooms.setdefault(unit.conversation, []).extend(self.terms[unit.text])
        self._conversations = Postings(rooms.values())
        numbers = {name: number for number, name in enumerate(rooms)}
        self._room = [numbers[unit.conversation] if unit.conversation is not None else -1 for unit in self.units]
        places = {unit.id: place for place, unit in enumerate(self.units)}
        self._standing = {
            (self._room[place], unit.number): place for place, unit in enumerate(self.units) if self._room[place] >= 0
        }
        self._sources = [tuple(places[one] for one in unit.sources if one in places) for unit in self.units]
        self._resting: dict[int, list[int]] = {}
        for place, sources in enumerate(self._sources):
            for source in sources:
                self._resting.setdefault(source, []).append(place)

    def ranked(
        self, query: str, *, meaning: Meaning | None = None, weights: Weights = WEIGHTS
    ) -> list[tuple[Unit, float]]:
        """Return the units that the query is about, each with its score, best first; ties in the order of the units.

        Those that share a word with the query (or are near it in meaning), and what stands beside them.
        """
        wanted = set(terms(query))
        base = self._base(wanted, meaning, weights)
        scored = self._in_context(base, wanted, weights)
        return [
            (self.units[place], score) for place, score in sorted(scored.items(), key=lambda one: (-one[1], one[0]))
        ]

    def _base(self, wanted: set[str], meaning: Meaning | None, weights: Weights) -> dict[int, float]:
        """Return the score by words, and by meaning where that is known, of the best units."""
        found = self._postings.scores(wanted)
        best = max(found.values(), default=1.0)
        if len(found) > MOST_CANDIDATES:
            floor = sorted(found.values(), reverse=True)[MOST_CANDIDATES]
            found = {place: score for place, score in found.items() if score > floor}
        base = {place: score / best for place, score in found.items()}
        if meaning is not None:
            for place in meaning.nearest():
                base.setdefault(place, 0.0)
            for place, near in zip(base, meaning.at(list(base)), strict=True):
                base[place] += weights.dense * near
        return base

    def _in_context(self, base: Mapping[int, float], wanted: set[str], weights: Weights) -> dict[int, float]:
        """Return the scores of these units and of what stands beside them, with all that speaks for each."""
        scored = dict(base)
        if self._standing:
            for place, score in base.items():
                if self._room[place] >= 0:
                    self._spread(scored, place, score, weights)
        rooms = self._conversations.scores(wanted) if self._standing else {}
        best = max(rooms.values(), default=1.0)
        for place in scored:
            if self._names[place] and not self._names[place].isdisjoint(wanted):
                scored[place] += weights.named
            if self._room[place] >= 0:
                scored[place] += weights.conversation * rooms.get(self._room[place], 0.0) / best
                scored[place] -= weights.asking * self.units[place].asks
            else:
                scored[place] += weights.fact
                if self._sources[place]:
                    support = max(base.get(source, 0.0) for source in self._sources[place])
                    scored[place] += weights.sources * support
        return scored

    def _spread(self, scored: dict[int, float], place: int, score: float, weights: Weights) -> None:
        for distance, share in weights.neighbours:
            beside = self._standing.get((self._room[place], self.units[place].number + distance))
            if beside is not None:
                scored[beside] = scored.get(beside, 0.0) + share * score
        for fact in self._resting.get(place, ()):
            scored.setdefault(fact, 0.0)


def said_once(ranked: Sequence[tuple[Unit, float]]) -> list[tuple[Unit, float]]:
    """Return the ranked units, a turn that an earlier fact rests on after all others: a budget buys most told once."""
    told: set[str] = set()
    first: list[tuple[Unit, float]] = []
    again: list[tuple[Unit, float]] = []
    for unit, score in ranked:
        (again if unit.id in told else first).append((unit, score))
        told.update(unit.sources)
    return first + again
