"""Tombstones carried from one store to another: what a restored backup brings back is forgotten again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlmodel import Session, col, select

from afterword.errors import FileInvalid
from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.tombstones import Tombstone
from afterword.store import lookup
from afterword.store.database.engine import Store
from afterword.store.database.private_files import opened_private
from afterword.store.forgetting.erasure import Erasure, forget
from afterword.store.forgetting.row_blanking import blank_by
from afterword.store.forgetting.text_columns import Conversation
from afterword.store.forgetting.tombstone_rows import forgotten, keep_key, lay, stone_of, tombstone_lines
from afterword.store.lookup import CHUNK
from afterword.store.rows import turn_of
from afterword.store.tables import AssertionRow, TurnRow

FORMAT, VERSION = "afterword tombstones", 1

Covers = dict[tuple[str, int], str]
"""Of the turns that changed, by session and number, what is left."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """How many tombstones came in, and what went by them, by table."""

    tombstones: int
    erased: Counter[str] = field(default_factory=Counter)


async def write_tombstones(store: Store, path: Path, scopes: Sequence[Scope] | None = None) -> int:
    """Write the tombstones of these scopes (of all, by default) to a file; return how many.

    Raises `FileInvalid` where the file is there already.
    """
    lines = await store.read(lambda db: tombstone_lines(db, lookup.scopes_kept(db) if scopes is None else scopes))
    with opened_private(path) as file:
        for line in ({"row": "head", "format": FORMAT, "version": VERSION}, *lines):
            file.write(json.dumps(line) + "\n")
    return sum(line["row"] == "tombstone" for line in lines)


async def replay(store: Store, path: Path, *, at: datetime) -> Replayed:
    """Take in the tombstones of a file, and forget again what they stand for.

    Raises `FileInvalid` where the file is none of tombstones.
    """
    keys: list[dict[str, Any]] = []
    stones: dict[Scope, list[Tombstone]] = defaultdict(list)
    for line in _lines(path):
        if line.get("row") == "key":
            keys.append(line)
        elif line.get("row") == "tombstone":
            scope, stone = stone_of(line)
            stones[scope].append(stone)

    def take_in(db: Session) -> None:
        for line in keys:
            keep_key(db, line)
        for scope, laid in stones.items():
            lay(db, scope, laid)

    await store.write(take_in)
    replayed = Replayed(sum(map(len, stones.values())))
    for scope in stones:
        replayed.erased.update((await forget(store, scope, enforce, at=at)).erased)
    return replayed


def enforce(erasure: Erasure) -> None:
    """Forget again what the tombstones of the scope stand for."""
    covers: Covers = {}
    for one in erasure.conversations():
        covers |= _enforce_in(erasure, one)
    slots = forgotten(erasure.db, erasure.scope)
    ids = list(erasure.db.exec(select(AssertionRow.id).where(AssertionRow.scope_id == erasure.scope_id)))
    for start in range(0, len(ids), CHUNK):
        said = lookup.assertions_by_id(erasure.db, erasure.scope, ids[start : start + CHUNK])
        gone = [name for name, one in said.items() if slots.covers(one) or not stands(one, covers)]
        erasure.erase_statements(gone)


def stands(one: Assertion, covers: Covers) -> bool:
    """Whether every quote of a statement still stands in its turn, where that has changed."""
    quotes = ((item.quote, covers.get((item.session_id or "", item.turn or 0))) for item in one.evidence)
    return all(left is None or quote in left for quote, left in quotes)


def _enforce_in(erasure: Erasure, one: Conversation) -> Covers:
    gone = forgotten(erasure.db, erasure.scope, one.session_id)
    if not gone.touches_session:
        return {}
    query = select(TurnRow).where(TurnRow.session_pk == one.key).order_by(col(TurnRow.number))
    kept = tuple(turn_of(row) for row in erasure.db.exec(query))
    left = gone.turns(kept)
    if kept and all(turn.text == FORGOTTEN for turn in left):
        erasure.whole(one, gone.until)
        return {}
    blank_by(erasure.db, one, gone, kept, left, erasure.blanked)
    pairs = zip(kept, left, strict=True)
    return {(one.session_id, new.number): new.text for old, new in pairs if old.text != new.text}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line = json.loads(text)
            except ValueError:
                raise FileInvalid(f"{path} line {number} is no JSON; the file is damaged") from None
            if number == 1 and (line.get("format"), line.get("version")) != (FORMAT, VERSION):
                raise FileInvalid(f"{path} holds no tombstones of version {VERSION}")
            yield line
