"""Choose what an agent is told, layer by layer, within a budget of tokens. Pure.

The layers are what holds now, what held before, what was said, and what agents found. What does not depend on the
question is in the stable part of the text, so that a provider's prompt cache works. The rest is in the part for the
question.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.privacy.normalisation import undisguised_text
from afterword.recall.block import (
    MAX_PASSED_OVER,
    Entry,
    FormerFact,
    MatchingTurn,
    entry_heading,
    entry_key,
    entry_line,
    frame_lines,
    in_block_order,
    line_on_missing_facts,
    render_block_part,
)
from afterword.recall.tokens import estimated_token_count

MOST_LINES = 20_000

SHARE_OF_FACTS = 0.3
"""The least share of the budget for the facts that match the question."""
MOST_SHARE_OF_FACTS = 0.5
"""The share of these facts if there are half as many as turns, or more. Then facts contain most of what was said."""
SHARE_OF_FORMER = 0.1
"""The share of the budget for facts that held before."""
SHARE_OF_FORMER_ASKED = 0.35
"""The share for facts that held before, if the question is about the past."""
SHARE_OF_FINDINGS = 0.1
"""The share of the budget for what agents found."""
SHARE_OF_TURNS = 0.4
"""The share of the budget that is reserved for turns if all facts are told, because many answers are in no fact."""
MOST_TURNS_BESIDE_ALL = 12
"""The largest number of turns that are told if all facts are told."""

_NO_LETTERS = re.compile(r"[\W_]+")
_PLACEHOLDER = re.compile(r"\[(?:…|image|attachment|forgotten|redacted: [a-z ]+)\]")
"""What stands in a stored turn for a picture, pasted text, a secret and forgotten words."""


class LineCache:
    """A cache of the rendered lines of entries and of their token counts."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[Entry, str, int]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, entry: Entry) -> str:
        """Return the rendered line of an entry."""
        return self._rendered(entry)[1]

    def line_token_count(self, entry: Entry) -> int:
        """Return the number of tokens of the line of an entry."""
        return self._rendered(entry)[2]

    def _rendered(self, entry: Entry) -> tuple[Entry, str, int]:
        key = entry.id if isinstance(entry, Fact) else entry_key(entry)
        rendered = self._lines.get(key)
        if rendered is None or not _has_same_line(rendered[0], entry):
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            line = entry_line(entry)
            rendered = self._lines[key] = entry, line, estimated_token_count(line)
        return rendered


def _has_same_line(rendered: Entry, entry: Entry) -> bool:
    if isinstance(rendered, MatchingTurn) and isinstance(entry, MatchingTurn):
        return rendered.turn is entry.turn and rendered.context is entry.context
    return rendered is entry


@dataclass(frozen=True, slots=True)
class LayerSources:
    """The candidates for each layer, in the order in which they are chosen.

    `all_facts` are all facts that hold, or None if they are too many to fit. `flagged_facts` come newest
    first, `matching_facts` (those that match the question) best first. `latest_facts` are all facts that hold, the last
    said first. `former_facts` are the facts that held before, newest first, and `matching_former_facts` those of them
    that match the question. `matching_turns` come best first. `findings` are the findings that match the question, then
    the newest. `turn_count` is the number of turns that a question could match, `fact_count` the number of facts that
    hold.
    """

    all_facts: Sequence[Fact] | None
    flagged_facts: Sequence[Fact]
    matching_facts: Sequence[Fact]
    latest_facts: Iterable[Fact]
    former_facts: Sequence[FormerFact] = ()
    matching_former_facts: Sequence[FormerFact] = ()
    matching_turns: Iterable[MatchingTurn] = ()
    findings: Sequence[AgentFinding] = ()
    turn_count: int = 0
    fact_count: int = 0
    is_about_the_past: bool = False

    @property
    def share_of_facts(self) -> float:
        """The share of the budget for facts that match: the number of facts per turn, within 0.3 and 0.5."""
        facts_per_turn = self.fact_count / max(self.turn_count, 1)
        return min(max(facts_per_turn, SHARE_OF_FACTS), MOST_SHARE_OF_FACTS)


