"""Stores which turns of a session were seen, and when first, and reads them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col

from afterword.facts.scopes import Scope
from afterword.privacy.seen_turns import RecognisedTurns, SeenTurn, SeenTurns
from afterword.privacy.tombstones import MARK_DIGITS, ForgottenContent, TombstoneKey
from afterword.store.database.statements import fetch_where_in, insert_missing
from afterword.store.forgetting.tables import SeenSessionRow
from afterword.store.scope_rows import lock_scope

Stretches = list[dict[str, Any]]


def read_seen_turns(transaction: Session, session_hashes: Iterable[str]) -> dict[str, SeenTurns]:
    """Return the turns seen in the sessions with these hashes, by hash."""
    rows = fetch_where_in(transaction, SeenSessionRow, "place", session_hashes)
    return {row.place: SeenTurns(row.place, row.key_id, tuple(_turns_of(row.stretches))) for row in rows}


def note_seen_turns(
    transaction: Session, scope: Scope, session_id: str, forgotten: ForgottenContent, recognised: RecognisedTurns
) -> None:
    """Store the turns of a session that were seen so far, and those of a state, as `forgotten` has recognised them."""
    joined, key = recognised.seen_and_new_turns(), forgotten.mark_key
    if joined != list(recognised.seen):
        seen = SeenTurns(key.session_hash(scope, session_id), key.id, tuple(joined))
        is_known = forgotten.seen.session_hash == seen.session_hash
        _write_seen_turns(transaction, lock_scope(transaction, scope), seen, is_known=is_known)


def copy_seen_turns(
    transaction: Session,
    names: Iterable[tuple[tuple[Scope, str], tuple[Scope, str]]],
    into_id: int,
    keys: Sequence[TombstoneKey],
) -> None:
    """Copy the turns seen in sessions that were moved. `names` are the scope and the id of each, before and now."""
    places = {key.session_hash(*old): key.session_hash(*new) for old, new in names for key in keys}
    for place, seen in read_seen_turns(transaction, places).items():
        store_seen_turns_if_longer(transaction, into_id, replace(seen, session_hash=places[place]))


def add_imported_seen_turns(transaction: Session, lists: Iterable[tuple[Scope, SeenTurns]]) -> None:
    """Store the turns seen in sessions of other stores, each given with its scope."""
    for scope, seen in lists:
        store_seen_turns_if_longer(transaction, lock_scope(transaction, scope), seen)


def store_seen_turns_if_longer(transaction: Session, scope_id: int, seen: SeenTurns) -> None:
    """Store the turns seen in a session unless a list that is as long is stored. Lists only grow."""
    stored = read_seen_turns(transaction, [seen.session_hash]).get(seen.session_hash)
    if stored is None or len(stored.turns) < len(seen.turns):
        _write_seen_turns(transaction, scope_id, seen, is_known=stored is not None)


def _write_seen_turns(transaction: Session, scope_id: int, seen: SeenTurns, *, is_known: bool) -> None:
    values = {"scope_id": scope_id, "key_id": seen.key_id, "stretches": _stretches_of(seen.turns)}
    row = {"place": seen.session_hash, **values}
    if is_known or not insert_missing(transaction, SeenSessionRow, [row]):
        changed = update(SeenSessionRow).where(col(SeenSessionRow.place) == seen.session_hash)
        transaction.connection().execute(changed.values(**values))


def seen_turn_lines(transaction: Session, scope: Scope, scope_ids: Sequence[int | None]) -> list[dict[str, Any]]:
    """Return the turns seen in the sessions of a scope as lines of a file."""
    rows = fetch_where_in(transaction, SeenSessionRow, "scope_id", scope_ids)
    return [
        {"row": "seen", "scope": str(scope), "place": row.place, "key_id": row.key_id, "stretches": row.stretches}
        for row in rows
    ]


def parse_seen_turns(line: Mapping[str, Any]) -> tuple[Scope, SeenTurns]:
    """Return the scope and the turns seen in a session from a line. Raises `ValueError` and others if it is damaged."""
    place, key_id = line["place"], line["key_id"]
    "".join((place, key_id)).encode()
    turns = tuple(_turns_of(line["stretches"]))
    if not all(len(turn.mark) in (0, MARK_DIGITS) and turn.seen_at.tzinfo for turn in turns):
        raise ValueError
    return Scope.parse(line["scope"]), SeenTurns(place, key_id, turns)


def _stretches_of(turns: Iterable[SeenTurn]) -> Stretches:
    """Return the turns for storing: those that were seen at one time stand together."""
    stretches = groupby(turns, lambda turn: (turn.seen_at, turn.is_left_out, turn.is_said, turn.is_hidden))
    return [
        {
            "at": at.isoformat(),
            "left_out": left_out,
            "said": said,
            "hidden": hidden,
            "marks": "".join(turn.mark.ljust(MARK_DIGITS) for turn in same),
        }
        for (at, left_out, said, hidden), same in stretches
    ]


def _turns_of(stretches: Stretches) -> Iterable[SeenTurn]:
    for stretch in stretches:
        at, marks = datetime.fromisoformat(stretch["at"]), stretch["marks"]
        for start in range(0, len(marks), MARK_DIGITS):
            mark = marks[start : start + MARK_DIGITS].strip()
            yield SeenTurn(mark, at, bool(stretch["left_out"]), bool(stretch["said"]), bool(stretch["hidden"]))
