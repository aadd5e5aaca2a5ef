"""Forgets sessions, facts and findings for good when they are older than the limits of retention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlmodel import Session

from afterword.facts.assertions import Kind
from afterword.facts.findings import united_findings
from afterword.facts.scopes import Scope
from afterword.store import lookup, sessions
from afterword.store.database.engine import Store
from afterword.store.findings.finding_rows import finding_of, finding_rows_of_scope
from afterword.store.forgetting.erasure import Erasure, Receipt, erase_in_scope
from afterword.store.scope_rows import scope_key
from afterword.store.sessions import Progress


@dataclass(frozen=True, slots=True)
class Retention:
    """The largest age of sessions, of facts by kind, and of findings. None, or a missing kind, means no limit.

    A session is as old as its last turn. A fact is as old as its last statement, repetition or confirmation, and a
    finding as its last repetition. Facts that only a forgotten session supports are forgotten with it.
    """

    sessions: timedelta | None = None
    facts: Mapping[Kind, timedelta] = field(default_factory=dict)
    findings: timedelta | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is any limit."""
        return self.sessions is not None or bool(self.facts) or self.findings is not None


async def apply_retention(
    store: Store, scope: Scope, retention: Retention, *, at: datetime, is_preview: bool = False
) -> Receipt | None:
    """Forget what is older than the limits in a scope, and return a receipt; None if nothing is.

    With `is_preview`, nothing is forgotten. Sessions that wait to be processed are kept. The words may remain in the
    database files until `Store.compact`.
    """
    expired = await store.read(lambda transaction: _read_expired(transaction, scope, retention, at))
    if not any(expired):
        return None

    def work(erasure: Erasure) -> None:
        for session_id in expired.session_ids:
            erasure.forget_session(session_id)
        erasure.forget_statements(expired.assertion_ids)
        if expired.finding_keys:
            erasure.forget_findings(expired.finding_keys, may_return=True)

    return await erase_in_scope(store, scope, work, at=at, is_preview=is_preview)


class _Expired(NamedTuple):
    """The ids of the sessions, the ids of the statements, and the keys of the findings that are too old."""

    session_ids: list[str]
    assertion_ids: list[str]
    finding_keys: set[str]


def _read_expired(transaction: Session, scope: Scope, retention: Retention, at: datetime) -> _Expired:
    return _Expired(
        [] if retention.sessions is None else _expired_session_ids(transaction, scope, at - retention.sessions),
        _expired_assertion_ids(transaction, scope, retention.facts, at) if retention.facts else [],
        set() if retention.findings is None else _expired_finding_keys(transaction, scope, at - retention.findings),
    )


def _expired_session_ids(transaction: Session, scope: Scope, oldest: datetime) -> list[str]:
    return [
        session.session_id
        for session in sessions.read_sessions(transaction, scope=scope)
        if (session.ended_at or session.updated_at) < oldest and session.progress is not Progress.PENDING
    ]


def _expired_assertion_ids(
    transaction: Session, scope: Scope, max_ages: Mapping[Kind, timedelta], at: datetime
) -> list[str]:
    expired: list[str] = []
    for fact in lookup.read_facts(transaction, scope, at=at):
        age = max_ages.get(fact.kind)
        if age is not None and (fact.last_said_at or fact.said_at) < at - age:
            expired += fact.assertion_ids
    return expired


def _expired_finding_keys(transaction: Session, scope: Scope, oldest: datetime) -> set[str]:
    rows = finding_rows_of_scope(transaction, scope_key(transaction, scope))
    findings = united_findings(finding_of(row, scope) for row in rows)
    return {finding.key for finding in findings if finding.said_at < oldest}
