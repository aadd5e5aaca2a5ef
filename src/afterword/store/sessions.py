"""Stored sessions: their saved states, their turns, and how far their processing has come."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import bindparam, delete, insert, or_, update
from sqlmodel import Session, col, func, select

from afterword.errors import NotFound, StateConflict
from afterword.facts.local_time import offset_seconds
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import TimeBasis, Transcript, Turn
from afterword.privacy.normalisation import storable_text
from afterword.privacy.redaction import mask_secrets
from afterword.store.access.webhooks import WebhookEvent, announce, event_key_prefix
from afterword.store.database.statements import (
    RowRange,
    Values,
    chunks,
    expire_loaded_row,
    fetch_rows,
    fetch_where_in,
    insert_rows,
    select_columns,
)
from afterword.store.limits import RetryPolicy
from afterword.store.rows import pack_state, turn_of, turn_values, unpack_state
from afterword.store.scope_rows import lock_scope, scope_key, scope_of_row
from afterword.store.tables import ScopeRow, SessionRow, StateRow, TurnRow
from afterword.telemetry import Count, Stage, count, note, staged

_RETRIES = RetryPolicy()


class Progress(StrEnum):
    """How far a session is processed. One that failed too often is set aside, until a person has it tried again."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"
    SET_ASIDE = "set aside"


# Statements that run often are built only once: building one takes longer than executing it.
_IS_SESSION = (col(SessionRow.scope_id) == bindparam("scope_key")) & (col(SessionRow.session_id) == bindparam("name"))
_SESSION = select_columns(SessionRow).where(_IS_SESSION)
_STATE_SAVED_AT = select(StateRow.saved_at).where(col(StateRow.session_pk) == col(SessionRow.id), _IS_SESSION)
_NEW_SESSION = insert(SessionRow).returning(col(SessionRow.id))
_CHANGED_SESSION = update(SessionRow).where(col(SessionRow.id) == bindparam("key"))
_SESSIONS: Any = select(SessionRow, ScopeRow).where(col(SessionRow.scope_id) == col(ScopeRow.id))
_NEW = {"humans": [], "assumed": [], "skipped": {}, "progress": Progress.PENDING, "attempts": 0}
"""The first values of a new session."""
WAITING = (Progress.PENDING, Progress.FAILED)
TROUBLED = (Progress.FAILED, Progress.SET_ASIDE)


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A stored session. `humans` are the speakers who are known to be people, `assumed` those who probably are.

    `attempts` counts the failures since the session was last processed. `next_try_at` is when it is tried again.
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
    """Store the state of a session, replace an earlier one, and queue the session for processing.

    `component` names the kind of agent or team. `humans` are added to the speakers already known to be people. Raises
    `StateConflict` if another kind of component saved the session before.
    """
    scope_id, row = _locked_session(transaction, scope, session_id)
    known = list(dict.fromkeys([*(row.humans if row else ()), *humans]))
    values: dict[str, Any] = {"humans": known, "progress": Progress.PENDING, "updated_at": at}
    values |= {"attempts": 0, "next_try_at": None}  # earlier failures concern another state
    key = _store_session(transaction, scope_id, session_id, row, values)
    stored = transaction.get(StateRow, key)
    if stored is not None and stored.component != component:
        raise StateConflict(_mismatch_message(scope, session_id, stored.component, component))
    transaction.merge(StateRow(session_pk=key, component=component, content=pack_state(state), saved_at=at))
    transaction.flush()


def read_state_row(
    transaction: Session, scope: Scope, session_id: str, component: str | None = None
) -> StateRow | None:
    """Return the row of a session's state, None if none is saved. Raises `StateConflict` as `load_state` does."""
    row = _find_session_row(transaction, scope, session_id)
    stored = transaction.get(StateRow, row.id) if row else None
    if stored is not None and component not in (None, stored.component):
        raise StateConflict(_mismatch_message(scope, session_id, stored.component, str(component)))
    return stored


def load_state(transaction: Session, scope: Scope, session_id: str, component: str | None = None) -> dict[str, Any]:
    """Return the saved state of a session of this scope.

    Raises `NotFound` if this scope has no saved state of that id, and `StateConflict` if another kind of component
    saved it.
    """
    stored = read_state_row(transaction, scope, session_id, component)
    if stored is None:
        raise NotFound(f"no saved state of session {session_id!r} in {scope}; record_session saves one")
    return unpack_state(stored.content)


