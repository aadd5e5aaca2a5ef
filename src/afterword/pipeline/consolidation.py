"""Over all sessions of a scope: judge what was left unjudged, and stop to ask before much would be retired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from afterword import telemetry
from afterword.errors import Overtaken
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Judge, Pair
from afterword.facts.assertions import Verdict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.facts.timeline import timeline
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import ScopeBusy
from afterword.pipeline.judging import Docket, gone
from afterword.pipeline.resolution import Changes, changes, required_pairs
from afterword.pipeline.run_entry import entered
from afterword.store import lookup, runs, scope_rows
from afterword.store.database.engine import Store, pause_s
from afterword.store.proposals import Proposal
from afterword.telemetry import Stage

CALLS = 25
"""How many calls of the judge one consolidation makes at most; what is left waits for the next."""

CONSOLIDATION = "consolidation"
"""What its questions are entered under, as source and as purpose."""
LARGE_SCOPE = 20
MOST_RETIRED = 0.2
TRIES = 20


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """What a consolidation did. `run_id` is None where nothing was open; `held` says that it waits for a person."""

    scope: Scope
    run_id: int | None
    held: bool = False
    judged: int = 0
    unjudged: int = 0
    usage: Usage = field(default_factory=Usage)
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class JudgingCoverage:
    """How many of the pairs that must be judged are."""

    required: int
    judged: int


async def judging_coverage(store: Store, scope: Scope, judge: Judge) -> JudgingCoverage:
    """Return how many required pairs of a scope have a verdict of this judge (or of a person)."""
    known = await _known(store, scope)
    pairs = required_pairs(known.assertions, known.index)
    if judge.pairs_a_call is None:
        return JudgingCoverage(len(pairs), len(pairs))
    kept = await store.read(lambda db: runs.read_verdicts(db, scope, pairs, judge.version))
    return JudgingCoverage(len(pairs), len(kept))


@telemetry.staged(Stage.CONSOLIDATE, "scope")
async def consolidate_scope(
    store: Store,
    scope: Scope,
    *,
    judge: Judge,
    apply: bool = True,
    budget: Budget | CostTracker | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ConsolidationResult:
    """Judge the pairs of a scope that no judge of this version has seen, and let the verdicts count.

    A scope of 20 facts or more of which more than a fifth would be retired is held for a person, and so is what the
    scope's policy holds. Where the `budget` is reached, what was judged until then counts and the rest stays open.
    Raises an `ExtractionError` where the judge gave no answer, and `ScopeBusy` where others kept changing the scope.
    """
    account = Account(as_cost_tracker(budget), store, scope, CONSOLIDATION, purpose=CONSOLIDATION)
    with account.open():
        done = await _consolidated(store, scope, judge, apply, clock)
    await account.tie(done.run_id)
    telemetry.note(run_id=done.run_id, judged=done.judged, unjudged=done.unjudged, held=done.held)
    return done


async def _consolidated(
    store: Store, scope: Scope, judge: Judge, apply: bool, clock: Callable[[], datetime]
) -> ConsolidationResult:
    docket = Docket(store, scope, judge)
    for attempt in range(TRIES):
        known = await _known(store, scope)
        pairs = _open_pairs(known, judge)
        judged = await docket.judge(pairs, hidden=gone(known, pairs), calls=CALLS)
        if not judged.verdicts:
            return ConsolidationResult(scope, None, unjudged=judged.unjudged, usage=docket.usage)
        before, after = _facts(known, (), clock()), _facts(known, judged.verdicts, clock())
        moved = changes(before, after)
        held = not apply or await _is_held(store, scope, before, moved)
        try:
            made = consolidation(
                scope, judge, known, judged.verdicts, clock(), usage=docket.usage, unjudged=judged.unjudged
            )
            run_id = await entered(store, made, is_held=held)
        except Overtaken:
            await asyncio.sleep(pause_s(attempt))
            continue
        return ConsolidationResult(scope, run_id, held, len(judged.verdicts), judged.unjudged, docket.usage, moved)
    raise ScopeBusy(f"{scope} kept changing while it was consolidated; run it again")


async def _known(store: Store, scope: Scope) -> Knowledge:
    return await store.read(lambda db: lookup.read_knowledge(db, scope))


def _open_pairs(known: Knowledge, judge: Judge) -> list[Pair]:
    """Return the required pairs on which no verdict of this judge is in force."""
    settled = {(one.earlier_id, one.later_id) for one in known.verdicts if one.judge == judge.version}
    return [pair for pair in required_pairs(known.assertions, known.index) if (pair[0].id, pair[1].id) not in settled]


def _facts(known: Knowledge, verdicts: tuple[Verdict, ...], now: datetime) -> list[Fact]:
    at = max((one.said_at for one in known.assertions), default=now)
    return timeline(known.assertions, (*known.verdicts, *verdicts), max(at, now))


async def _is_held(store: Store, scope: Scope, before: list[Fact], moved: Changes) -> bool:
    served = sum(fact.is_served for fact in before)
    if served >= LARGE_SCOPE and len(moved.retired) > served * MOST_RETIRED:
        return True
    policy = await store.read(lambda db: scope_rows.policy_of(db, scope))
    return policy.holds(retires=bool(moved.retired))


def consolidation(
    scope: Scope,
    judge: Judge,
    known: Knowledge,
    verdicts: tuple[Verdict, ...],
    at: datetime,
    *,
    usage: Usage | None = None,
    unjudged: int = 0,
) -> Proposal:
    """Return the proposal of a run that adds verdicts and says nothing itself."""
    spent = usage or Usage()
    return Proposal(
        scope=scope,
        source=f"consolidation:{uuid4().hex}",
        purpose="consolidation",
        extractor="none",
        judge=judge.version,
        started_at=at,
        revision=known.revision,
        readings=(),
        verdicts=verdicts,
        calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        counts={"judged": len(verdicts), "unjudged": unjudged},
    )
