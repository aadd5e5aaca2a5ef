"""The tombstones that a forgetting adds, also to the scopes where the forgotten content was known before a merge.

Undoing a merge moves sessions back. What was forgotten of them meanwhile must not come back there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import func, or_
from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.privacy.tombstones import Key, Tombstone, TombstoneKind
from afterword.store import scope_rows
from afterword.store.forgetting.text_columns import SessionKeys
from afterword.store.forgetting.tombstone_rows import add_tombstones
from afterword.store.merging.moved_sources import merged_scopes, names_elsewhere
from afterword.store.tables import TurnRow


class NewTombstones:
    """The tombstones of one forgetting. Make it before anything is erased: a session takes its former names along."""

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, key: Key) -> None:
        self._transaction, self._scope, self._key = transaction, scope, key
        self._by_scope: dict[Scope, list[Tombstone]] = defaultdict(list)
        self._merged = merged_scopes(transaction, scope_id)
        self._names_elsewhere = names_elsewhere(transaction, scope_id)

    def __bool__(self) -> bool:
        return any(self._by_scope.values())

    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Add tombstones of the scope itself."""
        self._by_scope[self._scope] += tombstones

    def add_session(self, session: SessionKeys, until: datetime) -> Tombstone:
        """Add and return the tombstone of what was said in a session up to that time."""
        query = select(func.count()).select_from(TurnRow).where(TurnRow.session_pk == session.key)
        query = query.where(or_(col(TurnRow.said_at).is_(None), col(TurnRow.said_at) <= until))
        times = self._transaction.exec(query).one()
        names = (self._scope, session.session_id), *self._names_elsewhere.get(session.session_id, ())
        for scope, name in names:
            place = self._key.place(scope, name)
            self._by_scope[scope].append(self._tombstone(TombstoneKind.SESSION, until, place=place, times=times))
        return self._by_scope[self._scope][-1]

    def add_slot(self, subject: str, attribute: str, value: str, until: datetime) -> None:
        """Add the tombstone of a value of a slot that was said up to that time."""
        for scope in (self._scope, *self._merged):
            mark = self._key.slot(scope, subject, attribute, value)
            self._by_scope[scope].append(self._tombstone(TombstoneKind.SLOT, until, mark=mark))

    def add_scope(self, until: datetime) -> None:
        """Add the tombstone of all that was said up to that time."""
        self.add([self._tombstone(TombstoneKind.SCOPE, until)])
        for scope, merged_at in self._merged.items():
            # What was said there after the merge belongs to that scope alone.
            self._by_scope[scope].append(self._tombstone(TombstoneKind.SCOPE, min(until, merged_at)))

    def store(self) -> int:
        """Store the tombstones, and return how many the scope itself has got."""
        own = dict.fromkeys(self._by_scope.pop(self._scope, ()))
        for scope, tombstones in self._by_scope.items():
            scope_rows.lock_scope(self._transaction, scope)
            add_tombstones(self._transaction, scope, dict.fromkeys(tombstones))
        return add_tombstones(self._transaction, self._scope, own)

    def _tombstone(
        self, kind: TombstoneKind, until: datetime, *, place: str = "", mark: str = "", times: int = 0
    ) -> Tombstone:
        return Tombstone(kind, self._key.id, place, mark, until, times=times)
