"""What a query is about: facts and turns in one ranked list. Pure, so that every database ranks alike.

A unit (a fact, or a turn that a fact rests on) scores by its words (BM25) and, where there are vectors, by its meaning;
both are set to the best unit of the query, and added. What stands around a unit counts too: a turn is read in its
conversation, a fact with the turns it rests on. `benchmarks/recall_quality.md` says what each part gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple, Protocol

from afterword.facts.words import terms as terms
from afterword.recall.bm25 import LARGE, numpy_if_installed
from afterword.recall.bm25 import TermIndex as TermIndex

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


class SearchUnit(NamedTuple):
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


EMPTY_UNIT = SearchUnit("", "")
"""What stands at a place that is free."""


class MeaningScores(Protocol):
    """How near each unit is to the query in meaning: 0 the farthest, 1 the nearest."""

    def nearest(self) -> Iterable[int]:
        """Return the places of the units that stand out."""

    def at(self, places: Any) -> Any:
        """Return the nearness of the units at these places: a list for a list, an array (or a list) for an array."""


class SearchIndex:
    """The units of one scope, ready to be asked.

    `before` is an index over almost the same units: what has not changed is taken from it. A unit keeps its place from
    one index to the next, so that a place says nothing of the order of the units.
    """

    def __init__(self, units: Iterable[SearchUnit], *, before: SearchIndex | None = None) -> None:
        self.units = tuple(units)
        places = self._taken_over(before) if before is not None else None
        if places is None or before is None:
            self._begin(before)
        else:
            self._carry_on(before, places)
        self._order = [0] * len(self.at)
        self._order_array: Any = None
        for number, unit in enumerate(self.units):
            self._order[self._places[unit.id]] = number

    def _taken_over(self, before: SearchIndex) -> dict[str, int] | None:
        """Return the places of the units that are in both, None where too few are."""
        known, at = before._places, before.at
        kept = {
            unit.id: place for unit in self.units if (place := known.get(unit.id)) is not None and at[place] == unit
        }
        worth_it = len(kept) * 4 >= 3 * max(len(self.units), len(before.units)) and len(at) <= 2 * len(self.units)
        return kept if worth_it else None

    def _begin(self, before: SearchIndex | None) -> None:
        self.at: list[SearchUnit] = list(self.units)
        self._places = {unit.id: place for place, unit in enumerate(self.units)}
        known = before.terms if before is not None else {}
        self._terms: list[Sequence[str]] = [known.get(unit.text) or tuple(terms(unit.text)) for unit in self.units]
        self._postings = TermIndex(self._terms)
        self._names: dict[int, frozenset[str]] = {}
        self._standing: dict[tuple[str, int], int] = {}
        self._resting: dict[str, tuple[int, ...]] = {}
        self._rooms: dict[str, int] = {}
        self._inside: dict[str, tuple[int, ...]] = {}
        inside: dict[str, list[int]] = {}
        for place, unit in enumerate(self.units):
            if unit.conversation is not None:
                inside.setdefault(unit.conversation, []).append(place)
            if unit.name or unit.sources or unit.conversation is not None:
                self._place(place, unit)
        self._inside = {room: tuple(places) for room, places in inside.items()}
        self._rooms = {room: number for number, room in enumerate(self._inside)}
        self._conversations = TermIndex(map(self._said_in, self._inside))

    def _carry_on(self, before: SearchIndex, kept: dict[str, int]) -> None:
        self.at, self._terms = list(before.at), list(before._terms)
        self._names, self._standing = dict(before._names), dict(before._standing)
        self._resting, self._inside = dict(before._resting), dict(before._inside)
        taken = set(kept.values())
        gone = [place for place, unit in enumerate(before.at) if unit is not EMPTY_UNIT and place not in taken]
        lost = {place: self._terms[place] for place in gone}
        rooms = {before.at[place].conversation for place in gone}
        for place in gone:
            self._leave(place)
        free = [place for place, unit in enumerate(self.at) if unit is EMPTY_UNIT]
        self._places = kept
        come: dict[int, Sequence[str]] = {}
        for unit in self.units:
            if unit.id not in kept:
                place = self._take(unit, free)
                come[place] = self._terms[place]
                rooms.add(unit.conversation)
        self._postings = before._postings.revised(lost, come)
        self._turn_over(before, {room for room in rooms if room is not None})

    def _take(self, unit: SearchUnit, free: list[int]) -> int:
        if not free:
            self.at.append(EMPTY_UNIT)
            self._terms.append(())
            free.append(len(self.at) - 1)
        place = free.pop()
        self.at[place], self._terms[place], self._places[unit.id] = unit, tuple(terms(unit.text)), place
        if unit.conversation is not None:
            self._inside[unit.conversation] = (*self._inside.get(unit.conversation, ()), place)
        self._place(place, unit)
        return place

    def _place(self, place: int, unit: SearchUnit) -> None:
        if unit.name:
            self._names[place] = frozenset(terms(unit.name))
        if unit.conversation is not None:
            self._standing[unit.conversation, unit.number] = place
        for source in unit.sources:
            self._resting[source] = (*self._resting.get(source, ()), place)

    def _leave(self, place: int) -> None:
        unit = self.at[place]
        self.at[place], self._terms[place] = EMPTY_UNIT, ()
        self._names.pop(place, None)
        if unit.conversation is not None:
            self._standing.pop((unit.conversation, unit.number), None)
            self._inside[unit.conversation] = tuple(one for one in self._inside[unit.conversation] if one != place)
        for source in unit.sources:
            self._resting[source] = tuple(one for one in self._resting[source] if one != place)

    def _turn_over(self, before: SearchIndex, rooms: set[str]) -> None:
        """Have the conversations hold what is said in them now; an empty one is none."""
        gone = {before._rooms[room]: before._said_in(room) for room in rooms if room in before._rooms}
        self._rooms = {room: number for room, number in before._rooms.items() if room not in rooms}
        taken = set(self._rooms.values())
        free = (number for number in count() if number not in taken)
        come: dict[int, Sequence[str]] = {}
        for room in sorted(rooms):
            if self._inside[room]:
                self._rooms[room] = number = next(free)
                come[number] = self._said_in(room)
            else:
                del self._inside[room]
        self._conversations = before._conversations.revised(gone, come)

    def _said_in(self, room: str) -> list[str]:
        return [word for place in self._inside[room] for word in self._terms[place]]

    def unit(self, unit_id: str) -> SearchUnit:
        """Return the unit of this id."""
        return self.at[self._places[unit_id]]

    @property
    def terms(self) -> dict[str, Sequence[str]]:
        """The terms of each text."""
        return {unit.text: words for unit, words in zip(self.at, self._terms, strict=True) if unit is not EMPTY_UNIT}

    def ranked(
        self, query: str, *, meaning: MeaningScores | None = None, weights: Weights = WEIGHTS, most: int | None = None
    ) -> list[tuple[SearchUnit, float]]:
        """Return the units that the query is about, each with its score, best first; ties in the order of the units.

        Those that share a word with the query (or are near it in meaning), and what stands beside them; with `most`
        only so many.
        """
        wanted = set(terms(query))
        is_faster = not self._standing and (meaning is not None or len(self.at) >= LARGE)
        if is_faster and (numpy := numpy_if_installed()) is not None:
            return self._arrayed(numpy, wanted, meaning, weights, most)
        scored = self._in_context(self._base(wanted, meaning, weights), wanted, weights)
        places = sorted(scored, key=self._order.__getitem__)
        places.sort(key=scored.__getitem__, reverse=True)
        return [(self.at[place], scored[place]) for place in places[:most]]

    def _arrayed(
        self, numpy: Any, wanted: set[str], meaning: MeaningScores | None, weights: Weights, most: int | None
    ) -> list[tuple[SearchUnit, float]]:
        """Return the same of facts where there are no turns: `_base` and `_alone` on arrays, to the last bit."""
        places, scores = self._postings.arrays(numpy, wanted, MOST_CANDIDATES)
        if len(scores):
            scores /= scores.max()
        if meaning is not None:
            beside = list(set(meaning.nearest()).difference(places.tolist()))
            places = numpy.concatenate((places, numpy.asarray(beside, dtype=places.dtype)))
            scores = numpy.concatenate((scores, numpy.zeros(len(beside))))
            scores += weights.dense * numpy.asarray(meaning.at(places), dtype=numpy.float64)
        for number, place in enumerate(places.tolist() if self._names else ()):
            if place in self._names and not self._names[place].isdisjoint(wanted):
                scores[number] += weights.named
        scores += weights.fact
        if self._order_array is None:
            self._order_array = numpy.asarray(self._order)
        best_first = numpy.lexsort((self._order_array[places], -scores))[:most]
        units = map(self.at.__getitem__, places[best_first].tolist())
        return list(zip(units, scores[best_first].tolist(), strict=True))

    def parts(
        self, query: str, units: Iterable[str], *, meaning: MeaningScores | None = None, weights: Weights = WEIGHTS
    ) -> dict[str, dict[str, float]]:
        """Return what adds up to the score of each of these units: by words, by meaning, and by each other weight."""
        wanted = set(terms(query))
        places = {name: self._places[name] for name in units if name in self._places}
        base = self._base(wanted, meaning, weights)
        words = self._base(wanted, None, weights)
        found = {name: {"words": words.get(place, 0.0)} for name, place in places.items()}
        for name, place in places.items():
            found[name]["meaning"] = base.get(place, 0.0) - found[name]["words"]
        nobody = Weights(0, tuple((distance, 0.0) for distance, _ in weights.neighbours), 0, 0, 0, 0, 0)
        for part in ("neighbours", "conversation", "named", "asking", "fact", "sources"):
            scored = self._in_context(base, wanted, replace(nobody, **{part: getattr(weights, part)}))
            for name, place in places.items():
                found[name][part] = scored.get(place, 0.0) - base.get(place, 0.0)
        return {name: {part: share for part, share in one.items() if share} for name, one in found.items()}

    def _base(self, wanted: set[str], meaning: MeaningScores | None, weights: Weights) -> dict[int, float]:
        """Return the score by words, and by meaning where that is known, of the best units, in the order of all."""
        found = self._postings.scores(wanted, MOST_CANDIDATES)
        best = max(found.values(), default=1.0)
        near = {place: found.get(place, 0.0) for place in meaning.nearest()} if meaning is not None else {}
        places = sorted(found | near, key=self._order.__getitem__)
        base = {place: found.get(place, 0.0) / best for place in places}
        if meaning is not None:
            for place, nearness in zip(places, meaning.at(places), strict=True):
                base[place] += weights.dense * nearness
        return base

    def _in_context(self, base: Mapping[int, float], wanted: set[str], weights: Weights) -> dict[int, float]:
        """Return the scores of these units and of what stands beside them, with all that speaks for each."""
        if not self._standing:
            return self._alone(base, wanted, weights)
        scored, support = dict(base), dict[int, float]()
        for place, score in base.items():
            self._spread(scored, support, place, score, weights)
        rooms = self._conversations.scores(wanted)
        best = max(rooms.values(), default=1.0)
        for place, score in scored.items():
            unit = self.at[place]
            if unit.name and not self._names[place].isdisjoint(wanted):
                score += weights.named
            if unit.conversation is not None:
                score += weights.conversation * rooms.get(self._rooms[unit.conversation], 0.0) / best
                score -= weights.asking * unit.asks
            else:
                score += weights.fact
                score += weights.sources * support.get(place, 0.0)
            scored[place] = score
        return scored

    def _alone(self, base: Mapping[int, float], wanted: set[str], weights: Weights) -> dict[int, float]:
        """Return the scores of facts where there are no turns: nothing stands beside them, nothing supports them."""
        scored = {place: score + weights.fact for place, score in base.items()}
        for place in self._names.keys() & base.keys():
            if not self._names[place].isdisjoint(wanted):
                scored[place] = base[place] + weights.named + weights.fact
        return scored

    def _spread(
        self, scored: dict[int, float], support: dict[int, float], place: int, score: float, weights: Weights
    ) -> None:
        """Have a turn speak for those beside it, and for the facts that rest on it: for each the best of its turns."""
        unit = self.at[place]
        if unit.conversation is None:
            return
        for distance, share in weights.neighbours:
            beside = self._standing.get((unit.conversation, unit.number + distance))
            if beside is not None:
                scored[beside] = scored.get(beside, 0.0) + share * score
        for fact in self._resting.get(unit.id, ()):
            scored.setdefault(fact, 0.0)
            support[fact] = max(support.get(fact, 0.0), score)


def repeats_last(ranked: Sequence[tuple[SearchUnit, float]]) -> list[tuple[SearchUnit, float]]:
    """Return the ranked units, a turn that an earlier fact rests on after all others: a budget buys most told once."""
    told: set[str] = set()
    first: list[tuple[SearchUnit, float]] = []
    again: list[tuple[SearchUnit, float]] = []
    for unit, score in ranked:
        (again if unit.id in told else first).append((unit, score))
        told.update(unit.sources)
    return first + again
