"""An index that finds the statements which may bear on a given one: by slot, by subject, and by every word. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from afterword.facts.assertions import OWNER, Assertion, SpeechAct
from afterword.facts.persistent_map import PersistentMap, group_ids, regroup_ids
from afterword.facts.similarity import StatementStems, statement_stems

_SUBJECT, _VAGUE_RETRACTION = 1, 2


@dataclass(frozen=True, slots=True)
class IndexedStatement:
    """A statement with what it is compared by: its stems, its slot, and its place in the order of saying."""

    said: Assertion
    words: StatementStems
    slot: tuple[str, str]
    order: tuple[datetime, str, int, int, str]

    @classmethod
    def of(cls, assertion: Assertion) -> IndexedStatement:
        """Return the index entry of a statement."""
        return cls(assertion, statement_stems(assertion), assertion.slot, assertion.order)

    @property
    def is_vague(self) -> bool:
        """Whether it may take back any statement about its subject."""
        return self.said.act is SpeechAct.ERASE or (self.said.act is not SpeechAct.STATE and self.words.names_little)

    @property
    def keys(self) -> list[Hashable]:
        """The index keys that lead to it."""
        keys: list[Hashable] = [self.slot, *self.words.said, (_SUBJECT, self.slot[0])]
        return [*keys, (_VAGUE_RETRACTION, self.slot[0])] if self.is_vague else keys


class StatementIndex:
    """The statements of a scope under their keys. Immutable."""

    def __init__(
        self, by_id: PersistentMap[str, IndexedStatement], ids: PersistentMap[Hashable, tuple[str, ...]]
    ) -> None:
        self.by_id, self._ids = by_id, ids

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
        """Return all other statements that may bear on this one."""
        subject = statement.slot[0]
        keys: list[Hashable] = [statement.slot, *statement.words.said, (_VAGUE_RETRACTION, subject)]
        if subject != OWNER or statement.is_vague:
            keys.append((_SUBJECT, subject))
        ids = {id_ for key in keys for id_ in self._ids.get(key, ())} - {statement.said.id}
        return [self.by_id[id_] for id_ in ids]


def _key_id_pairs(by_id: Mapping[str, IndexedStatement]) -> Iterator[tuple[Hashable, str]]:
    return ((key, id_) for id_, statement in by_id.items() for key in statement.keys)
