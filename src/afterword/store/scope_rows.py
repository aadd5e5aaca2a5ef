"""The rows of scopes: their keys, revisions and settings, and which facts each revision changed."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import tzinfo
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from sqlalchemy import bindparam, delete, or_, tuple_, update
from sqlmodel import Session, col, func, select

from afterword.errors import NotFound
from afterword.facts.local_time import read_zone
from afterword.facts.scopes import Scope
from afterword.store.database.statements import fetch_rows, insert_missing, insert_rows, select_columns
from afterword.store.tables import ScopeChangeRow, ScopeRow

NEAR = 0.85
"""How similar (0 to 1) the full name of a known scope must be to be suggested in place of an unknown one."""
DERIVATION = 6
"""The version of the rules for deriving facts. An upgrade derives the facts of scopes with an older version again."""


# Statements that run often are built only once: building one takes longer than executing it.
_SCOPES = select_columns(ScopeRow)
_SCOPE = _SCOPES.where(
    col(ScopeRow.tenant) == bindparam("tenant"),
    col(ScopeRow.kind) == bindparam("kind"),
    col(ScopeRow.name) == bindparam("name"),
)
_CHANGED = update(ScopeRow).where(col(ScopeRow.id) == bindparam("scope_key")).returning(*_SCOPES.selected_columns)
_RAISED_REVISION = _CHANGED.values(revision=col(ScopeRow.revision) + bindparam("by"))
_NEW_STAMP = _RAISED_REVISION.values(stamp=bindparam("new_stamp"))


CHANGES_KEPT = 200
"""For how many revisions of a scope the changed facts are recorded. An older cache reads the whole scope again."""


class ApprovalPolicy(StrEnum):
    """Which runs wait for a person's approval before they count."""

    AUTO = "auto"
    HOLD_RETIREMENTS = "hold-retirements"
    HOLD_ALL = "hold-all"

    def holds(self, *, retires: bool) -> bool:
        """Return whether a run waits for approval; `retires` says whether it retires any fact."""
        return self is ApprovalPolicy.HOLD_ALL or (self is ApprovalPolicy.HOLD_RETIREMENTS and retires)


def scope_row(transaction: Session, scope: Scope) -> Any:
    """Return the row of a scope, None if nothing was ever stored for it. Each transaction reads it only once."""
    names = scope.tenant, str(scope.kind), scope.id
    if transaction.info.get(names) is None:
        for row in fetch_rows(transaction, _SCOPE, dict(zip(("tenant", "kind", "name"), names, strict=True))):
            _cache_row(transaction, row)
    return transaction.info.get(names)


def _cache_row(transaction: Session, row: Any) -> None:
    transaction.info[row.tenant, row.kind, row.name] = row


def change_scope(transaction: Session, scope_id: int, **values: Any) -> None:
    """Set these columns of the row of a scope."""
    (row,) = fetch_rows(transaction, _CHANGED, {"scope_key": scope_id, **values})
    _cache_row(transaction, row)


def scope_key(transaction: Session, scope: Scope) -> int:
    """Return the key of a scope's row, or 0 if nothing was ever stored for the scope. No row refers to 0."""
    row = scope_row(transaction, scope)
    return (row and row.id) or 0


def revision_of(transaction: Session, scope: Scope) -> int:
    """Return a number that grows whenever the knowledge about the scope changes; 0 for an unknown scope."""
    return revision_and_stamp_of(transaction, scope)[0]


def revision_and_stamp_of(transaction: Session, scope: Scope) -> tuple[int, str]:
    """Return the revision of a scope and its stamp, which differs from the stamp of that revision in a copied store."""
    row = scope_row(transaction, scope)
    return (row.revision, row.stamp) if row else (0, "")


def read_scopes(transaction: Session) -> list[Scope]:
    """Return every scope whose name is in Unicode NFC. For operators, never for an agent."""
    rows = fetch_rows(transaction, _SCOPES.order_by(col(ScopeRow.tenant), col(ScopeRow.kind), col(ScopeRow.name)))
    for row in rows:
        _cache_row(transaction, row)
    return [scope for scope in map(scope_of_row, rows) if scope == scope.normal]


def find_scopes(
    transaction: Session, *, prefix: str, tenant: str | None = None, most: int | None, after: Scope | None
) -> tuple[list[Scope], int]:
    """Return the scopes whose id or full name begins with `prefix`, and how many there are in all.

    With `tenant`, only scopes of this tenant are returned and counted. At most `most` scopes are returned, beginning
    with the one that follows `after`.
    """
    columns = (col(ScopeRow.tenant), col(ScopeRow.kind), col(ScopeRow.name))
    full_name = columns[0] + "/" + columns[1] + "/" + columns[2]
    begins = or_(*(func.substr(text, 1, len(prefix)) == prefix for text in (columns[2], full_name)))
    if tenant is not None:
        begins &= columns[0] == tenant
    total = transaction.exec(select(func.count()).select_from(ScopeRow).where(begins)).one()
    query = select(ScopeRow).where(begins).order_by(*columns).limit(most)
    if after is not None:
        query = query.where(tuple_(*columns) > (after.tenant, str(after.kind), after.id))
    return [scope_of_row(row) for row in transaction.exec(query)], total


