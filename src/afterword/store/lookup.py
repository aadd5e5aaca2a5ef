"""The read side: what is known of a scope, now or as it was known then. Every read names its scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import sqlalchemy
from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, exists, inspect, or_
from sqlalchemy.orm import aliased
from sqlmodel import Session, SQLModel, col, select
from sqlmodel.sql.expression import SelectOfScalar

from afterword.errors import NotFound
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.timeline import FactHistory, erased_ids, fact_histories, facts_at
from afterword.store.database.cache import Cache, Draft
from afterword.store.database.statements import fetch_rows
from afterword.store.rows import assertion_of, history_of, verdict_of
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    ScopeRow,
    VerdictRow,
    WindowAssertionRow,
)

Row = TypeVar("Row", bound=SQLModel)

# Databases bound the number of parameters of one statement; this stays below every bound.
CHUNK = 500


def scope_row(transaction: Session, scope: Scope) -> ScopeRow | None:
    """Return the scope's row, None where nothing was ever kept for it. One transaction reads it once."""
    held = transaction.info.get(scope)
    if isinstance(held, ScopeRow) and held in transaction and not inspect(held).expired:
        return held
    named = {"tenant": scope.tenant, "kind": str(scope.kind), "name": scope.id}
    row = transaction.exec(_scope_query(), params=named).one_or_none()
    transaction.info[scope] = row
    return row


@cache
def _scope_query() -> SelectOfScalar[ScopeRow]:
    return select(ScopeRow).where(
        col(ScopeRow.tenant) == bindparam("tenant"),
        col(ScopeRow.kind) == bindparam("kind"),
        col(ScopeRow.name) == bindparam("name"),
    )


def revision_of(transaction: Session, scope: Scope) -> int:
    """Return a number that grows whenever what is known of the scope changes; 0 for an unknown scope."""
    row = scope_row(transaction, scope)
    return row.revision if row else 0


def read_scopes(transaction: Session) -> list[Scope]:
    """Return every scope of the store. For those who run it, never for an agent."""
    rows = transaction.exec(select(ScopeRow).order_by(ScopeRow.tenant, ScopeRow.kind, ScopeRow.name))
    return [Scope.parse(f"{row.tenant}/{row.kind}/{row.name}") for row in rows]


def live_runs(scope_id: int, known_at: datetime | None = None, *, source: str | None = None) -> Select[Any]:
    """Select the ids of the runs that count: of each source the latest one applied and not undone (at `known_at`).

    With `source` only the run of that one.
    """
    run = _other(RunRow, "one_run")
    of_source = () if source is None else (col(run.source) == source,)
    return select(run.id).where(col(run.scope_id) == scope_id, _is_live(run, known_at), *of_source)


def _is_live(run: type[RunRow], known_at: datetime | None = None) -> ColumnElement[bool]:
    later = _other(RunRow, "later_run")
    is_later = and_(
        col(later.scope_id) == col(run.scope_id),
        col(later.source) == col(run.source),
        col(later.applied_revision) > col(run.applied_revision),
    )
    return and_(_counts(run, known_at), ~exists().where(is_later, _counts(later, known_at)))


def _counts(run: type[RunRow], known_at: datetime | None) -> ColumnElement[bool]:
    if known_at is None:
        return col(run.status) == "applied"
    is_undone = and_(col(run.undone_at).is_not(None), col(run.undone_at) <= known_at)
    return and_(col(run.applied_at) <= known_at, ~is_undone)


def read_knowledge(
    transaction: Session, scope: Scope, known_at: datetime | None = None, *, afresh: bool = False
) -> Knowledge:
    """Return the live assertions and verdicts of a scope, as known now or at an instant.

    What is known now is held in memory while the scope's revision stays the same; `afresh` reads it all the same.
    """
    row = scope_row(transaction, scope)
    if row is None or row.id is None:
        return Knowledge.of(0, (), ())
    if known_at is not None:
        return _loaded(transaction, scope, row.id, row.revision, known_at)
    draft = _draft(transaction)
    held = None if afresh else draft.find(scope, row.revision)
    if held is None:
        held = _loaded(transaction, scope, row.id, row.revision, None)
        draft.keep(scope, held)
    return held


def knowledge_after_runs(
    transaction: Session, scope: Scope, before: Knowledge, revision: int, runs: Sequence[int]
) -> tuple[Knowledge, list[str]]:
    """Return what is known now that some runs have come to count, or no longer do, and the ids of what they touch."""
    said, ruled = _of_runs()
    moved, judged = fetch_rows(transaction, said, {"runs": runs}), fetch_rows(transaction, ruled, {"runs": runs})
    after = before.revised(
        revision,
        removed=[before.by_id[one.id] for one in moved if not one[-1] and one.id in before.by_id],
        added=_assertions(transaction, [one for one in moved if one[-1] and one.id not in before.by_id], scope),
        removed_verdicts=[verdict_of(one) for one in judged if not one[-1]],
        added_verdicts=[verdict_of(one) for one in judged if one[-1]],
    )
    _draft(transaction).keep(scope, after)
    return after, [*(one.id for one in moved), *(end for one in judged for end in (one.earlier_id, one.later_id))]


