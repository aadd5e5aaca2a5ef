"""Consolidation: judging the pairs of statements that were left unjudged when the sessions of a scope were processed.

A large change is held until a person approves it. The same work follows an erasure: statements that were compared only
with erased ones are compared again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from sqlmodel import Session

from afterword import telemetry
from afterword.errors import AfterwordError
from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Judge, Pair, pairs_a_statement
from afterword.facts.assertions import Verdict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.removals import count_unnamed_removals, removals_between
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import erased_ids, timeline
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.judging import PairJudging, PairsToJudge, pair_ids
from afterword.pipeline.resolution import Changes, compare_facts, required_pairs
from afterword.pipeline.run_storage import retry_or_raise_busy, store_and_apply_run
from afterword.store import lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure
from afterword.store.forgetting.forgotten_statements import ERASE_WAIT
from afterword.store.forgetting.retention import Retention, apply_retention
from afterword.store.proposals import Proposal, read_verdicts

_log = telemetry.logs(__name__)

CALLS = 25
"""The most calls of the judge that one consolidation makes. The remaining pairs wait for the next consolidation."""

CONSOLIDATION = "consolidation"
"""The source and the purpose under which the costs of a consolidation are recorded."""
LARGE_SCOPE, MOST_RETIRED = 20, 0.2
"""From how many facts on a scope is large, and the greatest share of them that may be retired without a person."""


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """The result of a consolidation. `run_id` is None if no pair was judged. A `held` run waits for a person."""

    scope: Scope
    run_id: int | None
    held: bool = False
    judged: int = 0
    unjudged: int = 0
    usage: Usage = field(default_factory=Usage)
    changes: Changes = field(default_factory=Changes)


@dataclass(frozen=True, slots=True)
class JudgingCoverage:
    """How many pairs of a scope must be judged, and how many of these have been judged."""

    required: int
    judged: int


def read_judging_coverage(transaction: Session, scope: Scope, judge: Judge) -> JudgingCoverage:
    """Return how many required pairs of a scope have a verdict of this judge (or of a person)."""
    pairs = _all_pairs(lookup.read_knowledge(transaction, scope), judge)
    judged = pairs if judge.pairs_a_call is None else read_verdicts(transaction, scope, pairs, judge.version)
    return JudgingCoverage(len(pairs), len(judged))


@telemetry.staged(telemetry.Stage.CONSOLIDATE, "scope")
async def consolidate_scope(
    store: Store,
    scope: Scope,
    *,
    judge: Judge,
    apply: bool = True,
    budget: Budget | CostTracker | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> ConsolidationResult:
    """Judge the required pairs of a scope that no judge of this version has judged, and apply the verdicts.

    The run is held for a person if the scope's policy says so, if it would retire more than a fifth of a scope of 20
    facts or more, or if it would remove facts that nobody named (see `facts.removals`). If the `budget` is reached, the
    verdicts so far are applied and the other pairs stay unjudged. Raises an `ExtractionError` if the judge gave no
    answer, and `ScopeBusy` if other processes kept changing the scope.
    """
    account = Account(as_cost_tracker(budget), store, scope, CONSOLIDATION, purpose=CONSOLIDATION)
    consolidation = _Consolidation(store, scope, judge, apply, clock, account, PairJudging(store, scope, judge))
    busy = f"{scope} kept changing while it was consolidated; run it again"
    with account.charging_requests():
        result = await retry_or_raise_busy(consolidation.run, busy)
    telemetry.note(run_id=result.run_id, judged=result.judged, unjudged=result.unjudged, held=result.held)
    return result


@dataclass(frozen=True, slots=True)
class _Consolidation:
    store: Store
    scope: Scope
    judge: Judge
    apply: bool
    clock: Callable[[], datetime]
    account: Account
    judging: PairJudging

    async def run(self) -> ConsolidationResult:
        known, policy, to_judge = await self.store.read(self._read_pairs_to_judge)
        judged = await self.judging.judge(to_judge, most_calls=CALLS)
        verdicts, unjudged, usage = judged.verdicts, judged.unjudged, self.judging.usage
        if not verdicts:
            return ConsolidationResult(self.scope, None, unjudged=unjudged, usage=usage)
        before, changes = _facts_before_and_changes(known, verdicts, self.clock())
        must_wait = _is_large_change(before, changes) or changes.unnamed.must_wait
        is_held = not self.apply or must_wait or policy.holds(retires=bool(changes.retired))
        proposal = verdicts_proposal(self.scope, self.judge, known, verdicts, self.clock())
        proposal = replace(
            proposal,
            calls=usage.calls,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            counts={**proposal.counts, "unjudged": unjudged, **changes.unnamed.counts_if_waiting()},
        )
        run_id = await store_and_apply_run(self.store, proposal, self.account, is_held=is_held)
        return ConsolidationResult(self.scope, run_id, is_held, len(verdicts), unjudged, usage, changes)

    def _read_pairs_to_judge(self, transaction: Session) -> tuple[Knowledge, scope_rows.ApprovalPolicy, PairsToJudge]:
        """Read what is known of the scope, its policy, and the pairs that no judge of this version has judged."""
        known = lookup.read_knowledge(transaction, self.scope)
        in_force = {verdict.pair for verdict in known.verdicts if verdict.judge == self.judge.version}
        pairs = [pair for pair in _all_pairs(known, self.judge) if pair_ids(pair) not in in_force]
        policy = scope_rows.approval_policy_of(transaction, self.scope)
        return known, policy, self.judging.prepare(transaction, known, pairs)


def _is_large_change(before: Sequence[Fact], changes: Changes) -> bool:
    """Whether the changes retire so much of a large scope that a person must approve them."""
    served = sum(fact.is_served for fact in before)
    return served >= LARGE_SCOPE and len(changes.retired) > served * MOST_RETIRED


def _all_pairs(known: Knowledge, judge: Judge) -> list[Pair]:
    """Return the pairs of a scope that this judge must see. Pairs that it is never shown are not among them."""
    return required_pairs((), known, compared_before=known.assertions, pairs_a_statement=pairs_a_statement(judge))


def verdicts_proposal(
    scope: Scope,
    judge: Judge,
    known: Knowledge,
    verdicts: tuple[Verdict, ...],
    at: datetime,
) -> Proposal:
    """Return the proposal of a run that adds verdicts and no statements."""
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
        counts={"judged": len(verdicts), "unjudged": 0},
    )


def _facts_before_and_changes(
    known: Knowledge, verdicts: Sequence[Verdict], now: datetime
) -> tuple[list[Fact], Changes]:
    """Return the facts of a scope before these verdicts, and what the verdicts change."""
    at = max(known.last_said_at or now, now)
    after = known.revised(known.revision, added_verdicts=verdicts)
    before = timeline(known.assertions, known.verdicts, at)
    changes = compare_facts(before, timeline(after.assertions, after.verdicts, at))
    removals = removals_between(before, changes.retired, erased_ids(after.assertions, after.verdicts), after)
    return before, replace(changes, unnamed=count_unnamed_removals(removals))


async def compare_without_calls_after_erasure(store: Store, scopes: Iterable[Scope], judge: Judge) -> None:
    """Judge the pairs that an erasure in these scopes has left unjudged, if the judge asks no model.

    Otherwise the pairs wait for the next consolidation.
    """
    if judge.pairs_a_call is not None:
        return
    for scope in dict.fromkeys(scopes):
        try:
            await consolidate_scope(store, scope, judge=judge)
        except AfterwordError as error:  # the facts are erased; the pairs wait for the next consolidation
            mark = telemetry.scope_mark(scope)
            _log.warning("the statements of %s could not be compared again (%s)", mark, type(error).__name__)


async def erase_requested_and_compare(
    store: Store, scopes: Iterable[Scope], *, judge: Judge, at: datetime, wait: timedelta = ERASE_WAIT
) -> Counter[str]:
    """Erase what people in these scopes asked to forget, once it has been hidden for as long as `wait`.

    The remaining statements are compared. Returns the numbers of deleted rows by table.
    """
    return await _forget_and_compare(
        store, scopes, judge, partial(erasure.forget_requested_statements, at=at, hidden_since_before=at - wait)
    )


async def apply_retention_and_compare(
    store: Store, scopes: Iterable[Scope], retention: Retention, *, judge: Judge, at: datetime
) -> Counter[str]:
    """Forget in these scopes what is older than the retention allows. Returns the numbers of deleted rows by table."""
    return await _forget_and_compare(store, scopes, judge, partial(apply_retention, retention=retention, at=at))


async def _forget_and_compare(
    store: Store,
    scopes: Iterable[Scope],
    judge: Judge,
    forget: Callable[[Store, Scope], Awaitable[erasure.Receipt | None]],
) -> Counter[str]:
    receipts = {
        scope: receipt for scope in dict.fromkeys(scopes) if (receipt := await forget(store, scope)) is not None
    }
    if receipts:
        await store.compact()
    await compare_without_calls_after_erasure(store, receipts, judge)
    erased = Counter[str]()
    for receipt in receipts.values():
        erased.update(receipt.erased)
    return erased
