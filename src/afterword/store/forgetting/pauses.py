"""Pauses the memory of a scope. While it is paused, no session is stored, and what is already stored is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn
from afterword.privacy.blanking import FORGOTTEN
from afterword.privacy.tombstones import text_tombstones
from afterword.store.forgetting.tombstone_rows import add_tombstones, ensure_store_key
from afterword.store.scope_rows import change_scope, ensure_scope, scope_key, scope_row

PAUSED = "memory paused"
"""The reason that is reported for a session of a paused scope that is not stored."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Since when a scope is paused, and how many sessions were not stored since then."""

    paused_at: datetime
    sessions_not_kept: int


def read_pause(transaction: Session, scope: Scope) -> Pause | None:
    """Return the pause of a scope, None if it is not paused."""
    row = scope_row(transaction, scope)
    return Pause(row.paused_at, row.sessions_not_kept) if row and row.paused_at else None


def pause_scope(transaction: Session, scope: Scope, at: datetime) -> Pause:
    """Pause a scope, and return its pause. A scope that is already paused keeps its pause."""
    if (pause := read_pause(transaction, scope)) is not None:
        return pause
    change_scope(transaction, ensure_scope(transaction, scope), paused_at=at, sessions_not_kept=0)
    return Pause(at, 0)


def end_pause(transaction: Session, scope: Scope) -> Pause | None:
    """End the pause of a scope and return it, None if there was none."""
    pause = read_pause(transaction, scope)
    if pause is not None:
        change_scope(transaction, scope_key(transaction, scope), paused_at=None, sessions_not_kept=0)
    return pause


def leave_out_new_turns(
    transaction: Session,
    scope: Scope,
    session_id: str,
    transcript: Transcript,
    stored: Sequence[Turn],
    at: datetime,
    *,
    stay_out: bool = True,
) -> None:
    """Count a session that is not stored because of a pause, if it has turns that are not stored.

    With `stay_out`, these turns are left out as well when the session is saved again after the pause, except those that
    have an earlier time than the pause. Only keyed hashes of them are stored.
    """
    row, known = scope_row(transaction, scope), Counter(turn.text for turn in stored)
    seen: Counter[str] = Counter()
    new: list[Turn] = []
    for turn in transcript.turns:
        seen[turn.text] += 1
        if turn.is_said and turn.text != FORGOTTEN and seen[turn.text] > known[turn.text]:
            new.append(turn)
    paused_at = row.paused_at if row else None
    if row and paused_at and (new or not transcript.turns):
        change_scope(transaction, row.id, sessions_not_kept=row.sessions_not_kept + 1)
    if paused_at and transcript.time_basis is not TimeBasis.RECORDER:
        new = [turn for turn in new if turn.said_at is None or turn.said_at >= paused_at]
    if new and stay_out:
        tombstones = text_tombstones(ensure_store_key(transaction), scope, session_id, new, at)
        add_tombstones(transaction, scope, tombstones)