@cache
def _of_runs() -> tuple[Any, Any]:
    """Select what some `runs` say, and the verdicts that they stand on, each with whether it is live."""
    run, tie, reading = _other(RunRow, "one_run"), _other(WindowAssertionRow, "tie"), _other(RunWindowRow, "reading")
    basis = _other(RunVerdictRow, "basis")
    runs: BindParameter[int] = bindparam("runs", expanding=True)
    windows = select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(runs))
    keys = select(RunVerdictRow.verdict_key).where(col(RunVerdictRow.run_id).in_(runs))
    # One within the other: a planner without statistics would begin with all runs, of which there are as many as
    # sessions.
    counts = exists().where(col(run.id) == col(reading.run_id), _is_live(run))
    is_read = exists().where(col(reading.window_id) == col(tie.window_id), counts)
    is_live = exists().where(col(tie.assertion_id) == col(AssertionRow.id), is_read)
    stands = exists().where(col(run.id) == col(basis.run_id), _is_live(run))
    in_force = exists().where(col(basis.verdict_key) == col(VerdictRow.key), stands)
    said = select(WindowAssertionRow.assertion_id).where(col(WindowAssertionRow.window_id).in_(windows))
    named = select_columns(AssertionRow).add_columns(is_live).where(col(AssertionRow.id).in_(said))
    return named, select_columns(VerdictRow).add_columns(in_force).where(col(VerdictRow.key).in_(keys))


def _loaded(transaction: Session, scope: Scope, scope_id: int, revision: int, known_at: datetime | None) -> Knowledge:
    runs = live_runs(scope_id, known_at)
    windows = select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(runs))
    ids = select(WindowAssertionRow.assertion_id).where(col(WindowAssertionRow.window_id).in_(windows))
    keys = select(RunVerdictRow.verdict_key).where(col(RunVerdictRow.run_id).in_(runs))
    rows = transaction.exec(select_columns(AssertionRow).where(col(AssertionRow.id).in_(ids))).all()
    evidence = transaction.exec(select_columns(EvidenceRow).where(col(EvidenceRow.assertion_id).in_(ids))).all()
    verdicts = transaction.exec(select_columns(VerdictRow).where(col(VerdictRow.key).in_(keys))).all()
    return Knowledge.of(revision, _with_evidence(rows, evidence, scope), map(verdict_of, verdicts))


def _draft(transaction: Session) -> Draft:
    """Return what this transaction has found out; one that no store has opened shares nothing."""
    draft = transaction.info.setdefault(Draft, Draft(Cache()))
    assert isinstance(draft, Draft)
    return draft


@cache
def _other(table: type[Row], name: str) -> type[Row]:
    return aliased(table, name=name)


def select_columns(table: type[SQLModel]) -> Any:
    """Select the columns of a table: rows that are only read, which come faster than objects that may be changed."""
    return sqlalchemy.select(sqlalchemy.inspect(table).local_table)


@cache
def select_where_in(table: type[SQLModel], column: str) -> Any:
    """Select the rows of a table in which a column is one of the `keys`."""
    selected = select_columns(table)
    return selected.where(selected.selected_columns[column].in_(bindparam("keys", expanding=True)))


def assertions_by_id(transaction: Session, scope: Scope, ids: Sequence[str]) -> dict[str, Assertion]:
    """Return the assertions of this scope that bear these ids, live or not."""
    row = scope_row(transaction, scope) if ids else None
    found: list[AssertionRow] = []
    for start in range(0, len(ids) if row else 0, CHUNK):
        # By their ids alone: asked for the scope as well, a planner without statistics goes through all of it.
        found += fetch_rows(transaction, select_where_in(AssertionRow, "id"), {"keys": ids[start : start + CHUNK]})
    own = [one for one in found if row and one.scope_id == row.id]
    return {one.id: one for one in _assertions(transaction, own, scope)}


def read_facts(transaction: Session, scope: Scope, *, at: datetime, known_at: datetime | None = None) -> list[Fact]:
    """Return every fact of a scope with its status at `at`, in the order of saying.

    `known_at` answers from what was believed then; it is laid out anew, the rest is read as it is kept.
    """
    if known_at is not None:
        now, then = read_knowledge(transaction, scope), read_knowledge(transaction, scope, known_at)
        gone = erased_ids(now.assertions, now.verdicts)
        told = [one for one in then.assertions if one.id not in gone]
        return facts_at(fact_histories(told, then.verdicts), at)
    return facts_at(read_fact_histories(transaction, scope), at)


