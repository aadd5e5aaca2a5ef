"""The cache of views. It notices every change, loads a scope once for concurrent readers, and is bounded in memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import OrderedDict
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from afterword.errors import StoreUnreachable
from afterword.facts.scopes import Scope
from afterword.store.database.cancellation import loop_future_of
from afterword.store.database.engine import Store
from afterword.store.database.file_marks import settled_mark
from afterword.store.reading import snapshots
from afterword.store.reading.views import View
from afterword.telemetry import Count, count

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
RECENT = 4
"""How many of the latest views are measured again whenever a view is read, since a view grows after it was read."""
MOST_UNASKED = 100
"""How many times a view is used before the database is asked again and the size of the view is measured."""


class ViewCache:
    """The cached views of one store, shared by all its threads and event loops.

    A view is reused while the state of its scope is unchanged, until the next fact begins or ends. Concurrent readers
    of a scope share one load. If all views take more than `most_bytes`, the least recently used views are dropped.
    """

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = usable_memory_bytes() // 4 if most_bytes is None else most_bytes
        self._views: OrderedDict[Scope, View] = OrderedDict()
        self._past_view: View | None = None
        self._view_of_facts: View | None = None
        self._bytes: dict[Scope, int] = {}
        self._loads: dict[Scope, Future[View]] = {}
        self._times_closed = 0
        self._lock = threading.Lock()

    async def view(self, store: Store, scope: Scope, at: datetime, *, patience_s: float | None = None) -> View:
        """Return the view of a scope at an instant. Raises `StoreError` if the store does not answer.

        If loading takes longer than `patience_s`, the view that was loaded last is returned, if there is one. The
        loading continues and serves the next caller.
        """
        unchanged = self._unchanged_view(scope, at)
        if unchanged is not None:
            return unchanged
        loading = asyncio.ensure_future(self._load_present_view(store, scope, at))
        loading.add_done_callback(_retrieve_error)
        if patience_s is not None and scope in self._views:
            await asyncio.wait([loading], timeout=patience_s)
            stale = self._views.get(scope)
            if not loading.done() and stale is not None:
                count(Count.CACHE, cache="view", hit=True)
                return self._view_at(stale, at)
        return self._view_at(await asyncio.shield(loading), at)

    def _unchanged_view(self, scope: Scope, at: datetime) -> View | None:
        """Return the cached view if the database file is unchanged, else None. No statement is run."""
        view = self._views.get(scope)
        if view is None or not view.unasked_left or not view.is_valid_at(at):
            return None
        if view.mark is None or not view.mark.is_unchanged():
            return None
        view.unasked_left -= 1
        with self._lock:
            if scope in self._views:
                self._views.move_to_end(scope)
        count(Count.CACHE, cache="view", hit=True)
        return view

    def _view_at(self, view: View, at: datetime) -> View:
        """Return a view for another instant. The last such view is cached, since a list is read page by page."""
        if view.is_valid_at(at):
            return view
        past = self._past_view
        if past is None or past.snapshot is not view.snapshot or not past.is_valid_at(at):
            past = self._past_view = View(view.snapshot, at, view)
        return past

    def is_loaded(self, scope: Scope) -> bool:
        """Return whether a view of the scope is cached. It may show a former state, which is quickly updated."""
        return scope in self._views

    def view_of_facts(self, connection: Connection, scope: Scope, at: datetime) -> View:
        """Return a view of the facts of a scope without its turns, for lists. It is read sooner than the whole scope.

        The last one is cached, since a web page with two lists of facts asks for it twice.
        """
        now, view = snapshots.read_version(connection, scope), self._view_of_facts
        if view is None or (view.snapshot.scope, view.snapshot.version) != (scope, now):
            view = View(snapshots.read_fact_snapshot(connection, scope, now), at)
        if not view.is_valid_at(at):
            view = View(view.snapshot, at, view)
        with self._lock:
            self._view_of_facts = view
            self._drop_views(least=0)
        return view

    async def _load_present_view(self, store: Store, scope: Scope, at: datetime) -> View:
        running, times_closed = self._loads.get(scope), self._times_closed
        if running is not None:
            # That load may have begun before the caller's last write, so it is not used.
            ended = loop_future_of(running)
            ended.add_done_callback(lambda future: future.cancelled() or future.exception())  # else asyncio logs it
            await asyncio.wait([ended])  # a caller that is cancelled must not end the load of the others
            if self._times_closed != times_closed:
                # A load would open the store again, mostly for a caller that no longer waits.
                raise StoreUnreachable(f"the store was closed while {scope} was read; open it again")
        return await loop_future_of(self._begin_load(store, scope, at))

    def cached_revision(self, scope: Scope) -> int | None:
        """Return the revision of the cached view of a scope, None if none is cached."""
        view = self._views.get(scope)
        return view.snapshot.version.revision if view else None

    def drop(self, scope: Scope) -> None:
        """Remove a scope from the cache."""
        with self._lock:
            self._views.pop(scope, None)
            self._past_view = None
            self._drop_view_of_facts(scope)
            self._bytes.pop(scope, None)

    def close(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._times_closed += 1
            self._views.clear()
            self._past_view = self._view_of_facts = None
            self._bytes.clear()

    def _begin_load(self, store: Store, scope: Scope, at: datetime) -> Future[View]:
        """Return the running load of a scope, or start one."""
        with self._lock:
            load = self._loads.get(scope)
            if load is None:
                load = self._loads[scope] = store.begin_in_reader_thread(partial(self._load_view, store, scope, at))
        # This must be outside of the lock: if the load has already ended, `_end_load` is called at once.
        load.add_done_callback(partial(self._end_load, scope))
        return load

    def _end_load(self, scope: Scope, load: Future[View]) -> None:
        with self._lock:
            if self._loads.get(scope) is load:
                del self._loads[scope]

    def _load_view(self, store: Store, scope: Scope, at: datetime) -> View:
        before = self._views.get(scope)
        self._drop_view_of_facts(scope)
        with store.reading() as transaction:
            snapshot = snapshots.read(transaction.connection(), scope, before.snapshot if before else None)
            is_same = before is not None and snapshot is before.snapshot
            view = before if before is not None and is_same else View(snapshot, at, before)
            if not view.is_valid_at(at) and at >= view.since:
                view = View(snapshot, at, view)
            if view is not before:
                for read in list(view.readers.values()):
                    read(view, transaction)
        count(Count.CACHE, cache="view", hit=is_same)
        if view is before:
            # The mark is set at the second reading, since many scopes are read only once.
            view.mark = settled_mark(
                store, lambda connection: snapshots.read_version(connection, scope) == snapshot.version
            )
            view.unasked_left = MOST_UNASKED
        self._cache_view(scope, view)
        return view

    def _cache_view(self, scope: Scope, view: View) -> None:
        with self._lock:
            self._views[scope] = view
            if self._past_view is not None and self._past_view.snapshot is not view.snapshot:
                self._past_view = None  # it refers to a table that is no longer needed
            self._views.move_to_end(scope)
            for recent in islice(reversed(self._views), RECENT):
                self._bytes[recent] = self._views[recent].memory_bytes
            self._drop_views(least=1)
            if self._is_over_limit:
                self._view_of_facts = None

    @property
    def _is_over_limit(self) -> bool:
        of_facts = self._view_of_facts.memory_bytes if self._view_of_facts is not None else 0
        return sum(self._bytes.values()) + of_facts > self._most_bytes

    def _drop_view_of_facts(self, scope: Scope) -> None:
        if self._view_of_facts is not None and self._view_of_facts.snapshot.scope == scope:
            self._view_of_facts = None

    def _drop_views(self, *, least: int) -> None:
        """Drop the least recently used views while all take too much memory and more than `least` are left."""
        while self._is_over_limit and len(self._views) > least:
            dropped, _ = self._views.popitem(last=False)
            del self._bytes[dropped]


def usable_memory_bytes() -> int:
    """Return the memory of the machine, or the limit of this process's container if that is lower."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # there is no container, or it has no limit
        return min(machine, int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    return machine


def _retrieve_error(loading: asyncio.Task[View]) -> None:
    # asyncio would report the error as never retrieved if the caller did not wait for the load.
    if not loading.cancelled():
        loading.exception()


_caches: WeakKeyDictionary[Store, ViewCache] = WeakKeyDictionary()


def view_cache_of(store: Store) -> ViewCache:
    """Return the cache of views of a store. It is emptied when the store is closed."""
    cache = _caches.get(store)
    if cache is None:
        cache = _caches.setdefault(store, ViewCache(store.limits.cache_bytes))
        store.on_close(cache.close)
        store.on_forgetting(cache.drop)
    return cache
