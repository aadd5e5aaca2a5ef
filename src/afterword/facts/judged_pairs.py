"""Which assertion bears on which: judged pairs, and what follows from them for restatements of either side. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from afterword.facts.assertions import PERSON, RETIRING, Assertion, Relation, SpeechAct, Verdict
from afterword.facts.retirement_guard import refusal_reason
from afterword.facts.subjects import SubjectNames, Subjects
from afterword.facts.words import folded

_STRENGTH = {Relation.NARROWS: 0, Relation.CHANGES: 1, Relation.RETRACTS: 2, Relation.CORRECTS: 3}


def deciding_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return which of several verdicts on one pair counts."""
    return max(verdicts, key=lambda one: (one.rank, one.relation, one.reason, one.joins_subjects, one.parts_subjects))


@dataclass(frozen=True, slots=True)
class RefusedRetirement:
    """A retirement that the guard refused, and why: both stand until a person decides."""

    verdict: Verdict
    reason: str


class JudgedPairs:
    """Which assertion bears on which: judged pairs, and what follows from them for restatements of either side."""

    def __init__(
        self, ordered: list[Assertion], verdicts: Iterable[Verdict], names: SubjectNames | None = None
    ) -> None:
        self.ordered = ordered
        self.by_id = {one.id: one for one in ordered}
        place = {one.id: index for index, one in enumerate(ordered)}
        self.place = place
        self.decided = self._decided(verdicts)
        self.judged = {pair: verdict.relation for pair, verdict in self.decided.items()}
        self.subjects = Subjects(self.by_id, self.decided.values(), names)
        self.refused: list[RefusedRetirement] = []
        self.root = self._roots()
        self.families: dict[str, list[Assertion]] = defaultdict(list)
        for one in ordered:
            if one.act is SpeechAct.STATE:
                self.families[self.root[one.id]].append(one)
        self.settled = {
            frozenset({self.root[earlier], self.root[later]})
            for (earlier, later), verdict in self.decided.items()
            if verdict.judge == PERSON
        }
        self.contests: set[frozenset[str]] = set()
        self.broader: list[tuple[str, str]] = []
        self.later_on: dict[str, list[tuple[str, Relation]]] = defaultdict(list)
        for (earlier, later), relation in self._effective().items():
            self.later_on[earlier].append((later, relation))

    def _decided(self, verdicts: Iterable[Verdict]) -> dict[tuple[str, str], Verdict]:
        """Return the verdict that counts for each pair."""
        found: dict[tuple[str, str], Verdict] = {}
        for verdict in verdicts:
            pair = verdict.earlier_id, verdict.later_id
            if pair[0] in self.place and pair[1] in self.place:
                if self.place[pair[0]] >= self.place[pair[1]]:
                    raise ValueError(f"{verdict.earlier_id} was not said before {verdict.later_id}")
                found[pair] = deciding_verdict((found.get(pair, verdict), verdict))
        return found

    def _roots(self) -> dict[str, str]:
        """Return the first-said assertion that each one repeats: each joins the latest-said one that it repeats."""
        parent: dict[str, str] = {}
        for (earlier, later), relation in self.judged.items():
            if relation is Relation.SAME and self.by_id[earlier].act is SpeechAct.STATE is self.by_id[later].act:
                known = parent.get(later)
                if known is None or self.place[earlier] > self.place[known]:
                    parent[later] = earlier
        root: dict[str, str] = {}
        for one in self.ordered:
            root[one.id] = root[parent[one.id]] if one.id in parent else one.id
        return root

    def _effective(self) -> dict[tuple[str, str], Relation]:
        """Return every pair in which the later one takes from the earlier one, refused retirements aside."""
        found: dict[tuple[str, str], Relation] = {}
        for (earlier, later), relation in self.judged.items():
            if relation in RETIRING and not self._overruled(earlier, later):
                for pair, inherited in self._inherited(earlier, later, relation):
                    if pair == (earlier, later) or pair not in self.judged:
                        found[pair] = max(found.get(pair, inherited), inherited, key=_STRENGTH.__getitem__)
        self.broader = [pair for pair in self.broader if self._allowed(*pair)]
        allowed = {pair: relation for pair, relation in found.items() if self._allowed(*pair)}
        return allowed | self._in_place(allowed)

    def _in_place(self, effective: dict[tuple[str, str], Relation]) -> dict[tuple[str, str], Relation]:
        """Return what a correction retires because what it puts right had retired it."""
        retired_by: dict[str, set[str]] = defaultdict(set)
        corrections = []
        for (earlier, later), relation in effective.items():
            if relation is Relation.CORRECTS and self.by_id[later].act is SpeechAct.STATE:
                corrections.append((self.place[earlier], earlier, later))
            if relation is not Relation.RETRACTS:
                retired_by[later].add(earlier)
        found: dict[tuple[str, str], Relation] = {}
        for _, wrong, right in sorted(corrections):
            for old in sorted(retired_by[wrong]):
                is_free = (old, right) not in self.judged and self.root[old] != self.root[right]
                if is_free and (old, right) not in effective and self._allowed(old, right):
                    found[old, right] = Relation.CHANGES
                    retired_by[right].add(old)
        return found

    def _inherited(self, earlier: str, later: str, relation: Relation) -> Iterable[tuple[tuple[str, str], Relation]]:
        """Yield what one verdict means for all that repeat its sides."""
        old = self.families.get(self.root[earlier]) or [self.by_id[earlier]]
        new = self.families.get(self.root[later]) or [self.by_id[later]]
        if old is new:
            yield (earlier, later), relation
            return
        for one in old:
            for other in new:
                if self.place[one.id] < self.place[other.id]:
                    named = (one.id, other.id) == (earlier, later)
                    spread = Relation.CHANGES if relation is Relation.CORRECTS else relation
                    yield (one.id, other.id), relation if named else spread
                elif relation is Relation.NARROWS and (other.id, one.id) not in self.judged:
                    self.broader.append((one.id, other.id))
                elif relation in (Relation.CHANGES, Relation.CORRECTS):
                    yield (other.id, one.id), Relation.CHANGES

    def erased(self) -> frozenset[str]:
        """Return the statements that an effective request to erase names."""
        return frozenset(
            earlier
            for earlier, taken in self.later_on.items()
            for later, relation in taken
            if relation is Relation.RETRACTS and self.by_id[later].act is SpeechAct.ERASE
        )

    def _allowed(self, earlier: str, later: str) -> bool:
        one, other = self.by_id[earlier], self.by_id[later]
        if frozenset({self.root[earlier], self.root[later]}) in self.settled:
            return True
        if other.limited_to and folded(one.limited_to or "") != folded(other.limited_to):
            return False  # what is said for one occasion leaves the rest as it was
        refused = refusal_reason(one, other, are_one=self.subjects.are_one(one, other))
        if refused is None:
            return True
        self.contests.add(frozenset({self.root[earlier], self.root[later]}))
        if (earlier, later) in self.decided:
            self.refused.append(RefusedRetirement(self.decided[earlier, later], refused))
        return False

    def _overruled(self, earlier: str, later: str) -> bool:
        """Whether a person has decided about these two, and this verdict is another judge's."""
        is_settled = frozenset({self.root[earlier], self.root[later]}) in self.settled
        return is_settled and self.decided[earlier, later].judge != PERSON
