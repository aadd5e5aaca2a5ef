"""Reads what three layers of recall choose from at one instant: former facts, turns, and findings of agents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import numpy
from sqlalchemy import Connection, bindparam, or_, select
from sqlmodel import Session, col

from afterword.facts.assertions import Cue, Relation, SpeechAct
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding, FindingStatus
from afterword.facts.scopes import Scope
from afterword.facts.words import terms
from afterword.privacy.policy import Privacy
from afterword.recall.block import FormerFact
from afterword.recall.bm25 import Array
from afterword.recall.named_values import Words
from afterword.recall.questions import question_terms
from afterword.recall.ranking import SearchIndex
from afterword.recall.said_index import SaidIndex
from afterword.recall.unit_table import UnitTable
from afterword.store.database.engine import Store
from afterword.store.database.statements import CompiledQuery
from afterword.store.findings.stored_findings import finding_policy_of, read_findings, tells_words_of_others
from afterword.store.forgetting.forgotten_statements import dismissed_request_ids
from afterword.store.reading.ended_facts import EndedFacts, HiddenTurns
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.snapshots import IS_UNLINKED, ScopeVersion, changes_between, read_version
from afterword.store.reading.spoken_turns import SpokenTurns, read_spoken_turns
from afterword.store.reading.views import View
from afterword.store.rows import unconverted_columns
from afterword.store.tables import AssertionRow, VerdictRow

MOST_TURNS = 300_000
"""How many turns of all scopes together are cached at most."""
MOST_FINDINGS = 300
"""How many findings of one scope are searched at most; these are the newest."""


@dataclass(frozen=True)
class ServedFacts:
    """The facts that hold. They are many, so they are looked up in the table only when they are needed.

    `are_served` marks their positions in the table.
    """

    table: UnitTable
    are_served: Array

    @cached_property
    def facts(self) -> tuple[StoredFact, ...]:
        """The facts that hold, in the order of saying."""
        by_order = self.table.by_order
        return tuple(map(self.table.unit_at, by_order[self.are_served[by_order]].tolist()))


@dataclass(frozen=True)
class SearchableLayers:
    """What the layers of recall choose from at an instant.

    `former` holds the facts that held before, the newest first, and `former_index` searches them. `former_sentences`
    holds facts of which a part has ended, with their former sentences, the newest first. `said` holds the turns that
    can be searched, and `hidden` tells which of them agents must not see. `served` holds the facts that hold.
    `findings` holds the findings of agents, the newest first, each with the words by which a query finds it; some may
    have expired.
    """

    former: tuple[FormerFact, ...]
    said: SaidIndex
    hidden: HiddenTurns
    served: ServedFacts
    former_by_id: Mapping[str, FormerFact]
    former_index: SearchIndex
    findings: tuple[tuple[AgentFinding, Words], ...] = ()
    former_sentences: tuple[FormerFact, ...] = ()

    @cached_property
    def facts_told_as_former(self) -> tuple[FormerFact, ...]:
        """The facts that held before, and those with a former sentence because a part ended, the newest first."""
        entries = (*self.former, *self.former_sentences)
        return tuple(sorted(entries, key=lambda entry: entry.order, reverse=True)) if self.former_sentences else entries

    def facts_by_former_sentence(self, query: str) -> list[FormerFact]:
        """Return the facts with a former sentence that shares words with a query."""
        wanted = question_terms(query) if self.former_sentences else frozenset[str]()
        return [entry for entry in self.former_sentences if not wanted.isdisjoint(_words(entry.fact))]

    @cached_property
    def flagged_facts(self) -> tuple[StoredFact, ...]:
        """The facts that hold and that an agent must never miss. Finding them reads every fact that holds."""
        return tuple(stored for stored in self.served.facts if stored.is_flagged)

    def findings_for(self, query: str, *, at: datetime, is_about_the_past: bool) -> list[tuple[AgentFinding, float]]:
        """Return the findings that agents may be told, each with the share of the query's words that it contains.

        The findings with the highest share come first, and among equals the newest. A finding that names a hidden value
        is left out.
        """
        wanted = question_terms(query) if self.findings else frozenset[str]()
        scored = [
            (finding, len(wanted & words) / len(wanted) if wanted else 0.0)
            for finding, words in self.findings
            if finding.status_at(at) is FindingStatus.CURRENT
            and finding.said_at <= at
            and not self.hidden.is_value_named_in(words, is_about_the_past=is_about_the_past)
        ]
        return sorted(scored, key=lambda each: -each[1])


@dataclass(frozen=True, slots=True)
class _LayerInputs:
    """What is read of a scope beside its facts, in one state of the scope.

    `unlinked` holds the words of withdrawals and of requests to forget, which belong to no fact, by their ids. `ends`
    holds the words of statements that something no longer holds. These end a fact without declaring it wrong.
    `corrected` holds the ids of statements that another one corrects. `dismissed` holds the ids of requests to forget
    that a person has dismissed; agents may be told their words again.
    """

    turns: SpokenTurns
    unlinked: Mapping[str, Words]
    ends: Mapping[str, Words]
    corrected: frozenset[str]
    findings: tuple[tuple[AgentFinding, Words], ...] = ()
    dismissed: frozenset[str] = frozenset()

    @property
    def withdrawn_words(self) -> Iterator[Words]:
        """The words of withdrawals, and of requests to forget that no person has dismissed."""
        return (words for name, words in self.unlinked.items() if name not in self.dismissed)

    @property
    def size(self) -> int:
        """The number of its turns and of cached word weights, plus one for the object itself."""
        return self.turns.index.turn_count + self.turns.index.cached_word_count + 1


@dataclass(slots=True)
class _LayersCache:
    """The cached inputs and layers of one store. It is used in the store's threads and in event loops."""

    inputs: OrderedDict[Scope, _LayerInputs] = field(default_factory=OrderedDict)
    layers: WeakKeyDictionary[View, SearchableLayers] = field(default_factory=WeakKeyDictionary)

    def keep(self, scope: Scope, inputs: _LayerInputs) -> None:
        """Cache the inputs of a scope. Those that were not renewed for longest are dropped if all are too large."""
        self.inputs[scope] = inputs
        self.inputs.move_to_end(scope)
        while len(self.inputs) > 1 and sum(each.size for each in list(self.inputs.values())) > MOST_TURNS:
            self.inputs.popitem(last=False)


