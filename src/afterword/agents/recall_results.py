"""What a question to a memory gives: the facts that bear on it, and why there are none where there are none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from autogen_core.memory import MemoryQueryResult

from afterword.facts.fact import Fact


class RecallOutcome(StrEnum):
    """How a question ended."""

    FOUND = "found"
    NOTHING_STORED = "nothing_stored"
    NOTHING_RELEVANT = "nothing_relevant"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class FactMatch:
    """One fact, its score for the question (0 where nothing was asked), and the words of it that the fact shares.

    `parts` tell what the score adds up from (words, meaning, neighbours ...), where that was asked for.
    """

    fact: Fact
    score: float
    matched: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What was found, best first; `stored` counts the facts that could have been."""

    outcome: RecallOutcome
    found: tuple[FactMatch, ...] = ()
    stored: int = 0

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts alone, best first."""
        return tuple(one.fact for one in self.found)


class FactQueryResult(MemoryQueryResult):
    """A memory's result that also says why it is empty, and how many facts could have been found."""

    outcome: RecallOutcome
    stored: int = 0


UNAVAILABLE = RecallResult(RecallOutcome.UNAVAILABLE)


def merge_results(parts: Sequence[RecallResult], limit: int | None) -> RecallResult:
    """Return what several scopes give as one, best first; of equals, those of the earlier scope first."""
    found = sorted((one for part in parts for one in part.found), key=lambda one: -one.score)
    return recall_result(found[:limit], sum(part.stored for part in parts))


def recall_result(found: Sequence[FactMatch], stored: int) -> RecallResult:
    """Return what was found of how many, with the outcome that follows."""
    if found:
        return RecallResult(RecallOutcome.FOUND, tuple(found), stored)
    return RecallResult(RecallOutcome.NOTHING_RELEVANT if stored else RecallOutcome.NOTHING_STORED, (), stored)