def read_fact_histories(transaction: Session, scope: Scope) -> list[FactHistory]:
    """Return the facts of a scope through all time, in the order of saying."""
    row = scope_row(transaction, scope)
    if row is None:
        return []
    kept = transaction.exec(select_columns(FactRow).where(FactRow.scope_id == row.id)).all()
    of_scope = select(FactRow.id).where(FactRow.scope_id == row.id)
    ties = transaction.exec(select_columns(FactAssertionRow).where(col(FactAssertionRow.fact_id).in_(of_scope))).all()
    members: dict[str, list[FactAssertionRow]] = defaultdict(list)
    for tie in ties:
        members[tie.fact_id].append(tie)
    said = select(FactAssertionRow.assertion_id).where(col(FactAssertionRow.fact_id).in_(of_scope))
    rows = transaction.exec(select_columns(AssertionRow).where(col(AssertionRow.id).in_(said))).all()
    assertions = {one.id: one for one in _assertions(transaction, rows, scope)}
    recorded = {one.id: one.recorded_at for one in rows}
    laid_out = [history_of(fact, members[fact.id], assertions) for fact in kept]
    laid_out.sort(key=lambda course: course.members[0].order)
    return [replace(one, recorded_at=min(recorded[said.id] for said in one.members)) for one in laid_out]


def read_fact(transaction: Session, scope: Scope, fact_id: str, *, at: datetime) -> Fact:
    """Return one fact by the id of any of its assertions (or a beginning of 6 digits or more that only it has).

    Raises `NotFound` where the scope has no such fact, or several.
    """
    matching = [
        one
        for one in read_facts(transaction, scope, at=at)
        if fact_id in one.assertion_ids
        or (len(fact_id) >= 6 and any(known_id.startswith(fact_id) for known_id in one.assertion_ids))
    ]
    if len(matching) != 1:
        many = f"{len(matching)} facts begin so; give more of the id" if matching else "see `afterword facts --all`"
        raise NotFound(f"no single fact {fact_id!r} in {scope}: {many}")
    return matching[0]


def verdicts_on(transaction: Session, scope: Scope, ids: Sequence[str]) -> list[tuple[Verdict, datetime, list[int]]]:
    """Return the verdicts that touch any of these assertions: each with when it was recorded, and by which runs."""
    row = scope_row(transaction, scope)
    if row is None:
        return []
    query = select(VerdictRow, RunVerdictRow.run_id).where(
        col(VerdictRow.key) == col(RunVerdictRow.verdict_key),
        VerdictRow.scope_id == row.id,
        or_(col(VerdictRow.earlier_id).in_(ids), col(VerdictRow.later_id).in_(ids)),
    )
    found: dict[str, tuple[Verdict, datetime, list[int]]] = {}
    for verdict, run_id in transaction.exec(query).all():
        found.setdefault(verdict.key, (verdict_of(verdict), verdict.recorded_at, []))[2].append(run_id)
    return sorted(found.values(), key=lambda item: item[1])


def rejections(transaction: Session, scope: Scope, session_id: str) -> list[tuple[str, str, str]]:
    """Return what grounding refused in the session's live run: (reason, statement, detail) of each candidate."""
    row = scope_row(transaction, scope)
    if row is None or row.id is None:
        return []
    runs = live_runs(row.id, source=f"session:{session_id}")
    windows = select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(runs))
    query = select(RejectionRow).where(col(RejectionRow.window_id).in_(windows))
    found = transaction.exec(query.order_by(col(RejectionRow.window_id), col(RejectionRow.ordinal)))
    return [(one.reason, one.statement, one.detail) for one in found]


def _assertions(transaction: Session, rows: Sequence[AssertionRow], scope: Scope) -> list[Assertion]:
    evidence: list[EvidenceRow] = []
    ids = [row.id for row in rows]
    for start in range(0, len(ids), CHUNK):
        evidence += fetch_rows(
            transaction, select_where_in(EvidenceRow, "assertion_id"), {"keys": ids[start : start + CHUNK]}
        )
    return _with_evidence(rows, evidence, scope)


def _with_evidence(rows: Sequence[AssertionRow], evidence: Iterable[EvidenceRow], scope: Scope) -> list[Assertion]:
    of: dict[str, list[EvidenceRow]] = defaultdict(list)
    for item in evidence:
        of[item.assertion_id].append(item)
    return [assertion_of(row, of[row.id], scope) for row in rows]
