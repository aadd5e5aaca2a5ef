"""What is known of the scopes that were used last, kept in memory for as long as their revision is the same."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope

MOST = 100_000
"""How many assertions are held at most, at about 3 kB each; a scope that has more is held alone."""


class Cache:
    """What is known of some scopes, as it was committed. Several threads may use one."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, Lock()
        self._held: OrderedDict[Scope, Knowledge] = OrderedDict()

    def find(self, scope: Scope, revision: int) -> Knowledge | None:
        """Return what is known of a scope at this revision, where it is held."""
        with self._lock:
            found = self._held.get(scope)
            if found is None or found.revision != revision:
                return None
            self._held.move_to_end(scope)
            return found

    def keep(self, scope: Scope, known: Knowledge) -> None:
        """Hold this, and let go of what was used least lately where it is too much."""
        with self._lock:
            self._held[scope] = known
            self._held.move_to_end(scope)
            held = sum(len(one.by_id) for one in self._held.values())
            while held > self._most and len(self._held) > 1:
                held -= len(self._held.popitem(last=False)[1].by_id)


class Draft:
    """What one transaction has found out: others see it once the transaction has been committed."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._found: dict[Scope, Knowledge] = {}

    def find(self, scope: Scope, revision: int) -> Knowledge | None:
        """Return what is known of a scope at this revision, where it is held."""
        found = self._found.get(scope)
        return found if found and found.revision == revision else self._cache.find(scope, revision)

    def keep(self, scope: Scope, known: Knowledge) -> None:
        """Hold this for the transaction."""
        self._found[scope] = known

    def commit(self) -> None:
        """Hold for everyone what was found out."""
        for scope, known in self._found.items():
            self._cache.keep(scope, known)
