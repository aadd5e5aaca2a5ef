"""The interface of an extractor: a window of a transcript goes in, proposed candidates come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from afterword.extractors.candidates import Candidate, Citation
from afterword.facts.transcripts import Turn


@dataclass(frozen=True, slots=True)
class Window:
    """A part of one session. Facts are extracted from `turns`; the earlier turns in `context` only explain them.

    `owners` are the speakers who are the owner of the scope; `humans` are all speakers taken for people.
    """

    ordinal: int
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    owners: tuple[str, ...]
    humans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What calls cost. `cached_tokens` are the part of `prompt_tokens` that came from the provider's cache."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class Extraction:
    """The candidates that an extractor proposes for one window, and the cost.

    `secrets` are those that it saw there, and `off_record` the turns in which a person tells what must not be kept.
    """

    candidates: tuple[Candidate, ...]
    usage: Usage = field(default_factory=Usage)
    secrets: tuple[Citation, ...] = ()
    off_record: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that grounding rejected, and the reason."""

    candidate: Candidate
    reason: str
    detail: str


class Extractor(Protocol):
    """Proposes candidates from a window alone: it uses no store, no clock and no other session."""

    @property
    def version(self) -> str:
        """Identifies what the answer depends on besides the window: extractor, model and prompt version."""

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the window supports.

        Raises an `ExtractionError` if there was no answer. A missing answer never counts as "no facts".
        """

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return corrected candidates for the rejected ones, or none if nothing can be corrected."""
