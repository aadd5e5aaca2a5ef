"""Who says how a later-said assertion relates to an earlier-said one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from afterword.extractors.extractor import Usage
from afterword.facts.assertions import Assertion, Verdict

Pair = tuple[Assertion, Assertion]
"""(earlier-said, later-said)."""


class Judge(Protocol):
    """Relates pairs of assertions, and decides nothing else: it never sees ids and never deletes."""

    @property
    def version(self) -> str:
        """What its verdicts depend on besides the pair, as one short text."""
        ...

    @property
    def pairs_a_call(self) -> int | None:
        """How many pairs one call takes at most, None where calls cost nothing."""
        ...

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Return a verdict for each pair it can decide; the others stand beside each other.

        Raises an `ExtractionError` where no answer was had: that is never the same as "no conflict".
        """
        ...
