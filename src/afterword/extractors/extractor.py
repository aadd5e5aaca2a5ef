"""The border between a window of a transcript and whoever proposes facts from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from afterword.extractors.candidates import Candidate
from afterword.facts.transcripts import Turn


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one session: `turns` are read for facts, `context` (the turns before) only to understand them.

    `owners` are the speakers who are the owner of the scope; `humans` all speakers taken for people.
    """

    ordinal: int
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    owners: tuple[str, ...]
    humans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost. `cached_tokens` are those of the `prompt_tokens` that the provider's cache has served."""

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
    """What an extractor proposes for one window, and what it cost."""

    candidates: tuple[Candidate, ...]
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that grounding refused, and why."""

    candidate: Candidate
    reason: str
    detail: str


class Extractor(Protocol):
    """Proposes candidates from a window, and from nothing else: no store, no clock, no other session."""

    @property
    def version(self) -> str:
        """What the answer depends on besides the window: kind, model and prompt version, as one short text."""
        ...

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the window supports.

        Raises an `ExtractionError` where no answer was had: that is never the same as "no facts".
        """
        ...

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return better candidates in place of the rejected ones (none where there is nothing to mend)."""
        ...
