"""Which facts each change of a scope concerned, so that a reader of an earlier state reads only the difference."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import delete
from sqlmodel import Session, col

from afterword.store.tables import ScopeChangeRow

CHANGES_KEPT = 200
"""How many changes of a scope are kept. A reader of an older state reads the whole scope again."""


def record_changed_facts(
    transaction: Session,
    scope_id: int,
    version: tuple[int, str],
    *,
    source: str,
    fact_ids: Collection[str],
    is_unlinked: bool,
) -> None:
    """Record which facts a run wrote or removed.

    `version` is the scope's version after the run, `source` the run's source.

    `is_unlinked` says that live statements which belong to no fact have changed as well.
    """
    revision, stamp = version
    row = ScopeChangeRow(
        scope_id=scope_id,
        revision=revision,
        stamp=stamp,
        source=source,
        fact_ids=list(fact_ids),
        is_unlinked=is_unlinked,
    )
    transaction.add(row)
    if revision % CHANGES_KEPT == 0:
        of_scope = (col(ScopeChangeRow.scope_id) == scope_id, col(ScopeChangeRow.revision) <= revision - CHANGES_KEPT)
        transaction.connection().execute(delete(ScopeChangeRow).where(*of_scope))
