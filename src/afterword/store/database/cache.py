"""A cache of the knowledge of recently used scopes, each in one state."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope

MAX_ASSERTIONS = 100_000
"""The most assertions in the cache, at about 3 kB each. A scope that has more is cached alone."""

Version = tuple[int, str]
"""The state of a scope: its revision, and the stamp that distinguishes it from other states of that revision."""


class KnowledgeCache:
    """The committed knowledge of some scopes. It may be used from several threads."""

    def __init__(self, max_assertions: int = MAX_ASSERTIONS) -> None:
        self._max_assertions, self._lock = max_assertions, Lock()
        self._entries: OrderedDict[Scope, tuple[Version, Knowledge]] = OrderedDict()
        self._size = 0

    def find(self, scope: Scope, version: Version) -> Knowledge | None:
        """Return what is known of a scope in this state, None if that is not cached."""
        with self._lock:
            cached_version, known = self._entries.get(scope, (None, None))
            if cached_version != version:
                return None
            self._entries.move_to_end(scope)
            return known

    def keep(self, scope: Scope, version: Version, known: Knowledge) -> None:
        """Cache the knowledge of a scope, and drop the least recently used scopes if the cache is too large."""
        with self._lock:
            if scope in self._entries:
                self._size -= len(self._entries[scope][1].by_id)
            self._entries[scope] = version, known
            self._entries.move_to_end(scope)
            self._size += len(known.by_id)
            while self._size > self._max_assertions and len(self._entries) > 1:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._size -= len(dropped.by_id)


class UncommittedCache:
    """Cache entries that one transaction has read or changed. Others see them once the transaction is committed."""

    def __init__(self, cache: KnowledgeCache) -> None:
        self._cache = cache
        self._entries: dict[Scope, tuple[Version, Knowledge]] = {}

    def find(self, scope: Scope, version: Version) -> Knowledge | None:
        """Return what is known of a scope in this state, None if that is not cached."""
        own_version, known = self._entries.get(scope, (None, None))
        return known if own_version == version else self._cache.find(scope, version)

    def keep(self, scope: Scope, version: Version, known: Knowledge) -> None:
        """Keep what is known of a scope for the transaction."""
        self._entries[scope] = version, known

    def commit(self) -> None:
        """Cache everything for other transactions."""
        for scope, (version, known) in self._entries.items():
            self._cache.keep(scope, version, known)
