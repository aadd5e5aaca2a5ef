"""The interface of an extractor, which proposes facts (candidates) for a part of a conversation (a window)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from afterword.extractors.candidates import Candidate, Citation
from afterword.facts.transcripts import Turn


@dataclass(frozen=True, slots=True)
class Window:
    """A part of one session. Facts are extracted from `turns`. Earlier turns in `context` only help to understand them.

    `ordinal` counts the windows of a session from 1. `owners` are the names under which the owner of the scope speaks,
    and `humans` those of all speakers who are taken for people.
    """

    ordinal: int
    turns: tuple[Turn, ...]
    context: tuple[Turn, ...]
    owners: tuple[str, ...]
    humans: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of requests to a model, and the tokens that they used.

    `cached_tokens` are the part of `prompt_tokens` that came from the provider's cache.
    """

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

    `secrets` cites unmasked secrets in the window. `off_record` holds the numbers of the turns in which a person tells
    what must not be kept.
    """

    candidates: tuple[Candidate, ...]
    usage: Usage = field(default_factory=Usage)
    secrets: tuple[Citation, ...] = ()
    off_record: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Rejection:
    """A candidate that grounding rejected, with the code of a `RejectionReason` and its explanation in `detail`."""

    candidate: Candidate
    reason: str
    detail: str


class Extractor(Protocol):
    """Proposes candidates for a window. It uses nothing else: no store, no clock and no other session."""

    @property
    def version(self) -> str:
        """A name of the extractor, its model and its prompts. It changes whenever answers may change."""

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the window supports.

        Raises an `ExtractionError` if there was no answer. A missing answer never counts as "no facts".
        """

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return corrected candidates for the rejected ones, or none if nothing can be corrected."""
