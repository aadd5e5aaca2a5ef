"""Sessions: their saved states, their turns, and how far their processing has come."""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import delete
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession

from afterword.store.errors import NotFound, StateConflict
from afterword.store.ledger import ensure_scope
from afterword.store.lookup import plain, scope_row
from afterword.store.redaction import redacted
from afterword.store.rows import turn_of, turn_values
from afterword.store.scopes import Scope
from afterword.store.tables import ScopeRow, SessionRow, StateRow, TurnRow
from afterword.store.transcripts import TimeBasis, Transcript, Turn


class Progress(StrEnum):
    """How far the processing of a session has come."""

    PENDING = "pending"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class SavedSession:
    """A session as the store keeps it. `humans` are known to be people, `assumed` only taken for them."""

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


async def save_state(
    db: AsyncSession,
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
    row = await _ensure(db, scope, session_id, at)
    await db.flush()
    if row.id is None:
        raise NotFound("the session got no key")
    kept = await db.get(StateRow, row.id)
    if kept is not None and kept.component != component:
        raise StateConflict(_mismatch(scope, session_id, kept.component, component))
    content = zlib.compress(json.dumps(state, ensure_ascii=True).encode())
    await db.merge(StateRow(session_pk=row.id, component=component, content=content, saved_at=at))
    row.humans = list(dict.fromkeys([*row.humans, *humans]))
    row.progress, row.updated_at = Progress.PENDING, at
    db.add(row)
    await db.flush()


async def load_state(db: AsyncSession, scope: Scope, session_id: str, component: str | None = None) -> dict[str, Any]:
    """Return the saved state of a session of this scope.

    Raises `NotFound` where this scope has no saved state under that id, and `StateConflict` where another kind of
    component saved it.
    """
    row = await _find(db, scope, session_id)
    kept = await db.get(StateRow, row.id) if row else None
    if kept is None:
        raise NotFound(f"no saved state of session {session_id!r} in {scope}; record_session saves one")
    if component is not None and kept.component != component:
        raise StateConflict(_mismatch(scope, session_id, kept.component, component))
    state: dict[str, Any] = json.loads(zlib.decompress(kept.content))
    return state


async def saved_at(db: AsyncSession, scope: Scope, session_id: str) -> datetime | None:
    """Return when the state that is kept of a session was saved, None where none is kept."""
    row = await _find(db, scope, session_id)
    kept = await db.get(StateRow, row.id) if row else None
    return kept.saved_at if kept else None


async def find(db: AsyncSession, scope: Scope, session_id: str) -> SavedSession | None:
    """Return what is kept about a session, None where this scope has no such session."""
    row = await _find(db, scope, session_id)
    if row is None:
        return None
    return _saved(row, scope)


async def sessions(
    db: AsyncSession, *, scope: Scope | None = None, session_id: str | None = None
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
    return [_saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) for row, of in await db.exec(query)]


async def queued(db: AsyncSession) -> list[SavedSession]:
    """Return the sessions that wait to be processed and whose saved state is kept, oldest first."""
    query = (
        select(SessionRow, ScopeRow)
        .where(col(SessionRow.scope_id) == col(ScopeRow.id), col(SessionRow.id).in_(select(StateRow.session_pk)))
        .where(col(SessionRow.progress) != Progress.DONE)
        .order_by(col(SessionRow.updated_at))
    )
    return [_saved(row, Scope.parse(f"{of.tenant}/{of.kind}/{of.name}")) for row, of in await db.exec(query)]


async def turns(db: AsyncSession, scope: Scope, session_id: str) -> list[Turn]:
    """Return the turns of a session as they were last read; none where it was never read."""
    row = await _find(db, scope, session_id)
    if row is None:
        return []
    return await _turns(db, row)


async def _turns(db: AsyncSession, row: SessionRow) -> list[Turn]:
    found = await db.exec(plain(TurnRow).where(TurnRow.session_pk == row.id).order_by(TurnRow.number))
    return [turn_of(one) for one in found]


def as_kept(turns: Sequence[Turn], kept: SavedSession) -> Transcript:
    """Return the session as the store has it, with these turns."""
    return Transcript(
        turns=tuple(turns),
        layout=kept.layout or "",
        humans=(*kept.humans, *kept.assumed),
        skipped=kept.skipped,
        assumed=kept.assumed,
        time_basis=TimeBasis(kept.time_basis) if kept.time_basis else None,
    )


async def keep_transcript(
    db: AsyncSession, scope: Scope, session_id: str, transcript: Transcript, at: datetime, *, is_done: bool
) -> int:
    """Keep a session's turns as read, in place of the reading before; return the session's key.

    With `is_done` the session counts as processed, and an earlier failure as mended.
    """
    row = await _ensure(db, scope, session_id, at)
    row.layout, row.time_basis = transcript.layout, str(transcript.time_basis) if transcript.time_basis else None
    row.started_at, row.ended_at = transcript.started_at, transcript.ended_at
    row.humans = [name for name in transcript.humans if name not in transcript.assumed]
    row.assumed, row.skipped = list(transcript.assumed), dict(transcript.skipped)
    row.updated_at = at
    if is_done:
        row.progress, row.failure, row.attempts = Progress.DONE, None, 0
    db.add(row)
    kept = {one.number: one for one in await _turns(db, row)} if row.id else {}
    await db.flush()
    if row.id is None:
        raise NotFound("the session got no key")
    changed = [turn for turn in transcript.turns if kept.get(turn.number) != turn]
    same = {turn.number for turn in transcript.turns} - {turn.number for turn in changed}
    stale = sorted(kept.keys() - same)
    for start in range(0, len(stale), 500):
        await db.exec(
            delete(TurnRow).where(
                col(TurnRow.session_pk) == row.id, col(TurnRow.number).in_(stale[start : start + 500])
            )
        )
    db.add_all([TurnRow(**turn_values(turn, row.id)) for turn in changed])
    await db.flush()
    return row.id


async def mark_failed(db: AsyncSession, scope: Scope, session_id: str, reason: str, at: datetime) -> None:
    """Keep why a session could not be processed; it stays queued. The reason holds no words of the session."""
    row = await _ensure(db, scope, session_id, at)
    # A file's or an endpoint's name may hold what nobody foresaw.
    reason, _ = redacted(reason)
    row.progress, row.failure, row.attempts, row.updated_at = Progress.FAILED, reason, row.attempts + 1, at
    db.add(row)
    await db.flush()


async def _find(db: AsyncSession, scope: Scope, session_id: str) -> SessionRow | None:
    of = await scope_row(db, scope)
    if of is None:
        return None
    query = select(SessionRow).where(SessionRow.scope_id == of.id, SessionRow.session_id == session_id)
    return (await db.exec(query)).one_or_none()


async def _ensure(db: AsyncSession, scope: Scope, session_id: str, at: datetime) -> SessionRow:
    if not session_id.strip() or any(unicodedata.category(sign) in ("Cc", "Cs") for sign in session_id):
        raise StateConflict(f"{session_id!a} is no session id; give each conversation a readable id of its own")
    scope_id = await ensure_scope(db, scope)
    row = await _find(db, scope, session_id)
    if row is None:
        row = SessionRow(scope_id=scope_id, session_id=session_id, progress=Progress.PENDING, updated_at=at)
        db.add(row)
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
    )


def _mismatch(scope: Scope, session_id: str, kept: str, given: str) -> str:
    return (
        f"session {session_id!r} of {scope} was saved by a {kept}, and a {given} asks for it; "
        "use the same kind of agent or team, or another session id"
    )
