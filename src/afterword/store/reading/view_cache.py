"""What was read of scopes, kept for the next question: right when anybody writes, and bounded in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from afterword.store.reading import snapshots
from afterword.store.reading.views import View
from afterword.telemetry import Count, count

if TYPE_CHECKING:
    pass

T = TypeVar("T")

MOST_UNITS = 300_000
"""How many facts and turns are kept at most; some 4 kB each, and what their vectors take."""


class Remembered:
    """The views of the scopes that were asked for last, of one store.

    A view is used again only while the scope's revision is the one that it was read at, and until the next fact begins
    or ends.
    """

    def __init__(self, most_units: int = MOST_UNITS) -> None:
        self._most_units = most_units
        self._kept: OrderedDict[Scope, View] = OrderedDict()
        self._lock = threading.Lock()

    async def view(self, store: Store, scope: Scope, at: datetime) -> View:
        """Return what the scope holds at an instant. Raises `StoreError` where the store does not answer."""
        kept = self._kept.get(scope)
        if kept is None:
            count(Count.CACHE, cache="view", hit=False)
            return await self._read(store, scope, at, None)
        _, revision = await store.read(lambda transaction: snapshots.revision(transaction.connection(), scope))
        is_same = revision == kept.snapshot.revision
        count(Count.CACHE, cache="view", hit=is_same)
        if not is_same:
            return await self._read(store, scope, at, kept)
        if not kept.is_right_at(at):
            later = View(kept.snapshot, at, kept)
            if at < kept.since:
                return later
            kept = later
        self._keep(scope, kept)
        return kept

    def revision_of(self, scope: Scope) -> int | None:
        """Return the revision that is kept of a scope, None where nothing is."""
        kept = self._kept.get(scope)
        return kept.snapshot.revision if kept else None

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    async def _read(self, store: Store, scope: Scope, at: datetime, before: View | None) -> View:
        def work(transaction: Session) -> View:
            snapshot = snapshots.read(transaction.connection(), scope, before.snapshot if before else None)
            view = View(snapshot, at, before)
            view.index  # noqa: B018 - made here, off the event loop
            return view

        view = await store.read(work)
        self._keep(scope, view)
        return view

    def _keep(self, scope: Scope, view: View) -> None:
        with self._lock:
            self._kept[scope] = view
            self._kept.move_to_end(scope)
            total = sum(each.size for each in self._kept.values())
            while total > self._most_units and len(self._kept) > 1:
                _, dropped = self._kept.popitem(last=False)
                total -= dropped.size


_of_store: WeakKeyDictionary[Store, Remembered] = WeakKeyDictionary()


def remembered(store: Store) -> Remembered:
    """Return what is remembered of a store, shared by all that ask it, until the store is closed."""
    found = _of_store.get(store)
    if found is None:
        found = _of_store.setdefault(store, Remembered())
        store.on_close(found.close)
    return found
