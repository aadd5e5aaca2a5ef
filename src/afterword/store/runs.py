"""Functions that read stored runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, bindparam
from sqlmodel import Session, col, func, select

from afterword.errors import NotFound
from afterword.facts.scopes import Scope
from afterword.store.database.statements import CompiledQuery, RowRange, chunks
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import RunRow, ScopeRow

_IS_WANTED: Any = [getattr(RunRow, name) == bindparam(name) for name in ("scope_id", "status", "extractor")]
_FIRST_RUN = CompiledQuery(select(RunRow.id).where(*_IS_WANTED).limit(1))


MERGE, RENAME = "merge", "rename"
"""The purposes of the runs that move a scope."""

LARGEST_ID = 2**31 - 1
"""The largest id of a row. A database raises an error if it is compared with a larger number."""


@dataclass(frozen=True, slots=True)
class Run:
    """A stored run: the processing of a session, a consolidation, or one change by a person or an application."""

    id: int
    scope: Scope
    source: str
    purpose: str
    status: str
    extractor: str
    judge: str
    started_at: datetime
    applied_at: datetime | None
    undone_at: datetime | None
    redone_at: datetime | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    counts: Mapping[str, int]

    @property
    def moves_scope(self) -> bool:
        """Whether the run moves one scope into another, with the API keys of that scope."""
        return self.purpose in (MERGE, RENAME)


def read_runs(transaction: Session, scope: Scope, *, statuses: Sequence[str] = ()) -> list[Run]:
    """Return the runs of a scope, oldest first; with `statuses`, only those that have one of them."""
    query = select(RunRow).where(RunRow.scope_id == scope_key(transaction, scope)).order_by(col(RunRow.id))
    if statuses:
        query = query.where(col(RunRow.status).in_(statuses))
    return [_run_of(row, scope) for row in transaction.exec(query)]


def read_run_range(
    transaction: Session, scope: Scope | None, *, statuses: Sequence[str], rows: RowRange
) -> tuple[list[Run], int]:
    """Return one page of the runs of a scope, in the order of their numbers, and how many runs there are in all.

    With `statuses`, only runs that have one of them are returned and counted. For operators `scope` may be None: then
    the runs of all scopes are read.
    """
    fitting: list[ColumnElement[bool]] = [col(RunRow.status).in_(statuses)] if statuses else []
    fitting += [] if scope is None else [col(RunRow.scope_id) == scope_key(transaction, scope)]
    total = transaction.exec(select(func.count()).select_from(RunRow).where(*fitting)).one()
    query = select(RunRow, ScopeRow).where(col(RunRow.scope_id) == col(ScopeRow.id), *fitting)
    chosen = transaction.exec(rows.limit_query(query, col(RunRow.id)))
    return [_run_of(row, scope_of_row(of_scope)) for row, of_scope in chosen], total


def has_run(transaction: Session, scope: Scope, *, status: str, extractor: str) -> bool:
    """Return whether a scope has a run with this status and this extractor."""
    values = {"scope_id": scope_key(transaction, scope), "status": status, "extractor": extractor}
    return bool(_FIRST_RUN.ask(transaction.connection(), **values))


def count_runs_by_scope(transaction: Session, status: str) -> dict[Scope, int]:
    """Return how many runs with this status each scope has. For operators, never for an agent."""
    query = select(ScopeRow, func.count()).where(col(RunRow.scope_id) == col(ScopeRow.id), RunRow.status == status)
    counts = transaction.exec(query.group_by(col(ScopeRow.id)))
    return {scope_of_row(row): count for row, count in counts}


def read_run(transaction: Session, run_id: int) -> Run:
    """Return a run of any scope. For operators, never for an agent. Raises `NotFound` if there is no such run."""
    query = select(RunRow, ScopeRow).where(col(RunRow.scope_id) == col(ScopeRow.id), RunRow.id == run_id)
    pair = transaction.exec(query).one_or_none() if run_id <= LARGEST_ID else None
    if pair is None:
        raise NotFound(f"no run {run_id}; see `afterword runs`")
    return _run_of(pair[0], scope_of_row(pair[1]))


def statuses_of(transaction: Session, run_ids: Collection[int]) -> dict[int, str]:
    """Return the status of each of these runs, by the id of the run."""
    query = select(RunRow.id, RunRow.status)
    return {
        run_id: status
        for ids in chunks(list(run_ids))
        for run_id, status in transaction.exec(query.where(col(RunRow.id).in_(ids)))
        if run_id is not None
    }


def runs_caused_by(transaction: Session, cause: Run) -> list[Run]:
    """Return the applied runs that were made because this run was undone."""
    query = select(RunRow).where(RunRow.caused_by == cause.id, RunRow.status == "applied").order_by(col(RunRow.id))
    return [_run_of(row, cause.scope) for row in transaction.exec(query)]


def _run_of(row: RunRow, scope: Scope) -> Run:
    values = row.model_dump(exclude={"scope_id", "session_pk", "applied_revision", "transcript", "caused_by"})
    return Run(scope=scope, **values)
