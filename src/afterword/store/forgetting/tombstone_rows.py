"""Stores and reads tombstones, converts them for files, and collects those of one act of forgetting.

Undoing a merge moves sessions back to their former scopes. What was forgotten meanwhile must not come back with them.
So tombstones are also added to the scopes that held the forgotten content before a merge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from afterword.facts.assertions import digest
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.privacy.seen_turns import SeenTurns, TurnsToRecognise
from afterword.privacy.tombstones import ForgottenContent, Tombstone, TombstoneKey, TombstoneKind, text_tombstones
from afterword.store.database.clock import clamp_to_present
from afterword.store.database.statements import chunks, insert_missing
from afterword.store.forgetting.hash_keys import ensure_store_key, read_hash_keys
from afterword.store.forgetting.seen_turn_rows import copy_seen_turns, note_seen_turns, read_seen_turns, seen_turn_lines
from afterword.store.forgetting.tables import TombstoneRow
from afterword.store.merging.moves import (
    former_session_names,
    has_moves_condition,
    scopes_merged_into,
    session_names_elsewhere,
)
from afterword.store.scope_rows import ensure_scope, lock_scope, scope_key

_SessionName = tuple[Scope, str]
"""The scope and the id under which a session is or was stored."""


def read_forgotten_content(
    transaction: Session, scope: Scope, session_id: str | None = None, *, creates_key: bool = False
) -> ForgottenContent:
    """Return what was forgotten of a scope, and with `session_id` also of that session.

    Tombstones in the scopes that held the content before a merge count too. With `creates_key` the store gets its key
    if it has none yet, to recognise turns by it.
    """
    keys = read_hash_keys(transaction)
    if creates_key and not keys:
        keys = [ensure_store_key(transaction)]
    by_session = read_forgotten_content_by_session(transaction, scope, [session_id or ""], keys)
    return by_session.get(session_id or "") or ForgottenContent(scope, session_id, keys, ())


def read_forgotten_content_by_session(
    transaction: Session, scope: Scope, session_ids: Sequence[str], keys: Sequence[TombstoneKey]
) -> dict[str, ForgottenContent]:
    """Return what was forgotten of each of these sessions and of their scope, by session id; {} without any key.

    If another scope that held a session was merged into this scope, all of its tombstones count. Otherwise only its
    tombstones of the session itself count. The id "" stands for what was said in no session. That was never part of a
    merged scope, so of the tombstones of merged scopes only those of values count for it.
    """
    scope_id = scope_key(transaction, scope)
    if not (scope_id or scope.other_forms) or not keys:
        return {}
    forms = (scope, *scope.other_forms)
    own_ids = [scope_key(transaction, form) for form in forms]
    has_own = select(TombstoneRow.id).where(col(TombstoneRow.scope_id).in_(own_ids)).exists()
    has_tombstones, has_moved = transaction.exec(select(has_own, has_moves_condition(scope_id))).one()
    former = former_session_names(transaction, scope_id, session_ids) if has_moved else {}
    merged = scopes_merged_into(transaction, scope_id) if has_moved else {}
    # Under which scopes and ids each session was stored, and the hashes of these names.
    names_of = {each: [*((form, each) for form in forms), *former.get(each, ())] for each in session_ids}
    places = {name: [key.session_hash(*name) for key in keys] for names in names_of.values() for name in names}
    all_places = [place for of_name in places.values() for place in of_name]
    owners = {owner for owner, _ in places} if has_tombstones or has_moved else ()
    tombstones = _read_tombstones(transaction, owners, ["", *all_places])
    stored = _StoredForgotten(forms, keys, merged, places, tombstones, read_seen_turns(transaction, all_places))
    return {session_id: stored.of_session(session_id, names) for session_id, names in names_of.items()}


def _read_tombstones(
    transaction: Session, scopes: Iterable[Scope], places: Sequence[str]
) -> dict[tuple[Scope, str], list[Tombstone]]:
    """Return the tombstones of these scopes with one of these places, by scope and place."""
    found: dict[tuple[Scope, str], list[Tombstone]] = defaultdict(list)
    for scope in scopes:
        of_scope = select(TombstoneRow).where(TombstoneRow.scope_id == scope_key(transaction, scope))
        for chunk in chunks(places):
            for row in transaction.exec(of_scope.where(col(TombstoneRow.place).in_(chunk))):
                found[scope, row.place].append(_tombstone_of(row))
    return found


@dataclass(frozen=True, slots=True)
class _StoredForgotten:
    """What is stored about forgotten content of a scope, and about the turns that were seen in its sessions.

    `forms` are the scope and the other forms of its name, `merged` the scopes that were merged into it. `places` holds
    the hashes of each name that a session has or had. `tombstones` are grouped by scope and place.
    """

    forms: Sequence[Scope]
    keys: Sequence[TombstoneKey]
    merged: Collection[Scope]
    places: Mapping[_SessionName, Sequence[str]]
    tombstones: Mapping[tuple[Scope, str], Sequence[Tombstone]]
    seen: Mapping[str, SeenTurns]

    def of_session(self, session_id: str, names: Sequence[_SessionName]) -> ForgottenContent:
        """Return what was forgotten of a session with these names, or of the scope itself if the id is ""."""
        places = [place for name in names for place in self.places[name]]
        owners = dict.fromkeys(owner for owner, _ in names)
        tombstones = [each for owner in owners for each in self._tombstones_in(owner, session_id, places)]
        # A session may have a list under each of its names. Lists only grow, so the longest is the newest.
        lists = [self.seen[place] for place in places if place in self.seen]
        longest = max(lists, key=lambda seen: len(seen.turns), default=None)
        return ForgottenContent(self.forms[0], session_id or None, self.keys, tombstones, names[1:], longest)

    def _tombstones_in(self, owner: Scope, session_id: str, places: Sequence[str]) -> list[Tombstone]:
        is_own = owner in self.forms
        counted = ["", *places] if is_own or owner in self.merged else places
        tombstones = [each for place in counted for each in self.tombstones.get((owner, place), ())]
        if session_id or is_own:
            return tombstones
        return [each for each in tombstones if each.kind is TombstoneKind.SLOT]


def has_session_tombstone(transaction: Session, scope: Scope, scope_id: int, session_id: str) -> bool:
    """Return whether a session of a scope was forgotten."""
    of_session = TombstoneRow.kind == str(TombstoneKind.SESSION), TombstoneRow.scope_id == scope_id
    places = [key.session_hash(scope, session_id) for key in read_hash_keys(transaction)]
    query = select(TombstoneRow.id).where(*of_session, col(TombstoneRow.place).in_(places)).limit(1)
    return transaction.exec(query).first() is not None


def note_turns_of_state(transaction: Session, scope: Scope, session_id: str, reading: TurnsToRecognise) -> None:
    """Store which turns of a session a state has, to recognise them in later states."""
    forgotten = read_forgotten_content(transaction, scope, session_id, creates_key=True)
    note_seen_turns(transaction, scope, session_id, forgotten, forgotten.recognise_seen_turns(reading))


def add_tombstones(transaction: Session, scope: Scope, tombstones: Iterable[Tombstone]) -> tuple[int, int]:
    """Store these tombstones unless they are stored already; return how many there are, and how many are new."""
    scope_id = ensure_scope(transaction, scope)
    rows = [_row_values(scope, scope_id, tombstone) for tombstone in tombstones]
    return len(rows), sum(insert_missing(transaction, TombstoneRow, chunk) for chunk in chunks(rows))


def add_imported_tombstones(transaction: Session, tombstones: Sequence[tuple[Scope, Tombstone]]) -> int:
    """Store the tombstones of a file, each given with its scope; return how many are new.

    Instants in the future are cut to now, so that nothing new is forbidden.
    """
    instants = clamp_to_present(transaction, [tombstone.until for _, tombstone in tombstones])
    by_scope: dict[Scope, list[Tombstone]] = defaultdict(list)
    for (scope, tombstone), until in zip(tombstones, instants, strict=True):
        by_scope[scope].append(replace(tombstone, until=until))
    return sum(add_tombstones(transaction, scope, of_scope)[1] for scope, of_scope in by_scope.items())


def forgotten_content_lines(transaction: Session, scopes: Sequence[Scope]) -> list[dict[str, Any]]:
    """Return the hash keys, and tombstones and seen turns of these scopes and of those merged into them, as lines."""
    lines = [{"row": "key", "id": key.id, "key": key.secret.hex()} for key in read_hash_keys(transaction)]
    taken_over = (scopes_merged_into(transaction, scope_key(transaction, scope)) for scope in scopes)
    for scope in dict.fromkeys((*scopes, *(former for formers in taken_over for former in formers))):
        ids = [scope_key(transaction, form) for form in (scope, *scope.other_forms)]
        rows = transaction.exec(
            select(TombstoneRow).where(col(TombstoneRow.scope_id).in_(ids)).order_by(TombstoneRow.id)
        )
        lines += [_tombstone_line(scope, _tombstone_of(row)) for row in rows]
        lines += seen_turn_lines(transaction, scope, ids)
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


def _column_values(tombstone: Tombstone) -> dict[str, Any]:
    return {**asdict(tombstone), "kind": str(tombstone.kind)}


def _row_values(scope: Scope, scope_id: int, tombstone: Tombstone) -> dict[str, Any]:
    until = tombstone.until.isoformat()
    identity = (tombstone.key_id, tombstone.kind, tombstone.place, tombstone.mark, tombstone.spans, tombstone.times)
    tombstone_id = digest(str(scope), *identity, until, length=32)
    return {"id": tombstone_id, "scope_id": scope_id, **_column_values(tombstone)}


def _tombstone_line(scope: Scope, tombstone: Tombstone) -> dict[str, Any]:
    return {"row": "tombstone", "scope": str(scope), **_column_values(tombstone), "until": tombstone.until.isoformat()}


class NewTombstones:
    """Collects the tombstones of one act of forgetting.

    It must be created before anything is deleted, since it reads the names that sessions had in other scopes.
    """

    def __init__(self, transaction: Session, scope: Scope, scope_id: int, key: TombstoneKey) -> None:
        self._transaction, self._scope, self._key = transaction, scope, key
        self._by_scope: dict[Scope, list[Tombstone]] = defaultdict(list)
        self._merged = scopes_merged_into(transaction, scope_id)
        # What was moved to another scope is still there, and is not forgotten with a later session of the same id.
        self._names_elsewhere = session_names_elsewhere(transaction, scope_id, outgoing_statuses=("undone",))

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