_caches: WeakKeyDictionary[Store, _LayersCache] = WeakKeyDictionary()


async def searchable_layers(store: Store, view: View) -> SearchableLayers:
    """Return what the layers of recall choose from at the instant of a view. It is computed once for each view."""
    cache = _caches.get(store)
    if cache is None:
        cache = _caches.setdefault(store, _LayersCache())
        store.on_close(cache.inputs.clear)
    searchable, snapshot = cache.layers.get(view), view.snapshot
    if searchable is None:
        known = cache.inputs.get(snapshot.scope)
        if known is not None and known.turns.version == snapshot.version:
            # The view is of another instant but of the same state, so the store need not be read.
            searchable = _build_layers(view, known)
        else:
            read = view.readers["layers"] = partial(_read_and_cache_layers, cache, store.privacy)
            searchable = await store.read(partial(read, view))
        cache.layers[view] = searchable
    return searchable


def _read_and_cache_layers(cache: _LayersCache, privacy: Privacy, view: View, transaction: Session) -> SearchableLayers:
    searchable = cache.layers[view] = _build_layers(view, _read_inputs(transaction, view, cache, privacy))
    return searchable


def _read_inputs(transaction: Session, view: View, cache: _LayersCache, privacy: Privacy) -> _LayerInputs:
    """Return the inputs for the present state of the view's scope, from the cache or from the database."""
    connection, scope = transaction.connection(), view.snapshot.scope
    now, known = read_version(connection, scope), cache.inputs.get(scope)
    if known is not None and known.turns.version == now:
        return known
    includes_other_people = tells_words_of_others(transaction, scope, privacy)
    before = known.turns if known is not None else None
    changes = changes_between(connection, now, before.version) if before is not None else None
    if known is not None and changes is not None and not any(change.is_unlinked for change in changes):
        unlinked, ends = known.unlinked, known.ends
    else:
        unlinked, ends = _words_of_withdrawals_and_ends(connection, now)
    corrected = _CORRECTED.ask(connection, scope=now.key, corrects=str(Relation.CORRECTS))
    inputs = _LayerInputs(
        read_spoken_turns(connection, scope, now, before, changes, includes_other_people=includes_other_people),
        unlinked,
        ends,
        frozenset(name for (name,) in corrected),
        _read_findings_with_words(transaction, scope, privacy),
        frozenset(dismissed_request_ids(transaction, now.key or 0, unlinked)),
    )
    cache.keep(scope, inputs)
    return inputs


