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
from afterword.store import lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.database.private_files import opened_private
from afterword.store.forgetting.erasure import Erasure, erase_in_scope
from afterword.store.forgetting.row_blanking import blank_turns
from afterword.store.forgetting.text_columns import SessionKeys
from afterword.store.forgetting.tombstone_rows import (
    add_imported_key,
    add_tombstones,
    parse_tombstone,
    read_forgotten,
    tombstone_lines,
)
from afterword.store.lookup import CHUNK
from afterword.store.rows import turn_of
from afterword.store.tables import AssertionRow, TurnRow

FORMAT, VERSION = "afterword tombstones", 1

ChangedTurns = dict[tuple[str, int], str]
"""Of the turns that changed, by session and number, what is left."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How many tombstones came in, and what went by them, by table."""

    tombstones: int
    erased: Counter[str] = field(default_factory=Counter)


async def write_tombstones(store: Store, path: Path, scopes: Sequence[Scope] | None = None) -> int:
    """Write the tombstones of these scopes (of all, by default) to a file; return how many.

    Raises `FileInvalid` where the file is there already.
    """
    lines = await store.read(
        lambda transaction: tombstone_lines(
            transaction, scope_rows.read_scopes(transaction) if scopes is None else scopes
        )
    )
    with opened_private(path) as file:
        for line in ({"row": "head", "format": FORMAT, "version": VERSION}, *lines):
            file.write(json.dumps(line) + "\n")
    return sum(line["row"] == "tombstone" for line in lines)


async def replay_tombstones(store: Store, path: Path, *, at: datetime) -> ReplayResult:
    """Take in the tombstones of a file, and forget again what they stand for.

    Raises `FileInvalid` where the file is none of tombstones.
    """
    keys: list[dict[str, Any]] = []
    stones: dict[Scope, list[Tombstone]] = defaultdict(list)
    for line in _lines(path):
        if line.get("row") == "key":
            keys.append(line)
        elif line.get("row") == "tombstone":
            scope, stone = parse_tombstone(line)
            stones[scope].append(stone)

    def take_in(transaction: Session) -> None:
        for line in keys:
            add_imported_key(transaction, line)
        for scope, laid in stones.items():
            add_tombstones(transaction, scope, laid)

    await store.write(take_in)
    replayed = ReplayResult(sum(map(len, stones.values())))
    for scope in stones:
        replayed.erased.update((await erase_in_scope(store, scope, erase_by_tombstones, at=at)).erased)
    return replayed


def erase_by_tombstones(erasure: Erasure) -> None:
    """Forget again what the tombstones of the scope stand for."""
    covers: ChangedTurns = {}
    for one in erasure.conversations():
        covers |= _enforce_in(erasure, one)
    slots = read_forgotten(erasure.db, erasure.scope)
    ids = list(erasure.db.exec(select(AssertionRow.id).where(AssertionRow.scope_id == erasure.scope_id)))
    for start in range(0, len(ids), CHUNK):
        said = lookup.assertions_by_id(erasure.db, erasure.scope, ids[start : start + CHUNK])
        gone = [name for name, one in said.items() if slots.covers(one) or not has_unchanged_quotes(one, covers)]
        erasure.erase_statements(gone)


def has_unchanged_quotes(one: Assertion, covers: ChangedTurns) -> bool:
    """Whether every quote of a statement still stands in its turn, where that has changed."""
    quotes = ((item.quote, covers.get((item.session_id or "", item.turn or 0))) for item in one.evidence)
    return all(left is None or quote in left for quote, left in quotes)


def _enforce_in(erasure: Erasure, one: SessionKeys) -> ChangedTurns:
    gone = read_forgotten(erasure.db, erasure.scope, one.session_id)
    if not gone.touches_session:
        return {}
    query = select(TurnRow).where(TurnRow.session_pk == one.key).order_by(col(TurnRow.number))
    kept = tuple(turn_of(row) for row in erasure.db.exec(query))
    left = gone.turns(kept)
    if kept and all(turn.text == FORGOTTEN for turn in left):
        erasure.whole(one, gone.until)
        return {}
    blank_turns(erasure.db, one, gone, kept, left, erasure.blanked)
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
