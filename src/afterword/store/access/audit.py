"""Audit entries: which API key asked for what, when, in which scope, and which runs resulted. No user's words.

A run that is made inside `attribute_runs_to` is linked to its audit entry in the transaction that makes the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, update
from sqlmodel import Session, col, select

from afterword.errors import RequestPending, RequestReused, StateConflict
from afterword.facts.scopes import Scope
from afterword.store.access.tables import AuditedRunRow, AuditEntryRow, RepeatableRequestRow
from afterword.store.database.statements import insert_numbered, insert_rows

REMEMBERED_FOR = timedelta(hours=24)
"""How long the answer to a request with an idempotency key is kept."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One request with an API key: what was asked for and when, in which scope, and which runs resulted.

    `result` is the HTTP status of the answer, None if there was none.
    """

    id: int
    at: datetime
    key_id: str
    action: str
    tenant: str
    scope: Scope | None
    result: int | None
    run_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RepeatableRequest:
    """Identifies a request with an idempotency key, so that it can be repeated and is carried out only once.

    `name` is a hash of the idempotency key, and `fingerprint` an HMAC of the request's content with this key. `holder`
    is the process that works on the request. For the time `hold` no other process takes the request over.
    """

    name: str
    fingerprint: str
    holder: str
    hold: timedelta


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """A request that has begun. If it repeats an earlier request, `answer` is the earlier answer.

    If the server stopped before it could answer, `made_runs` are the runs that the earlier request has made: of each
    the id, and the id of its first statement.
    """

    entry_id: int
    repeatable: RepeatableRequest | None = None
    answer: Mapping[str, Any] | None = None
    made_runs: tuple[tuple[int, str | None], ...] = ()


_current: ContextVar[AuditedRequest | None] = ContextVar("audited_request", default=None)


@contextmanager
def attribute_runs_to(request: AuditedRequest) -> Iterator[None]:
    """Attribute all runs that are made in this context to a request."""
    token = _current.set(request)
    try:
        yield
    finally:
        _current.reset(token)


def note_run(transaction: Session, run_id: int, assertion_id: str | None) -> None:
    """Attribute a new run to the current request, if there is one.

    Raises `StateConflict` if another process has taken the request over. The error rolls the run back.
    """
    request = _current.get()
    if request is None:
        return
    if request.repeatable is not None:
        # The update also makes sure that only one of two transactions for the same request is committed.
        held = update(RepeatableRequestRow).where(*_hold_conditions(request)).values(holder=request.repeatable.holder)
        if not transaction.connection().execute(held).rowcount:
            raise StateConflict("another process works on this request by now; repeat it to get its answer")
    row = {"run_id": run_id, "entry_id": request.entry_id, "assertion_id": assertion_id}
    insert_rows(transaction, AuditedRunRow, [row])


def begin_request(
    transaction: Session,
    key_id: str,
    action: str,
    *,
    tenant: str,
    scope: Scope | None,
    repeatable: RepeatableRequest | None,
    at: datetime,
) -> AuditedRequest:
    """Record that a request begins, and return it. A repeated request has the answer, or the runs, of the earlier one.

    Raises `RequestReused` if the idempotency key was used for another request, and `RequestPending` if a process still
    works on the earlier request.
    """
    if repeatable is not None:
        known = transaction.get(RepeatableRequestRow, (key_id, repeatable.name))
        if known is not None:
            return _repeat_request(transaction, known, repeatable, at)
    full_name = None if scope is None else str(scope)
    entry = {"at": at, "key_id": key_id, "action": action, "tenant": tenant, "scope": full_name}
    (entry_id,) = insert_numbered(transaction, AuditEntryRow, [entry])
    if repeatable is not None:
        identity: dict[str, Any] = {"key_id": key_id, "name": repeatable.name, "fingerprint": repeatable.fingerprint}
        hold: dict[str, Any] = {"holder": repeatable.holder, "held_until": at + repeatable.hold}
        transaction.add(RepeatableRequestRow(**identity, **hold, entry_id=entry_id))
    return AuditedRequest(entry_id, repeatable)


def _repeat_request(
    transaction: Session, known: RepeatableRequestRow, repeatable: RepeatableRequest, at: datetime
) -> AuditedRequest:
    if known.fingerprint != repeatable.fingerprint:
        raise RequestReused("this idempotency key belongs to another request; take a new one")
    if known.answer is not None:
        return AuditedRequest(known.entry_id, repeatable, answer=known.answer)
    if known.held_until > at:
        raise RequestPending("this request is still worked on; repeat it in a moment")
    known.holder, known.held_until = repeatable.holder, at + repeatable.hold
    return AuditedRequest(known.entry_id, repeatable, made_runs=_runs_made(transaction, known.entry_id))


def _runs_made(transaction: Session, entry_id: int) -> tuple[tuple[int, str | None], ...]:
    query = select(AuditedRunRow).where(AuditedRunRow.entry_id == entry_id).order_by(col(AuditedRunRow.run_id))
    return tuple((row.run_id, row.assertion_id) for row in transaction.exec(query))


def end_request(
    transaction: Session, request: AuditedRequest, *, result: int, answer: Mapping[str, Any] | None, at: datetime
) -> None:
    """Record the end of a request. Without an answer it may be tried again with the same idempotency key.

    If it has made runs although it has no answer, the next try gets their ids.
    """
    ended = update(AuditEntryRow).where(col(AuditEntryRow.id) == request.entry_id).values(result=result)
    transaction.connection().execute(ended)
    if request.repeatable is None:
        return
    holds = _hold_conditions(request)
    if answer is not None:
        values: dict[str, Any] = {"answer": dict(answer)}
    elif _runs_made(transaction, request.entry_id):
        values = {"held_until": at}
    else:
        transaction.connection().execute(delete(RepeatableRequestRow).where(*holds))
        return
    transaction.connection().execute(update(RepeatableRequestRow).where(*holds).values(values))


def extend_hold(transaction: Session, request: AuditedRequest, until: datetime) -> None:
    """Extend the hold of a request that this process still works on."""
    held = update(RepeatableRequestRow).where(*_hold_conditions(request)).values(held_until=until)
    transaction.connection().execute(held)


def _hold_conditions(request: AuditedRequest) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of the row of a repeatable request, as long as this process works on the request."""
    holder = request.repeatable.holder if request.repeatable is not None else ""
    return col(RepeatableRequestRow.entry_id) == request.entry_id, col(RepeatableRequestRow.holder) == holder


