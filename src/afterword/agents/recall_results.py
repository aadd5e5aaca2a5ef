"""The result of a memory query: matching facts, or the reason why there are none."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from autogen_core.memory import MemoryQueryResult

from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.transcripts import SourceTurn
from afterword.recall.matched_words import matched_words
from afterword.store.reading.recall import Recall


class RecallOutcome(StrEnum):
    """How a query ended."""

    FOUND = "found"
    NOTHING_STORED = "nothing_stored"
    NOTHING_RELEVANT = "nothing_relevant"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class FactMatch:
    """A fact, its score (0 for an empty query), and the words of the query that it contains.

    `parts` are the parts of the score (words, meaning, neighbours ...), if they were asked for.
    """

    fact: Fact
    score: float
    matched: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The matching facts, best first. `stored` counts all facts that were searched.

    `former` are matching facts that held before, where the question is not about the past, and `turns` the turns that
    bear on it, each with its score. `findings` are what agents found, not what a person said.
    """

    outcome: RecallOutcome
    matches: tuple[FactMatch, ...] = ()
    stored: int = 0
    former: tuple[Fact, ...] = ()
    turns: tuple[tuple[SourceTurn, float], ...] = ()
    findings: tuple[tuple[AgentFinding, float], ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts alone, best first."""
        return tuple(match.fact for match in self.matches)

    @property
    def found(self) -> tuple[FactMatch, ...]:
        """The former name of `matches`. It goes in release 0.3."""
        message = "RecallResult.found is now called RecallResult.matches; the old name goes in release 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.matches


class FactQueryResult(MemoryQueryResult):
    """An AutoGen memory result that also says why it is empty, and how many facts were searched."""

    outcome: RecallOutcome
    stored: int = 0


UNAVAILABLE = RecallResult(RecallOutcome.UNAVAILABLE)


def search_result(query: str, ranked: Recall) -> RecallResult:
    """Return what the search of one scope gave, with the words of the query that each fact contains."""
    scored = zip(ranked.facts, ranked.scores, ranked.parts or [None] * len(ranked.facts), strict=True)
    matches = [FactMatch(fact, score, matched_words(query, fact), parts) for fact, score, parts in scored]
    turns = list(zip(ranked.turns, ranked.turn_scores, strict=True))
    return recall_result(matches, ranked.stored, [each.fact for each in ranked.former], turns, ranked.findings)


def merge_results(parts: Sequence[RecallResult], limit: int | None) -> RecallResult:
    """Return the results of several scopes as one, best first; with equal scores, earlier scopes first."""
    matches = sorted((match for part in parts for match in part.matches), key=lambda match: -match.score)
    turns = sorted((turn for part in parts for turn in part.turns), key=lambda scored: -scored[1])
    former = [fact for part in parts for fact in part.former]
    findings = sorted((each for part in parts for each in part.findings), key=lambda scored: -scored[1])
    stored = sum(part.stored for part in parts)
    return recall_result(matches[:limit], stored, former[:limit], turns[:limit], findings[:limit])


def recall_result(
    matches: Sequence[FactMatch],
    stored: int,
    former: Sequence[Fact] = (),
    turns: Sequence[tuple[SourceTurn, float]] = (),
    findings: Sequence[tuple[AgentFinding, float]] = (),
) -> RecallResult:
    """Return the result for these matches out of so many stored facts."""
    if matches or former or turns or findings:
        beside = tuple(former), tuple(turns), tuple(findings)
        return RecallResult(RecallOutcome.FOUND, tuple(matches), stored, *beside)
    return RecallResult(RecallOutcome.NOTHING_RELEVANT if stored else RecallOutcome.NOTHING_STORED, (), stored)
