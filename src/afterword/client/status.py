"""Counts what the store holds, what waits and what failed, for `Afterword.status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from afterword.client.resources import Resources
from afterword.client.store_results import QueueStatus, ScopeStatus, StoreCosts, StoreStatus, VectorStatus
from afterword.facts.fact import SERVED_STATUSES, Status
from afterword.facts.scopes import Scope
from afterword.facts.validity.fact_history import facts_at
from afterword.pipeline.consolidation import read_judging_coverage
from afterword.privacy.policy import OFF_THE_RECORD, SECRETS_MASKED
from afterword.setting_sections import PrivacyOptions
from afterword.store import costs, jobs, lookup, runs, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import forgotten_statements
from afterword.store.forgetting.pauses import read_pause
from afterword.store.ledger import RunStatus
from afterword.store.reading import scope_vectors
from afterword.store.sessions import SavedSession


async def store_status(resources: Resources) -> StoreStatus:
    """Return the counts of all scopes, sessions, jobs, vectors and costs."""
    store, at = await resources.store(), resources.now()
    privacy = resources.settings.privacy
    status = await store.read(lambda transaction: _status(transaction, store.shown_url, at, privacy))
    async with resources.extractor_and_judge() as configured:

        def with_pairs(transaction: Session) -> Iterator[ScopeStatus]:
            scope_rows.read_scopes(transaction)  # one query for all scopes, whose rows the transaction caches
            for scope in status.scopes:
                pairs = read_judging_coverage(transaction, scope.scope, configured.judge)
                yield replace(scope, pairs=pairs.required, judged_pairs=pairs.judged)

        scopes = await store.read(lambda transaction: tuple(with_pairs(transaction)))
    vectors = await _vector_statuses(resources, store, [scope.scope for scope in scopes], at)
    return replace(status, scopes=scopes, vectors=vectors)


def store_costs(transaction: Session, tenant: str | None = None) -> StoreCosts:
    """Return what requests to models have cost in the whole store, or in one tenant."""
    by_day, by_scope = costs.spending_by_day(transaction, tenant), costs.spending_by_scope(transaction)
    if tenant is not None:
        by_scope = {scope: spent for scope, spent in by_scope.items() if scope.tenant == tenant}
    return StoreCosts(sum(by_day.values(), start=costs.Spending()), by_scope, by_day)


def _status(transaction: Session, shown_url: str, at: datetime, privacy: PrivacyOptions) -> StoreStatus:
    """Return the status without `vectors`, `pairs` and `judged_pairs`."""
    saved, total = sessions.read_sessions(transaction), store_costs(transaction)
    failed = tuple(session for session in saved if session.failure)
    # A failure is stored as "kind: details".
    kinds = Counter((session.failure or "").partition(":")[0] for session in failed)
    queued = sessions.waiting_sessions(transaction)
    oldest = min((session.updated_at for session in queued), default=None)
    return StoreStatus(
        store=shown_url,
        scopes=tuple(_scope_statuses(transaction, saved, total, at, privacy)),
        sessions=dict(Counter(str(session.progress) for session in saved)),
        secrets_masked=sum(session.skipped.get(SECRETS_MASKED, 0) for session in saved),
        turns_off_the_record=sum(session.skipped.get(OFF_THE_RECORD, 0) for session in saved),
        queue=QueueStatus(len(queued), oldest, max(0.0, (at - oldest).total_seconds()) if oldest else None),
        failed=failed,
        failures=dict(kinds.most_common()),
        jobs=tuple(jobs.read_store_wide_jobs(transaction)),
        vectors=(),
        costs=total,
    )


def _scope_statuses(
    transaction: Session, saved: Sequence[SavedSession], total: StoreCosts, at: datetime, privacy: PrivacyOptions
) -> Iterator[ScopeStatus]:
    """Yield the status of each scope without `pairs` and `judged_pairs`."""
    session_counts = Counter(session.scope for session in saved)
    held_counts = runs.count_runs_by_scope(transaction, RunStatus.HELD)
    asking = forgotten_statements.scopes_that_ever_had_erase_requests(transaction)
    for scope in scope_rows.read_scopes(transaction):
        counts = Counter(fact.status for fact in facts_at(lookup.read_histories(transaction, scope), at))
        asked = forgotten_statements.read_erase_requests_in_force(transaction, scope) if scope in asking else ()
        hiding = [request for request in asked if request.finds_facts]
        yield ScopeStatus(
            scope=scope,
            current=sum(counts[status] for status in SERVED_STATUSES),
            facts=counts.total(),
            sessions=session_counts[scope],
            contested=counts[Status.CONTESTED],
            pending=counts[Status.PENDING],
            held_runs=held_counts.get(scope, 0),
            to_forget=len(asked),
            pairs=0,
            judged_pairs=0,
            spent=total.by_scope.get(scope, costs.Spending()),
            pause=read_pause(transaction, scope),
            erase_due_at=privacy.erase_due_at(hiding[0].hidden_since) if hiding else None,
        )


async def _vector_statuses(
    resources: Resources, store: Store, scopes: Sequence[Scope], at: datetime
) -> tuple[VectorStatus, ...]:
    """Return, for the configured embedding model and any other with vectors, how many texts have and lack a vector."""
    embedder = resources.embedder()
    configured = (embedder.model, embedder.dimension) if embedder else None
    texts, vectors = 0, Counter[tuple[str, int]]()
    with_vectors = await scope_vectors.scopes_with_vectors(store)
    for scope in scopes if configured else [scope for scope in scopes if scope in with_vectors]:
        covered = await scope_vectors.vector_coverage(store, scope, at, configured)
        texts += covered.texts
        for name, count in covered.made.items():
            vectors[name] += count
    return tuple(
        VectorStatus(model, dimension, (model, dimension) == configured, count, texts - count)
        for (model, dimension), count in sorted(vectors.items())
    )
