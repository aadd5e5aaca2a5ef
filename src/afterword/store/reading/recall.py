"""Chooses what an agent is told: all facts if they fit the budget, otherwise the facts that matter for the query."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice, zip_longest
from typing import Any, TypeVar

from afterword.facts.assertions import EvidenceKind, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.safety import must_never_be_missed
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn
from afterword.recall.block import FormerFact, MatchingTurn, hashed_scope_label, in_block_order
from afterword.recall.bm25 import Array
from afterword.recall.layers import (
    Layers,
    LayerSources,
    all_facts_fit,
    choose_layers,
    room_for_facts,
    turns_outside_context,
)
from afterword.recall.questions import is_about_the_past
from afterword.recall.vectors import Embedder, Nearness
from afterword.store.database.engine import Store
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.scope_vectors import nearness_to_query, related_words
from afterword.store.reading.searchable_layers import SearchableLayers, searchable_layers
from afterword.store.reading.turn_rows import StoredTurn
from afterword.store.reading.view_cache import ViewCache, view_cache_of
from afterword.store.reading.views import View
from afterword.telemetry import Count, Stage, count, note, staged

MOST_LETTERS_PER_TOKEN = 8
"""If the facts have more letters than this for each token of the budget, they cannot fit, and nothing is measured."""


Units = list[tuple[StoredFact | StoredTurn, float]]
"""Facts and turns with their scores, best first."""
Ranked = TypeVar("Ranked")

MOST_RANKED = 100
"""At most this many matching facts are tried before the latest facts fill the rest."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The facts that were chosen for a query, each with its score (0 if a rule other than relevance chose it).

    `has_all_facts` is true if no fact was left out. `stored` is the number of facts that could have been chosen. If it
    is 0, nothing is known. If it is above 0 and `facts` is empty, nothing known is relevant. `turns` are the chosen
    turns, best first, with their scores in `turn_scores`. `without_vector` counts the facts and turns that cannot be
    found by meaning because they lack a vector. The status of a fact says whether it still holds. `score_components`
    holds the components of the score of each fact, if they were requested. `former` are the chosen facts that held
    before. `layers` is everything that an agent is told, None for a search. `findings` are the findings of a search
    with their scores.
    """

    facts: tuple[Fact, ...]
    scores: tuple[float, ...]
    has_all_facts: bool
    stored: int
    turns: tuple[SourceTurn, ...] = ()
    turn_scores: tuple[float, ...] = ()
    without_vector: int = 0
    score_components: tuple[Mapping[str, float], ...] = ()
    former: tuple[FormerFact, ...] = ()
    findings: tuple[tuple[AgentFinding, float], ...] = ()
    layers: Layers | None = None


@staged(Stage.RECALL, "scope")
async def recall(
    store: Store,
    scope: Scope,
    query: str,
    *,
    at: datetime,
    budget_tokens: int,
    second_query: str = "",
    heard: Collection[str] = (),
    kinds: Collection[Kind] | None = None,
    views: ViewCache | None = None,
    patience_s: float | None = None,
    embedder: Embedder | None = None,
) -> Recall:
    """Return what an agent is told, layer by layer, within the budget.

    If all facts that hold fit the budget, all are chosen, then former facts and turns. Otherwise the flagged facts come
    first, then the facts, former facts and turns that match the query. The facts that were said last fill the rest.
    What matches `second_query`, for example an agent's words since the query, is chosen in turn with what matches the
    query. Turns that have one of the texts `heard`, which the agent sees already, are left out.
    `kinds` restricts the result to facts of these kinds that hold. `views` is the cache of views, by default the one of
    the store. If loading takes longer than `patience_s`, the view that was loaded last is used. With an `embedder`,
    facts are also found by meaning, as far as there are vectors. Raises TypeError if `scope` is no `Scope`, and
    `StoreError` if the store does not answer.
    """
    view = await _view_of_scope(store, scope, at, views or view_cache_of(store), patience_s)
    served = view.served_fact_places(kinds)
    label = hashed_scope_label(scope)
    searchable = await searchable_layers(store, view)
    turn_count = searchable.said.turn_count if kinds is None else 0
    all_facts = _all_if_they_fit(view, served, label, room_for_facts(budget_tokens, has_turns=turn_count > 0))
    queries = [view.names.with_other_names(text) for text in dict.fromkeys((query, second_query)) if text.strip()]
    units, lacking = ([], 0) if all_facts is not None else await _rank_facts(store, view, queries, kinds, embedder)
    sources = LayerSources(
        all_facts=all_facts,
        flagged_facts=[] if all_facts is not None else _flagged_facts(view, searchable, kinds),
        matching_facts=[view.fact_with_replaced_value(unit) for unit, _ in units if isinstance(unit, StoredFact)],
        latest_facts=map(view.fact_with_replaced_value, map(view.snapshot.table.unit_at, served[::-1])),
        turn_count=turn_count,
        fact_count=len(served),
        is_about_the_past=is_about_the_past(query),
    )
    if kinds is None:
        sources = _with_other_layers(sources, searchable, queries, at, embedder)
        sources = replace(sources, matching_turns=turns_outside_context(sources.matching_turns, heard))
    layers = choose_layers(sources, label=label, budget_tokens=budget_tokens, lines=view.lines)
    return _build_recall(
        layers.facts,
        _scores_by_id(layers.facts, units),
        layers.turns,
        stored=len(served),
        lacking=lacking,
        former=tuple(layers.former_facts),
        layers=layers,
    )


async def _rank_facts(
    store: Store, view: View, queries: Sequence[str], kinds: Collection[Kind] | None, embedder: Embedder | None
) -> tuple[Units, int]:
    """Return the facts that match the queries, best first, and how many facts and turns lack a vector."""
    rankings, lacking = [], 0
    for query in queries:
        meaning, lacking = await nearness_to_query(store, view, query, embedder)
        rankings.append(view.index.ranked_units(query, meaning=meaning, most=MOST_RANKED, among=view.are_facts(kinds)))
    return list(_interleave(rankings)), lacking


def _with_other_layers(
    sources: LayerSources, searchable: SearchableLayers, queries: Sequence[str], at: datetime, embedder: Embedder | None
) -> LayerSources:
    """Return the sources with the former facts, turns and findings that match the queries."""
    is_past, words = sources.is_about_the_past, "\n".join(queries)
    matching = _interleave([_rank_former_facts(searchable, query, most=MOST_RANKED) for query in queries])
    return replace(
        sources,
        former_facts=searchable.facts_told_as_former,
        matching_former_facts=[*matching, *searchable.facts_by_former_sentence(words)],
        matching_turns=_matching_turns(searchable, queries, at, is_about_the_past=is_past, embedder=embedder),
        findings=[finding for finding, _ in searchable.findings_for(words, at=at, is_about_the_past=is_past)],
    )


def _flagged_facts(view: View, searchable: SearchableLayers, kinds: Collection[Kind] | None) -> list[Fact]:
    """Return the flagged facts, the newest first.

    Surely flagged facts come before all others, so that an allergy finds room even if a model flags every fact.
    """
    newest = [fact for fact in reversed(searchable.flagged_facts) if kinds is None or fact.kind in kinds]
    return sorted(map(view.fact_with_replaced_value, newest), key=lambda fact: not _is_surely_flagged(fact))


def _rank_former_facts(searchable: SearchableLayers, query: str, *, most: int | None = None) -> list[FormerFact]:
    """Return the former facts that match the query, best first, at most `most`."""
    if not searchable.former or not query.strip():
        return []
    ranked = searchable.former_index.ranked_units(query, most=most)
    return [searchable.former_by_id[unit.id] for unit, _ in ranked]


def _matching_turns(
    searchable: SearchableLayers,
    queries: Sequence[str],
    at: datetime,
    *,
    is_about_the_past: bool,
    embedder: Embedder | None,
) -> Iterator[MatchingTurn]:
    """Yield the turns that match the queries, best first."""
    hidden = partial(searchable.hidden.includes, is_about_the_past=is_about_the_past)
    matching = [
        searchable.said.matching_turns(query, at=at, is_hidden=hidden, related=related_words(query, embedder))
        for query in queries
    ]
    return _interleave(matching)


def _interleave(rankings: Iterable[Iterable[Ranked]]) -> Iterator[Ranked]:
    """Yield the first of each ranking, then the second of each, and so on."""
    return (each for places in zip_longest(*rankings) for each in places if each is not None)


@staged(Stage.SEARCH, "scope")
async def search(
    store: Store,
    scope: Scope,
    query: str,
    *,
    at: datetime,
    limit: int | None = None,
    kinds: Collection[Kind] | None = None,
    tags: Collection[str] = (),
    turns: bool = False,
    explain: bool = False,
    views: ViewCache | None = None,
    patience_s: float | None = None,
    embedder: Embedder | None = None,
) -> Recall:
    """Return the facts that match the query, best first; with `turns` also the turns that match.

    Matching facts that held before are in `former`. If the query asks about the past, they are among the facts instead.
    `tags` restricts the result to facts that have all of these tags. `limit` is the largest number of facts and turns
    together. With `explain`, the result has the `score_components`. An empty query returns all facts
    in the order of a block. Raises TypeError if `scope` is no `Scope`, and `StoreError` if the store does not answer.
    """
    view = await _view_of_scope(store, scope, at, views or view_cache_of(store), patience_s)
    asked = _SearchFilter(kinds, frozenset(tags))
    if not query.strip():
        served = asked.served_fact_places(view)
        return _build_recall(in_block_order(view.facts_at(served))[:limit], {}, stored=len(served))
    query = view.names.with_other_names(query)
    meaning, lacking = await nearness_to_query(store, view, query, embedder)
    searchable, is_past = await searchable_layers(store, view), is_about_the_past(query)
    former = [each for each in _rank_former_facts(searchable, query) if asked.includes(each.fact)]
    units = _rank_units(view, searchable, query, former if is_past else (), asked=asked, meaning=meaning, limit=limit)
    said: Iterator[MatchingTurn] = iter(())
    if turns and asked.allows_everything:
        said = islice(_matching_turns(searchable, [query], at, is_about_the_past=is_past, embedder=embedder), limit)
    matching = asked.facts_of(view, units)
    scores = _scores_by_id(matching, units)
    facts, best_turns = _best_facts_and_turns(matching, list(said), scores, limit)
    components = _score_components(view, searchable, query, facts, past=is_past, meaning=meaning) if explain else ()
    return _build_recall(
        *(facts, scores, best_turns),
        stored=asked.count_served(view),
        lacking=lacking,
        former=() if is_past else tuple(former[:limit]),
        findings=_matching_findings(searchable, query, at, is_past)[:limit] if asked.allows_everything else (),
        score_components=components,
    )


@dataclass(frozen=True, slots=True)
class _SearchFilter:
    """The filter of a search: facts of these kinds (None: of all kinds) that have all of these tags."""

    kinds: Collection[Kind] | None
    tags: frozenset[str]

    @property
    def allows_everything(self) -> bool:
        return self.kinds is None and not self.tags

    def includes(self, fact: Fact) -> bool:
        return (self.kinds is None or fact.kind in self.kinds) and self.tags.issubset(fact.tags)

    def count_served(self, view: View) -> int:
        """Return how many facts hold and pass the filter."""
        return view.served_fact_count if self.allows_everything else len(self.served_fact_places(view))

    def served_fact_places(self, view: View) -> Array:
        """Return the positions of the facts that hold and pass the filter."""
        served = view.served_fact_places(self.kinds)
        if not self.tags:
            return served
        return served[[view.snapshot.table.unit_at(place).tags.issuperset(self.tags) for place in served.tolist()]]

    def facts_of(self, view: View, units: Units) -> list[Fact]:
        """Return the facts among these units that pass the filter."""
        stored = (unit for unit, _ in units if isinstance(unit, StoredFact))
        of_kinds = (fact for fact in stored if self.kinds is None or fact.kind in self.kinds)
        return [fact for fact in map(view.fact, of_kinds) if self.includes(fact)]


def _rank_units(
    view: View,
    searchable: SearchableLayers,
    query: str,
    former: Sequence[FormerFact],
    *,
    asked: _SearchFilter,
    meaning: Nearness | None,
    limit: int | None,
) -> Units:
    """Return the facts and turns that match a query, and those of the `former` facts that do, best first."""
    has_facts_alone = asked.allows_everything and not view.snapshot.table.has_ever_had_turns
    units: Units = view.index.ranked_units(query, meaning=meaning, most=limit if has_facts_alone else None)
    if not former:
        return units
    former_ids = {each.fact.id for each in former}
    ended = [(unit, score) for unit, score in searchable.former_index.ranked_units(query) if unit.id in former_ids]
    return sorted([*units, *ended], key=lambda scored: -scored[1])


def _matching_findings(
    searchable: SearchableLayers, query: str, at: datetime, is_past: bool
) -> tuple[tuple[AgentFinding, float], ...]:
    """Return the findings that share words with a query, with their scores, best first."""
    ranked = searchable.findings_for(query, at=at, is_about_the_past=is_past)
    return tuple(pair for pair in ranked if pair[1] > 0)


def _best_facts_and_turns(
    facts: Sequence[Fact], said: Sequence[MatchingTurn], scores: Mapping[Hashable, float], limit: int | None
) -> tuple[list[Fact], list[MatchingTurn]]:
    """Return the facts and the turns with the highest scores, best first, at most `limit` of both together."""
    scored: list[tuple[float, Fact | MatchingTurn]] = [(scores.get(fact.id, 0.0), fact) for fact in facts]
    scored += [(each.score, each) for each in said]
    best = [each for _, each in sorted(scored, key=lambda pair: -pair[0])[:limit]]
    return [each for each in best if isinstance(each, Fact)], [each for each in best if isinstance(each, MatchingTurn)]


def _score_components(
    view: View, searchable: SearchableLayers, query: str, facts: Sequence[Fact], *, past: bool, meaning: Nearness | None
) -> tuple[Mapping[str, float], ...]:
    """Return the components of the score of each fact."""
    names = [fact.id for fact in facts]
    parts = view.index.score_parts(query, names, meaning=meaning) | (
        searchable.former_index.score_parts(query, names) if past else {}
    )
    return tuple(parts[name] for name in names)


async def _view_of_scope(store: Store, scope: Scope, at: datetime, views: ViewCache, patience_s: float | None) -> View:
    if not isinstance(scope, Scope):
        raise TypeError(f"whose facts? give a Scope, for example Scope.user('lena'), not {type(scope).__name__}")
    return await views.view(store, scope, at, patience_s=patience_s)


def _all_if_they_fit(view: View, served: Array, label: str, budget_tokens: int) -> list[Fact] | None:
    """Return all of these served facts, None if they do not fit the budget together."""
    if len(served) > budget_tokens or view.count_characters(served) > MOST_LETTERS_PER_TOKEN * budget_tokens:
        return None
    facts = [view.fact_with_replaced_value(view.snapshot.table.unit_at(place)) for place in served]
    return facts if all_facts_fit(facts, label=label, budget_tokens=budget_tokens, lines=view.lines) else None


def _build_recall(
    facts: Sequence[Fact],
    scores: Mapping[Hashable, float],
    said: Sequence[MatchingTurn] = (),
    *,
    stored: int,
    lacking: int = 0,
    **fields: Any,
) -> Recall:
    has_all_facts = sum(fact.is_served for fact in facts) == stored
    outcome = _outcome(stored, len(facts), has_all_facts=has_all_facts)
    note(stored=stored, chosen=len(facts), outcome=outcome)
    count(Count.RECALLS, outcome=outcome)
    return Recall(
        facts=tuple(facts),
        scores=tuple(scores.get(fact.id, 0.0) for fact in facts),
        has_all_facts=has_all_facts,
        stored=stored,
        turns=tuple(each.turn for each in said),
        turn_scores=tuple(each.score for each in said),
        without_vector=lacking,
        **fields,
    )


def _outcome(stored: int, chosen: int, *, has_all_facts: bool) -> str:
    """Return the outcome of a recall as telemetry names it."""
    if not stored:
        return "nothing stored"
    if not chosen:
        return "nothing relevant"
    return "whole" if has_all_facts else "chosen"


def _scores_by_id(facts: Iterable[Fact], units: Units) -> dict[Hashable, float]:
    """Return the scores of these facts by their ids."""
    fact_ids = {fact.id for fact in facts}
    return {unit.id: score for unit, score in units if unit.id in fact_ids}


def _is_surely_flagged(fact: Fact) -> bool:
    """Return whether a person entered a flagged fact, or whether its words concern health, safety or an instruction."""
    is_entered = any(evidence.kind is EvidenceKind.PERSON for evidence in fact.evidence)
    return is_entered or must_never_be_missed(fact.kind, fact.statement, fact.attribute, fact.value)
