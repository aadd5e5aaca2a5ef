"""Where to look for what bears on a statement: its slot, its subject, and every word of it. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from afterword.facts.assertions import OWNER, Act, Assertion
from afterword.facts.persistent_map import Layers, grouped, regrouped
from afterword.facts.similarity import Wording, wording

_ABOUT, _VAGUE = 1, 2


@dataclass(frozen=True, slots=True)
class Posting:
    """A statement with what it is compared by: its words, its slot, and its place in the order of saying."""

    said: Assertion
    words: Wording
    slot: tuple[str, str]
    order: tuple[datetime, str, int, int, str]

    @classmethod
    def of(cls, one: Assertion) -> Posting:
        """Return the posting of a statement."""
        return cls(one, wording(one), one.slot, one.order)

    @property
    def is_vague(self) -> bool:
        """Whether it may take back anything that was said of its subject."""
        return self.said.act is Act.ERASE or (self.said.act is not Act.STATE and self.words.names_little)

    @property
    def keys(self) -> list[Hashable]:
        """Where it is found."""
        keys: list[Hashable] = [self.slot, *self.words.said, (_ABOUT, self.slot[0])]
        return [*keys, (_VAGUE, self.slot[0])] if self.is_vague else keys


class Postings:
    """The statements of a scope by what may tie others to them. Never changed in place."""

    def __init__(self, by_id: Layers[str, Posting], ids: Layers[Hashable, tuple[str, ...]]) -> None:
        self.by_id, self._ids = by_id, ids

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> Postings:
        """Return the postings of these statements."""
        by_id = {one.id: Posting.of(one) for one in assertions}
        return cls(Layers(by_id), grouped(_ties(by_id)))

    def moved(self, gone: Sequence[Assertion], come: Sequence[Assertion]) -> Postings:
        """Return the postings after statements that are there have gone and others come."""
        lost, new = {one.id: self.by_id[one.id] for one in gone}, {one.id: Posting.of(one) for one in come}
        by_id = self.by_id.moved({**dict.fromkeys(lost), **new})
        return Postings(by_id, regrouped(self._ids, _ties(lost), _ties(new)))

    def near(self, one: Posting) -> list[Posting]:
        """Return all others that may bear on a statement."""
        label = one.slot[0]
        keys: list[Hashable] = [one.slot, *one.words.said, (_VAGUE, label)]
        if label != OWNER or one.is_vague:
            keys.append((_ABOUT, label))
        found = {name for key in keys for name in self._ids.get(key, ())} - {one.said.id}
        return [self.by_id[name] for name in found]


def _ties(by_id: Mapping[str, Posting]) -> Iterator[tuple[Hashable, str]]:
    return ((key, name) for name, one in by_id.items() for key in one.keys)
