"""Where to look for what bears on a statement: its slot, its subject, and every word of it. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from afterword.facts.assertions import OWNER, Assertion, SpeechAct
from afterword.facts.persistent_map import PersistentMap, group_ids, regroup_ids
from afterword.facts.similarity import StatementStems, statement_stems

_ABOUT, _VAGUE = 1, 2


@dataclass(frozen=True, slots=True)
class IndexedStatement:
    """A statement with what it is compared by: its words, its slot, and its place in the order of saying."""

    said: Assertion
    words: StatementStems
    slot: tuple[str, str]
    order: tuple[datetime, str, int, int, str]

    @classmethod
    def of(cls, one: Assertion) -> IndexedStatement:
        """Return the posting of a statement."""
        return cls(one, statement_stems(one), one.slot, one.order)

    @property
    def is_vague(self) -> bool:
        """Whether it may take back anything that was said of its subject."""
        return self.said.act is SpeechAct.ERASE or (self.said.act is not SpeechAct.STATE and self.words.names_little)

    @property
    def keys(self) -> list[Hashable]:
        """Where it is found."""
        keys: list[Hashable] = [self.slot, *self.words.said, (_ABOUT, self.slot[0])]
        return [*keys, (_VAGUE, self.slot[0])] if self.is_vague else keys


class StatementIndex:
    """The statements of a scope by what may tie others to them. Never changed in place."""

    def __init__(
        self, by_id: PersistentMap[str, IndexedStatement], ids: PersistentMap[Hashable, tuple[str, ...]]
    ) -> None:
        self.by_id, self._ids = by_id, ids

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> StatementIndex:
        """Return the postings of these statements."""
        by_id = {one.id: IndexedStatement.of(one) for one in assertions}
        return cls(PersistentMap(by_id), group_ids(_ties(by_id)))

    def moved(self, gone: Sequence[Assertion], come: Sequence[Assertion]) -> StatementIndex:
        """Return the postings after statements that are there have gone and others come."""
        lost, new = {one.id: self.by_id[one.id] for one in gone}, {one.id: IndexedStatement.of(one) for one in come}
        by_id = self.by_id.moved({**dict.fromkeys(lost), **new})
        return StatementIndex(by_id, regroup_ids(self._ids, _ties(lost), _ties(new)))

    def near(self, one: IndexedStatement) -> list[IndexedStatement]:
        """Return all others that may bear on a statement."""
        label = one.slot[0]
        keys: list[Hashable] = [one.slot, *one.words.said, (_VAGUE, label)]
        if label != OWNER or one.is_vague:
            keys.append((_ABOUT, label))
        found = {name for key in keys for name in self._ids.get(key, ())} - {one.said.id}
        return [self.by_id[name] for name in found]


def _ties(by_id: Mapping[str, IndexedStatement]) -> Iterator[tuple[Hashable, str]]:
    return ((key, name) for name, one in by_id.items() for key in one.keys)
