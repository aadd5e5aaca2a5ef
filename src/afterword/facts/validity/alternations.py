"""Pairs of facts that replace each other again and again, such as two homes between which somebody moves. Pure.

Every statement of either fact replaces all earlier statements of the other. If each change ends the other fact for
good, only the next change decides when a statement ends, and later changes have no effect on it. So only next changes
are used. Their number grows with the number of statements, while that of all changes grows with its square.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from afterword.facts.assertions import PERSON, Assertion, Extent, Relation, SpeechAct, Verdict
from afterword.facts.words import folded

IdPair = tuple[str, str]
"""The ids of two assertions, the earlier-said first."""

_HARMLESS = frozenset({Relation.SAME, Relation.BESIDE})
_OPEN_EXTENTS: tuple[set[Extent | None], ...] = ({None}, {Extent.DAYS})


class Alternations:
    """Tells for which pairs of facts only the next changes count. Facts are given by their roots.

    The statements of such facts name no days and no guessed times, and are not corrected. No later statement may decide
    that one of them changed nothing, and the retirement guard must allow all of the changes.
    """

    def __init__(
        self,
        roots: Mapping[str, str],
        members: Mapping[str, Sequence[Assertion]],
        by_id: Mapping[str, Assertion],
        decided: Mapping[IdPair, Verdict],
    ) -> None:
        self._members = members
        self._sources: dict[str, tuple[object, ...] | None] = {}
        self._entangled: set[str] = set()
        self._extents: dict[IdPair, set[Extent | None]] = defaultdict(set)
        for (earlier, later), verdict in decided.items():
            sides = roots[earlier], roots[later]
            if verdict.relation is Relation.CHANGES:
                self._extents[sides].add(verdict.extent)
            if not self._may_occur_in_alternation(verdict, sides[0], by_id[later]):
                self._entangled.update(sides)

    def only_replace_each_other(self, root: str, other_root: str) -> bool:
        """Return whether the two facts only replace each other, so that only the next changes count."""
        if root == other_root or not self._entangled.isdisjoint((root, other_root)):
            return False
        directions = (root, other_root), (other_root, root)
        source = self._common_source(root)
        is_one_source = source is not None and source == self._common_source(other_root)
        return is_one_source and all(self._extents.get(sides, {None}) in _OPEN_EXTENTS for sides in directions)

    def _may_occur_in_alternation(self, verdict: Verdict, root: str, later: Assertion) -> bool:
        if verdict.judge == PERSON or verdict.parts_subjects:
            return False
        if verdict.relation is Relation.RETRACTS:
            # A statement that is withdrawn before it holds has not changed the other fact.
            is_plain = later.act is not SpeechAct.STATE and later.valid_from is None and later.valid_to is None
            return is_plain and all(member.said_at != later.said_at for member in self._members.get(root, ()))
        return verdict.relation in _HARMLESS or (verdict.relation is Relation.CHANGES and not verdict.remainder)

    def _common_source(self, root: str) -> tuple[object, ...] | None:
        """Return the source that all statements of a fact have in common, None if they differ or name days."""
        if root not in self._sources:
            sources = set(map(_source, self._members.get(root, ())))
            self._sources[root] = sources.pop() if len(sources) == 1 else None
        return self._sources[root]


def _source(said: Assertion) -> tuple[object, ...] | None:
    if said.valid_from is not None or said.valid_to is not None or said.time_is_guess or said.limited_to is not None:
        return None
    speaker = None if said.speaker is None else folded(said.speaker)
    return said.scope, folded(said.subject), said.kind, said.authority, speaker


def next_changes(
    facts: tuple[Sequence[Assertion], Sequence[Assertion]],
    position: Mapping[str, int],
    relations: Mapping[IdPair, Relation],
) -> Iterator[IdPair]:
    """Yield for each statement of either fact the pair with the next statement of the other fact.

    If that pair was judged and is not a change, the statement after the next is tried, and so on.
    """
    for fact, other in (facts, facts[::-1]):
        places = [position[said.id] for said in other]
        for said in fact:
            for later in (other[place] for place in range(bisect_right(places, position[said.id]), len(other))):
                pair = said.id, later.id
                if relations.get(pair, Relation.CHANGES) is Relation.CHANGES:
                    yield pair
                    break
