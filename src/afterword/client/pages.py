"""Pages of sessions and of audit entries, read in one transaction each."""

from __future__ import annotations

from collections.abc import Callable

from sqlmodel import Session

from afterword.client.arguments import Several, choices, first_page, number_after, one_more, run_cursor
from afterword.client.results import SessionPage
from afterword.client.store_results import AuditPage
from afterword.facts.scopes import Scope
from afterword.store import sessions
from afterword.store.access import audit
from afterword.store.sessions import Progress


def session_page(
    scope: Scope | None,
    session_id: str | None,
    state: Several | None,
    limit: int | None,
    after: str | None,
    *,
    tenant: str | None = None,
) -> Callable[[Session], SessionPage]:
    """Return what reads a page of the sessions in these states. Raises `ArgumentInvalid`."""
    states = None if state is None else choices(Progress, state, "state")
    most, last = one_more(limit), number_after(after)

    def work(transaction: Session) -> SessionPage:
        saved, total = sessions.list_sessions(
            transaction, scope=scope, tenant=tenant, session_id=session_id, states=states, most=most, after=last
        )
        shown, cursor = first_page(saved, lambda session: run_cursor(session.key), limit=limit)
        return SessionPage(shown, total, cursor)

    return work


def audit_page(
    tenant: str | None, scope: Scope | None, key_id: str | None, limit: int | None, after: str | None
) -> Callable[[Session], AuditPage]:
    """Return what reads a page of the audit entries. Raises `ArgumentInvalid`."""
    most, before = one_more(limit), number_after(after)

    def work(transaction: Session) -> AuditPage:
        entries = audit.read_audit(transaction, tenant=tenant, scope=scope, key_id=key_id, most=most, before=before)
        return AuditPage(*first_page(entries, lambda entry: run_cursor(entry.id), limit=limit))

    return work
