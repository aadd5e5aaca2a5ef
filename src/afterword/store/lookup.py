"""Reading what is known of a scope, now or at an earlier time. Every read names its scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import BindParameter, ColumnElement, Select, and_, bindparam, exists, or_
from sqlalchemy.orm import aliased
from sqlmodel import Session, SQLModel, col, select

from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.subjects import facts_under_current_names
from afterword.facts.validity.fact_history import FactHistory, facts_at
from afterword.facts.validity.timeline import erased_ids, fact_histories
from afterword.store.database.cache import KnowledgeCache, UncommittedCache
from afterword.store.database.statements import CompiledQuery, fetch_rows, fetch_where_in, select_columns
from afterword.store.reading.fact_rows import read_stored_facts
from afterword.store.reading.knowledge_rows import knowledge_of, select_assertions, select_verdicts
from afterword.store.rows import assertion_of, verdict_of
from afterword.store.scope_rows import revision_and_stamp_of, scope_key, scope_row
from afterword.store.tables import (
    AssertionRow,
    EvidenceRow,
    FactAssertionRow,
    FactRow,
    RejectionRow,
    RunRow,
    RunVerdictRow,
    RunWindowRow,
    VerdictRow,
    WindowAssertionRow,
)

Row = TypeVar("Row", bound=SQLModel)


@cache
def _alias(table: type[Row], name: str) -> type[Row]:
    return aliased(table, name=name)


def select_live_run_ids(scope_id: Any, known_at: datetime | None = None, *, source: str | None = None) -> Select[Any]:
    """Select the ids of the live runs: of each source the latest run that is applied and not undone (at `known_at`).

    With `source`, select only the live run of that source.
    """
    run = _alias(RunRow, "live_run")
    of_source = () if source is None else (col(run.source) == source,)
    return select(run.id).where(col(run.scope_id) == scope_id, _is_live(run, known_at), *of_source)


def _is_live(run: type[RunRow], known_at: datetime | None = None) -> ColumnElement[bool]:
    later = _alias(RunRow, "later_run")
    is_later = and_(
        col(later.scope_id) == col(run.scope_id),
        col(later.source) == col(run.source),
        col(later.applied_revision) > col(run.applied_revision),
    )
    return and_(_is_applied(run, known_at), ~exists().where(is_later, _is_applied(later, known_at)))


def _is_applied(run: type[RunRow], known_at: datetime | None) -> ColumnElement[bool]:
    if known_at is None:
        return col(run.status) == "applied"
    was_redone = and_(col(run.redone_at).is_not(None), col(run.redone_at) <= known_at)
    is_undone = and_(col(run.undone_at).is_not(None), col(run.undone_at) <= known_at, ~was_redone)
    return and_(col(run.applied_at) <= known_at, ~is_undone)


def read_knowledge(
    transaction: Session, scope: Scope, known_at: datetime | None = None, *, afresh: bool = False
) -> Knowledge:
    """Return the live assertions and verdicts of a scope, as known now or at `known_at`.

    What is known now is cached as long as the revision of the scope stays the same; `afresh` bypasses the cache.
    """
    row = scope_row(transaction, scope)
    if row is None or row.id is None:
        return Knowledge.of(0, (), ())
    if known_at is not None:
        return _load_knowledge(transaction, scope, row.id, row.revision, known_at)
    entries = _transaction_cache(transaction)
    cached = None if afresh else entries.find(scope, (row.revision, row.stamp))
    if cached is None:
        cached = _load_knowledge(transaction, scope, row.id, row.revision, None)
        cache_knowledge(transaction, scope, cached)
    return cached


def knowledge_after_runs(
    transaction: Session, scope: Scope, before: Knowledge, revision: int, run_ids: Sequence[int]
) -> tuple[Knowledge, list[str]]:
    """Return what is known after these runs were applied or undone, and the ids of all assertions of the runs."""
    select_assertions, select_verdicts = _assertions_and_verdicts_of_runs()
    assertion_rows = fetch_rows(transaction, select_assertions, {"run_ids": run_ids})
    verdict_rows = fetch_rows(transaction, select_verdicts, {"run_ids": run_ids})
    new_rows = [row for row in assertion_rows if row.is_live and row.id not in before.by_id]
    after = before.revised(
        revision,
        removed=[before.by_id[row.id] for row in assertion_rows if not row.is_live and row.id in before.by_id],
        added=_assertions_of_rows(transaction, new_rows, scope),
        removed_verdicts=[verdict_of(row) for row in verdict_rows if not row.is_live],
        added_verdicts=[verdict_of(row) for row in verdict_rows if row.is_live],
    )
    cache_knowledge(transaction, scope, after)
    judged_ids = [end for row in verdict_rows for end in (row.earlier_id, row.later_id)]
    return after, [*(row.id for row in assertion_rows), *judged_ids]


def cache_knowledge(transaction: Session, scope: Scope, known: Knowledge) -> None:
    """Cache what is known of a scope, under the present revision of the scope."""
    _transaction_cache(transaction).keep(scope, revision_and_stamp_of(transaction, scope), known)


@cache
def _assertions_and_verdicts_of_runs() -> tuple[Any, Any]:
    """Select the assertions and the verdicts of some runs, each with whether it is live."""
    run, reading = _alias(RunRow, "live_run"), _alias(RunWindowRow, "reading")
    tie, support = _alias(WindowAssertionRow, "tie"), _alias(RunVerdictRow, "support")
    run_ids: BindParameter[int] = bindparam("run_ids", expanding=True)
    windows = select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(run_ids))
    keys = select(RunVerdictRow.verdict_key).where(col(RunVerdictRow.run_id).in_(run_ids))
    # The conditions are nested, because without statistics a query planner would begin by reading all runs.
    has_live_run = exists().where(col(run.id) == col(reading.run_id), _is_live(run))
    is_window_read = exists().where(col(reading.window_id) == col(tie.window_id), has_live_run)
    is_live = exists().where(col(tie.assertion_id) == col(AssertionRow.id), is_window_read)
    has_supporting_run = exists().where(col(run.id) == col(support.run_id), _is_live(run))
    is_in_force = exists().where(col(support.verdict_key) == col(VerdictRow.key), has_supporting_run)
    ids = select(WindowAssertionRow.assertion_id).where(col(WindowAssertionRow.window_id).in_(windows))
    return (
        select_columns(AssertionRow).add_columns(is_live.label("is_live")).where(col(AssertionRow.id).in_(ids)),
        select_verdicts(keys).add_columns(is_in_force.label("is_live")),
    )


def assertion_ids_of_source(transaction: Session, scope: Scope, source: str) -> list[str]:
    """Return the ids of all assertions that runs of a source have made or judged."""
    run_ids = transaction.exec(
        select(RunRow.id).where(RunRow.scope_id == scope_key(transaction, scope), RunRow.source == source)
    )
    values = {"run_ids": list(run_ids)}
    of_assertions, of_verdicts = _assertions_and_verdicts_of_runs()
    judged = fetch_rows(transaction, of_verdicts, values)
    ids = [row.id for row in fetch_rows(transaction, of_assertions, values)]
    return [*ids, *(end for row in judged for end in (row.earlier_id, row.later_id))]


def _load_knowledge(
    transaction: Session, scope: Scope, scope_id: int, revision: int, known_at: datetime | None
) -> Knowledge:
    assertions: Sequence[Any]
    verdicts: Sequence[Any]
    if known_at is None:
        connection = transaction.connection()
        assertions, verdicts = (query.ask(connection, scope_id=scope_id) for query in _LIVE_KNOWLEDGE)
    else:
        assertions, verdicts = (fetch_rows(transaction, query) for query in _select_knowledge(scope_id, known_at))
    return knowledge_of(revision, assertions, verdicts, scope)


def _select_knowledge(scope_id: Any, known_at: datetime | None = None) -> tuple[Any, Any]:
    """Select the live assertions and verdicts of a scope, now or as known at an instant."""
    keys = select(RunVerdictRow.verdict_key).where(
        col(RunVerdictRow.run_id).in_(select_live_run_ids(scope_id, known_at))
    )
    return select_assertions(select_live_assertion_ids(scope_id, known_at)), select_verdicts(keys)


def select_live_assertion_ids(scope_id: Any, known_at: datetime | None = None) -> Select[Any]:
    """Select the ids of the live assertions of a scope, now or as known at an instant."""
    windows = _windows_of(select_live_run_ids(scope_id, known_at))
    return select(WindowAssertionRow.assertion_id).where(col(WindowAssertionRow.window_id).in_(windows))


def _windows_of(runs: Select[Any]) -> Any:
    return select(RunWindowRow.window_id).where(col(RunWindowRow.run_id).in_(runs))


_LIVE_KNOWLEDGE = tuple(map(CompiledQuery, _select_knowledge(bindparam("scope_id"))))


def _transaction_cache(transaction: Session) -> UncommittedCache:
    """Return the cache entries of this transaction. A transaction that was opened without a store has its own cache."""
    entries: UncommittedCache = transaction.info.setdefault(UncommittedCache, UncommittedCache(KnowledgeCache()))
    return entries


def assertions_by_id(transaction: Session, scope: Scope, ids: Sequence[str]) -> dict[str, Assertion]:
    """Return the assertions of this scope that have these ids, live or not."""
    # The query names only the ids. If it named the scope, a planner without statistics would read the whole scope.
    rows = fetch_where_in(transaction, AssertionRow, "id", ids)
    scope_id = scope_key(transaction, scope) if rows else 0
    own = [row for row in rows if row.scope_id == scope_id]
    return {said.id: said for said in _assertions_of_rows(transaction, own, scope)}


def read_facts(transaction: Session, scope: Scope, *, at: datetime, known_at: datetime | None = None) -> list[Fact]:
    """Return every fact of a scope with its status at `at`, in the order of saying.

    With `known_at`, return the facts as they were known at that time. They are derived again from the assertions and
    verdicts of that time. Without it, the stored facts are read.
    """
    if known_at is None:
        return facts_under_current_names(facts_at(read_histories(transaction, scope), at), at)
    now, then = read_knowledge(transaction, scope), read_knowledge(transaction, scope, known_at)
    erased = erased_ids(now.assertions, now.verdicts)
    assertions = [said for said in then.assertions if said.id not in erased]
    return facts_under_current_names(facts_at(fact_histories(assertions, then.verdicts), at), at)


def read_histories(transaction: Session, scope: Scope, ids: Sequence[str] | None = None) -> list[FactHistory]:
    """Return the histories of the facts of a scope (of all, or of those with these ids), in the order of saying."""
    stored = read_stored_facts(transaction.connection(), scope_key(transaction, scope), ids)
    histories = [fact.history_without_caching(scope) for fact in stored]
    return sorted(histories, key=lambda history: history.members[0].order)


def read_facts_by_id(transaction: Session, scope: Scope, fact_ids: Iterable[str], *, at: datetime) -> list[Fact]:
    """Return the facts with these ids as `read_facts` would, in the order of saying, without reading the whole scope.

    A fact depends on the facts that contest it, on its exceptions, and on facts that rename its subject. So these are
    read as well, but not returned.
    """
    scope_id = scope_key(transaction, scope)
    of_renaming = select(FactAssertionRow.fact_id).where(
        col(FactAssertionRow.assertion_id) == col(AssertionRow.id),
        AssertionRow.scope_id == scope_id,
        col(AssertionRow.former_name).is_not(None),
    )
    wanted, histories = set(fact_ids), dict[str, FactHistory]()
    missing = wanted | set(transaction.exec(of_renaming))
    for _ in range(3):  # the facts, then what contests them and their exceptions, then what contests those
        histories |= {read.id: read for read in read_histories(transaction, scope, sorted(missing))}
        beside = {id_ for history in histories.values() for id_ in (*history.contested_by, *history.exceptions)}
        missing = beside - histories.keys()
        if not missing:
            break
    in_order = sorted(histories.values(), key=lambda history: history.members[0].order)
    return [fact for fact in facts_under_current_names(facts_at(in_order, at), at) if fact.id in wanted]


def fact_of_scope_condition(scope_id: int) -> ColumnElement[bool]:
    """Return the condition that a fact belongs to a scope, for queries that name ids or a session.

    The `+ 0` keeps the database from using an index of the scope, by which it would read all facts of the scope.
    """
    return col(FactRow.scope_id) + 0 == scope_id


def fact_ids_of_session(transaction: Session, scope: Scope, session_id: str) -> list[str]:
    """Return the ids of the facts that have evidence from a session."""
    query = (
        select(FactAssertionRow.fact_id)
        .join(FactRow, col(FactRow.id) == col(FactAssertionRow.fact_id))
        .join(EvidenceRow, col(EvidenceRow.assertion_id) == col(FactAssertionRow.assertion_id))
        .where(fact_of_scope_condition(scope_key(transaction, scope)), EvidenceRow.session_id == session_id)
    )
    return list(transaction.exec(query.distinct()))


def verdicts_on(transaction: Session, scope: Scope, ids: Sequence[str]) -> list[tuple[Verdict, datetime, list[int]]]:
    """Return the verdicts on any of these assertions, each with when it was recorded and with the ids of its runs."""
    query = select(VerdictRow, RunVerdictRow.run_id).where(
        col(VerdictRow.key) == col(RunVerdictRow.verdict_key),
        VerdictRow.scope_id == scope_key(transaction, scope),
        or_(col(VerdictRow.earlier_id).in_(ids), col(VerdictRow.later_id).in_(ids)),
    )
    verdicts: dict[str, tuple[Verdict, datetime, list[int]]] = {}
    for row, run_id in transaction.exec(query).all():
        verdicts.setdefault(row.key, (verdict_of(row), row.recorded_at, []))[2].append(run_id)
    return sorted(verdicts.values(), key=lambda entry: entry[1])


def read_rejected_candidates(transaction: Session, scope: Scope, session_id: str) -> list[tuple[str, str, str]]:
    """Return the candidates that grounding refused in the live run of a session, as (reason, statement, detail)."""
    runs = select_live_run_ids(scope_key(transaction, scope), source=f"session:{session_id}")
    query = select(RejectionRow).where(col(RejectionRow.window_id).in_(_windows_of(runs)))
    rows = transaction.exec(query.order_by(col(RejectionRow.window_id), col(RejectionRow.ordinal)))
    return [(row.reason, row.statement, row.detail) for row in rows]


def _assertions_of_rows(transaction: Session, rows: Sequence[AssertionRow], scope: Scope) -> list[Assertion]:
    evidence = _stored_evidence(transaction, rows)
    return [assertion_of(row, evidence[row.id], scope) for row in rows]


def _stored_evidence(transaction: Session, rows: Sequence[AssertionRow]) -> dict[str, list[EvidenceRow]]:
    by_assertion: dict[str, list[EvidenceRow]] = defaultdict(list)
    for piece in fetch_where_in(transaction, EvidenceRow, "assertion_id", [row.id for row in rows]):
        by_assertion[piece.assertion_id].append(piece)
    return by_assertion
