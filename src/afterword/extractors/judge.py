"""Who says how a later-said assertion relates to an earlier-said one, and the judge that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from afterword.extractors.extractor import Usage
from afterword.extractors.rules import SINGLE_VALUED
from afterword.facts.assertions import EVERYTHING, Act, Assertion, Cue, Relation, Verdict, folded

Pair = tuple[Assertion, Assertion]
"""(earlier-said, later-said)."""

# Shorter words occur in too many sentences to say what is taken back.
SHORTEST_NAMED = 4


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


class RulesJudge:
    """Decides by slot and value alone. What it cannot decide stands beside."""

    version = "rules-1"
    pairs_a_call = None

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        """Return the verdicts that slot and value settle; needs no model and costs nothing."""
        found = []
        for earlier, later in pairs:
            decided = relation(earlier, later)
            if decided is not None:
                found.append(Verdict(earlier.id, later.id, *decided, self.version))
        return found, Usage()


def relation(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    """Return how the later relates to the earlier by slot and value, with the reason; None where that does not tell."""
    if earlier.act is not Act.STATE or folded(earlier.subject) != folded(later.subject):
        return None
    if later.act is not Act.STATE:
        return _retraction(earlier, later)
    if earlier.slot != later.slot or folded(earlier.limited_to or "") != folded(later.limited_to or ""):
        return None
    if folded(earlier.value) == folded(later.value):
        return _same_value(earlier, later)
    return _other_value(earlier, later) if later.slot[1] in SINGLE_VALUED else None


def _same_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    if _is_postponed(earlier, later):
        return Relation.CORRECTS, "another date for what was announced"
    if earlier.valid_to is not None and earlier.valid_to < later.said_at:
        return None  # its time was over: said again, it is new
    return Relation.SAME, "the same value again"


def _other_value(earlier: Assertion, later: Assertion) -> tuple[Relation, str]:
    if later.cue is Cue.CORRECTION and earlier.session_id == later.session_id:
        return Relation.CORRECTS, "put right in the same session"
    return Relation.CHANGES, f"{later.attribute} has one value at a time"


def is_cleared(earlier: Assertion, later: Assertion) -> bool:
    """Whether the later takes back everything about the earlier's subject: no judge is needed for that."""
    takes_all = later.act is not Act.STATE and later.attribute == EVERYTHING and not later.value
    return takes_all and earlier.act is Act.STATE and folded(earlier.subject) == folded(later.subject)


def _is_postponed(earlier: Assertion, later: Assertion) -> bool:
    """Whether an announcement gets another date before it has come true."""
    if earlier.valid_from is None or later.valid_from is None or earlier.valid_from == later.valid_from:
        return False
    return earlier.valid_from > later.said_at


def _retraction(earlier: Assertion, later: Assertion) -> tuple[Relation, str] | None:
    if is_cleared(earlier, later):
        return Relation.RETRACTS, "everything was taken back"
    taken_back = folded(later.value)
    same_slot = earlier.slot == later.slot
    if same_slot and (not taken_back or taken_back == folded(earlier.value)):
        return Relation.RETRACTS, "taken back"
    said = f" {_words(earlier.value)} {_words(earlier.statement)} "
    if len(taken_back) >= SHORTEST_NAMED and f" {taken_back} " in said:
        return Relation.RETRACTS, f"taken back by name: {later.value}"
    return None


def _words(text: str) -> str:
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())
