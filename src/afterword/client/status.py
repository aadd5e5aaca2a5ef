"""What the store holds, what waits and what failed, for `Afterword.status`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from afterword.client.resources import Resources
from afterword.client.store_results import QueueStatus, ScopeStatus, StoreCosts, StoreStatus, VectorStatus
from afterword.extractors.judge import Judge
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import judging_coverage
from afterword.privacy.policy import OFF_THE_RECORD, SECRETS_MASKED
from afterword.store import costs, jobs, lookup, runs, scope_rows, sessions
from afterword.store.costs import Spending
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure
from afterword.store.forgetting.pauses import Pause, read_pause
from afterword.store.jobs import JobState
from afterword.store.ledger import RunStatus
from afterword.store.reading import scope_vectors
from afterword.store.sessions import SavedSession


@dataclass(frozen=True, slots=True)
class _ScopeContent:
    scope: Scope
    facts: Sequence[Fact]
    held_runs: int
    to_forget: int
    pause: Pause | None


@dataclass(frozen=True, slots=True)
class _StoreContent:
    saved: Sequence[SavedSession]
    queued: Sequence[SavedSession]
    jobs: Sequence[JobState]
    scopes: Sequence[_ScopeContent]
    costs: StoreCosts
    sessions: Mapping[Scope, int]


async def store_status(resources: Resources) -> StoreStatus:
    """Return what the store holds."""
    store, at = await resources.store(), resources.now()
    content = await store.read(lambda transaction: _content(transaction, at))
    async with resources.extractor_and_judge() as workers:
        scopes = [await _scope_status(store, workers.judge, scope, content) for scope in content.scopes]
    failed = tuple(session for session in content.saved if session.failure)
    kinds = Counter(failure_kind(session.failure or "") for session in failed)
    return StoreStatus(
        store=store.shown_url,
        scopes=tuple(scopes),
        sessions=dict(Counter(str(session.progress) for session in content.saved)),
        secrets_masked=sum(session.skipped.get(SECRETS_MASKED, 0) for session in content.saved),
        turns_off_the_record=sum(session.skipped.get(OFF_THE_RECORD, 0) for session in content.saved),
        queue=_queue(content.queued, at),
        failed=failed,
        failures=dict(kinds.most_common()),
        jobs=tuple(content.jobs),
        vectors=await _vectors(resources, store, [scope.scope for scope in content.scopes], at),
        costs=content.costs,
    )


def failure_kind(failure: str) -> str:
    """Return the kind of a failure: its reason without what differs from session to session."""
    return failure.partition(":")[0]


def store_costs(transaction: Session) -> StoreCosts:
    """Return what models cost in the whole store."""
    by_day = costs.spending_by_day(transaction)
    return StoreCosts(sum(by_day.values(), start=Spending()), costs.spending_by_scope(transaction), by_day)


def _content(transaction: Session, at: datetime) -> _StoreContent:
    held = runs.count_runs(transaction, RunStatus.HELD)
    scopes = [
        _ScopeContent(
            scope,
            lookup.read_facts(transaction, scope, at=at),
            held.get(scope, 0),
            len(erasure.requested_ids(transaction, scope)),
            read_pause(transaction, scope),
        )
        for scope in scope_rows.read_scopes(transaction)
    ]
    saved = sessions.read_sessions(transaction)
    return _StoreContent(
        saved,
        sessions.waiting_sessions(transaction),
        jobs.read_jobs(transaction),
        scopes,
        store_costs(transaction),
        Counter(session.scope for session in saved),
    )


async def _scope_status(store: Store, judge: Judge, content: _ScopeContent, whole: _StoreContent) -> ScopeStatus:
    pairs = await judging_coverage(store, content.scope, judge)
    statuses = Counter(fact.status for fact in content.facts)
    return ScopeStatus(
        scope=content.scope,
        current=sum(fact.is_served for fact in content.facts),
        facts=len(content.facts),
        sessions=whole.sessions.get(content.scope, 0),
        contested=statuses[Status.CONTESTED],
        pending=statuses[Status.PENDING],
        held_runs=content.held_runs,
        to_forget=content.to_forget,
        pairs=pairs.required,
        judged_pairs=pairs.judged,
        spent=whole.costs.by_scope.get(content.scope, Spending()),
        pause=content.pause,
    )


def _queue(queued: Sequence[SavedSession], at: datetime) -> QueueStatus:
    oldest = min((session.updated_at for session in queued), default=None)
    age_s = max(0.0, (at - oldest).total_seconds()) if oldest else None
    return QueueStatus(len(queued), oldest, age_s)


async def _vectors(
    resources: Resources, store: Store, scopes: Sequence[Scope], at: datetime
) -> tuple[VectorStatus, ...]:
    """Return, for each model that has vectors and for the configured one, how many texts have and lack one."""
    embedder = resources.embedder()
    configured = (embedder.model, embedder.dimension) if embedder else None
    texts, vectors = 0, Counter[tuple[str, int]]()
    for scope in scopes:
        covered = await scope_vectors.vector_coverage(store, scope, at, configured)
        texts += covered.texts
        for name, count in covered.made.items():
            vectors[name] += count
    return tuple(
        VectorStatus(model, dimension, (model, dimension) == configured, count, texts - count)
        for (model, dimension), count in sorted(vectors.items())
    )
