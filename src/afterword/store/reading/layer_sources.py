"""Reads what three layers of recall choose from at one instant: former facts, turns, and findings of agents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from weakref import WeakKeyDictionary

import numpy
from sqlalchemy import Connection, bindparam, or_, select
from sqlmodel import Session, col

from afterword.facts.assertions import Cue, Relation, SpeechAct
from afterword.facts.fact import ENDED_STATUSES, Fact, Status
from afterword.facts.findings import AgentFinding, FindingStatus
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.facts.validity.timeline import FactHistory
from afterword.facts.validity.wording import Rewording, reworded_value
from afterword.facts.words import terms
from afterword.privacy.policy import Privacy
from afterword.recall.block import FormerFact
from afterword.recall.bm25 import Array
from afterword.recall.named_values import NamedValues, Words
from afterword.recall.questions import question_terms
from afterword.recall.ranking import SearchIndex
from afterword.recall.said_index import SaidIndex
from afterword.recall.unit_table import UnitTable
from afterword.store.database.engine import Store
from afterword.store.database.statements import CompiledQuery
from afterword.store.findings.stored_findings import finding_policy_of, read_findings, tells_other_people
from afterword.store.forgetting.forgotten_statements import dismissed_requests
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.snapshots import IS_UNLINKED, Version, known_changes, version
from afterword.store.reading.spoken_turns import SpokenTurns, read_spoken_turns
from afterword.store.reading.views import View
from afterword.store.rows import plain_columns
from afterword.store.tables import AssertionRow, VerdictRow

MOST_TURNS = 300_000
"""How many turns of all scopes together are cached at most."""
_REPLACED_OR_ENDED = (Status.SUPERSEDED, Status.RETRACTED)
MOST_FINDINGS = 300
"""How many findings of one scope are searched at most; these are the newest."""


@dataclass(frozen=True, slots=True)
class Hidden:
    """The turns that agents are not told: turns cited by an ended fact, and turns that name the value of one.

    A turn that is only `superseded` is told for a question about the past. A turn that is `gone` is never told.
    """

    gone: NamedValues
    superseded: NamedValues
    gone_places: frozenset[TurnPlace] = frozenset()
    superseded_places: frozenset[TurnPlace] = frozenset()

    def covers(self, turn: SourceTurn, words: frozenset[str], *, is_about_the_past: bool) -> bool:
        """Return whether a turn with these words is hidden."""
        if turn.place in self.gone_places or self.names(words, is_about_the_past=is_about_the_past):
            return True
        return not is_about_the_past and turn.place in self.superseded_places

    def names(self, words: frozenset[str], *, is_about_the_past: bool) -> bool:
        """Return whether these words name a hidden value."""
        if self.gone.are_named_in(words):
            return True
        return not is_about_the_past and self.superseded.are_named_in(words)


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
        return tuple(map(self.table.unit, by_order[self.are_served[by_order]].tolist()))


@dataclass(frozen=True)
class LayerSource:
    """What the layers of recall choose from at an instant.

    `former` holds the facts that held before, the newest first, and `former_index` searches them. `former_parts` holds
    facts of which a part has ended, with their former sentences, the newest first. `said` holds the turns that can be
    searched, and `hidden` tells which of them agents must not see. `served` holds the facts that hold. `findings` holds
    the findings of agents, the newest first, each with the words by which a query finds it; some may have expired.
    """

    former: tuple[FormerFact, ...]
    said: SaidIndex
    hidden: Hidden
    served: ServedFacts
    former_by_id: Mapping[str, FormerFact]
    former_index: SearchIndex
    findings: tuple[tuple[AgentFinding, Words], ...] = ()
    former_parts: tuple[FormerFact, ...] = ()

    @cached_property
    def told_as_former(self) -> tuple[FormerFact, ...]:
        """The facts that held before, and those with a former sentence because a part ended, the newest first."""
        entries = (*self.former, *self.former_parts)
        return tuple(sorted(entries, key=lambda entry: entry.order, reverse=True)) if self.former_parts else entries

    def parts_for(self, query: str) -> list[FormerFact]:
        """Return the facts with a former sentence that shares words with a query."""
        wanted = question_terms(query) if self.former_parts else frozenset[str]()
        return [entry for entry in self.former_parts if not wanted.isdisjoint(_words(entry.fact))]

    @cached_property
    def flagged(self) -> tuple[StoredFact, ...]:
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
            and not self.hidden.names(words, is_about_the_past=is_about_the_past)
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
    def size(self) -> int:
        """The number of its turns and of cached word weights, plus one for the object itself."""
        return self.turns.index.count + self.turns.index.cached_words + 1


@dataclass(slots=True)
class _SourceCache:
    """The cached inputs and sources of one store. It is used in the store's threads and in event loops."""

    inputs: OrderedDict[Scope, _LayerInputs] = field(default_factory=OrderedDict)
    sources: WeakKeyDictionary[View, LayerSource] = field(default_factory=WeakKeyDictionary)


_caches: WeakKeyDictionary[Store, _SourceCache] = WeakKeyDictionary()


