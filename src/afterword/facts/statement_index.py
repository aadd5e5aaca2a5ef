"""An index that finds the statements that may affect a given one: by slot, by subject, and by every word. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product

from afterword.facts.assertions import EVERYTHING, OWNER, Assertion, Authority, SpeechAct
from afterword.facts.persistent_map import PersistentMap, group_ids, regroup_ids
from afterword.facts.similarity import StatementStems, statement_stems

_SUBJECT, _VAGUE_RETRACTION, _CLEARING, _SAME_WEIGHT, _SAME_SPEAKER, _VALUE_WORD = range(1, 7)
SLOT_REACH, WORD_REACH, CLEARING_REACH = 32, 64, 8
"""How many places apart two statements of one index key may be, in the order of saying, to be compared.

The first is for a slot. The second is for a word, a subject, and the vague retractions of a subject. The third is for
statements that take everything back. Without a limit the number of pairs would grow with the square of the statements.
"""

Order = tuple[datetime, str, int, int, str]
_WEIGHTS = tuple(product(Authority, (True, False), (True, False), (True, False)))


@dataclass(frozen=True, slots=True)
class IndexedStatement:
    """A statement with what it is compared by: its stems, its slot, and its place in the order of saying."""

    said: Assertion
    words: StatementStems
    slot: tuple[str, str]
    order: Order

    @classmethod
    def of(cls, assertion: Assertion) -> IndexedStatement:
        """Return the index entry of a statement."""
        return cls(assertion, statement_stems(assertion), assertion.slot, assertion.order)

    @property
    def is_vague(self) -> bool:
        """Whether it may take back any statement about its subject."""
        return self.said.act is SpeechAct.ERASE or (self.said.act is not SpeechAct.STATE and self.words.names_little)

    @property
    def is_clearing(self) -> bool:
        """Whether it takes back everything about its subject."""
        return self.said.act is not SpeechAct.STATE and self.said.attribute == EVERYTHING and not self.said.value

    @property
    def weight(self) -> tuple[Authority, bool, bool, bool]:
        """The properties that decide whether it can replace a statement of its slot for good."""
        said = self.said
        return said.authority, said.time_is_guess, said.valid_to is None, said.limited_to is None

    @property
    def keys(self) -> list[Hashable]:
        """The index keys that lead to it."""
        keys: list[Hashable] = [self.slot, *self.words.said, (_SUBJECT, self.slot[0])]
        keys += [(_SAME_WEIGHT, self.slot, self.weight), (_SAME_SPEAKER, self.slot, self.said.speaker)]
        keys += [(_VALUE_WORD, self.slot, word) for word in self.words.value]
        if self.is_vague:
            keys.append((_VAGUE_RETRACTION, self.slot[0]))
        return [*keys, (_CLEARING, self.slot[0])] if self.is_clearing else keys


class StatementIndex:
    """The statements of a scope under their keys. Immutable."""

    def __init__(
        self, by_id: PersistentMap[str, IndexedStatement], ids: PersistentMap[Hashable, tuple[str, ...]]
    ) -> None:
        self.by_id, self._ids = by_id, ids
        self._sorted: dict[Hashable, list[tuple[Order, str]]] = {}

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> StatementIndex:
        """Return the index of these statements."""
        by_id = {assertion.id: IndexedStatement.of(assertion) for assertion in assertions}
        return cls(PersistentMap(by_id), group_ids(_key_id_pairs(by_id)))

    def revised(self, removed: Sequence[Assertion], added: Sequence[Assertion]) -> StatementIndex:
        """Return the index without the removed statements, which must be in it, and with the added ones."""
        old = {assertion.id: self.by_id[assertion.id] for assertion in removed}
        new = {assertion.id: IndexedStatement.of(assertion) for assertion in added}
        by_id = self.by_id.updated({**dict.fromkeys(old), **new})
        return StatementIndex(by_id, regroup_ids(self._ids, _key_id_pairs(old), _key_id_pairs(new)))

    def near(self, statement: IndexedStatement) -> list[IndexedStatement]:
        """Return the other statements that may affect this one. For each key only the nearest ones are returned."""
        subject, order = statement.slot[0], statement.order
        ids = {id_ for word in statement.words.said for id_ in self._nearest(word, order, WORD_REACH)}
        if subject != OWNER:
            ids.update(self._nearest((_SUBJECT, subject), order, WORD_REACH))
        # Through their words alone, statements of one slot would still be too many.
        ids = {id_ for id_ in ids if self.by_id[id_].slot != statement.slot}
        ids.update(self._nearest_of_slot(statement))
        for key, reach in (((_VAGUE_RETRACTION, subject), WORD_REACH), ((_CLEARING, subject), CLEARING_REACH)):
            ids.update(self._nearest(key, order, reach))
        if statement.is_vague:
            ids.update(self._said_since((_VAGUE_RETRACTION, subject), statement, WORD_REACH))
        if statement.is_clearing:
            ids.update(self._said_since((_CLEARING, subject), statement, CLEARING_REACH))
        return [self.by_id[id_] for id_ in ids - {statement.said.id}]

    def _nearest_of_slot(self, statement: IndexedStatement) -> Iterable[str]:
        """Return the nearest statements of its slot of every weight, of its own speaker, and with a word of its value.

        Many statements may be unable to replace it, and must not crowd out one that can. The value that it repeats or
        withdraws may have been said long ago.
        """
        slot, order = statement.slot, statement.order
        if len(ids := self._ids.get(slot, ())) <= SLOT_REACH:
            return ids
        keys: list[Hashable] = [(_SAME_WEIGHT, slot, weight) for weight in _WEIGHTS]
        keys.append((_SAME_SPEAKER, slot, statement.said.speaker))
        keys += [(_VALUE_WORD, slot, word) for word in statement.words.value]
        return (id_ for key in keys for id_ in self._nearest(key, order, SLOT_REACH))

    def _nearest(self, key: Hashable, order: Order, reach: int) -> Sequence[str]:
        """Return the statements of a key that were said at most `reach` places before or after."""
        ids = self._ids.get(key, ())
        if len(ids) <= reach:
            return ids
        ordered = self._in_order(key)
        first = max(0, bisect_left(ordered, (order, "")) - reach)
        last = bisect_right(ordered, (order, "\uffff")) + reach
        return [id_ for _, id_ in ordered[first:last]]

    def _said_since(self, key: Hashable, retraction: IndexedStatement, reach: int) -> Sequence[str]:
        """Return what was said about the subject of a retraction after the `reach`-th retraction of this kind before
        it."""
        retractions = self._in_order(key)
        place = bisect_left(retractions, (retraction.order, ""))
        ordered = self._in_order((_SUBJECT, retraction.slot[0]))
        first = bisect_left(ordered, retractions[place - reach]) if place >= reach else 0
        last = bisect_left(ordered, (retraction.order, ""))
        return [id_ for _, id_ in ordered[first:last]]

    def _in_order(self, key: Hashable) -> list[tuple[Order, str]]:
        """Return the statements of a key in the order of saying, sorted once."""
        if key not in self._sorted:
            self._sorted[key] = sorted((self.by_id[id_].order, id_) for id_ in self._ids.get(key, ()))
        return self._sorted[key]


def _key_id_pairs(by_id: Mapping[str, IndexedStatement]) -> Iterator[tuple[Hashable, str]]:
    return ((key, id_) for id_, statement in by_id.items() for key in statement.keys)
