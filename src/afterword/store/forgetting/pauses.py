"""Pauses the memory of a scope. While it is paused, no session is stored, and what is already stored is kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, TimeBasis
from afterword.privacy.seen_turns import UNKNOWN_WORDS, RecognisedTurns, TurnsToRecognise
from afterword.store.forgetting.seen_turn_rows import note_seen_turns
from afterword.store.forgetting.tombstone_rows import read_forgotten_content
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


def note_skipped_session(
    transaction: Session, scope: Scope, session_id: str, reading: TurnsToRecognise, *, leaves_out_turns: bool = True
) -> None:
    """Count a session that is not stored because of a pause, if it has turns that were not seen before.

    With `leaves_out_turns`, these turns are also left out when the session is saved again after the pause, except turns
    with an earlier time than the pause. Only keyed hashes of the turns are stored.
    """
    pause = read_pause(transaction, scope)
    forgotten = read_forgotten_content(transaction, scope, session_id, creates_key=True)
    recognised = forgotten.recognise_seen_turns(reading)
    new = _indexes_of_new_turns(reading, recognised)
    is_counted = not recognised.turns or any(recognised.turns[index].is_said for index in new)
    if pause is not None and is_counted:
        change_scope(transaction, scope_key(transaction, scope), sessions_not_kept=pause.sessions_not_kept + 1)
    if leaves_out_turns:
        since = pause.paused_at if pause is not None and reading.dated.time_basis is not TimeBasis.RECORDER else None
        left_out = {index for index in new if since is None or recognised.turns[index].seen_at >= since}
        turns = tuple(
            replace(turn, is_left_out=True) if index in left_out else turn
            for index, turn in enumerate(recognised.turns)
        )
        note_seen_turns(transaction, scope, session_id, forgotten, replace(recognised, turns=turns))


def _indexes_of_new_turns(reading: TurnsToRecognise, recognised: RecognisedTurns) -> set[int]:
    """Return the indexes of the turns of a state that were not seen before.

    The blocks of a memory do not count. They have words of before the pause, and later states repeat them.
    """
    matched = zip(reading.fresh.turns, recognised.turns, recognised.places, strict=True)
    return {
        index
        for index, (fresh, turn, place) in enumerate(matched)
        if place is None and turn.mark != UNKNOWN_WORDS and fresh.role is not Role.MEMORY
    }
