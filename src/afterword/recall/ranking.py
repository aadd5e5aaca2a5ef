"""The search index: facts and turns ranked by how well they match a query. Pure, so that every database ranks alike.

A unit is a fact, or a turn that supports a fact. It scores by its words (BM25) and, where there are vectors, by its
meaning. Both scores are relative to the best unit of the query and are added. The context of a unit counts too: a turn
is read in its conversation, a fact with the turns that support it. `benchmarks/recall_quality.md` measures each part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple, Protocol

from afterword.facts.words import terms
from afterword.recall.bm25 import LARGE, TermIndex, numpy_if_installed

MOST_CANDIDATES = 300


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each part adds to a score, where the best unit by words has 1.

    `neighbours` holds (distance, share) pairs: the share of its score that a turn adds to the turn at this distance,
    which is negative for earlier turns.
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
    """A fact or a turn that can be found. `text` holds the words that find it, date and speaker included.

    `name` is who speaks, or whom the fact is about. `conversation` and `number` say where a turn stands; facts have
    none. `asks` marks a question that another person answers. `sources` are the ids of the turns that support a fact.
    """

    id: str
    text: str
    name: str = ""
    conversation: str | None = None
    number: int = 0
    asks: bool = False
    sources: tuple[str, ...] = ()


EMPTY_UNIT = SearchUnit("", "")
"""The unit at a free place."""


class MeaningScores(Protocol):
    """How near each unit is to the query in meaning: 0 for the farthest, 1 for the nearest."""

    def nearest(self) -> Iterable[int]:
        """Return the places of the units that are clearly nearer than most."""

    def at(self, places: Any) -> Any:
        """Return the nearness of the units at these places: a list for a list, an array (or a list) for an array."""


class SearchIndex:
    """The units of one scope, indexed for queries.

    With `before`, an index of almost the same units, only what has changed is indexed. A unit keeps its place from one
    index to the next, so the places are not in the order of the units. `at` holds the unit of each place.
    """

    def __init__(self, units: Iterable[SearchUnit], *, before: SearchIndex | None = None) -> None:
        self.units = tuple(units)
        places = self._unchanged_places(before) if before is not None else None
        if places is None or before is None:
            self._build(before)
        else:
            self._build_from(before, places)
        self._order = [0] * len(self.at)
        self._order_array: Any = None
        for number, unit in enumerate(self.units):
            self._order[self._places[unit.id]] = number

    def _unchanged_places(self, before: SearchIndex) -> dict[str, int] | None:
        """Return the places of the units that are in both, or None where a new index is cheaper."""
        known, at = before._places, before.at
        unchanged = {
            unit.id: place for unit in self.units if (place := known.get(unit.id)) is not None and at[place] == unit
        }
        is_similar = len(unchanged) * 4 >= 3 * max(len(self.units), len(before.units))
        return unchanged if is_similar and len(at) <= 2 * len(self.units) else None

    def _build(self, before: SearchIndex | None) -> None:
        self.at: list[SearchUnit] = list(self.units)
        self._places = {unit.id: place for place, unit in enumerate(self.units)}
        known_terms = before.terms if before is not None else {}
        self._terms: list[Sequence[str]] = [
            known_terms.get(unit.text) or tuple(terms(unit.text)) for unit in self.units
        ]
        self._unit_index = TermIndex(self._terms)
        self._name_terms: dict[int, frozenset[str]] = {}
        self._turn_places: dict[tuple[str, int], int] = {}
        self._supported: dict[str, tuple[int, ...]] = {}
        places_in: dict[str, list[int]] = {}
        for place, unit in enumerate(self.units):
            if unit.conversation is not None:
                places_in.setdefault(unit.conversation, []).append(place)
            if unit.name or unit.sources or unit.conversation is not None:
                self._note_unit(place, unit)
        self._places_in = {conversation: tuple(places) for conversation, places in places_in.items()}
        self._conversation_numbers = {conversation: number for number, conversation in enumerate(self._places_in)}
        self._conversation_index = TermIndex(map(self._conversation_terms, self._places_in))

    def _build_from(self, before: SearchIndex, unchanged: dict[str, int]) -> None:
        self.at, self._terms = list(before.at), list(before._terms)
        self._name_terms, self._turn_places = dict(before._name_terms), dict(before._turn_places)
        self._supported, self._places_in = dict(before._supported), dict(before._places_in)
        taken = set(unchanged.values())
        stale = [place for place, unit in enumerate(before.at) if unit is not EMPTY_UNIT and place not in taken]
        removed = {place: self._terms[place] for place in stale}
        conversations = {before.at[place].conversation for place in stale}
        for place in stale:
            self._remove(place)
        free = [place for place, unit in enumerate(self.at) if unit is EMPTY_UNIT]
        self._places = unchanged
        added: dict[int, Sequence[str]] = {}
        for unit in self.units:
            if unit.id not in unchanged:
                place = self._add(unit, free)
                added[place] = self._terms[place]
                conversations.add(unit.conversation)
        self._unit_index = before._unit_index.revised(removed, added)
        self._update_conversations(before, {name for name in conversations if name is not None})

    def _add(self, unit: SearchUnit, free: list[int]) -> int:
        if not free:
            self.at.append(EMPTY_UNIT)
            self._terms.append(())
            free.append(len(self.at) - 1)
        place = free.pop()
        self.at[place], self._terms[place], self._places[unit.id] = unit, tuple(terms(unit.text)), place
        if unit.conversation is not None:
            self._places_in[unit.conversation] = (*self._places_in.get(unit.conversation, ()), place)
        self._note_unit(place, unit)
        return place

    def _note_unit(self, place: int, unit: SearchUnit) -> None:
        if unit.name:
            self._name_terms[place] = frozenset(terms(unit.name))
        if unit.conversation is not None:
            self._turn_places[unit.conversation, unit.number] = place
        for source in unit.sources:
            self._supported[source] = (*self._supported.get(source, ()), place)

    def _remove(self, place: int) -> None:
        unit = self.at[place]
        self.at[place], self._terms[place] = EMPTY_UNIT, ()
        self._name_terms.pop(place, None)
        if unit.conversation is not None:
            self._turn_places.pop((unit.conversation, unit.number), None)
            self._places_in[unit.conversation] = _without(self._places_in[unit.conversation], place)
        for source in unit.sources:
            self._supported[source] = _without(self._supported[source], place)

    def _update_conversations(self, before: SearchIndex, changed: set[str]) -> None:
        """Index the changed conversations anew, and drop those without turns."""
        known_numbers = before._conversation_numbers
        removed = {known_numbers[name]: before._conversation_terms(name) for name in changed if name in known_numbers}
        self._conversation_numbers = {name: number for name, number in known_numbers.items() if name not in changed}
        taken = set(self._conversation_numbers.values())
        free = (number for number in count() if number not in taken)
        added: dict[int, Sequence[str]] = {}
        for name in sorted(changed):
            if self._places_in[name]:
                self._conversation_numbers[name] = number = next(free)
                added[number] = self._conversation_terms(name)
            else:
                del self._places_in[name]
        self._conversation_index = before._conversation_index.revised(removed, added)

    def _conversation_terms(self, conversation: str) -> list[str]:
        return [word for place in self._places_in[conversation] for word in self._terms[place]]

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
        """Return the units that match the query, each with its score, best first. Ties keep the order of the units.

        A unit matches if it shares a word with the query, is near it in meaning, or is in the context of such a unit.
        With `most`, return at most so many.
        """
        wanted = set(terms(query))
        has_only_facts = not self._turn_places
        if has_only_facts and (meaning is not None or len(self.at) >= LARGE):
            numpy = numpy_if_installed()
            if numpy is not None:
                return self._ranked_facts(numpy, wanted, meaning, weights, most)
        scores = self._with_context(self._base_scores(wanted, meaning, weights), wanted, weights)
        places = sorted(scores, key=self._order.__getitem__)
        places.sort(key=scores.__getitem__, reverse=True)
        return [(self.at[place], scores[place]) for place in places[:most]]

    def _ranked_facts(
        self, numpy: Any, wanted: set[str], meaning: MeaningScores | None, weights: Weights, most: int | None
    ) -> list[tuple[SearchUnit, float]]:
        """Return the same where there are no turns: `_base_scores` and `_with_context` on arrays, to the last bit."""
        places, scores = self._unit_index.arrays(numpy, wanted, MOST_CANDIDATES)
        if len(scores):
            scores /= scores.max()
        if meaning is not None:
            near_only = list(set(meaning.nearest()).difference(places.tolist()))
            places = numpy.concatenate((places, numpy.asarray(near_only, dtype=places.dtype)))
            scores = numpy.concatenate((scores, numpy.zeros(len(near_only))))
            scores += weights.dense * numpy.asarray(meaning.at(places), dtype=numpy.float64)
        for number, place in enumerate(places.tolist() if self._name_terms else ()):
            if self._is_named(place, wanted):
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
        base, by_words = self._base_scores(wanted, meaning, weights), self._base_scores(wanted, None, weights)
        zero = Weights(0, tuple((distance, 0.0) for distance, _ in weights.neighbours), 0, 0, 0, 0, 0)
        scores = {
            part: self._with_context(base, wanted, replace(zero, **{part: getattr(weights, part)}))
            for part in ("neighbours", "conversation", "named", "asking", "fact", "sources")
        }
        parts: dict[str, dict[str, float]] = {}
        for unit_id in units:
            if unit_id in self._places:
                place = self._places[unit_id]
                base_score, word_score = base.get(place, 0.0), by_words.get(place, 0.0)
                shares = {"words": word_score, "meaning": base_score - word_score}
                shares |= {part: in_context.get(place, 0.0) - base_score for part, in_context in scores.items()}
                parts[unit_id] = {part: share for part, share in shares.items() if share}
        return parts

    def _base_scores(self, wanted: set[str], meaning: MeaningScores | None, weights: Weights) -> dict[int, float]:
        """Return the scores by words, and by meaning where it is known, of the best units, in their order."""
        by_words = self._unit_index.scores(wanted, MOST_CANDIDATES)
        best = max(by_words.values(), default=1.0)
        near = dict.fromkeys(meaning.nearest(), 0.0) if meaning is not None else {}
        places = sorted(near | by_words, key=self._order.__getitem__)
        scores = {place: by_words.get(place, 0.0) / best for place in places}
        if meaning is not None:
            for place, nearness in zip(places, meaning.at(places), strict=True):
                scores[place] += weights.dense * nearness
        return scores

    def _with_context(self, base: Mapping[int, float], wanted: set[str], weights: Weights) -> dict[int, float]:
        """Return the final scores of these units and of the units that they add to."""
        scores, support = dict(base), dict[int, float]()
        for place, score in base.items():
            self._add_to_neighbours(scores, support, place, score, weights)
        by_conversation = self._conversation_index.scores(wanted)
        best = max(by_conversation.values(), default=1.0)
        for place, score in scores.items():
            unit = self.at[place]
            if self._is_named(place, wanted):
                score += weights.named
            if unit.conversation is not None:
                number = self._conversation_numbers[unit.conversation]
                score += weights.conversation * by_conversation.get(number, 0.0) / best
                score -= weights.asking * unit.asks
            else:
                score += weights.fact
                score += weights.sources * support.get(place, 0.0)
            scores[place] = score
        return scores

    def _is_named(self, place: int, wanted: set[str]) -> bool:
        return place in self._name_terms and not self._name_terms[place].isdisjoint(wanted)

    def _add_to_neighbours(
        self, scores: dict[int, float], support: dict[int, float], place: int, score: float, weights: Weights
    ) -> None:
        """Add a turn's share to the turns beside it, and note the best turn that supports each fact."""
        unit = self.at[place]
        if unit.conversation is None:
            return
        for distance, share in weights.neighbours:
            neighbour = self._turn_places.get((unit.conversation, unit.number + distance))
            if neighbour is not None:
                scores[neighbour] = scores.get(neighbour, 0.0) + share * score
        for fact in self._supported.get(unit.id, ()):
            scores.setdefault(fact, 0.0)
            support[fact] = max(support.get(fact, 0.0), score)


def _without(places: tuple[int, ...], removed: int) -> tuple[int, ...]:
    return tuple(place for place in places if place != removed)


def repeats_last(ranked: Sequence[tuple[SearchUnit, float]]) -> list[tuple[SearchUnit, float]]:
    """Return the ranked units, with each turn that supports a fact before it moved behind all others.

    So a budget is spent first on what is not said twice.
    """
    supporting: set[str] = set()
    first: list[tuple[SearchUnit, float]] = []
    repeated: list[tuple[SearchUnit, float]] = []
    for unit, score in ranked:
        (repeated if unit.id in supporting else first).append((unit, score))
        supporting.update(unit.sources)
    return first + repeated
