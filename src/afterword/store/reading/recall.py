"""Choose what an agent is told: every fact if all fit the budget, else the facts that matter for the query."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

from afterword.facts.assertions import EvidenceKind, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.safety import must_never_be_missed
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn
from afterword.recall.block import FormerFact, SaidTurn, in_block_order, scope_label
from afterword.recall.bm25 import Array, Related
from afterword.recall.layers import Layers, LayerSources, choose_layers, fit_whole, room_for_facts
from afterword.recall.questions import is_about_the_past
from afterword.recall.vectors import Embedder, Nearness
from afterword.store.database.engine import Store
from afterword.store.reading.fact_rows import KINDS, StoredFact
from afterword.store.reading.layer_sources import LayerSource, layer_source
from afterword.store.reading.scope_vectors import meaning, related_words
from afterword.store.reading.turn_rows import StoredTurn
from afterword.store.reading.view_cache import ViewCache, view_cache_of
from afterword.store.reading.views import View
from afterword.telemetry import Count, Stage, count, note, staged

MOST_LETTERS_PER_TOKEN = 8
"""Facts with more letters for each token of the budget are not even tried whole."""


Units = list[tuple[StoredFact | StoredTurn, float]]
"""Facts and turns with their scores, best first."""

MOST_RANKED = 100
"""So many of the facts that match are tried at most; the latest facts follow."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The chosen facts, each with its score for the query (0 if another rule chose it).

    `whole` is true if no fact was left out. `stored` is the number of facts that could have been chosen. If it is 0,
    nothing is known; if it is above 0 and `facts` is empty, nothing known is relevant. `turns` are turns chosen beside
    the facts, best first, with their scores in `turn_scores`. `without_vector` counts facts and turns that could be
    found by meaning if they had a vector. The status of a fact says whether it still holds. `parts` says what adds up
    to the score of each fact; it is empty unless it was asked for. `former` are the chosen facts that held before, and
    `layers` everything as an agent is told it, None for a search. `findings` are those of a search, scored.
    """

    facts: tuple[Fact, ...]
    scores: tuple[float, ...]
    whole: bool
    stored: int
    turns: tuple[SourceTurn, ...] = ()
    turn_scores: tuple[float, ...] = ()
    without_vector: int = 0
    parts: tuple[Mapping[str, float], ...] = ()
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
    kinds: Collection[Kind] | None = None,
    views: ViewCache | None = None,
    patience_s: float | None = None,
    embedder: Embedder | None = None,
) -> Recall:
    """Return what an agent is told, layer by layer, within the budget.

    If all facts that hold fit, all are chosen, then what held before and what was said. Otherwise the flagged facts
    come first; then come facts, former facts and turns that match the query. The facts said last fill the rest.
    With `kinds` only facts of these kinds that hold are told. `views` is where views are kept, by default with the
    store; where loading takes longer than `patience_s`, the view that was loaded last is used. With an `embedder`
    meaning counts beside words, as far as there are vectors. Raises TypeError without a scope, and `StoreError` where
    the store does not answer.
    """
    view = await _view(store, scope, at, views or view_cache_of(store), patience_s)
    served = view.served_places(kinds)
    label = scope_label(scope)
    source = await layer_source(store, view)
    turn_count = source.said.count if kinds is None else 0
    whole = _all_if_they_fit(view, served, label, room_for_facts(budget_tokens, has_turns=turn_count > 0))
    is_past = is_about_the_past(query)
    query = view.names.with_other_names(query)
    units: Units = []
    lacking = 0
    flagged: list[Fact] = []
    if whole is None:
        newest = [fact for fact in reversed(source.flagged) if kinds is None or fact.kind in kinds]
        # A model that flags everything leaves no less room for an allergy.
        flagged = sorted(map(view.shown, newest), key=lambda fact: not _is_surely_flagged(fact))
        if query.strip():
            near, lacking = await meaning(store, view, query, embedder)
            units = view.index.ranked(query, meaning=near, most=MOST_RANKED, among=view.are_facts(kinds))
    sources = LayerSources(
        all_facts=whole,
        flagged=flagged,
        ranked=[view.shown(unit) for unit, _ in units if isinstance(unit, StoredFact)],
        latest=map(view.shown, map(view.snapshot.table.unit, served[::-1])),
        turn_count=turn_count,
        fact_count=len(served),
        is_about_the_past=is_past,
    )
    if kinds is None:
        sources = replace(
            sources,
            former=source.told_as_former,
            former_ranked=[*_former_ranked(source, query, most=MOST_RANKED), *source.parts_for(query)],
            said=_said(source, query, at, is_about_the_past=is_past, related=related_words(query, embedder)),
            findings=[finding for finding, _ in source.findings_for(query, at=at, is_about_the_past=is_past)],
        )
    layers = choose_layers(sources, label=label, budget_tokens=budget_tokens, lines=view.lines)
    fields: dict[str, Any] = {"former": tuple(layers.former), "layers": layers}
    scores = _scores(layers.facts, units)
    return _recall(layers.facts, scores, layers.said, stored=len(served), lacking=lacking, **fields)


def _former_ranked(source: LayerSource, query: str, *, most: int | None = None) -> list[FormerFact]:
    """Return the former facts that match the query, best first, at most so many."""
    if not source.former or not query.strip():
        return []
    ranked = source.former_index.ranked(query, most=most)
    return [source.former_by_id[unit.id] for unit, _ in ranked]


def _said(
    source: LayerSource, query: str, at: datetime, *, is_about_the_past: bool, related: Related
) -> Iterator[SaidTurn]:
    """Yield the turns that bear on the query, best first."""
    hidden = partial(source.hidden.covers, is_about_the_past=is_about_the_past)
    return source.said.matching_turns(query, at=at, is_hidden=hidden, related=related)


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
    """Return the facts that match the query, best first; with `turns` also the turns that bear on it.

    `former` are the facts that held before and match; for a question about the past they are among the facts.
    With `tags` only the facts that have all of these are returned. `limit` is the largest number of facts and turns
    together. With `explain` the result's `parts` say what adds up to each score. An empty query returns every fact, in
    order. Raises TypeError without a scope, and `StoreError` where the store does not answer.
    """
    view = await _view(store, scope, at, views or view_cache_of(store), patience_s)
    asked = _AskedFor(kinds, frozenset(tags))
    if not query.strip():
        served = asked.served_places(view)
        return _recall(in_block_order(view.facts_at(served))[:limit], {}, stored=len(served))
    stored = view.served_count if asked.is_everything else len(asked.served_places(view))
    query = view.names.with_other_names(query)
    near, lacking = await meaning(store, view, query, embedder)
    source, past = await layer_source(store, view), is_about_the_past(query)
    has_facts_alone = asked.is_everything and not view.snapshot.table.has_turns
    units = view.index.ranked(query, meaning=near, most=limit if has_facts_alone else None)
    former = [each for each in _former_ranked(source, query) if asked.includes(each.fact)]
    if past:
        former_ids = {each.fact.id for each in former}
        ended = [(unit, score) for unit, score in source.former_index.ranked(query) if unit.id in former_ids]
        units = sorted([*units, *ended], key=lambda scored: -scored[1])
    said: Iterator[SaidTurn] = iter(())
    if turns and asked.is_everything:
        related = related_words(query, embedder)
        said = islice(_said(source, query, at, is_about_the_past=past, related=related), limit)
    ranked = source.findings_for(query, at=at, is_about_the_past=past)
    matching = asked.facts_of(view, units)
    scores = _scores(matching, units)
    facts, best_turns = _best(matching, list(said), scores, limit)
    return _recall(
        *(facts, scores, best_turns),
        stored=stored,
        lacking=lacking,
        former=() if past else tuple(former[:limit]),
        findings=tuple(pair for pair in ranked if pair[1] > 0)[:limit] if asked.is_everything else (),
        parts=_parts(view, source, query, facts, past=past, meaning=near) if explain else (),
    )


@dataclass(frozen=True, slots=True)
class _AskedFor:
    """What a search asks for: the facts of these kinds (None: of all) that have all of these tags."""

    kinds: Collection[Kind] | None
    tags: frozenset[str]

    @property
    def is_everything(self) -> bool:
        return self.kinds is None and not self.tags

    def includes(self, fact: Fact) -> bool:
        return (self.kinds is None or fact.kind in self.kinds) and self.tags.issubset(fact.tags)

    def served_places(self, view: View) -> Array:
        """Return the places of those that hold."""
        served = view.served_places(self.kinds)
        if not self.tags:
            return served
        return served[[view.snapshot.table.unit(place).tags.issuperset(self.tags) for place in served.tolist()]]

    def facts_of(self, view: View, units: Units) -> list[Fact]:
        """Return those among these units."""
        stored = (unit for unit, _ in units if isinstance(unit, StoredFact))
        of_kinds = (unit for unit in stored if self.kinds is None or KINDS[unit.kind_and_length[0]] in self.kinds)
        return [fact for fact in map(view.fact, of_kinds) if self.includes(fact)]


def _best(
    facts: Sequence[Fact], said: Sequence[SaidTurn], scores: Mapping[Hashable, float], limit: int | None
) -> tuple[list[Fact], list[SaidTurn]]:
    """Return the facts and turns with the highest scores, best first, at most so many of both together."""
    scored: list[tuple[float, Fact | SaidTurn]] = [(scores.get(fact.id, 0.0), fact) for fact in facts]
    scored += [(each.score, each) for each in said]
    best = [each for _, each in sorted(scored, key=lambda pair: -pair[0])[:limit]]
    return [each for each in best if isinstance(each, Fact)], [each for each in best if isinstance(each, SaidTurn)]


def _parts(
    view: View, source: LayerSource, query: str, facts: Sequence[Fact], *, past: bool, meaning: Nearness | None
) -> tuple[Mapping[str, float], ...]:
    names = [fact.id for fact in facts]
    parts = view.index.parts(query, names, meaning=meaning) | (source.former_index.parts(query, names) if past else {})
    return tuple(parts[name] for name in names)


async def _view(store: Store, scope: Scope, at: datetime, views: ViewCache, patience_s: float | None) -> View:
    if not isinstance(scope, Scope):
        raise TypeError(f"whose facts? give a Scope, for example Scope.user('lena'), not {type(scope).__name__}")
    return await views.view(store, scope, at, patience_s=patience_s)


def _all_if_they_fit(view: View, served: Array, label: str, budget_tokens: int) -> list[Fact] | None:
    """Return these served facts, None if they do not all fit the budget."""
    if len(served) > budget_tokens or view.count_characters(served) > MOST_LETTERS_PER_TOKEN * budget_tokens:
        return None
    facts = [view.shown(view.snapshot.table.unit(place)) for place in served]
    return facts if fit_whole(facts, label=label, budget_tokens=budget_tokens, lines=view.lines) else None


def _recall(
    facts: Sequence[Fact],
    scores: Mapping[Hashable, float],
    said: Sequence[SaidTurn] = (),
    *,
    stored: int,
    lacking: int = 0,
    **fields: Any,
) -> Recall:
    whole = sum(fact.is_served for fact in facts) == stored
    outcome = "nothing stored" if not stored else "nothing relevant" if not facts else "whole" if whole else "chosen"
    note(stored=stored, chosen=len(facts), outcome=outcome)
    count(Count.RECALLS, outcome=outcome)
    return Recall(
        facts=tuple(facts),
        scores=tuple(scores.get(fact.id, 0.0) for fact in facts),
        whole=whole,
        stored=stored,
        turns=tuple(each.turn for each in said),
        turn_scores=tuple(each.score for each in said),
        without_vector=lacking,
        **fields,
    )


def _scores(facts: Iterable[Fact], units: Units) -> dict[Hashable, float]:
    """Return the scores of these facts. They are mostly among the first, so the rest is not read."""
    wanted, scores = {fact.id for fact in facts}, dict[Hashable, float]()
    for unit, score in units:
        if len(scores) == len(wanted):
            break
        if unit.id in wanted:
            scores[unit.id] = score
    return scores


def _is_surely_flagged(fact: Fact) -> bool:
    """Return whether a person entered a flagged fact, or its words are those of health, safety or an instruction."""
    is_entered = any(evidence.kind is EvidenceKind.PERSON for evidence in fact.evidence)
    return is_entered or must_never_be_missed(fact.kind, fact.statement, fact.attribute, fact.value)


async def read_told_facts(store: Store, scope: Scope, *, at: datetime) -> tuple[Fact, ...]:
    """Return the facts that hold, in the order of saying, then those that held before."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    holding = [view.shown(view.snapshot.table.unit(place)) for place in view.served_places().tolist()]
    return (*holding, *(former.fact for former in source.former))


async def read_former_parts(store: Store, scope: Scope, *, at: datetime) -> tuple[Fact, ...]:
    """Return the sentences of which a part has ended, as they were told until then."""
    source = await layer_source(store, await _view(store, scope, at, view_cache_of(store), None))
    return tuple(part.fact for part in source.former_parts)


async def read_told_findings(store: Store, scope: Scope, *, at: datetime) -> tuple[AgentFinding, ...]:
    """Return what agents found and other agents are told of it, the newest first."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    return tuple(finding for finding, _ in source.findings_for("", at=at, is_about_the_past=False))


async def read_told_turns(store: Store, scope: Scope, session_id: str, *, at: datetime) -> tuple[SourceTurn, ...]:
    """Return the turns of a session that may be shown to an agent, as it is shown them, in order."""
    view = await view_cache_of(store).view(store, scope, at)
    source = await layer_source(store, view)
    hidden = partial(source.hidden.covers, is_about_the_past=False)
    return tuple(source.said.shown_turns(session_id, at=at, is_hidden=hidden))