def discard_old_answers(transaction: Session, at: datetime) -> None:
    """Discard the stored answers that are older than `REMEMBERED_FOR`."""
    is_old = col(RepeatableRequestRow.held_until) < at - REMEMBERED_FOR
    transaction.connection().execute(delete(RepeatableRequestRow).where(is_old))


def read_audit_entries(
    transaction: Session,
    *,
    tenant: str | None,
    scope: Scope | None,
    key_id: str | None,
    most: int | None,
    before_id: int,
) -> list[AuditEntry]:
    """Return at most `most` audit entries, newest first: all, or only those of a tenant, a scope or a key.

    If `before_id` is above 0, only entries with a smaller id are returned.
    """
    named = {"tenant": tenant, "scope": None if scope is None else str(scope), "key_id": key_id}
    query = select(AuditEntryRow).filter_by(**{name: value for name, value in named.items() if value is not None})
    query = query.order_by(col(AuditEntryRow.id).desc()).limit(most)
    if before_id:
        query = query.where(col(AuditEntryRow.id) < before_id)
    rows = {row.id: row for row in transaction.exec(query) if row.id is not None}
    run_ids: dict[int, list[int]] = {entry_id: [] for entry_id in rows}
    made = select(AuditedRunRow).where(col(AuditedRunRow.entry_id).in_(run_ids)).order_by(col(AuditedRunRow.run_id))
    for run in transaction.exec(made):
        run_ids[run.entry_id].append(run.run_id)
    return [_entry_of(row, run_ids[entry_id]) for entry_id, row in rows.items()]


def _entry_of(row: AuditEntryRow, run_ids: Sequence[int]) -> AuditEntry:
    scope = None if row.scope is None else Scope.parse(row.scope)
    return AuditEntry(**row.model_dump(exclude={"scope"}), scope=scope, run_ids=tuple(run_ids))


def actors_of_runs(transaction: Session, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the id of the API key that asked for each of these runs, without the runs that no key asked for."""
    query = select(AuditedRunRow.run_id, AuditEntryRow.key_id).where(
        col(AuditedRunRow.entry_id) == col(AuditEntryRow.id), col(AuditedRunRow.run_id).in_(run_ids)
    )
    return dict(transaction.exec(query).all())
