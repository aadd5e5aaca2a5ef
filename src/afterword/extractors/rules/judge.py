"""The judge that needs no model."""

from __future__ import annotations

from collections.abc import Sequence

from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Pair
from afterword.extractors.slot_relation import RELATION_VERSION, relation
from afterword.facts.assertions import Verdict


class RulesJudge:
    """Judges a pair of assertions by slot and value alone. Pairs it cannot decide get no verdict."""

    version = RELATION_VERSION
    pairs_a_call = None

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Return the verdicts that slot and value settle. It costs nothing."""
        related = ((earlier.id, later.id, relation(earlier, later)) for earlier, later in pairs)
        verdicts = [Verdict(earlier, later, *why, self.version) for earlier, later, why in related if why]
        return verdicts, Usage()
