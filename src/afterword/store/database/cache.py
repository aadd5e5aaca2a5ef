"""What is known of the scopes that were used last, kept in memory for as long as their revision is the same."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope

MOST = 100_000
"""How many assertions are held at most, at about 3 kB each; a scope that has more is held alone."""


Version = tuple[int, str]
"""Which state of a scope: its revision, and the stamp that tells it from another of that revision."""


class Cache:
    """What is known of some scopes, as it was committed. Several threads may use one."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, Lock()
        self._known: OrderedDict[Scope, tuple[Version, Knowledge]] = OrderedDict()

    def find(self, scope: Scope, version: Version) -> Knowledge | None:
        """Return what is known of a scope in this state, None where it is not kept."""
        with self._lock:
            kept_version, known = self._known.get(scope, (None, None))
            if kept_version != version:
                return None
            self._known.move_to_end(scope)
            return known

    def keep(self, scope: Scope, version: Version, known: Knowledge) -> None:
        """Keep this, and drop what was used least lately where it is too much."""
        with self._lock:
            self._known[scope] = version, known
            self._known.move_to_end(scope)
            total = sum(len(each.by_id) for _, each in self._known.values())
            while total > self._most and len(self._known) > 1:
                _, (_, dropped) = self._known.popitem(last=False)
                total -= len(dropped.by_id)


class Draft:
    """What one transaction has learned: others see it once the transaction has been committed."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._known: dict[Scope, tuple[Version, Knowledge]] = {}

    def find(self, scope: Scope, version: Version) -> Knowledge | None:
        """Return what is known of a scope in this state, None where it is not kept."""
        own_version, known = self._known.get(scope, (None, None))
        return known if own_version == version else self._cache.find(scope, version)

    def keep(self, scope: Scope, version: Version, known: Knowledge) -> None:
        """Keep this for the transaction."""
        self._known[scope] = version, known

    def commit(self) -> None:
        """Let everyone see it."""
        for scope, (version, known) in self._known.items():
            self._cache.keep(scope, version, known)