@dataclass(slots=True)
class Layers:
    """What an agent is told: the entries of the stable part, and of the part for the question, in their order.

    `missing_fact_count` is the number of flagged facts for which there is no room.
    """

    label: str
    lines: LineCache = field(default_factory=LineCache, repr=False, compare=False)
    stable_entries: list[Entry] = field(default_factory=list)
    question_entries: list[Entry] = field(default_factory=list)
    missing_fact_count: int = 0

    @property
    def facts(self) -> list[Fact]:
        """The chosen facts that hold now."""
        return [entry for entry in (*self.stable_entries, *self.question_entries) if isinstance(entry, Fact)]

    @property
    def former_facts(self) -> list[FormerFact]:
        """The chosen facts that held before."""
        return [entry for entry in (*self.stable_entries, *self.question_entries) if isinstance(entry, FormerFact)]

    @property
    def turns(self) -> list[MatchingTurn]:
        """The chosen turns."""
        return [entry for entry in self.question_entries if isinstance(entry, MatchingTurn)]

    @property
    def findings(self) -> list[AgentFinding]:
        """The chosen findings of agents."""
        return [entry for entry in self.question_entries if isinstance(entry, AgentFinding)]

    @property
    def stable_text(self) -> str:
        """The part that stays the same from turn to turn; empty if nothing is told in it."""
        return render_block_part(
            self.stable_entries, label=self.label, missing_fact_count=self.missing_fact_count, line_of=self.lines.line
        )

    @property
    def question_text(self) -> str:
        """The part that depends on the question; empty if nothing is told in it."""
        has_preface = not (self.stable_entries or self.missing_fact_count)
        return render_block_part(
            self.question_entries,
            label=self.label,
            is_for_question=True,
            has_preface=has_preface,
            line_of=self.lines.line,
        )

    @property
    def text(self) -> str:
        """Both parts as one text."""
        return "\n".join(filter(None, (self.stable_text, self.question_text)))


def turns_outside_context(said: Iterable[MatchingTurn], context_texts: Collection[str]) -> Iterator[MatchingTurn]:
    """Yield the turns that are not among these texts, which the agent's context contains already."""
    context_letters = set(map(_letters, context_texts))
    yield from (each for each in said if not _is_in_context(each, context_letters))


def _letters(text: str) -> str:
    return _NO_LETTERS.sub("", undisguised_text(text)).casefold()


def _is_in_context(said: MatchingTurn, context_letters: Collection[str]) -> bool:
    """Return whether a turn is one of these texts. For a placeholder in the turn the text may have any words."""
    pieces = list(map(_letters, _PLACEHOLDER.split(said.turn.text)))
    if len(pieces) == 1:
        return pieces[0] in context_letters
    return any(_consists_of(text, pieces) for text in context_letters)


def _consists_of(text: str, pieces: Sequence[str]) -> bool:
    """Return whether a text begins with the first piece and ends with the last, and has all in this order."""
    place = 0
    for piece in pieces:
        place = text.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return text.startswith(pieces[0]) and text.endswith(pieces[-1])