def rewrite_state(transaction: Session, key: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Replace the saved state of the session with this key, if it has one, by the state that `change` returns."""
    stored = transaction.get(StateRow, key)
    if stored is not None and (changed := change(state := unpack_state(stored.content))) != state:
        stored.content = pack_state(changed)


def state_saved_at(transaction: Session, scope: Scope, session_id: str) -> datetime | None:
    """Return when the state of a session was saved, None if none is stored."""
    values = {"scope_key": scope_key(transaction, scope), "name": session_id}
    rows = fetch_rows(transaction, _STATE_SAVED_AT, values)
    return rows[0].saved_at if rows else None


def find_session(transaction: Session, scope: Scope, session_id: str) -> SavedSession | None:
    """Return a stored session, None if this scope has no such session."""
    row = _find_session_row(transaction, scope, session_id)
    return _saved_session(row._mapping, scope) if row else None


def read_sessions(
    transaction: Session, *, scope: Scope | None = None, session_id: str | None = None
) -> list[SavedSession]:
    """Return all sessions, or only those of a scope or with an id. For operators, never for an agent."""
    return list_sessions(transaction, scope=scope, session_id=session_id, progress=None, rows=RowRange())[0]


def list_sessions(
    transaction: Session,
    *,
    scope: Scope | None,
    tenant: str | None = None,
    session_id: str | None,
    progress: Collection[Progress] | None,
    rows: RowRange,
) -> tuple[list[SavedSession], int]:
    """Return one page of the sessions, in the order of their keys, and how many there are in all. For operators.

    Only sessions of the scope, of the tenant, with the id and with one of the values of `progress` are returned and
    counted. Criteria that are None are ignored.
    """
    of_scope = () if scope is None else (col(SessionRow.scope_id) == scope_key(transaction, scope),)
    scopes_of_tenant = select(ScopeRow.id).where(ScopeRow.tenant == tenant)
    of_tenant = () if tenant is None else (col(SessionRow.scope_id).in_(scopes_of_tenant),)
    of_id = () if session_id is None else (col(SessionRow.session_id) == session_id,)
    of_progress = () if progress is None else (col(SessionRow.progress).in_(progress),)
    fitting = (*of_scope, *of_tenant, *of_id, *of_progress)
    total = transaction.exec(select(func.count()).select_from(SessionRow).where(*fitting)).one()
    query = rows.limit_query(_SESSIONS.where(*fitting), col(SessionRow.id))
    return _saved_sessions(transaction, query), total


def waiting_sessions(
    transaction: Session, *, at: datetime | None = None, progress: Sequence[Progress] = WAITING
) -> list[SavedSession]:
    """Return the sessions that wait to be processed and have a saved state, oldest first.

    With `at`, sessions whose pause after a failure is not over at that time are left out. A session that was set aside
    does not wait, nor does a session of a paused scope.
    """
    query = _SESSIONS.where(
        col(SessionRow.id).in_(select(StateRow.session_pk)),
        col(SessionRow.progress).in_(progress),
        col(ScopeRow.paused_at).is_(None),
    )
    if at is not None:
        query = query.where(or_(col(SessionRow.next_try_at).is_(None), col(SessionRow.next_try_at) <= at))
    return _saved_sessions(transaction, query.order_by(col(SessionRow.updated_at)))


def pending_session_and_scope_keys(transaction: Session) -> list[tuple[int, int]]:
    """Return the key of each pending session with a saved state, and the key of its scope, oldest first.

    Sessions of paused scopes are left out.
    """
    query = (
        select(SessionRow.id, SessionRow.scope_id)
        .where(col(SessionRow.id).in_(select(StateRow.session_pk)), SessionRow.progress == Progress.PENDING)
        .where(col(SessionRow.scope_id).in_(select(ScopeRow.id).where(col(ScopeRow.paused_at).is_(None))))
        .order_by(col(SessionRow.updated_at))
    )
    return [(key, scope_id) for key, scope_id in transaction.exec(query) if key is not None]


def session_by_pk(transaction: Session, key: int) -> SavedSession | None:
    """Return the session with this key, None if it does not exist any more."""
    sessions = _saved_sessions(transaction, _SESSIONS.where(SessionRow.id == key))
    return sessions[0] if sessions else None


def failed_sessions(transaction: Session) -> list[SavedSession]:
    """Return the sessions that failed and wait for another try, or were set aside."""
    query = _SESSIONS.where(col(SessionRow.progress).in_(TROUBLED))
    return _saved_sessions(transaction, query.order_by(col(SessionRow.id)))


def _saved_sessions(transaction: Session, query: Any) -> list[SavedSession]:
    return [_saved_session(row.model_dump(), scope_of_row(scope_row)) for row, scope_row in transaction.exec(query)]


def read_turns(transaction: Session, scope: Scope, session_id: str) -> list[Turn]:
    """Return the turns of a session as they were last read; none if it was never read."""
    row = _find_session_row(transaction, scope, session_id)
    return turns_by_session_pk(transaction, row.id) if row else []


def turns_by_session_pk(transaction: Session, session_pk: int | None) -> list[Turn]:
    """Return the turns of the session with this key as they were last read."""
    rows = fetch_where_in(transaction, TurnRow, "session_pk", [session_pk])
    return [turn_of(row) for row in sorted(rows, key=lambda row: row.number)]


def transcript_of_session(turns: Sequence[Turn], saved: SavedSession) -> Transcript:
    """Return the transcript of a stored session (`saved`) that consists of these turns."""
    return Transcript(
        turns=tuple(turns),
        layout=saved.layout or "",
        humans=(*saved.humans, *saved.assumed),
        skipped=saved.skipped,
        assumed=saved.assumed,
        time_basis=TimeBasis(saved.time_basis) if saved.time_basis else None,
    )


def save_transcript(
    transaction: Session, scope: Scope, session_id: str, transcript: Transcript, at: datetime, *, is_done: bool
) -> int:
    """Store the turns of a session, which replace those that were read before; return the session's key.

    With `is_done` the session is marked as processed, and an earlier failure is cleared.
    """
    scope_id, row = _locked_session(transaction, scope, session_id)
    values: dict[str, Any] = {
        "layout": transcript.layout,
        "time_basis": str(transcript.time_basis) if transcript.time_basis else None,
        "started_at": transcript.started_at,
        "ended_at": transcript.ended_at,
        "humans": [name for name in transcript.humans if name not in transcript.assumed],
        "assumed": list(transcript.assumed),
        "skipped": dict(transcript.skipped),
        "updated_at": at,
    }
    if is_done:
        values |= {"progress": Progress.DONE, "failure": None, "attempts": 0, "next_try_at": None}
    # Two times with different offsets may be equal, so the offsets are compared as well.
    before = turns_by_session_pk(transaction, row.id) if row else []
    stored = {turn.number: (turn, offset_seconds(turn.said_at)) for turn in before}
    key = _store_session(transaction, scope_id, session_id, row, values)
    changed = [turn for turn in transcript.turns if stored.get(turn.number) != (turn, offset_seconds(turn.said_at))]
    unchanged = {turn.number for turn in transcript.turns} - {turn.number for turn in changed}
    for numbers in chunks(sorted(stored.keys() - unchanged)):
        is_outdated = (col(TurnRow.session_pk) == key) & col(TurnRow.number).in_(numbers)
        transaction.exec(delete(TurnRow).where(is_outdated))
    insert_rows(transaction, TurnRow, [turn_values(turn, key) for turn in changed])
    return key


def mark_failed(
    transaction: Session,
    scope: Scope,
    session_id: str,
    reason: str,
    at: datetime,
    *,
    retries: RetryPolicy = _RETRIES,
    begun_at: datetime | None = None,
) -> Progress:
    """Store why a session could not be processed and when it is tried again; return its progress.

    The session is set aside if no try is left. If another process has finished it since `begun_at`, it stays done. The
    reason must hold no words of the session.
    """
    scope_id, row = _locked_session(transaction, scope, session_id)
    if begun_at is not None and row and row.progress == Progress.DONE and row.updated_at > begun_at:
        return Progress.DONE
    # The name of a file or of an endpoint may hold a secret.
    reason, _ = mask_secrets(storable_text(reason))
    attempts = (row.attempts if row else 0) + 1
    next_try_at = retries.next_try_at(attempts, at)
    progress = Progress.FAILED if next_try_at else Progress.SET_ASIDE
    values: dict[str, Any] = {"failure": reason, "attempts": attempts, "updated_at": at}
    values |= {"next_try_at": next_try_at, "progress": progress}
    key = _store_session(transaction, scope_id, session_id, row, values)
    if progress == Progress.SET_ASIDE:
        content = {"scope": str(scope), "session": session_id, "tries": attempts}
        name = event_key_prefix(key) + at.isoformat()
        announce(transaction, WebhookEvent.SESSION_SET_ASIDE, scope, name, content, at)
    return progress


def mark_pending(transaction: Session, scope: Scope, session_id: str) -> None:
    """Queue a session again whose facts are stored, because the findings of agents in it are not."""
    row = _find_session_row(transaction, scope, session_id)
    if row is not None and row.progress == Progress.DONE:
        _change_session(transaction, row.id, {"progress": Progress.PENDING})


@staged(Stage.RETRY)
def requeue_due_failed_sessions(transaction: Session, at: datetime) -> int:
    """Queue the recorded sessions that failed and whose pause is over at `at`; return how many there are."""
    failed = waiting_sessions(transaction, at=at, progress=(Progress.FAILED,))
    for keys in chunks([session.key for session in failed]):
        transaction.exec(update(SessionRow).where(col(SessionRow.id).in_(keys)).values(progress=Progress.PENDING))
    note(sessions=len(failed))
    count(Count.RETRIES, len(failed), by="schedule")
    return len(failed)


@staged(Stage.RETRY, "scope", "session_id")
def retry_session(transaction: Session, scope: Scope, session_id: str) -> None:
    """Queue a failed session at once, with as many tries as a new one. Its failure stays recorded until it is done.

    Raises `NotFound` if this scope has no such session, and `StateConflict` if the session did not fail.
    """
    row = _find_session_row(transaction, scope, session_id)
    if row is None:
        raise NotFound(f"no session {session_id!r} in {scope}; see `afterword sessions`")
    if row.progress not in TROUBLED:
        raise StateConflict(f"session {session_id!r} of {scope} is {row.progress}: there is nothing to try again")
    _change_session(transaction, row.id, {"progress": Progress.PENDING, "attempts": 0, "next_try_at": None})
    note(sessions=1)
    count(Count.RETRIES, by="person")


def _find_session_row(transaction: Session, scope: Scope, session_id: str) -> Any:
    """Return the row of a session as it is now, None if this scope has no such session."""
    rows = fetch_rows(transaction, _SESSION, {"scope_key": scope_key(transaction, scope), "name": session_id})
    return rows[0] if rows else None


def _locked_session(transaction: Session, scope: Scope, session_id: str) -> tuple[int, Any]:
    """Lock a scope; return its key, and the row of the session, None if the session is new."""
    if not session_id.strip() or any(unicodedata.category(sign) in ("Cc", "Cs") for sign in session_id):
        raise StateConflict(f"{session_id!a} is no session id; give each conversation a readable id of its own")
    return lock_scope(transaction, scope), _find_session_row(transaction, scope, session_id)


def _store_session(transaction: Session, scope_id: int, session_id: str, row: Any, values: Values) -> int:
    """Update the session of this row, or insert the session if `row` is None; return its key."""
    if row is not None:
        _change_session(transaction, row.id, values)
        return int(row.id)
    new: Values = {**_NEW, "scope_id": scope_id, "session_id": session_id, **values}
    return int(fetch_rows(transaction, _NEW_SESSION, new)[0].id)


def _change_session(transaction: Session, key: int, values: Values) -> None:
    transaction.connection().execute(_CHANGED_SESSION, {"key": key, **values})
    expire_loaded_row(transaction, SessionRow, key)


def _saved_session(values: Mapping[str, Any], scope: Scope) -> SavedSession:
    fields = {name: value for name, value in values.items() if name not in ("id", "scope_id")}
    fields["progress"] = Progress(values["progress"])
    fields |= {name: tuple(values[name]) for name in ("humans", "assumed")}
    return SavedSession(scope=scope, key=values["id"], **fields)


def _mismatch_message(scope: Scope, session_id: str, saved_by: str, asked_by: str) -> str:
    return (
        f"session {session_id!r} of {scope} was saved by a {saved_by}, and a {asked_by} asks for it; "
        "use the same kind of agent or team, or another session id"
    )
