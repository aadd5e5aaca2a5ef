"""Where the sessions of a scope were before it took over another one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session, col, select

from afterword.facts.scopes import Scope
from afterword.store.scope_rows import scope_of_row
from afterword.store.tables import MovedSourceRow, RunRow, ScopeRow, SessionRow

SESSION = "session:"
"""How the source of a session begins."""
WHOLE_SCOPE = ""
"""Stands for the scope itself among what a run has moved, so that the scope is known where nothing else is left."""


def merged_scopes(transaction: Session, scope_id: int) -> list[Scope]:
    """Return the scopes that a scope has taken over."""
    former_ids = (
        select(MovedSourceRow.former_scope_id)
        .join(RunRow, col(RunRow.id) == col(MovedSourceRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "applied")
    )
    # PostgreSQL cannot compare the JSON of whole rows, as DISTINCT would.
    return [scope_of_row(row) for row in transaction.exec(select(ScopeRow).where(col(ScopeRow.id).in_(former_ids)))]


def former_sessions(
    transaction: Session, scope_id: int, session_ids: Sequence[str]
) -> dict[str, list[tuple[Scope, str]]]:
    """Return, of each of these sessions, the scopes and ids under which it was known before.

    A session that is not stored here may have been forgotten there, under the same id.
    """
    merged = merged_scopes(transaction, scope_id)
    if not merged:
        return {}
    query = (
        select(MovedSourceRow, ScopeRow)
        .join(RunRow, col(RunRow.id) == col(MovedSourceRow.run_id))
        .where(RunRow.scope_id == scope_id, RunRow.status == "applied")
        .where(col(ScopeRow.id) == col(MovedSourceRow.former_scope_id), MovedSourceRow.source != WHOLE_SCOPE)
    )
    former: dict[str, list[tuple[Scope, str]]] = {}
    for moved, row in transaction.exec(query):
        known = (scope_of_row(row), moved.former_source.removeprefix(SESSION))
        former.setdefault(moved.source.removeprefix(SESSION), []).append(known)
    stored = set(transaction.exec(select(SessionRow.session_id).where(SessionRow.scope_id == scope_id)))
    for session_id in session_ids:
        if session_id not in former and session_id not in stored:
            former[session_id] = [(scope, session_id) for scope in merged]
    return former