def scope_of_row(row: Any) -> Scope:
    """Return the scope of a row."""
    return Scope.from_stored(row.tenant, row.kind, row.name)


def check_known(transaction: Session, scope: Scope) -> None:
    """Raise `NotFound` if nothing was ever stored for the scope. Its message names scopes with similar names."""
    if scope_key(transaction, scope):
        return
    query = select(ScopeRow).where(ScopeRow.tenant == scope.tenant)
    names = {str(known).casefold(): str(known) for known in map(scope_of_row, transaction.exec(query))}
    nearest = tuple(names[name] for name in get_close_matches(str(scope).casefold(), names, cutoff=NEAR))
    hint = f"did you mean {' or '.join(nearest)}?" if nearest else "see `afterword scopes`"
    raise NotFound(f"nothing was ever stored for {scope}; {hint}", nearest=nearest)


def ensure_scope(transaction: Session, scope: Scope) -> int:
    """Return the key of a scope's row, which is added if it is missing."""
    if not scope_key(transaction, scope):
        names = {"tenant": scope.tenant, "kind": str(scope.kind), "name": scope.id}
        insert_missing(transaction, ScopeRow, [{**names, "revision": 0, "policy": "auto", "derivation": DERIVATION}])
    return scope_key(transaction, scope)


def lock_scope(transaction: Session, scope: Scope) -> int:
    """Make every other writer of the scope wait until this transaction ends; return the key of the scope's row.

    Every transaction that stores words of a scope must do this, also for a run that is not applied yet. Otherwise it
    could not see what another transaction forgets at the same time, and would store those words again.
    """
    scope_id = ensure_scope(transaction, scope)
    # On SQLite every transaction that writes holds the lock of the file.
    if scope_id not in _locked_scope_keys(transaction) and transaction.connection().dialect.name != "sqlite":
        raise_revision(transaction, scope_id, by=0)
    return scope_id


def _locked_scope_keys(transaction: Session) -> set[int]:
    """Return the keys of the scopes whose rows the transaction has written, and so has locked until it ends."""
    keys: set[int] = transaction.info.setdefault(_locked_scope_keys, set())
    return keys


def raise_revision(transaction: Session, scope_id: int, *, by: int = 1) -> int:
    """Raise the revision of a scope and return it. A second writer of the scope waits here until the first commits."""
    values = {"scope_key": scope_id, "by": by}
    # A stamp distinguishes this state from one with the same revision in a copy of the store.
    stamped = (_NEW_STAMP, {**values, "new_stamp": secrets.token_hex(8)}) if by else (_RAISED_REVISION, values)
    (row,) = fetch_rows(transaction, *stamped)
    _cache_row(transaction, row)
    _locked_scope_keys(transaction).add(scope_id)
    return int(row.revision)


def approval_policy_of(transaction: Session, scope: Scope) -> ApprovalPolicy:
    """Return the approval policy of a scope; the default is `auto`."""
    row = scope_row(transaction, scope)
    return ApprovalPolicy(row.policy) if row else ApprovalPolicy.AUTO


def zone_of(transaction: Session, scope: Scope, default: tzinfo) -> tzinfo:
    """Return the time zone of a scope, in which times without an offset are read; `default` if none was set."""
    row = scope_row(transaction, scope)
    return read_zone(row.zone) if row and row.zone else default


def set_zone(transaction: Session, scope: Scope, zone: str | None) -> None:
    """Set the time zone in which times without an offset are read from now on, None for the store's default."""
    change_scope(transaction, ensure_scope(transaction, scope), zone=zone)


def set_approval_policy(transaction: Session, scope: Scope, policy: ApprovalPolicy) -> None:
    """Set the approval policy of a scope for its future runs."""
    change_scope(transaction, ensure_scope(transaction, scope), policy=str(policy))


def record_changed_facts(
    transaction: Session,
    scope_id: int,
    version: tuple[int, str],
    *,
    source: str,
    fact_ids: Collection[str],
    is_unlinked: bool,
) -> None:
    """Record which facts a run wrote or removed, so that caches can be updated.

    `version` is the scope's version after the run, `source` the run's source. `is_unlinked` says that live statements
    which belong to no fact have changed as well.
    """
    revision, stamp = version
    row = {"scope_id": scope_id, "revision": revision, "stamp": stamp, "source": source}
    insert_rows(transaction, ScopeChangeRow, [{**row, "fact_ids": list(fact_ids), "is_unlinked": is_unlinked}])
    if revision % CHANGES_KEPT == 0:
        of_scope = (col(ScopeChangeRow.scope_id) == scope_id, col(ScopeChangeRow.revision) <= revision - CHANGES_KEPT)
        transaction.connection().execute(delete(ScopeChangeRow).where(*of_scope))