async def layer_source(store: Store, view: View) -> LayerSource:
    """Return what the layers of recall choose from at the instant of a view. It is computed once for each view."""
    cache = _caches.get(store)
    if cache is None:
        cache = _caches.setdefault(store, _SourceCache())
        store.on_close(cache.inputs.clear)
    source, snapshot = cache.sources.get(view), view.snapshot
    if source is None:
        known = cache.inputs.get(snapshot.scope)
        if known is not None and known.turns.version == snapshot.version:
            # The view is of another instant but of the same state, so the store need not be read.
            source = _source(view, known)
        else:
            read = view.readers["layers"] = partial(_read_source, cache, store.privacy)
            source = await store.read(partial(read, view))
        cache.sources[view] = source
    return source


def _read_source(cache: _SourceCache, privacy: Privacy, view: View, transaction: Session) -> LayerSource:
    source = cache.sources[view] = _source(view, _read_inputs(transaction, view, cache, privacy))
    return source


def _read_inputs(transaction: Session, view: View, cache: _SourceCache, privacy: Privacy) -> _LayerInputs:
    """Return the inputs for the present state of the view's scope, from the cache or from the database."""
    connection, scope = transaction.connection(), view.snapshot.scope
    now, known = version(connection, scope), cache.inputs.get(scope)
    if known is not None and known.turns.version == now:
        return known
    with_others = tells_other_people(transaction, scope, privacy)
    before = known.turns if known is not None else None
    changes = known_changes(connection, now, before.version) if before is not None else None
    turns = read_spoken_turns(connection, scope, now, before, changes, with_others=with_others)
    if known is not None and changes is not None and not any(change.is_unlinked for change in changes):
        unlinked, ends = known.unlinked, known.ends
    else:
        unlinked, ends = _read_unlinked(connection, now)
    corrected = _CORRECTED.ask(connection, scope=now.key, corrects=str(Relation.CORRECTS))
    inputs = cache.inputs[scope] = _LayerInputs(
        turns,
        unlinked,
        ends,
        frozenset(name for (name,) in corrected),
        _indexed_findings(transaction, scope, privacy),
        frozenset(dismissed_requests(transaction, now.key or 0, unlinked)),
    )
    cache.inputs.move_to_end(scope)
    while len(cache.inputs) > 1 and sum(each.size for each in list(cache.inputs.values())) > MOST_TURNS:
        cache.inputs.popitem(last=False)
    return inputs


def _read_unlinked(connection: Connection, now: Version) -> tuple[Mapping[str, Words], Mapping[str, Words]]:
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


def _indexed_findings(transaction: Session, scope: Scope, privacy: Privacy) -> tuple[tuple[AgentFinding, Words], ...]:
    """Return the newest findings that the scope keeps, each with the words by which a query finds it."""
    policy = finding_policy_of(transaction, scope, privacy)
    if not policy.is_on:
        return ()
    findings = [finding for finding in read_findings(transaction, scope) if policy.names(finding.agent)]
    served = [finding for finding in findings if policy.advice or not finding.is_advice]
    return tuple(
        (finding, frozenset(terms(f"{finding.topic} {finding.statement} {finding.source or ''}")))
        for finding in served[:MOST_FINDINGS]
    )


class _Ended:
    """The facts that held before, and the values and turns that are hidden because their facts have ended."""

    def __init__(self, view: View, inputs: _LayerInputs) -> None:
        self._view, self._corrected, self._ends = view, inputs.corrected, inputs.ends
        self.gone_values = {words for name, words in inputs.unlinked.items() if name not in inputs.dismissed}
        self.superseded_values = set(inputs.ends.values())
        self.gone_places, self.superseded_places = set(view.snapshot.unlinked), set[TurnPlace]()
        self.former: list[Fact] = []
        self.parts: list[Fact] = []

    def add(self, stored: StoredFact) -> None:
        """Add a fact that has ended."""
        history = stored.history(self._view.snapshot.scope)
        is_plan = _is_replaced_plan(history, self._corrected)
        is_gone = not is_plan and _is_gone(history, self._ends)
        (self.gone_places if is_gone else self.superseded_places).update(stored.sources)
        if is_gone and not history.may_be:
            self.gone_values.add(stored.value_words)
        if is_gone or history.members[0].said_at > self._view.since:
            return
        fact = self._view.fact(stored)
        if fact.status in _REPLACED_OR_ENDED:
            self.superseded_values.add(stored.value_words)
        is_held = fact.status in ENDED_STATUSES and (fact.valid_from is not None or is_plan)
        if is_held and not stored.is_instruction:
            self.former.append(fact)
            self.add_parts(stored)

    def add_parts(self, stored: StoredFact) -> None:
        """Add the former sentence of a fact of which a part has ended."""
        history = stored.history(self._view.snapshot.scope)
        rewording = history.rewording_at(self._view.since)
        if rewording is None:
            return
        said, left = frozenset(terms(history.lead.statement)), frozenset(terms(rewording.statement))
        was_never_so = all(rewording.start <= span.start for span in history.spans)
        (self.gone_places if was_never_so else self.superseded_places).update(stored.sources)
        (self.gone_values if was_never_so else self.superseded_values).add(said - left)
        if rewording.ended_by and not was_never_so and not stored.is_instruction:
            self.parts.append(self._former_part(stored, history, rewording))

    def _former_part(self, stored: StoredFact, history: FactHistory, rewording: Rewording) -> Fact:
        """Return a fact with the sentence that it had until a part of it ended."""
        fact = self._view.fact(stored)
        began = max(span.start for span in history.spans if span.start < rewording.start)
        words = history.lead.statement
        for each in history.rewordings:
            if each.end is not None and began < each.end <= rewording.start:
                is_next = each.end == rewording.start
                began, words = (each.start, each.statement) if is_next else (each.end, words)
        part = replace(
            fact,
            value=reworded_value(history.lead.value, words),
            statement=words,
            status=Status.SUPERSEDED,
            valid_from=began,
            valid_to=rewording.start,
            retired_by=rewording.ended_by,
            exceptions=(),
        )
        return self._view.names.told(part) if self._view.has_renamings else part


