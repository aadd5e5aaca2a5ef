"""Ids for statements whose own ids are taken.

The id of a statement follows from its scope and its words. A rename or a merge gives a statement to another scope, with
its id. Where the same words are said again under the former name, they are a statement of their own.
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

# Building a statement takes longer than executing it.
_OWNERS = select(AssertionRow.id, AssertionRow.scope_id, AssertionRow.session_id).where(
    col(AssertionRow.id).in_(bindparam("ids", expanding=True))
)


def own_ids(transaction: Session, scope: Scope, ids: Iterable[str], *, session_id: str | None = None) -> dict[str, str]:
    """Return other ids for those of a scope's statements that a statement of another scope has.

    With `session_id`, all are statements of this session, and a statement of another session is another one as well.
    The same statement gets the same id each time.
    """
    scope_id = scope_key(transaction, scope)
    other: dict[str, str] = {}
    candidates = {id_: id_ for id_ in ids}
    while candidates:
        elsewhere = _ids_elsewhere(transaction, candidates.values(), scope_id, session_id)
        candidates = {
            id_: digest(candidate, "said again") for id_, candidate in candidates.items() if candidate in elsewhere
        }
        other |= candidates
    return other


def with_ids(assertions: Iterable[Assertion], other: Mapping[str, str]) -> tuple[Assertion, ...]:
    """Return the assertions, with other ids for those that are named."""
    return tuple(replace(said, id=other.get(said.id, said.id)) for said in assertions)


def _ids_elsewhere(transaction: Session, ids: Iterable[str], scope_id: int, session_id: str | None) -> set[str]:
    return {
        id_
        for chunk in chunks(list(ids))
        for id_, its_scope_id, its_session_id in fetch_rows(transaction, _OWNERS, {"ids": chunk})
        if its_scope_id != scope_id or session_id not in (None, its_session_id)
    }
