"""Sessions: their saved states, their turns, and how far their processing has come."""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sqlalchemy import bindparam, delete, or_, update
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from afterword.errors import NotFound, StateConflict
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn
from afterword.privacy.redaction import mask_secrets
from afterword.store.database.inserts import insert_rows
from afterword.store.database.statements import fetch_rows
from afterword.store.ledger import lock_scope
from afterword.store.lookup import CHUNK, scope_row, select_where_in
from afterword.store.retry_schedule import Retries
from afterword.store.rows import turn_of, turn_values
from afterword.store.tables import ScopeRow, SessionRow, StateRow, TurnRow
from afterword.telemetry import Count, Stage, count, note, staged

_RETRIES = Retries()


class Progress(StrEnum):
    """How far the processing of a session has come; `set aside` is what failed so often that a person must look."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    SET_ASIDE = "set aside"


WAITING = (Progress.PENDING, Progress.FAILED)


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as the store keeps it. `humans` are known to be people, `assumed` only taken for them.

    `attempts` counts the failures since it was last done, `next_try_at` is when it is tried again.
    """

    scope: Scope
    session_id: str
    key: int
    progress: Progress
    failure: str | None
    humans: tuple[str, ...]
    assumed: tuple[str, ...]
    started_at: datetime | None
    ended_at: datetime | None
    time_basis: str | None
    layout: str | None
    skipped: Mapping[str, int]
    attempts: int
    next_try_at: datetime | None
    updated_at: datetime


def save_state(
    transaction: Session,
    scope: Scope,
    session_id: str,
    *,
    component: str,
    state: Mapping[str, Any],
    at: datetime,
    humans: Sequence[str] = (),
) -> None:
    """Keep the state of a session in place of the one before, and queue the session for processing.

    `component` names the kind of agent or team; `humans` are names of people, added to those already known of the
    session. Raises `StateConflict` where the session was saved by another kind of component.
    """
    row = _ensure(transaction, scope, session_id, at)
    transaction.flush()
    if row.id is None:
        raise NotFound("the session got no key")
    kept = transaction.get(StateRow, row.id)
    if kept is not None and kept.component != component:
        raise StateConflict(_mismatch(scope, session_id, kept.component, component))
    content = zlib.compress(json.dumps(state, ensure_ascii=True).encode())
    transaction.merge(StateRow(session_pk=row.id, component=component, content=content, saved_at=at))
    row.humans = list(dict.fromkeys([*row.humans, *humans]))
    row.progress, row.updated_at = Progress.PENDING, at
    row.attempts, row.next_try_at = 0, None  # what failed before is not what is there now
    transaction.add(row)
    transaction.flush()


def load_state(transaction: Session, scope: Scope, session_id: str, component: str | None = None) -> dict[str, Any]:
    """Return the saved state of a session of this scope.

    Raises `NotFound` where this scope has no saved state under that id, and `StateConflict` where another kind of
    component saved it.
    """
    row = _find(transaction, scope, session_id)
    kept = transaction.get(StateRow, row.id) if row else None
    if kept is None:
        raise NotFound(f"no saved state of session {session_id!r} in {scope}; record_session saves one")
    if component is not None and kept.component != component:
        raise StateConflict(_mismatch(scope, session_id, kept.component, component))
    state: dict[str, Any] = json.loads(zlib.decompress(kept.content))
    return state


def state_saved_at(transaction: Session, scope: Scope, session_id: str) -> datetime | None:
    """Return when the state that is kept of a session was saved, None where none is kept."""
    row = _find(transaction, scope, session_id)
    kept = transaction.get(StateRow, row.id) if row else None
    return kept.saved_at if kept else None


def find_session(transaction: Session, scope: Scope, session_id: str) -> SavedSession | None:
    """Return what is kept about a session, None where this scope has no such session."""
    row = _find(transaction, scope, session_id)
    if row is None:
        return None
    return _saved(row, scope)


def read_sessions(
    transaction: Session, *, scope: Scope | None = None, session_id: str | None = None
) -> list[SavedSession]:
    """Return the sessions of the store, or those that fit. For those who run it, never for an agent."""
    query = select(SessionRow, ScopeRow).where(col(SessionRow.scope_id) == col(ScopeRow.id))
    query = query.order_by(col(SessionRow.id))
    if scope is not None:
        query = query.where(
            ScopeRow.tenant == scope.tenant, ScopeRow.kind == str(scope.kind), ScopeRow.name == scope.id
        )
    if session_id is not None:
        query = query.where(SessionRow.session_id == session_id)
    return [_saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) for row, of in transaction.exec(query)]


