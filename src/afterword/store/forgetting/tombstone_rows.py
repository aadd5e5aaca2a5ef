"""Tombstones as the store keeps them: laying them, reading them, and carrying them to another store."""

from __future__ import annotations

import hashlib
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlmodel import Session, col, select

from afterword.errors import FileInvalid
from afterword.facts.assertions import digest
from afterword.facts.scopes import Scope
from afterword.privacy.tombstones import Forgotten, Key, Tombstone, TombstoneKind
from afterword.store.database.inserts import insert_missing
from afterword.store.database.statements import fetch_rows, select_columns
from afterword.store.lookup import CHUNK
from afterword.store.scope_rows import ensure_scope, scope_row
from afterword.store.tables import TombstoneKeyRow, TombstoneRow

_KEY_BYTES = 32


def read_forgotten(transaction: Session, scope: Scope, session_id: str | None = None) -> Forgotten:
    """Return what was forgotten of a scope, and of one session of it."""
    if session_id is not None:
        found = read_forgotten_by_session(transaction, scope, [session_id])
        return found.get(session_id) or Forgotten(scope, session_id, (), ())
    row, kept = scope_row(transaction, scope), read_tombstone_keys(transaction)
    stones = _stones(transaction, row.id, [""]) if row and row.id and kept else []
    return Forgotten(scope, None, kept, stones)


def read_forgotten_by_session(transaction: Session, scope: Scope, session_ids: Sequence[str]) -> dict[str, Forgotten]:
    """Return what was forgotten of a scope and of each of these sessions; nothing where nothing ever was."""
    row, kept = scope_row(transaction, scope), read_tombstone_keys(transaction)
    if row is None or row.id is None or not kept:
        return {}
    if not transaction.exec(select(TombstoneRow.id).where(TombstoneRow.scope_id == row.id).limit(1)).first():
        return {}
    places = {name: [key.place(scope, name) for key in kept] for name in session_ids}
    lying: dict[str, list[Tombstone]] = defaultdict(list)
    for stone in _stones(transaction, row.id, ["", *(place for found in places.values() for place in found)]):
        lying[stone.place].append(stone)
    return {
        name: Forgotten(scope, name, kept, [*lying[""], *(one for place in found for one in lying[place])])
        for name, found in places.items()
    }


def _stones(transaction: Session, scope_id: int, places: Sequence[str]) -> list[Tombstone]:
    found: list[Tombstone] = []
    for start in range(0, len(places), CHUNK):
        query = select(TombstoneRow).where(
            TombstoneRow.scope_id == scope_id, col(TombstoneRow.place).in_(places[start : start + CHUNK])
        )
        found += map(_stone, transaction.exec(query))
    return found


def read_tombstone_keys(transaction: Session) -> list[Key]:
    """Return the keys under which tombstones of this store are hashed."""
    return [Key(one.id, bytes.fromhex(one.key)) for one in fetch_rows(transaction, _all_keys())]


@cache
def _all_keys() -> Any:
    return select_columns(TombstoneKeyRow)


def ensure_store_key(transaction: Session) -> Key:
    """Return the store's own key, which is made where there is none yet; its name tells this store from others."""
    query = select(TombstoneKeyRow).where(col(TombstoneKeyRow.is_own)).order_by(TombstoneKeyRow.id).limit(1)
    found = transaction.exec(query).first()
    if found is None:
        secret = secrets.token_bytes(_KEY_BYTES)
        found = TombstoneKeyRow(id=_name(secret), key=secret.hex(), is_own=True)
        transaction.add(found)
        transaction.flush()
    return Key(found.id, bytes.fromhex(found.key))


def add_tombstones(transaction: Session, scope: Scope, stones: Iterable[Tombstone]) -> int:
    """Keep these tombstones, and return how many; one that lies there already is left as it is."""
    scope_id = ensure_scope(transaction, scope)
    rows = [_values(scope, scope_id, one) for one in stones]
    for start in range(0, len(rows), CHUNK):
        insert_missing(transaction, TombstoneRow, rows[start : start + CHUNK])
    return len(rows)


def tombstone_lines(transaction: Session, scopes: Sequence[Scope]) -> list[dict[str, Any]]:
    """Return the keys and tombstones of these scopes as JSON-representable lines."""
    lines: list[dict[str, Any]] = [
        {"row": "key", "id": one.id, "key": one.secret.hex()} for one in read_tombstone_keys(transaction)
    ]
    for scope in scopes:
        row = scope_row(transaction, scope)
        query = select(TombstoneRow).where(TombstoneRow.scope_id == (row.id if row else None))
        lines += [_line(scope, _stone(one)) for one in transaction.exec(query.order_by(TombstoneRow.id))]
    return lines


def add_imported_key(transaction: Session, line: Mapping[str, Any]) -> None:
    """Keep the key of another store. Raises `FileInvalid` where it is none."""
    try:
        secret = bytes.fromhex(line["key"])
    except (KeyError, TypeError, ValueError):
        raise FileInvalid("a key of tombstones cannot be read; the file is damaged") from None
    insert_missing(transaction, TombstoneKeyRow, [{"id": _name(secret), "key": secret.hex(), "is_own": False}])


def parse_tombstone(line: Mapping[str, Any]) -> tuple[Scope, Tombstone]:
    """Return the tombstone of a line, and whose it is. Raises `FileInvalid` where the line holds none."""
    try:
        spans = tuple((int(first), int(last)) for first, last in line["spans"])
        until = datetime.fromisoformat(line["until"])
        key_id, place, mark = (str(line[name]) for name in ("key_id", "place", "mark"))
        stone = Tombstone(TombstoneKind(line["kind"]), key_id, place, mark, until, spans, int(line["times"]))
        return Scope.parse(line["scope"]), stone
    except (KeyError, TypeError, ValueError):
        raise FileInvalid("a tombstone cannot be read; the file is damaged") from None


def _name(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:16]


def _stone(row: TombstoneRow) -> Tombstone:
    spans = tuple((first, last) for first, last in row.spans)
    return Tombstone(TombstoneKind(row.kind), row.key_id, row.place, row.mark, row.until, spans, row.times)


def _values(scope: Scope, scope_id: int, one: Tombstone) -> dict[str, Any]:
    content = (str(scope), one.key_id, one.kind, one.place, one.mark, one.spans, one.times, one.until.isoformat())
    return {
        "id": digest(*content, length=32),
        "scope_id": scope_id,
        "key_id": one.key_id,
        "kind": str(one.kind),
        "place": one.place,
        "mark": one.mark,
        "spans": [list(span) for span in one.spans],
        "times": one.times,
        "until": one.until,
    }


def _line(scope: Scope, one: Tombstone) -> dict[str, Any]:
    values = _values(scope, 0, one)
    return (
        {"row": "tombstone", "scope": str(scope)}
        | {name: value for name, value in values.items() if name not in ("id", "scope_id")}
        | {"until": one.until.isoformat()}
    )
