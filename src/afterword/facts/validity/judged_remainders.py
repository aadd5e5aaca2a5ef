"""The remainders that judges gave: the parts of earlier sentences that still hold after a later statement. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from afterword.facts.assertions import PERSON, Assertion, Relation, Verdict
from afterword.facts.validity.alternations import IdPair
from afterword.facts.validity.wording import lacks_ended_part, remainder_fault

_REMAINDER_RELATIONS = (Relation.CHANGES, Relation.CORRECTS)


class JudgedRemainders:
    """The remainders of judged pairs, as far as code accepts them.

    `verdicts` holds the verdict that counts for each pair, and `relations` the relations that have an effect. `roots`
    maps each statement to the first statement of its fact, and `position` to its place in the order of saying.
    """

    def __init__(
        self,
        by_id: Mapping[str, Assertion],
        verdicts: Mapping[IdPair, Verdict],
        relations: Mapping[IdPair, Relation],
        roots: Mapping[str, str],
        position: Mapping[str, int],
    ) -> None:
        self._by_id, self._verdicts, self._roots, self._position = by_id, verdicts, roots, position
        self._first_of_fact: dict[tuple[str, str, Relation], tuple[int, str]] = {}
        for (earlier, later), relation in relations.items():
            verdict = verdicts[earlier, later]
            if verdict.judge != PERSON and (remainder := self._accepted(verdict)) is not None:
                key, entry = (earlier, roots[later], relation), (position[later], remainder)
                self._first_of_fact[key] = min(entry, self._first_of_fact.get(key, entry))

    def remainder_of(self, pair: IdPair) -> str | None:
        """Return the remainder of the earlier sentence of a judged pair, None if there is none that code accepts."""
        verdict = self._verdicts[pair]
        remainder = self._accepted(verdict)
        if remainder is not None or verdict.judge == PERSON:
            return remainder
        earlier, later = pair
        # A repeated change takes away no more than the first statement of the change did.
        place, of_fact = self._first_of_fact.get((earlier, self._roots[later], verdict.relation), (0, None))
        return of_fact if place < self._position[later] else None

    def restates_remainder_only(self, restatement: Assertion, pair: IdPair) -> bool:
        """Return whether a restatement of the earlier sentence of a pair says nothing of the part that has ended."""
        earlier, later = map(self._by_id.__getitem__, pair)
        remainder = self._verdicts[pair].remainder
        if not remainder or remainder_fault(remainder, earlier, later) is not None:
            return False
        return lacks_ended_part(restatement.statement, earlier.statement, remainder)

    def _accepted(self, verdict: Verdict) -> str | None:
        if not verdict.remainder or verdict.relation not in _REMAINDER_RELATIONS:
            return None
        earlier, later = map(self._by_id.__getitem__, verdict.pair)
        return verdict.remainder if remainder_fault(verdict.remainder, earlier, later) is None else None