class _Selection:
    """Collects entries for the two parts of the text within a budget of tokens. `left` is what remains of it."""

    def __init__(self, label: str, budget_tokens: int, lines: LineCache) -> None:
        self.layers = Layers(label, lines)
        self.left = budget_tokens
        self._lines = lines
        self._keys: set[str] = set()
        self._headings: set[tuple[bool, str]] = set()
        self._opened: set[bool] = set()

    def cost(self, entry: Entry, *, is_for_question: bool) -> int:
        """Return the tokens that an entry would add, with its heading and the frame of its part if they are new."""
        heading = entry_heading(entry)
        opening = 0 if is_for_question in self._opened else self._frame_cost(is_for_question=is_for_question)
        of_heading = 0 if (is_for_question, heading) in self._headings else estimated_token_count(heading)
        return self._lines.line_token_count(entry) + opening + of_heading

    def _frame_cost(self, *, is_for_question: bool) -> int:
        has_preface = not is_for_question or False not in self._opened
        return estimated_token_count(
            "\n".join(frame_lines(self.layers.label, is_for_question=is_for_question, has_preface=has_preface))
        )

    def opening_cost(self) -> int:
        """Return the tokens of the frame of the part for the question, or 0 if that part has entries already."""
        return 0 if True in self._opened else self._frame_cost(is_for_question=True)

    def take(self, entry: Entry, *, is_for_question: bool, reserve: int = 0) -> bool:
        """Add an entry to a part if at least `reserve` tokens remain then. Return whether the entry is in a part."""
        key = entry_key(entry)
        if key in self._keys:
            return True
        cost = self.cost(entry, is_for_question=is_for_question)
        if cost > self.left - reserve:
            return False
        self.left -= cost
        self._keys.add(key)
        self._opened.add(is_for_question)
        self._headings.add((is_for_question, entry_heading(entry)))
        (self.layers.question_entries if is_for_question else self.layers.stable_entries).append(entry)
        return True

    def take_for_question(self, entries: Iterable[Entry], *, share_tokens: int, most: int | None = None) -> None:
        """Add entries to the part for the question, in order, within `share_tokens`, and at most `most` of them."""
        opening = self.opening_cost()
        reserve = max(self.left - opening - share_tokens, 0)
        passed_over = taken = 0
        for entry in entries:
            if most is not None and taken >= most:
                return
            is_known = entry_key(entry) in self._keys
            if self.take(entry, is_for_question=True, reserve=reserve):
                passed_over = 0
                taken += not is_known
            else:
                passed_over += 1
                if passed_over >= MAX_PASSED_OVER:
                    return

    def take_all_stable(self, entries: Sequence[Entry], *, reserve: int = 0) -> bool:
        """Add all entries to the stable part if that leaves `reserve` tokens. Return whether they were added."""
        headings = {(False, entry_heading(entry)) for entry in entries} - self._headings
        total = 0 if False in self._opened or not entries else self._frame_cost(is_for_question=False)
        total += sum(estimated_token_count(heading) for _, heading in headings)
        for entry in entries:
            total += self._lines.line_token_count(entry)
            if total > self.left - reserve:
                return False
        return all(self.take(entry, is_for_question=False) for entry in entries)

    def take_flagged(self, flagged: Sequence[Fact]) -> None:
        """Add the flagged facts to the stable part, or only the newest if not all fit.

        `layers.missing_fact_count` is set to the number of those that are left out.
        """
        if self.take_all_stable(flagged):
            return
        reserve = estimated_token_count(line_on_missing_facts(len(flagged)))
        taken = 0
        while taken < len(flagged) and self.take(flagged[taken], is_for_question=False, reserve=reserve):
            taken += 1
        self.layers.missing_fact_count = len(flagged) - taken
        # If no flagged fact fits, the line about the missing ones is the only line of the part.
        opening = 0 if taken else self._frame_cost(is_for_question=False)
        self._opened.add(False)
        self.left -= reserve + opening


def all_facts_fit(facts: Sequence[Fact], *, label: str, budget_tokens: int, lines: LineCache) -> bool:
    """Return whether all facts fit the budget."""
    return _Selection(label, budget_tokens, lines).take_all_stable(facts)


def room_for_facts(budget_tokens: int, *, has_turns: bool) -> int:
    """Return the most tokens of all facts that hold, if all are told. It does not depend on the question."""
    return budget_tokens - (int(SHARE_OF_TURNS * budget_tokens) if has_turns else 0)


