"""New ids for statements whose ids are already used by another scope.

The id of a statement is a hash of its scope and its words. A rename or a merge moves a statement to another scope,
where it keeps its id. If the same words are then said again in the former scope, they would get the same id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlalchemy import bindparam
from sqlmodel import Session, col, select

from afterword.facts.assertions import Assertion, digest
from afterword.facts.scopes import Scope
from afterword.store.database.statements import chunks, fetch_rows
from afterword.store.scope_rows import scope_key
from afterword.store.tables import AssertionRow

# Statements that run often are built only once: building one takes longer than executing it.
_OWNERS = select(AssertionRow.id, AssertionRow.scope_id, AssertionRow.session_id).where(
    col(AssertionRow.id).in_(bindparam("ids", expanding=True))
)


def replacements_of_taken_ids(
    transaction: Session, scope: Scope, ids: Iterable[str], *, session_id: str | None = None
) -> dict[str, str]:
    """Return a new id for each of these `ids` that a statement of another scope already has, by the old id.

    With `session_id`, ids that belong to another session of the scope are replaced too. An id is always replaced by the
    same new id.
    """
    scope_id = scope_key(transaction, scope)
    new_ids: dict[str, str] = {}
    candidates = {id_: id_ for id_ in ids}
    while candidates:
        elsewhere = {
            id_
            for chunk in chunks(list(candidates.values()))
            for id_, its_scope_id, its_session_id in fetch_rows(transaction, _OWNERS, {"ids": chunk})
            if its_scope_id != scope_id or session_id not in (None, its_session_id)
        }
        candidates = {
            id_: digest(candidate, "said again") for id_, candidate in candidates.items() if candidate in elsewhere
        }
        new_ids |= candidates
    return new_ids


def with_new_ids(assertions: Iterable[Assertion], new_ids: Mapping[str, str]) -> tuple[Assertion, ...]:
    """Return the assertions; each whose id is a key of `new_ids` gets the new id."""
    return tuple(replace(said, id=new_ids.get(said.id, said.id)) for said in assertions)
