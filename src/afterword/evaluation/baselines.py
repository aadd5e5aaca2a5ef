"""What to read a score next to: a store that keeps every word of every person recalls nearly all of it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.grounding import LONGEST
from afterword.facts.assertions import Kind
from afterword.facts.transcripts import Role, Turn


class EveryUserTurn:
    """Keeps each turn of a person as it stands, in as many pieces as fit a statement. For comparison only."""

    version = "every-user-turn"

    async def extract(self, window: Window) -> Extraction:
        """Return every person's words as candidates; it understands nothing and costs nothing."""
        said = (turn for turn in window.turns if turn.role is Role.HUMAN)
        return Extraction(
            tuple(_kept(turn, part) for turn in said for part in textwrap.wrap(turn.text, LONGEST["statement"]))
        )

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:  # noqa: ARG002 - the protocol's
        """Return nothing: there is nothing to mend in a copy."""
        return Extraction(())


def _kept(turn: Turn, part: str) -> Candidate:
    value, cited = part[: LONGEST["value"]], [Citation(turn=turn.number, quote=part)]
    return Candidate(kind=Kind.ENTITY, subject="user", attribute="said", value=value, statement=part, evidence=cited)