def choose_layers(sources: LayerSources, *, label: str, budget_tokens: int, lines: LineCache | None = None) -> Layers:
    """Return what an agent is told within the budget.

    If all facts that hold fit beside the share of the turns, all are told. Then come the former facts, all if they fit,
    and the turns that match the question. Otherwise the flagged facts come first. Then come the facts, former facts and
    turns that match the question, each within its share. Turns that support a chosen fact come after the other turns.
    More facts fill the rest of the budget. If the question is about the past, former facts get a larger share. What
    agents found gets a small share.
    """
    selection = _Selection(label, budget_tokens, LineCache() if lines is None else lines)
    if sources.all_facts is not None and selection.take_all_stable(in_block_order(sources.all_facts)):
        reserve = budget_tokens - room_for_facts(budget_tokens, has_turns=sources.turn_count > 0)
        if not selection.take_all_stable(sources.former_facts, reserve=reserve):
            _take_some_former(selection, sources, 0 if sources.is_about_the_past else reserve)
        _take_findings(selection, sources, budget_tokens)
        selection.take_for_question(sources.matching_turns, share_tokens=selection.left, most=MOST_TURNS_BESIDE_ALL)
    else:
        selection.take_flagged(sources.flagged_facts)
        _take_by_question(selection, sources, budget_tokens)
    if selection.left < 0:
        return Layers(label)
    return _with_sorted_entries(selection.layers)


def _take_some_former(selection: _Selection, sources: LayerSources, reserve: int) -> None:
    """Add former facts to the part for the question: those that match, then others.

    Each of the two groups may take half of the tokens that remain beside `reserve`.
    """
    for former in (sources.matching_former_facts, sources.former_facts):
        selection.take_for_question(former, share_tokens=max(selection.left - reserve, 0) // 2)


def _take_findings(selection: _Selection, sources: LayerSources, budget_tokens: int) -> None:
    selection.take_for_question(sources.findings, share_tokens=int(SHARE_OF_FINDINGS * budget_tokens))


def _take_by_question(selection: _Selection, sources: LayerSources, budget_tokens: int) -> None:
    whole = max(selection.left - selection.opening_cost(), 0)
    of_former = SHARE_OF_FORMER_ASKED if sources.is_about_the_past else SHARE_OF_FORMER
    selection.take_for_question(sources.matching_facts, share_tokens=int(sources.share_of_facts * whole))
    selection.take_for_question(sources.matching_former_facts, share_tokens=int(of_former * whole))
    _take_findings(selection, sources, budget_tokens)
    selection.take_for_question(
        _supporting_turns_last(sources.matching_turns, selection.layers), share_tokens=selection.left
    )
    selection.take_for_question(sources.matching_facts, share_tokens=selection.left)
    if sources.is_about_the_past:
        selection.take_for_question(sources.former_facts, share_tokens=int(of_former * whole))
    selection.take_for_question(sources.latest_facts, share_tokens=selection.left)


def _supporting_turns_last(said: Iterable[MatchingTurn], layers: Layers) -> Iterator[MatchingTurn]:
    """Yield the turns that support no chosen fact, then those that support one."""
    facts = (*layers.facts, *(former.fact for former in layers.former_facts))
    cited = {(evidence.session_id, evidence.turn) for fact in facts for evidence in fact.evidence}
    repeated: list[MatchingTurn] = []
    for each in said:
        if each.turn.place in cited:
            repeated.append(each)
        else:
            yield each
    yield from repeated


def _with_sorted_entries(layers: Layers) -> Layers:
    for part in (layers.stable_entries, layers.question_entries):
        facts = in_block_order(entry for entry in part if isinstance(entry, Fact))
        former = sorted(
            (entry for entry in part if isinstance(entry, FormerFact)), key=lambda entry: entry.order, reverse=True
        )
        said = sorted((entry for entry in part if isinstance(entry, MatchingTurn)), key=lambda entry: entry.order)
        findings = [entry for entry in part if isinstance(entry, AgentFinding)]
        part[:] = [*facts, *former, *said, *sorted(findings, key=lambda finding: (finding.said_at, finding.id))]
    return layers
