"""What was read of scopes, kept for the next question: right when anybody writes, and bounded in memory."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from sqlalchemy import Connection

from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from afterword.store.database.watch import Watch
from afterword.store.reading import snapshots
from afterword.store.reading.snapshots import Snapshot
from afterword.store.reading.views import View
from afterword.telemetry import Count, count

if TYPE_CHECKING:
    from afterword.store.database.poll import Poll

T = TypeVar("T")

MOST_UNITS = 300_000
"""How many facts and turns are kept at most; some 4 kB each, and what their vectors take."""


@dataclass(slots=True)
class _Kept:
    view: View
    version: object


class Remembered:
    """The views of the scopes that were asked for last, of one store.

    A view is used again only while the scope's revision is the one that it was read at, and until the next fact begins
    or ends.
    """

    def __init__(self, most_units: int = MOST_UNITS) -> None:
        self._most_units = most_units
        self._kept: OrderedDict[Scope, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._watch: Watch | None = None
        self._poll: Poll | None = None

    async def view(self, store: Store, scope: Scope, at: datetime) -> View:
        """Return what the scope holds at an instant. Raises `StoreError` where the store does not answer."""
        version = self._version(store)
        kept = self._kept.get(scope)
        if kept is not None and (version is None or kept.version != version):
            revision = await self._revision(store, scope)
            if revision != kept.view.snapshot.revision:
                count(Count.CACHE, cache="view", hit=False)
                return await self._read(store, scope, at, version, kept.view)
            kept.version = version
        count(Count.CACHE, cache="view", hit=kept is not None)
        if kept is None:
            return await self._read(store, scope, at, version, None)
        with self._lock:
            self._kept[scope] = kept
            self._kept.move_to_end(scope)
        if kept.view.is_right_at(at):
            return kept.view
        view = View(kept.view.snapshot, at, kept.view)
        if at >= kept.view.since:
            kept.view = view
        return view

    def revision_of(self, scope: Scope) -> int | None:
        """Return the revision that is kept of a scope, None where nothing is."""
        kept = self._kept.get(scope)
        return kept.view.snapshot.revision if kept else None

    def close(self) -> None:
        """Forget everything and let go of the file."""
        with self._lock:
            self._kept.clear()
        if self._watch is not None:
            self._watch.close()
        if self._poll is not None:
            self._poll.close()

    def _version(self, store: Store) -> object:
        """Return what changes with the store's file; None where there is no file, or it cannot be held."""
        if self._watch is None:
            if store.path is None:
                return None
            self._watch = Watch(store.path)
        return self._watch.version()

    async def _revision(self, store: Store, scope: Scope) -> int:
        def work(connection: Connection) -> int:
            return snapshots.revision(connection, scope)[1]

        if store.dialect == "postgresql":
            held = await self._polled(store).revision(scope)
        else:
            held = self._watch.read(work) if self._watch is not None else None
        if held is not None:
            return held
        async with store.connection(writing=False) as connection:
            return await connection.run_sync(work)

    def _polled(self, store: Store) -> Poll:
        if self._poll is None:
            # Loaded by those alone who have a server.
            from afterword.store.database.poll import Poll

            self._poll = Poll(store.connect_arguments)
        return self._poll

    async def read(self, store: Store, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads in one transaction, on the connection that is held where there is one.

        Raises `StoreError` where the store does not answer.
        """
        self._version(store)
        held = await asyncio.to_thread(self._watch.read, work) if self._watch is not None else None
        if held is not None:
            return held
        async with store.connection(writing=False) as connection:
            return await connection.run_sync(work)

    async def _read(self, store: Store, scope: Scope, at: datetime, version: object, before: View | None) -> View:
        def work(connection: Connection) -> Snapshot:
            return snapshots.read(connection, scope, before.snapshot if before else None)

        held = await self.read(store, work)
        view = await asyncio.to_thread(_ready, held, at, before)
        self._keep(scope, _Kept(view, version))
        return view

    def _keep(self, scope: Scope, kept: _Kept) -> None:
        with self._lock:
            self._kept[scope] = kept
            self._kept.move_to_end(scope)
            total = sum(one.view.size for one in self._kept.values())
            while total > self._most_units and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.view.size


def _ready(snapshot: Snapshot, at: datetime, before: View | None) -> View:
    view = View(snapshot, at, before)
    view.index  # noqa: B018 - made here, off the event loop
    return view


_of_store: WeakKeyDictionary[Store, Remembered] = WeakKeyDictionary()


def remembered(store: Store) -> Remembered:
    """Return what is remembered of a store, shared by all that ask it, until the store is closed."""
    found = _of_store.get(store)
    if found is None:
        found = _of_store.setdefault(store, Remembered())
        store.on_close(found.close)
    return found