def _source(view: View, inputs: _LayerInputs) -> LayerSource:
    table, ended = view.snapshot.table, _Ended(view, inputs)
    served = ServedFacts(table, view.is_served & view.are_facts())
    places = (table.is_alive & ~view.is_served).nonzero()[0]
    for stored in map(view.unit, places[table.rank[places].argsort()].tolist()):
        if isinstance(stored, StoredFact):
            ended.add(stored)
    for stored in view.reworded_facts():
        ended.add_parts(stored)
    has_hidden_values = ended.gone_values or ended.superseded_values
    held = {stored.value_words for stored in served.facts} if has_hidden_values else frozenset[Words]()
    gone, superseded = NamedValues(ended.gone_values, held), NamedValues(ended.superseded_values, held)
    entries, parts = (
        _with_successors(view, [fact for fact in facts if not gone.are_named_in(_words(fact))], served)
        for facts in (ended.former, ended.parts)
    )
    is_former = numpy.zeros(table.size, dtype=bool)
    is_former[[place for entry in entries if (place := table.place(entry.fact.id)) is not None]] = True
    return LayerSource(
        former=entries,
        said=inputs.turns.index,
        hidden=Hidden(gone, superseded, frozenset(ended.gone_places), frozenset(ended.superseded_places)),
        served=served,
        former_parts=parts,
        former_by_id={entry.fact.id: entry for entry in entries},
        former_index=SearchIndex(table, is_former),
        findings=inputs.findings,
    )


def _words(fact: Fact) -> Words:
    return frozenset(terms(f"{fact.statement} {fact.value}"))


def _is_replaced_plan(history: FactHistory, corrected: frozenset[str]) -> bool:
    """Return whether a fact was announced for later and replaced before it began, unless it was corrected as wrong."""
    lead = history.lead
    was_announced = lead.valid_from is not None and lead.valid_from > lead.said_at
    was_replaced = not history.spans and history.undone_by is not None and history.undone_as is Status.SUPERSEDED
    is_wrong = any(member.id in corrected for member in history.members)
    return was_announced and was_replaced and not is_wrong and not history.may_be


def _is_gone(history: FactHistory, ends: Container[str]) -> bool:
    """Return whether a fact was withdrawn, was wrong from the start (also in part), or has an unclear subject."""
    withdrawals = (span.by for span in history.spans if span.ending is Status.RETRACTED and span.by is not None)
    was_withdrawn = any(name not in ends for name in withdrawals)
    return bool(history.may_be) or not history.spans or history.undone_by is not None or was_withdrawn


def _with_successors(view: View, former: Sequence[Fact], served: ServedFacts) -> tuple[FormerFact, ...]:
    """Return former facts, each with the fact that replaced it, the newest first."""
    table = view.snapshot.table
    by_assertion: dict[str, Fact] = {name: fact for fact in former for name in fact.assertion_ids}
    missing = {fact.retired_by for fact in former if fact.retired_by} - set(by_assertion)
    for name in list(missing):
        place = table.place(name)
        if place is not None and view.is_served[place]:
            by_assertion[name] = view.fact(table.unit(place))
            missing.remove(name)
    for stored in served.facts if missing else ():
        if not missing.isdisjoint(stored.assertion_ids):
            fact = view.fact(stored)
            by_assertion |= dict.fromkeys(fact.assertion_ids, fact)
    entries = [FormerFact(fact, by_assertion.get(fact.retired_by or "")) for fact in former]
    return tuple(sorted(entries, key=lambda entry: entry.order, reverse=True))


_UNLINKED = CompiledQuery(
    select(*plain_columns((AssertionRow, name) for name in ("id", "value", "statement", "act", "cue"))).where(
        IS_UNLINKED, or_(col(AssertionRow.value) != "", col(AssertionRow.act) == str(SpeechAct.STATE))
    )
)
_CORRECTED = CompiledQuery(
    select(col(VerdictRow.earlier_id)).where(
        col(VerdictRow.scope_id) == bindparam("scope"), col(VerdictRow.relation) == bindparam("corrects")
    )
)
