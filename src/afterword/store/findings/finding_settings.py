"""Whose findings a scope keeps, and whether the words of other people are told in it."""

from __future__ import annotations

from sqlmodel import Session

from afterword.facts.findings import FindingPolicy
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.store import scope_rows
from afterword.store.scope_changes import record_changed_facts
from afterword.store.tables import ScopeRow


def finding_policy_of(transaction: Session, scope: Scope, privacy: Privacy) -> FindingPolicy:
    """Return whose findings a scope keeps: as it was set, by default as the settings of the store say."""
    row = scope_rows.scope_row(transaction, scope)
    return FindingPolicy.from_json(row.findings) if row is not None and row.findings else privacy.findings


def tells_other_people(transaction: Session, scope: Scope, privacy: Privacy) -> bool:
    """Return whether agents are told the words of people who are not the owner of the scope."""
    row = scope_rows.scope_row(transaction, scope)
    is_set = row is not None and row.other_people is not None
    return bool(row.other_people) if row is not None and is_set else privacy.other_people


def set_finding_policy(transaction: Session, scope: Scope, policy: FindingPolicy) -> None:
    """Set whose findings a scope keeps from now on."""
    row = transaction.get_one(ScopeRow, scope_rows.lock_scope(transaction, scope))
    row.findings = policy.as_json()
    transaction.add(row)
    transaction.flush()
    note_change(transaction, scope)


def set_other_people(transaction: Session, scope: Scope, *, are_told: bool) -> None:
    """Set whether agents are told the words of other people."""
    row = transaction.get_one(ScopeRow, scope_rows.lock_scope(transaction, scope))
    row.other_people = are_told
    transaction.add(row)
    transaction.flush()
    note_change(transaction, scope)


def note_change(transaction: Session, scope: Scope) -> None:
    """Raise the revision of a scope, so that caches notice a change that concerns no fact."""
    scope_id = scope_rows.scope_key(transaction, scope)
    scope_rows.raise_revision(transaction, scope_id)
    version = scope_rows.version_of(transaction, scope)
    record_changed_facts(transaction, scope_id, version, source="findings", fact_ids=(), is_unlinked=False)
