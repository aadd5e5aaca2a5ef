"""The facts that have ended before an instant: what agents are told of them, and which turns are hidden with them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from afterword.facts.fact import ENDED_STATUSES, Fact, Status
from afterword.facts.transcripts import SourceTurn, TurnPlace
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.wording import Rewording, reworded_value
from afterword.facts.words import terms
from afterword.recall.named_values import ValueMatcher, Words
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.views import View

_REPLACED_OR_ENDED = (Status.SUPERSEDED, Status.RETRACTED)


@dataclass(frozen=True, slots=True)
class HiddenTurns:
    """The turns that agents are not told: turns cited by an ended fact, and turns that name the value of one.

    Superseded values and turns are told for a question about the past. The others are never told.
    """

    never_told_values: ValueMatcher
    superseded_values: ValueMatcher
    never_told_places: frozenset[TurnPlace] = frozenset()
    superseded_places: frozenset[TurnPlace] = frozenset()

    def includes(self, turn: SourceTurn, words: frozenset[str], *, is_about_the_past: bool) -> bool:
        """Return whether a turn with these words is hidden."""
        if turn.place in self.never_told_places or self.is_value_named_in(words, is_about_the_past=is_about_the_past):
            return True
        return not is_about_the_past and turn.place in self.superseded_places

    def is_value_named_in(self, words: frozenset[str], *, is_about_the_past: bool) -> bool:
        """Return whether these words name a hidden value."""
        if self.never_told_values.is_any_named_in(words):
            return True
        return not is_about_the_past and self.superseded_values.is_any_named_in(words)


class EndedFacts:
    """The facts that held before (`former`), and the values and turns that are hidden because their facts have ended.

    `withdrawn` holds the words of withdrawals and of requests to forget. `ends` holds the words of statements that
    something no longer holds, by their ids. `corrected` holds the ids of statements that another one corrects.
    """

    def __init__(
        self, view: View, *, withdrawn: Iterable[Words], ends: Mapping[str, Words], corrected: frozenset[str]
    ) -> None:
        self._view, self._corrected, self._ends = view, corrected, ends
        self._never_told_values, self._superseded_values = set(withdrawn), set(ends.values())
        self._never_told_places, self._superseded_places = set(view.snapshot.unlinked_turns), set[TurnPlace]()
        self.former: list[Fact] = []
        self.former_sentences: list[Fact] = []
        table = view.snapshot.table
        places = (table.is_alive & ~view.is_served).nonzero()[0]
        for stored in map(view.unit_at, places[table.rank[places].argsort()].tolist()):
            if isinstance(stored, StoredFact):
                self._add(stored)
        for stored in view.facts_with_ended_parts():
            self._add_former_sentence(stored)

    def hidden_turns(self, read_served: Callable[[], Iterable[StoredFact]]) -> HiddenTurns:
        """Return the turns that agents are not told. The values of the facts that hold are not hidden.

        `read_served` returns these facts. It is only called if there are hidden values, since it takes time.
        """
        has_hidden_values = self._never_told_values or self._superseded_values
        held_values = {stored.value_words for stored in read_served()} if has_hidden_values else frozenset[Words]()
        return HiddenTurns(
            ValueMatcher(self._never_told_values, held_values),
            ValueMatcher(self._superseded_values, held_values),
            frozenset(self._never_told_places),
            frozenset(self._superseded_places),
        )

    def _add(self, stored: StoredFact) -> None:
        """Add a fact that has ended."""
        history = stored.history(self._view.snapshot.scope)
        is_plan = _is_replaced_plan(history, self._corrected)
        if not is_plan and _is_never_told(history, self._ends):
            self._never_told_places.update(stored.sources)
            if not history.may_be:
                self._never_told_values.add(stored.value_words)
            return
        self._superseded_places.update(stored.sources)
        if history.members[0].said_at > self._view.since:
            return
        fact = self._view.fact(stored)
        if fact.status in _REPLACED_OR_ENDED:
            self._superseded_values.add(stored.value_words)
        is_held = fact.status in ENDED_STATUSES and (fact.valid_from is not None or is_plan)
        if is_held and not stored.is_instruction:
            self.former.append(fact)
            self._add_former_sentence(stored)

    def _add_former_sentence(self, stored: StoredFact) -> None:
        """Add the former sentence of a fact if a part of it has ended."""
        history = stored.history(self._view.snapshot.scope)
        rewording = history.rewording_at(self._view.since)
        if rewording is None:
            return
        said, left = frozenset(terms(history.lead.statement)), frozenset(terms(rewording.statement))
        was_never_so = all(rewording.start <= span.start for span in history.spans)
        (self._never_told_places if was_never_so else self._superseded_places).update(stored.sources)
        (self._never_told_values if was_never_so else self._superseded_values).add(said - left)
        if rewording.ended_by and not was_never_so and not stored.is_instruction:
            self.former_sentences.append(self._fact_with_former_sentence(stored, history, rewording))

    def _fact_with_former_sentence(self, stored: StoredFact, history: FactHistory, rewording: Rewording) -> Fact:
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
        return self._view.names.renamed_fact(part) if self._view.has_renamings else part


def _is_replaced_plan(history: FactHistory, corrected: frozenset[str]) -> bool:
    """Return whether a fact was announced for later and replaced before it began, unless it was corrected as wrong."""
    lead = history.lead
    was_announced = lead.valid_from is not None and lead.valid_from > lead.said_at
    was_replaced = not history.spans and history.undone_by is not None and history.undone_as is Status.SUPERSEDED
    is_wrong = any(member.id in corrected for member in history.members)
    return was_announced and was_replaced and not is_wrong and not history.may_be


def _is_never_told(history: FactHistory, ends: Container[str]) -> bool:
    """Return whether a fact was withdrawn, was wrong from the start (also in part), or has an unclear subject."""
    withdrawals = (
        span.ended_by for span in history.spans if span.ending is Status.RETRACTED and span.ended_by is not None
    )
    was_withdrawn = any(name not in ends for name in withdrawals)
    return bool(history.may_be) or not history.spans or history.undone_by is not None or was_withdrawn