def _words_of_withdrawals_and_ends(
    connection: Connection, now: ScopeVersion
) -> tuple[Mapping[str, Words], Mapping[str, Words]]:
    """Return the words of the withdrawals and requests that belong to no fact, and those of statements that end a fact.

    Both are given by the ids of the statements.
    """
    words, ends = dict[str, Words](), dict[str, Words]()
    for name, value, statement, act, cue in _UNLINKED.ask(connection, scope=now.key):
        of_statement = frozenset(terms(value or statement))
        if (act, cue) == (str(SpeechAct.RETRACT), str(Cue.CHANGE)):
            ends[name] = of_statement
        else:
            words[name] = of_statement
    return words, ends


def _read_findings_with_words(
    transaction: Session, scope: Scope, privacy: Privacy
) -> tuple[tuple[AgentFinding, Words], ...]:
    """Return the newest findings that the scope keeps, each with the words by which a query finds it."""
    policy = finding_policy_of(transaction, scope, privacy)
    if not policy.is_on:
        return ()
    findings = [finding for finding in read_findings(transaction, scope) if policy.keeps_findings_of(finding.agent)]
    served = [finding for finding in findings if policy.advice or not finding.is_advice]
    return tuple(
        (finding, frozenset(terms(f"{finding.topic} {finding.statement} {finding.source or ''}")))
        for finding in served[:MOST_FINDINGS]
    )


def _build_layers(view: View, inputs: _LayerInputs) -> SearchableLayers:
    table = view.snapshot.table
    ended = EndedFacts(view, withdrawn=inputs.withdrawn_words, ends=inputs.ends, corrected=inputs.corrected)
    served = ServedFacts(table, view.is_served & view.are_facts())
    hidden = ended.hidden_turns(lambda: served.facts)
    names_never_told_value = hidden.never_told_values.is_any_named_in
    entries, former_sentences = (
        _with_successors(view, [fact for fact in facts if not names_never_told_value(_words(fact))], served)
        for facts in (ended.former, ended.former_sentences)
    )
    return SearchableLayers(
        former=entries,
        said=inputs.turns.index,
        hidden=hidden,
        served=served,
        former_sentences=former_sentences,
        former_by_id={entry.fact.id: entry for entry in entries},
        former_index=_index_of(entries, table),
        findings=inputs.findings,
    )


def _index_of(former: Sequence[FormerFact], table: UnitTable) -> SearchIndex:
    """Return the search index over these former facts."""
    is_former = numpy.zeros(table.size, dtype=bool)
    is_former[[place for entry in former if (place := table.place_of(entry.fact.id)) is not None]] = True
    return SearchIndex(table, is_former)


def _words(fact: Fact) -> Words:
    return frozenset(terms(f"{fact.statement} {fact.value}"))


def _with_successors(view: View, former: Sequence[Fact], served: ServedFacts) -> tuple[FormerFact, ...]:
    """Return former facts, each with the fact that replaced it, the newest first."""
    table = view.snapshot.table
    by_assertion: dict[str, Fact] = {name: fact for fact in former for name in fact.assertion_ids}
    missing = {fact.retired_by for fact in former if fact.retired_by} - set(by_assertion)
    for name in list(missing):
        place = table.place_of(name)
        if place is not None and view.is_served[place]:
            by_assertion[name] = view.fact(table.unit_at(place))
            missing.remove(name)
    for stored in served.facts if missing else ():
        if not missing.isdisjoint(stored.assertion_ids):
            fact = view.fact(stored)
            by_assertion |= dict.fromkeys(fact.assertion_ids, fact)
    entries = [FormerFact(fact, by_assertion.get(fact.retired_by or "")) for fact in former]
    return tuple(sorted(entries, key=lambda entry: entry.order, reverse=True))


_UNLINKED = CompiledQuery(
    select(*unconverted_columns((AssertionRow, name) for name in ("id", "value", "statement", "act", "cue"))).where(
        IS_UNLINKED, or_(col(AssertionRow.value) != "", col(AssertionRow.act) == str(SpeechAct.STATE))
    )
)
_CORRECTED = CompiledQuery(
    select(col(VerdictRow.earlier_id)).where(
        col(VerdictRow.scope_id) == bindparam("scope"), col(VerdictRow.relation) == bindparam("corrects")
    )
)
