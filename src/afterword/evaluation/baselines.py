"""A baseline to compare scores with: a store of every word of every person, which recalls nearly everything."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.grounding import LONGEST
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Role, Turn


class EveryUserTurn:
    """Returns each turn of a person unchanged, split into parts that fit a statement. For comparison only."""

    version = "every-user-turn"

    async def extract(self, window: Window) -> Extraction:
        """Return the words of all people as candidates."""
        turns = (turn for turn in window.turns if turn.role is Role.HUMAN)
        return Extraction(
            tuple(_candidate(turn, part) for turn in turns for part in textwrap.wrap(turn.text, LONGEST["statement"]))
        )

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return nothing: a copy needs no repair."""
        return Extraction(())


def _candidate(turn: Turn, part: str) -> Candidate:
    value, evidence = part[: LONGEST["value"]], [Citation(turn=turn.number, quote=part)]
    return Candidate(kind=Kind.ENTITY, subject="user", attribute="said", value=value, statement=part, evidence=evidence)
