"""A mapping that is never changed in place, and of which a changed one is made without a copy of all that it holds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_ON_TOP = 4_000
"""How many changes lie above what they change before both become one."""


class PersistentMap(Mapping[K, V]):
    """What was there, and above it what has changed since; None stands for what has gone."""

    def __init__(self, base: dict[K, V], top: dict[K, V | None] | None = None, *, most: int = MOST_ON_TOP) -> None:
        self._base, self._top, self._most = base, top or {}, most

    def moved(self, changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
        """Return the mapping with these changes."""
        if not changes:
            return self
        moved = PersistentMap(self._base, {**self._top, **changes}, most=self._most)
        return moved if len(moved._top) <= self._most else PersistentMap(moved.all(), most=self._most)

    def all(self) -> dict[K, V]:
        """Return all of it as a dict of its own."""
        found = dict(self._base)
        for key, value in self._top.items():
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found

    def __getitem__(self, key: K) -> V:
        found = self._top[key] if key in self._top else self._base[key]
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[K]:
        return iter(self.all())

    def __len__(self) -> int:
        new = sum((value is not None) - (key in self._base) for key, value in self._top.items())
        return len(self._base) + new

    def __contains__(self, key: object) -> bool:
        return self._top[key] is not None if key in self._top else key in self._base


def group_ids(pairs: Iterable[tuple[K, str]]) -> PersistentMap[K, tuple[str, ...]]:
    """Return the ids under each key."""
    found: dict[K, list[str]] = defaultdict(list)
    for key, name in pairs:
        found[key].append(name)
    return PersistentMap({key: tuple(names) for key, names in found.items()})


def regroup_ids(
    before: PersistentMap[K, tuple[str, ...]], left: Iterable[tuple[K, str]], new: Iterable[tuple[K, str]]
) -> PersistentMap[K, tuple[str, ...]]:
    """Return the ids under each key, without those that have left theirs, and with the new ones."""
    gone, come = group_ids(left).all(), group_ids(new).all()
    changes: dict[K, tuple[str, ...] | None] = {}
    for key in {**gone, **come}:
        kept = before.get(key, ())
        if key in gone:
            stale = set(gone[key])
            kept = tuple(name for name in kept if name not in stale)
        changes[key] = (*kept, *come.get(key, ())) or None
    return before.moved(changes)
