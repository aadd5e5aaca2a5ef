"""Rank facts and turns by how well they match a query. Pure, so that the ranking is the same with every database.

A unit is a fact, or a turn that supports a fact. It scores by its words (BM25) and, where there are vectors, by its
meaning. Both scores are relative to the best unit of the query and are added. The context of a unit counts too: a turn
is read in its conversation, a fact with the turns that support it. `benchmarks/recall_quality.md` measures each part.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy

from afterword.recall.bm25 import Array, WordScores, best_places
from afterword.recall.questions import question_terms
from afterword.recall.unit_table import UnitTable
from afterword.recall.vectors import Nearness

MOST_CANDIDATES = 400


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each criterion adds to a score. The score by words of the best unit is 1.

    `neighbours` holds (distance, share) pairs: the share of its score that a turn adds to the turn at this distance,
    which is negative for earlier turns.
    """

    dense: float = 0.6
    related: float = 0.7
    neighbours: tuple[tuple[int, float], ...] = ((1, 0.25), (-1, 0.1), (2, 0.1), (-2, 0.1))
    conversation: float = 0.3
    named: float = 0.4
    asking: float = 0.3
    fact: float = 0.3
    sources: float = 0.5


WEIGHTS = Weights()
_NO_CONTEXT = Weights(0, 0, tuple((distance, 0.0) for distance, _ in WEIGHTS.neighbours), 0, 0, 0, 0, 0)
_CONTEXT_PARTS = "neighbours conversation named asking fact sources".split()


