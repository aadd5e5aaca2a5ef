"""Stores and reads tombstones, converts them for files, and collects those of one act of forgetting.

Undoing a merge moves sessions back to their former scopes. What was forgotten meanwhile must not come back with them.
So tombstones are also added to the scopes that held the forgotten content before a merge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from afterword.facts.assertions import digest
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.privacy.seen_turns import StateReading
from afterword.privacy.tombstones import ForgottenContent, Tombstone, TombstoneKey, TombstoneKind, text_tombstones
from afterword.store.database.clock import without_future
from afterword.store.database.statements import chunks, insert_missing
from afterword.store.forgetting.hash_keys import ensure_store_key, read_hash_keys
from afterword.store.forgetting.seen_turn_rows import copy_seen_turns, note_turns, read_seen_turns, seen_lines
from afterword.store.forgetting.tables import TombstoneRow
from afterword.store.merging.moves import former_sessions, merged_scopes, names_elsewhere, was_moved
from afterword.store.scope_rows import ensure_scope, lock_scope, scope_key


def read_forgotten(
    transaction: Session, scope: Scope, session_id: str | None = None, *, creates_key: bool = False
) -> ForgottenContent:
    """Return what was forgotten of a scope, and with `session_id` also of that session.

    Tombstones in the scopes that held the content before a merge count too. With `creates_key` the store gets its key
    if it has none yet, to recognise turns by it.
    """
    keys = read_hash_keys(transaction)
    if creates_key and not keys:
        keys = [ensure_store_key(transaction)]
    by_session = read_forgotten_by_session(transaction, scope, [session_id or ""], keys)
    return by_session.get(session_id or "") or ForgottenContent(scope, session_id, keys, ())


def read_forgotten_by_session(
    transaction: Session, scope: Scope, session_ids: Sequence[str], keys: Sequence[TombstoneKey]
) -> dict[str, ForgottenContent]:
    """Return what was forgotten of each of these sessions and of their scope, by session id; {} without any key.

    Of another scope that held a session, all tombstones count if it was merged into this scope. Otherwise only those of
    the session itself count. The id "" stands for the scope without a session. What was said in no session was never
    part of a merged scope, so of that only the forgotten values count.
    """
    scope_id = scope_key(transaction, scope)
    if not (scope_id or scope.other_forms) or not keys:
        return {}
    forms = (scope, *scope.other_forms)
    own_ids = [scope_key(transaction, form) for form in forms]
    has_own = select(TombstoneRow.id).where(col(TombstoneRow.scope_id).in_(own_ids)).exists()
    has_tombstones, has_moved = transaction.exec(select(has_own, was_moved(scope_id))).one()
    former = former_sessions(transaction, scope_id, session_ids) if has_moved else {}
    of_whole_scope = {*forms, *(merged_scopes(transaction, scope_id) if has_moved else ())}
    # Under which scopes and names each session was stored, and the hashes of these.
    names_of = {name: [*((form, name) for form in forms), *former.get(name, ())] for name in session_ids}
    places = {known: [key.session_hash(*known) for key in keys] for names in names_of.values() for known in names}
    session_places = [place for of_name in places.values() for place in of_name]
    stored: dict[tuple[Scope, str], list[Tombstone]] = defaultdict(list)
    for owner in {owner for owner, _ in places} if has_tombstones or has_moved else ():
        for tombstone in _read_tombstones(transaction, scope_key(transaction, owner), ["", *session_places]):
            stored[owner, tombstone.place].append(tombstone)
    seen = read_seen_turns(transaction, session_places)
    forgotten: dict[str, ForgottenContent] = {}
    for name, names in names_of.items():
        own_places = [place for known in names for place in places[known]]
        tombstones = [
            tombstone
            for owner in dict.fromkeys(owner for owner, _ in names)
            for place in ("", *own_places)
            if place or owner in of_whole_scope
            for tombstone in stored[owner, place]
            if name or owner in forms or tombstone.kind is TombstoneKind.SLOT
        ]
        # A session may have a list under each of its names. Lists only grow, so the longest is the newest.
        lists = [seen[place] for place in own_places if place in seen]
        longest = max(lists, key=lambda each: len(each.turns), default=None)
        forgotten[name] = ForgottenContent(scope, name or None, keys, tombstones, names[1:], longest)
    return forgotten


def _read_tombstones(transaction: Session, scope_id: int, places: Sequence[str]) -> list[Tombstone]:
    of_scope = select(TombstoneRow).where(TombstoneRow.scope_id == scope_id)
    return [
        _tombstone_of(row)
        for chunk in chunks(places)
        for row in transaction.exec(of_scope.where(col(TombstoneRow.place).in_(chunk)))
    ]


def note_state(transaction: Session, scope: Scope, session_id: str, reading: StateReading) -> None:
    """Store which turns of a session a state has, to recognise them in later states."""
    forgotten = read_forgotten(transaction, scope, session_id, creates_key=True)
    note_turns(transaction, scope, session_id, forgotten, forgotten.recognise_turns(reading))


def add_tombstones(transaction: Session, scope: Scope, tombstones: Iterable[Tombstone]) -> tuple[int, int]:
    """Store these tombstones unless they are stored already; return how many there are, and how many are new."""
    scope_id = ensure_scope(transaction, scope)
    rows = [_values(scope, scope_id, tombstone) for tombstone in tombstones]
    return len(rows), sum(insert_missing(transaction, TombstoneRow, chunk) for chunk in chunks(rows))


def add_imported_tombstones(transaction: Session, tombstones: Sequence[tuple[Scope, Tombstone]]) -> int:
    """Store the tombstones of a file, each given with its scope; return how many are new.

    Instants in the future are cut to now, so that nothing new is forbidden.
    """
    instants = without_future(transaction, [tombstone.until for _, tombstone in tombstones])
    by_scope: dict[Scope, list[Tombstone]] = defaultdict(list)
    for (scope, tombstone), until in zip(tombstones, instants, strict=True):
        by_scope[scope].append(replace(tombstone, until=until))
    return sum(add_tombstones(transaction, scope, of_scope)[1] for scope, of_scope in by_scope.items())


def tombstone_lines(transaction: Session, scopes: Sequence[Scope]) -> list[dict[str, Any]]:
    """Return the hash keys, and tombstones and seen turns of these scopes and of those merged into them, as lines."""
    lines = [{"row": "key", "id": key.id, "key": key.secret.hex()} for key in read_hash_keys(transaction)]
    taken_over = (merged_scopes(transaction, scope_key(transaction, scope)) for scope in scopes)
    for scope in dict.fromkeys((*scopes, *(former for formers in taken_over for former in formers))):
        ids = [scope_key(transaction, form) for form in (scope, *scope.other_forms)]
        rows = transaction.exec(
            select(TombstoneRow).where(col(TombstoneRow.scope_id).in_(ids)).order_by(TombstoneRow.id)
        )
        lines += [_tombstone_line(scope, _tombstone_of(row)) for row in rows]
        lines += seen_lines(transaction, scope, ids)
    return lines


def parse_tombstone(line: Mapping[str, Any]) -> tuple[Scope, Tombstone]:
    """Return the scope and the tombstone of a line of a file. Raises `ValueError` and others if the line is damaged."""
    spans = tuple((int(first), int(last)) for first, last in line["spans"])
    until = datetime.fromisoformat(line["until"])
    key_id, place, mark = line["key_id"], line["place"], line["mark"]
    times = int(line["times"])
    if until.tzinfo is None or not 0 <= times < 2**31:
        raise ValueError
    "".join((key_id, place, mark)).encode()
    tombstone = Tombstone(TombstoneKind(line["kind"]), key_id, place, mark, until, spans, times)
    return Scope.parse(line["scope"]), tombstone


def _tombstone_of(row: TombstoneRow) -> Tombstone:
    spans = tuple((first, last) for first, last in row.spans)
    return Tombstone(TombstoneKind(row.kind), row.key_id, row.place, row.mark, row.until, spans, row.times)


def _columns(tombstone: Tombstone) -> dict[str, Any]:
    return {**asdict(tombstone), "kind": str(tombstone.kind)}


def _values(scope: Scope, scope_id: int, tombstone: Tombstone) -> dict[str, Any]:
    until = tombstone.until.isoformat()
    identity = (tombstone.key_id, tombstone.kind, tombstone.place, tombstone.mark, tombstone.spans, tombstone.times)
    tombstone_id = digest(str(scope), *identity, until, length=32)
    return {"id": tombstone_id, "scope_id": scope_id, **_columns(tombstone)}


def _tombstone_line(scope: Scope, tombstone: Tombstone) -> dict[str, Any]:
    return {"row": "tombstone", "scope": str(scope), **_columns(tombstone), "until": tombstone.until.isoformat()}


class NewTombstones:
    """Collects the tombstones of one act of forgetting.

    It must be created before anything is deleted, since it reads the names that sessions had in other scopes.
    """

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, key: TombstoneKey) -> None:
        self._transaction, self._scope, self._key = transaction, scope, key
        self._by_scope: dict[Scope, list[Tombstone]] = defaultdict(list)
        self._merged = merged_scopes(transaction, scope_id)
        # What was moved to another scope is still there, and is not forgotten with a later session of the same id.
        self._names_elsewhere = names_elsewhere(transaction, scope_id, given_away=("undone",))

    def __bool__(self) -> bool:
        return any(self._by_scope.values())

    def add(self, tombstones: Iterable[Tombstone]) -> None:
        """Add tombstones of the scope itself."""
        self._by_scope[self._scope] += tombstones

    def add_session(self, session_id: str, turns: Sequence[Turn], until: datetime) -> list[Tombstone]:
        """Add tombstones for these turns, all that were said in a session up to `until`; return those of the scope."""

        def tombstones(scope: Scope, name: str) -> list[Tombstone]:
            place = self._key.session_hash(scope, name)
            texts = text_tombstones(self._key, scope, name, turns, until)
            return [self._tombstone(TombstoneKind.SESSION, until, place=place), *texts]

        for scope, name in self._names_elsewhere.get(session_id, ()):
            self._by_scope[scope] += tombstones(scope, name)
            # An undo of the merge no longer knows the session, and its turns may have lost words that were forgotten.
            names, owner_id = [((self._scope, session_id), (scope, name))], lock_scope(self._transaction, scope)
            copy_seen_turns(self._transaction, names, owner_id, read_hash_keys(self._transaction))
        own = tombstones(self._scope, session_id)
        self.add(own)
        return own

    def add_slot(self, subject: str, attribute: str, value: str, until: datetime) -> None:
        """Add a tombstone for a value of a subject and attribute, as far as it was said up to `until`."""
        for scope in (self._scope, *self._merged):
            mark = self._key.slot_hash(scope, subject, attribute, value)
            self._by_scope[scope].append(self._tombstone(TombstoneKind.SLOT, until, mark=mark))

    def add_scope(self, until: datetime) -> None:
        """Add a tombstone for everything that was said in the scope up to `until`."""
        self.add([self._tombstone(TombstoneKind.SCOPE, until)])
        for scope, merged_at in self._merged.items():
            # What was said in the other scope after the merge was never part of this scope.
            self._by_scope[scope].append(self._tombstone(TombstoneKind.SCOPE, min(until, merged_at)))

    def store(self) -> int:
        """Store all collected tombstones, and return how many of them belong to the scope that forgets."""
        own = dict.fromkeys(self._by_scope.pop(self._scope, ()))
        for scope, tombstones in self._by_scope.items():
            lock_scope(self._transaction, scope)
            add_tombstones(self._transaction, scope, dict.fromkeys(tombstones))
        return add_tombstones(self._transaction, self._scope, own)[0]

    def _tombstone(self, kind: TombstoneKind, until: datetime, *, place: str = "", mark: str = "") -> Tombstone:
        return Tombstone(kind, self._key.id, place, mark, until)
