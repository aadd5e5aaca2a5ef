"""Pauses the memory of a scope. While it is paused, no session is stored, and what is already stored is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.privacy.blanking import FORGOTTEN, letters_and_digits
from afterword.privacy.tombstones import Tombstone, TombstoneKind
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


def count_session_not_kept(transaction: Session, scope: Scope) -> None:
    """Count one more session that was not stored because of a pause."""
    row = scope_row(transaction, scope)
    if row is not None:
        change_scope(transaction, row.id, sessions_not_kept=row.sessions_not_kept + 1)


def has_new_turns(transcript: Transcript, stored: Sequence[Turn]) -> bool:
    """Return whether a transcript has a turn whose text is not among the stored turns."""
    known = {turn.text for turn in stored}
    return any(turn.text not in known for turn in transcript.turns)


def leave_out_new_turns(
    transaction: Session, scope: Scope, session_id: str, transcript: Transcript, stored: Sequence[Turn], at: datetime
) -> Transcript:
    """Return the transcript with the turns that were said during a pause blanked.

    These are the turns whose text is not among the stored turns. Only keyed hashes of them are stored. By these hashes
    they are blanked again when the session is saved after the pause.
    """
    known = {turn.text for turn in stored}
    new = Counter(turn.text for turn in transcript.turns if turn.text not in known)
    key = ensure_store_key(transaction)
    tombstones = [
        Tombstone(
            kind=TombstoneKind.TEXT,
            key_id=key.id,
            place=key.session_hash(scope, session_id),
            mark=key.text_hash(scope, session_id, text),
            until=at,
            spans=((0, len(letters_and_digits(text))),),
            times=times,
        )
        for text, times in new.items()
    ]
    add_tombstones(transaction, scope, tombstones)
    blanked = (replace(turn, text=FORGOTTEN) if turn.text in new else turn for turn in transcript.turns)
    return replace(transcript, turns=tuple(blanked))