class SearchIndex:
    """Ranks the selected units of a table for queries.

    `is_selected` says for each place of the table whether its unit (a fact or turn) is selected.
    """

    def __init__(self, table: UnitTable, is_selected: Array) -> None:
        self._table, self._is_selected = table, is_selected
        self._supported_facts: dict[int, list[int]] = {}

    @cached_property
    def _word_scores(self) -> WordScores:
        return WordScores(self._table.counts, self._table.lengths, self._is_selected)

    @cached_property
    def _conversation_scores(self) -> WordScores:
        table = self._table
        is_turn = self._is_selected & (table.conversation >= 0)
        return WordScores(table.counts, table.lengths, is_turn, table.conversation)

    @property
    def cached_word_count(self) -> int:
        """The number of words with cached weights. The cache of views estimates the memory of an index by it."""
        made: list[WordScores] = [
            self.__dict__[name] for name in ("_word_scores", "_conversation_scores") if name in self.__dict__
        ]
        return sum(scores.cached_word_count for scores in made)

    def ranked_units(
        self,
        query: str,
        *,
        meaning: Nearness | None = None,
        weights: Weights = WEIGHTS,
        most: int | None = None,
        among: Array | None = None,
    ) -> list[tuple[Any, float]]:
        """Return the units that match the query, each with its score, best first. Ties keep the order of the units.

        A unit matches if it shares a word with the query, is near it in meaning, or is in the context of such a unit.
        `most` limits their number. `among` says for each place whether its unit may be returned.
        """
        places = self.ranked_places(query, meaning=meaning, weights=weights, most=most, among=among)
        return [(self._table.unit_at(place), score) for place, score in places.items()]

    def ranked_places(
        self,
        query: str,
        *,
        meaning: Nearness | None = None,
        weights: Weights = WEIGHTS,
        most: int | None = None,
        among: Array | None = None,
    ) -> dict[int, float]:
        """Return the score of each unit that `ranked_units` returns, by its place in the table, best first."""
        wanted = question_terms(query)
        places, scores, _ = self._base_scores(wanted, meaning, weights)
        places, scores = self._with_context(places, scores, wanted, weights)
        if among is not None:
            is_among = among[places]
            places, scores = places[is_among], scores[is_among]
        best_first = numpy.lexsort((self._table.rank[places], -scores))[:most]
        return dict(zip(places[best_first].tolist(), scores[best_first].tolist(), strict=True))

    def score_parts(
        self, query: str, unit_ids: Iterable[Hashable], *, meaning: Nearness | None = None
    ) -> dict[Hashable, dict[str, float]]:
        """Return the summands of the score of each of these units: words, meaning, and each other criterion."""
        wanted = question_terms(query)
        places, base, by_words = self._base_scores(wanted, meaning, WEIGHTS)
        base_at, words_at = (dict(zip(places.tolist(), scores, strict=True)) for scores in (base, by_words))
        scores_at: dict[str, dict[int, float]] = {}
        for part in _CONTEXT_PARTS:
            weights = replace(_NO_CONTEXT, **{part: getattr(WEIGHTS, part)})
            in_context, scores = self._with_context(places, base, wanted, weights)
            scores_at[part] = dict(zip(in_context.tolist(), scores, strict=True))
        parts: dict[Hashable, dict[str, float]] = {}
        for unit_id in unit_ids:
            place = self._table.place_of(unit_id)
            if place is not None and self._is_selected[place]:
                base_score, word_score = base_at.get(place, 0.0), words_at.get(place, 0.0)
                shares = {"words": word_score, "meaning": base_score - word_score}
                shares |= {part: scores.get(place, 0.0) - base_score for part, scores in scores_at.items()}
                parts[unit_id] = {part: float(share) for part, share in shares.items() if share}
        return parts

    def _base_scores(
        self, wanted: frozenset[str], meaning: Nearness | None, weights: Weights
    ) -> tuple[Array, Array, Array]:
        """Return the places of the best units, their scores by words and meaning, and their scores by words alone."""
        sums = by_words = self._word_scores.document_scores(wanted)
        if meaning is not None and meaning.related:
            sums = by_words + weights.related * self._word_scores.related_scores(meaning.related)
        best = sums.max(initial=0.0) or 1.0
        if meaning is None:
            places = best_places(sums, MOST_CANDIDATES)
            return places, sums[places] / best, sums[places] / best
        is_match = sums > 0
        is_match[meaning.nearest] = True
        places = is_match.nonzero()[0]
        scores = sums[places] / best + weights.dense * meaning.by_place[places]
        is_best = best_places(scores, MOST_CANDIDATES)
        places = places[is_best]
        return places, scores[is_best], by_words[places] / best

    def _with_context(
        self, places: Array, scores: Array, wanted: frozenset[str], weights: Weights
    ) -> tuple[Array, Array]:
        """Return the places and final scores of these units, of turns near them, and of facts that these support."""
        table, support = self._table, dict[int, float]()
        is_turn = table.conversation[places] >= 0
        if is_turn.any():
            support = self._support_scores(places[is_turn], scores[is_turn]) if table.has_support else {}
            places, scores = self._with_neighbours(places, scores, is_turn, weights, list(support))
            is_turn = table.conversation[places] >= 0
        names = table.name_numbers_with(wanted)
        scores = scores + weights.named * numpy.isin(table.name[places], names) if names else scores.copy()
        scores[~is_turn] += weights.fact
        if is_turn.any():
            scores[is_turn] += self._conversation_shares(places[is_turn], wanted, weights)
            scores[is_turn] -= weights.asking * table.asks[places[is_turn]]
        if support:
            # The places are in order, and the supported facts are among them.
            scores[numpy.searchsorted(places, list(support))] += weights.sources * numpy.array(list(support.values()))
        return places, scores

    def _with_neighbours(
        self, places: Array, scores: Array, is_turn: Array, weights: Weights, facts: list[int]
    ) -> tuple[Array, Array]:
        """Return the places and scores, with those of the turns near these turns, and with these facts."""
        neighbours, shares = self._neighbours(places[is_turn], scores[is_turn], weights)
        amounts = numpy.concatenate((scores, shares, numpy.zeros(len(facts))))
        all_places = numpy.concatenate((places, neighbours, numpy.array(facts, dtype=int)))
        distinct, numbers = numpy.unique(all_places, return_inverse=True)
        return distinct, numpy.bincount(numbers, amounts, len(distinct))

    def _conversation_shares(self, turns: Array, wanted: frozenset[str], weights: Weights) -> Array:
        """Return what is added to the score of each turn for the words of its conversation."""
        by_conversation = self._conversation_scores.document_scores(wanted)
        best = by_conversation.max() or 1.0
        shares: Array = weights.conversation * by_conversation[self._table.conversation[turns]] / best
        return shares

    def _neighbours(self, turns: Array, scores: Array, weights: Weights) -> tuple[Array, Array]:
        """Return the places of the turns near these turns, and what is added to the score of each."""
        table = self._table
        reach = max((abs(distance) for distance, _ in weights.neighbours), default=0)
        # The share for each distance; the NaN at either end is for greater distances.
        shares = numpy.full(2 * reach + 3, numpy.nan)
        for distance, share in weights.neighbours:
            shares[distance + reach + 1] = share
        places, amounts = [turns[:0]], [scores[:0]]
        ranks_of_turns, numbers, conversations = table.rank[turns], table.number[turns], table.conversation[turns]
        for step in range(-reach, reach + 1):
            # The turns of a conversation follow each other in the order of the units, though some may be missing.
            ranks = ranks_of_turns + step
            neighbours = table.by_order[ranks.clip(0, len(table.by_order) - 1)]
            share = shares[(table.number[neighbours] - numbers).clip(-reach - 1, reach + 1) + reach + 1]
            is_beside = (table.conversation[neighbours] == conversations) & self._is_selected[neighbours]
            is_beside &= (table.rank[neighbours] == ranks) & ~numpy.isnan(share)
            places.append(neighbours[is_beside])
            amounts.append(share[is_beside] * scores[is_beside])
        return numpy.concatenate(places), numpy.concatenate(amounts)

    def _support_scores(self, turns: Array, scores: Array) -> dict[int, float]:
        """Return the selected facts that these turns support, each with the score of its best turn."""
        support: dict[int, float] = {}
        for place, score in zip(turns.tolist(), scores.tolist(), strict=True):
            facts = self._supported_facts.get(place)
            if facts is None:
                of_turn = self._table.places_supported_by(self._table.unit_at(place).id)
                facts = self._supported_facts[place] = [fact for fact in of_turn if self._is_selected[fact]]
            for fact in facts:
                support[fact] = max(support.get(fact, 0.0), score)
        return support
