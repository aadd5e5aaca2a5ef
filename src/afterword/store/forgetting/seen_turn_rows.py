"""Stores which turns of a session were seen, and when first, and reads them again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col

from afterword.facts.scopes import Scope
from afterword.privacy.seen_turns import RecognisedTurns, SeenTurn, SeenTurns
from afterword.privacy.tombstones import MARK_DIGITS, Forgotten
from afterword.store.database.statements import fetch_where_in, insert_rows
from afterword.store.scope_rows import lock_scope
from afterword.store.tables import SeenSessionRow

Stretches = list[dict[str, Any]]


def read_seen_turns(transaction: Session, places: Iterable[str]) -> dict[str, SeenTurns]:
    """Return the turns seen in the sessions with these hashes, by hash."""
    rows = fetch_where_in(transaction, SeenSessionRow, "place", places)
    return {row.place: SeenTurns(row.place, row.key_id, tuple(_turns_of(row.stretches))) for row in rows}


def note_turns(
    transaction: Session, scope: Scope, session_id: str, forgotten: Forgotten, recognised: RecognisedTurns
) -> None:
    """Store the turns of a session that were seen so far, and those of a state, as `forgotten` has recognised them."""
    joined = recognised.joined()
    if joined == list(recognised.seen):
        return
    lock_scope(transaction, scope)
    place = forgotten.mark_key.session_hash(scope, session_id)
    values = {"key_id": forgotten.mark_key.id, "stretches": _stretches_of(joined)}
    if forgotten.seen_place == place:
        transaction.connection().execute(
            update(SeenSessionRow).where(col(SeenSessionRow.place) == place).values(**values)
        )
    else:
        insert_rows(transaction, SeenSessionRow, [{"place": place, **values}])


def _stretches_of(turns: Iterable[SeenTurn]) -> Stretches:
    """Return the turns for storing: those that were seen at one time stand together."""
    stretches = groupby(turns, lambda turn: (turn.seen_at, turn.is_left_out, turn.is_said))
    return [
        {
            "at": at.isoformat(),
            "left_out": left_out,
            "said": said,
            "marks": "".join(turn.mark.ljust(MARK_DIGITS) for turn in same),
        }
        for (at, left_out, said), same in stretches
    ]


def _turns_of(stretches: Stretches) -> Iterable[SeenTurn]:
    for stretch in stretches:
        at, marks = datetime.fromisoformat(stretch["at"]), stretch["marks"]
        for start in range(0, len(marks), MARK_DIGITS):
            mark = marks[start : start + MARK_DIGITS].strip()
            yield SeenTurn(mark, at, stretch["left_out"], stretch["said"])
