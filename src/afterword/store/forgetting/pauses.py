"""Pauses the memory of a scope. While it is paused, no session is stored, and what is already stored is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis
from afterword.privacy.seen_turns import UNKNOWN_WORDS, SeenTurn, StateReading
from afterword.store.forgetting.seen_turn_rows import note_turns
from afterword.store.forgetting.tombstone_rows import read_forgotten
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
    transaction: Session, scope: Scope, session_id: str, reading: StateReading, *, stay_out: bool = True
) -> None:
    """Count a session that is not stored because of a pause, if it has turns that were not seen before.

    With `stay_out`, these turns are left out as well when the session is saved again after the pause, except those that
    have an earlier time than the pause. Only keyed hashes of them are stored.
    """
    row = scope_row(transaction, scope)
    paused_at = row.paused_at if row else None
    is_timed = reading.dated.time_basis is not TimeBasis.RECORDER
    forgotten = read_forgotten(transaction, scope, session_id, creates_key=True)
    recognised = forgotten.recognise_turns(reading)
    turns, number_new = list[SeenTurn](), 0
    for fresh, turn, place in zip(reading.fresh.turns, recognised.turns, recognised.places, strict=True):
        # The blocks of a memory are not left out. They have words of before the pause, and later states repeat them.
        is_new = place is None and turn.mark != UNKNOWN_WORDS and fresh.role is not Role.MEMORY
        is_of_pause = not (paused_at and is_timed and turn.seen_at < paused_at)
        turns.append(replace(turn, is_left_out=True) if is_new and is_of_pause else turn)
        number_new += is_new and turn.is_said
    if row and paused_at and (number_new or not turns):
        change_scope(transaction, row.id, sessions_not_kept=row.sessions_not_kept + 1)
    if stay_out:
        note_turns(transaction, scope, session_id, forgotten, replace(recognised, turns=tuple(turns)))