def waiting_sessions(
    transaction: Session, *, at: datetime | None = None, progress: Sequence[Progress] = WAITING
) -> list[SavedSession]:
    """Return the sessions that wait to be processed and whose saved state is kept, oldest first.

    With `at` those whose pause after a failure has passed by then; else all. What is set aside does not wait.
    """
    query = (
        select(SessionRow, ScopeRow)
        .where(col(SessionRow.scope_id) == col(ScopeRow.id), col(SessionRow.id).in_(select(StateRow.session_pk)))
        .where(col(SessionRow.progress).in_(progress))
        .order_by(col(SessionRow.updated_at))
    )
    if at is not None:
        query = query.where(or_(col(SessionRow.next_try_at).is_(None), col(SessionRow.next_try_at) <= at))
    return [_saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) for row, of in transaction.exec(query)]


def pending_session_keys(transaction: Session) -> list[tuple[int, int]]:
    """Return the keys of the recorded sessions that wait, each with its scope's, oldest first."""
    query = (
        select(SessionRow.id, SessionRow.scope_id)
        .where(col(SessionRow.id).in_(select(StateRow.session_pk)), SessionRow.progress == Progress.PENDING)
        .order_by(col(SessionRow.updated_at))
    )
    return [(key, of) for key, of in transaction.exec(query) if key is not None]


def session_by_key(transaction: Session, key: int) -> SavedSession | None:
    """Return the session with this key, None where there is none any more."""
    row = transaction.get(SessionRow, key)
    of = transaction.get(ScopeRow, row.scope_id) if row else None
    return _saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) if row and of else None


def failed_sessions(transaction: Session) -> list[SavedSession]:
    """Return the sessions that failed and wait for another try, or were set aside."""
    query = select(SessionRow, ScopeRow).where(col(SessionRow.scope_id) == col(ScopeRow.id))
    query = query.where(col(SessionRow.progress).in_((Progress.FAILED, Progress.SET_ASIDE)))
    query = query.order_by(col(SessionRow.id))
    return [_saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) for row, of in transaction.exec(query)]


def read_turns(transaction: Session, scope: Scope, session_id: str) -> list[Turn]:
    """Return the turns of a session as they were last read; none where it was never read."""
    row = _find(transaction, scope, session_id)
    if row is None:
        return []
    return _turns(transaction, row)


def _turns(transaction: Session, row: SessionRow) -> list[Turn]:
    found = fetch_rows(transaction, select_where_in(TurnRow, "session_pk"), {"keys": [row.id]})
    return [turn_of(one) for one in sorted(found, key=lambda one: one.number)]


def stored_transcript(turns: Sequence[Turn], kept: SavedSession) -> Transcript:
    """Return the session as the store has it, with these turns."""
    return Transcript(
        turns=tuple(turns),
        layout=kept.layout or "",
        humans=(*kept.humans, *kept.assumed),
        skipped=kept.skipped,
        assumed=kept.assumed,
        time_basis=TimeBasis(kept.time_basis) if kept.time_basis else None,
    )


def save_transcript(
    transaction: Session, scope: Scope, session_id: str, transcript: Transcript, at: datetime, *, is_done: bool
) -> int:
    """Keep a session's turns as read, in place of the reading before; return the session's key.

    With `is_done` the session counts as processed, and an earlier failure as mended.
    """
    row = _ensure(transaction, scope, session_id, at)
    row.layout, row.time_basis = transcript.layout, str(transcript.time_basis) if transcript.time_basis else None
    row.started_at, row.ended_at = transcript.started_at, transcript.ended_at
    row.humans = [name for name in transcript.humans if name not in transcript.assumed]
    row.assumed, row.skipped = list(transcript.assumed), dict(transcript.skipped)
    row.updated_at = at
    if is_done:
        row.progress, row.failure, row.attempts, row.next_try_at = Progress.DONE, None, 0, None
    transaction.add(row)
    kept = {one.number: one for one in _turns(transaction, row)} if row.id else {}
    transaction.flush()
    if row.id is None:
        raise NotFound("the session got no key")
    changed = [turn for turn in transcript.turns if kept.get(turn.number) != turn]
    same = {turn.number for turn in transcript.turns} - {turn.number for turn in changed}
    stale = sorted(kept.keys() - same)
    for start in range(0, len(stale), 500):
        transaction.exec(
            delete(TurnRow).where(
                col(TurnRow.session_pk) == row.id, col(TurnRow.number).in_(stale[start : start + 500])
            )
        )
    insert_rows(transaction, TurnRow, [turn_values(turn, row.id) for turn in changed])
    return row.id


