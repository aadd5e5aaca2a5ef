"""Where to look for what bears on a statement: its slot, its subject, and every word of it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from afterword.store.assertions import OWNER, Act, Assertion
from afterword.store.likeness import Wording, wording

K = TypeVar("K", bound=Hashable)

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

    def __init__(self, by_id: Mapping[str, Posting], ids: Mapping[Hashable, tuple[str, ...]]) -> None:
        self.by_id, self._ids = by_id, ids

    @classmethod
    def of(cls, assertions: Iterable[Assertion]) -> Postings:
        """Return the postings of these statements."""
        by_id = {one.id: Posting.of(one) for one in assertions}
        ids: dict[Hashable, list[str]] = defaultdict(list)
        for name, one in by_id.items():
            for key in one.keys:
                ids[key].append(name)
        return cls(by_id, {key: tuple(found) for key, found in ids.items()})

    def moved(self, gone: Sequence[Assertion], come: Sequence[Assertion]) -> Postings:
        """Return the postings after statements that are there have gone and others come."""
        lost, new = {one.id: self.by_id[one.id] for one in gone}, {one.id: Posting.of(one) for one in come}
        kept = {name: one for name, one in self.by_id.items() if name not in lost} if lost else self.by_id
        left, come_to = ([(key, name) for name, one in moved.items() for key in one.keys] for moved in (lost, new))
        return Postings({**kept, **new}, with_moved(self._ids, left, come_to))

    def near(self, one: Posting) -> list[Posting]:
        """Return all others that may bear on a statement."""
        label = one.slot[0]
        keys: list[Hashable] = [one.slot, *one.words.said, (_VAGUE, label)]
        if label != OWNER or one.is_vague:
            keys.append((_ABOUT, label))
        found = {name for key in keys for name in self._ids.get(key, ())} - {one.said.id}
        return [self.by_id[name] for name in found]


def with_moved(
    before: Mapping[K, tuple[str, ...]], left: Iterable[tuple[K, str]], new: Iterable[tuple[K, str]]
) -> Mapping[K, tuple[str, ...]]:
    """Return the ids by key, without those that have left their key, and with the new ones."""
    gone: dict[K, set[str]] = defaultdict(set)
    come: dict[K, list[str]] = defaultdict(list)
    for key, name in left:
        gone[key].add(name)
    for key, name in new:
        come[key].append(name)
    if not gone and not come:
        return before
    found = dict(before)
    for key, stale in gone.items():
        found[key] = tuple(name for name in found[key] if name not in stale)
        if not found[key]:
            del found[key]
    for key, names in come.items():
        found[key] = (*found.get(key, ()), *names)
    return found
