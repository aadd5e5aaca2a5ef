"""Two mappings for large scopes: one is updated without copying all entries, the other makes its values on demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar, overload

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")

MAX_CHANGES = 4_000
"""If a version has more changes than this, they are merged with the base into a new base."""


SHARED_IDS = 500
"""A group of at least this many ids is shared with its next version, until as many new ids were added."""


class LazyMap(Mapping[K, V]):
    """A mapping whose values are made from their keys on first access.

    A key for which `make` returns None has no value.
    """

    def __init__(self, keys: Mapping[K, Any], make: Callable[[K], V | None], values: dict[K, V] | None = None) -> None:
        self._keys, self._make, self._values = keys, make, values or {}

    def updated(self, changes: Mapping[K, V | None]) -> LazyMap[K, V]:
        """Return a copy with these changes. A value of None removes the key."""
        keys, values = {**self._keys, **changes}, dict(self._values)
        for key, value in changes.items():
            if value is None:
                del keys[key]
                values.pop(key, None)
            else:
                values[key] = value
        return LazyMap(keys, self._make, values)

    def __getitem__(self, key: K) -> V:
        value = self._values.get(key)
        if value is None:
            value = self._make(key) if key in self._keys else None
            if value is None:
                raise KeyError(key)
            self._values[key] = value
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys


class PersistentMap(Mapping[K, V]):
    """An immutable mapping that consists of a base, which several versions share, and the changes of this version.

    A value of None in the changes means that the key was removed.
    """

    def __init__(
        self,
        base: dict[K, V] | LazyMap[K, V],
        changes: dict[K, V | None] | None = None,
        *,
        max_changes: int = MAX_CHANGES,
    ) -> None:
        self._base, self._changes, self._max_changes = base, changes or {}, max_changes

    def updated(self, changes: Mapping[K, V | None]) -> PersistentMap[K, V]:
        """Return a new version with these changes."""
        if not changes:
            return self
        version = PersistentMap(self._base, {**self._changes, **changes}, max_changes=self._max_changes)
        if len(version._changes) <= self._max_changes:
            return version
        lazy = self._base if isinstance(self._base, LazyMap) else None
        base = version.as_dict() if lazy is None else lazy.updated(version._changes)
        return PersistentMap(base, max_changes=self._max_changes)

    def as_dict(self) -> dict[K, V]:
        """Return a new dict of all entries."""
        entries = dict(self._base)
        for key, value in self._changes.items():
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value
        return entries

    def __getitem__(self, key: K) -> V:
        value = self._changes[key] if key in self._changes else self._base[key]
        if value is None:
            raise KeyError(key)
        return value

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...

    def get(self, key: K, default: T | None = None, /) -> V | T | None:
        """Return the value of a key, or `default` if it has none. Overridden for speed: most look-ups call it."""
        value = self._changes[key] if key in self._changes else self._base.get(key)
        return default if value is None else value

    def __iter__(self) -> Iterator[K]:
        return iter(self.as_dict())

    def __len__(self) -> int:
        return len(self._base) + sum((value is not None) - (key in self._base) for key, value in self._changes.items())

    def __contains__(self, key: object) -> bool:
        return self._changes[key] is not None if key in self._changes else key in self._base


class ExtendedIds(Sequence[str]):
    """A sequence of ids with further ids at the end. The first ids are shared, not copied, since they may be many."""

    __slots__ = ("_added", "_first")

    def __init__(self, first: tuple[str, ...], added: tuple[str, ...]) -> None:
        self._first, self._added = first, added

    def __len__(self) -> int:
        return len(self._first) + len(self._added)

    def __iter__(self) -> Iterator[str]:
        return chain(self._first, self._added)

    def __getitem__(self, place: Any) -> Any:
        return (*self._first, *self._added)[place]

    @classmethod
    def of(cls, ids: Sequence[str], added: Sequence[str]) -> Sequence[str]:
        """Return ids with further ones at the end. A short sequence is copied, a long one is shared."""
        if isinstance(ids, ExtendedIds) and len(ids._added) < SHARED_IDS:
            return cls(ids._first, (*ids._added, *added))
        together = len(ids) < SHARED_IDS or isinstance(ids, ExtendedIds)
        return (*ids, *added) if together or not added else cls(tuple(ids), tuple(added))


def group_ids(pairs: Iterable[tuple[K, str]]) -> PersistentMap[K, Sequence[str]]:
    """Return the ids of each key, given (key, id) pairs."""
    ids_by_key: dict[K, Any] = {}
    repeated: list[K] = []
    for key, id_ in pairs:
        alone = (id_,)  # most keys have one id, and a tuple needs no conversion
        ids = ids_by_key.setdefault(key, alone)
        if ids is alone:
            continue
        if isinstance(ids, list):
            ids.append(id_)
        else:
            repeated.append(key)
            ids_by_key[key] = [*ids, id_]
    for key in repeated:
        ids_by_key[key] = tuple(ids_by_key[key])
    return PersistentMap(ids_by_key)


def regroup_ids(
    before: PersistentMap[K, Sequence[str]], removed: Iterable[tuple[K, str]], added: Iterable[tuple[K, str]]
) -> PersistentMap[K, Sequence[str]]:
    """Return the ids of each key after removing some (key, id) pairs and adding others."""
    removed_ids = {key: set(ids) for key, ids in group_ids(removed).as_dict().items()}
    added_ids = group_ids(added).as_dict()
    changes: dict[K, Sequence[str] | None] = {}
    for key in {**removed_ids, **added_ids}:
        remaining = before.get(key, ())
        if key in removed_ids:
            remaining = tuple(id_ for id_ in remaining if id_ not in removed_ids[key])
        changes[key] = ExtendedIds.of(remaining, added_ids.get(key, ())) or None
    return before.updated(changes)