def mark_failed(
    transaction: Session,
    scope: Scope,
    session_id: str,
    reason: str,
    at: datetime,
    *,
    retries: Retries = _RETRIES,
    begun_at: datetime | None = None,
) -> Progress:
    """Keep why a session could not be processed, and when it is tried again; tried often enough, it is set aside.
    Return which of both.

    What another process has done since the try was begun stays done. The reason holds no words of the session.
    """
    row = _ensure(transaction, scope, session_id, at)
    if begun_at is not None and row.progress == Progress.DONE and row.updated_at > begun_at:
        return Progress.DONE
    # A file's or an endpoint's name may hold what nobody foresaw.
    reason, _ = mask_secrets(reason)
    row.failure, row.attempts, row.updated_at = reason, row.attempts + 1, at
    row.next_try_at = retries.next_try_at(row.attempts, at)
    row.progress = Progress.FAILED if row.next_try_at else Progress.SET_ASIDE
    transaction.add(row)
    transaction.flush()
    return row.progress


@staged(Stage.RETRY)
def requeue_failed_sessions(transaction: Session, at: datetime) -> int:
    """Queue again the recorded sessions that failed and whose pause has passed by then; return how many."""
    found = waiting_sessions(transaction, at=at, progress=(Progress.FAILED,))
    for start in range(0, len(found), CHUNK):
        keys = [one.key for one in found[start : start + CHUNK]]
        transaction.exec(update(SessionRow).where(col(SessionRow.id).in_(keys)).values(progress=Progress.PENDING))
    note(sessions=len(found))
    count(Count.RETRIES, len(found), by="schedule")
    return len(found)


@staged(Stage.RETRY, "scope", "session_id")
def retry_session(transaction: Session, scope: Scope, session_id: str) -> None:
    """Let a session that failed be tried again at once, as often as a new one; its reason is kept until it is done.

    Raises `NotFound` where this scope has no such session, and `StateConflict` where it did not fail.
    """
    row = _find(transaction, scope, session_id)
    if row is None:
        raise NotFound(f"no session {session_id!r} in {scope}; see `afterword status`")
    if row.progress not in (Progress.FAILED, Progress.SET_ASIDE):
        raise StateConflict(f"session {session_id!r} of {scope} is {row.progress}: there is nothing to try again")
    row.progress, row.attempts, row.next_try_at = Progress.PENDING, 0, None
    note(sessions=1)
    count(Count.RETRIES, by="person")
    transaction.add(row)
    transaction.flush()


def _find(transaction: Session, scope: Scope, session_id: str) -> SessionRow | None:
    of = scope_row(transaction, scope)
    if of is None:
        return None
    return transaction.exec(_query(), params={"scope_key": of.id, "named": session_id}).one_or_none()


@cache
def _query() -> SelectOfScalar[SessionRow]:
    return select(SessionRow).where(
        col(SessionRow.scope_id) == bindparam("scope_key"), col(SessionRow.session_id) == bindparam("named")
    )


def _ensure(transaction: Session, scope: Scope, session_id: str, at: datetime) -> SessionRow:
    if not session_id.strip() or any(unicodedata.category(sign) in ("Cc", "Cs") for sign in session_id):
        raise StateConflict(f"{session_id!a} is no session id; give each conversation a readable id of its own")
    scope_id = lock_scope(transaction, scope)
    row = _find(transaction, scope, session_id)
    if row is None:
        row = SessionRow(scope_id=scope_id, session_id=session_id, progress=Progress.PENDING, updated_at=at)
        transaction.add(row)
    return row


def _saved(row: SessionRow, scope: Scope) -> SavedSession:
    if row.id is None:
        raise NotFound("the session has no key")
    return SavedSession(
        scope=scope,
        session_id=row.session_id,
        key=row.id,
        progress=Progress(row.progress),
        failure=row.failure,
        humans=tuple(row.humans),
        assumed=tuple(row.assumed),
        started_at=row.started_at,
        ended_at=row.ended_at,
        time_basis=row.time_basis,
        layout=row.layout,
        skipped=row.skipped,
        attempts=row.attempts,
        next_try_at=row.next_try_at,
        updated_at=row.updated_at,
    )


def _mismatch(scope: Scope, session_id: str, kept: str, given: str) -> str:
    return (
        f"session {session_id!r} of {scope} was saved by a {kept}, and a {given} asks for it; "
        "use the same kind of agent or team, or another session id"
    )
