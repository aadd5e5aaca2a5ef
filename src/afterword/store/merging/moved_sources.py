"""Which scopes were merged, and under which names their sessions were known."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, func, select

from afterword.facts.scopes import Scope
from afterword.store.database.statements import chunks
from afterword.store.scope_rows import scope_of_row
from afterword.store.tables import MovedSourceRow, RunRow, ScopeRow, SessionRow

SESSION = "session:"
"""How the source of a session begins."""
WHOLE_SCOPE = ""
"""Stands for the scope itself among what a run has moved, so that the scope is known where nothing else is left."""


def merged_scopes(transaction: Session, scope_id: int) -> dict[Scope, datetime]:
    """Return the scopes that a scope has taken over, each with when that was last done."""
    query = (
        select(MovedSourceRow.former_scope_id, RunRow.applied_at, RunRow.redone_at)
        .join(RunRow, col(RunRow.id) == col(MovedSourceRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "applied")
    )
    merged: dict[Scope, datetime] = {}
    for former_id, applied_at, redone_at in transaction.exec(query.distinct()).all():
        scope, merged_at = scope_of_row(transaction.get_one(ScopeRow, former_id)), redone_at or applied_at
        if merged_at is not None:
            merged[scope] = max(merged_at, merged.get(scope, merged_at))
    return merged


def names_elsewhere(transaction: Session, scope_id: int) -> dict[str, list[tuple[Scope, str]]]:
    """Return the scopes and ids under which sessions of a scope were known elsewhere, by their ids in this scope.

    That was before this scope took over theirs, or while another one had taken over this one.
    """
    moved = select(MovedSourceRow, ScopeRow, RunRow.scope_id).where(col(RunRow.id) == col(MovedSourceRow.run_id))
    taken_over = moved.where(
        RunRow.scope_id == scope_id, RunRow.status == "applied", col(ScopeRow.id) == col(MovedSourceRow.former_scope_id)
    )
    given_away = moved.where(
        MovedSourceRow.former_scope_id == scope_id,
        col(RunRow.status).in_(("applied", "undone")),
        col(ScopeRow.id) == col(RunRow.scope_id),
    )
    names: dict[str, list[tuple[Scope, str]]] = {}
    for query in (taken_over, given_away):
        for source, other_scope, owner_id in transaction.exec(query).all():
            here, there = source.source, source.former_source
            if owner_id != scope_id:
                here, there = there, here
            if here.startswith(SESSION):
                name = scope_of_row(other_scope), there.removeprefix(SESSION)
                names.setdefault(here.removeprefix(SESSION), []).append(name)
    return names


def former_sessions(
    transaction: Session, scope_id: int, session_ids: Sequence[str]
) -> dict[str, list[tuple[Scope, str]]]:
    """Return, of each of these sessions, the scopes and ids under which it was known elsewhere.

    A session that was not stored here when a scope was taken over may have been forgotten there, under the same id.
    """
    names = names_elsewhere(transaction, scope_id)
    merged = merged_scopes(transaction, scope_id)
    if not merged:
        return names
    moved = {name for elsewhere in names.values() for name in elsewhere}
    stored_since = _stored_since(transaction, scope_id, session_ids)
    return names | {
        session_id: [
            *names.get(session_id, ()),
            *(
                (scope, session_id)
                for scope, merged_at in merged.items()
                if (scope, session_id) not in moved
                and (session_id not in stored_since or stored_since[session_id] > merged_at)
            ),
        ]
        for session_id in session_ids
    }


def _stored_since(transaction: Session, scope_id: int, session_ids: Sequence[str]) -> dict[str, datetime]:
    """Return since when these sessions of a scope are stored: since their first run, or without one their last save."""
    first_run = select(func.min(RunRow.started_at)).where(
        RunRow.scope_id == scope_id, RunRow.source == SESSION + col(SessionRow.session_id)
    )
    query = select(SessionRow.session_id, SessionRow.updated_at, first_run.scalar_subquery())
    query = query.where(SessionRow.scope_id == scope_id)
    return {
        session_id: first_run_at or updated_at
        for chunk in chunks(session_ids)
        for session_id, updated_at, first_run_at in transaction.exec(query.where(col(SessionRow.session_id).in_(chunk)))
    }
