"""Applying a stored proposal, after its statements are judged against those that have been added since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from sqlmodel import Session

from afterword.extractors.judge import Judge
from afterword.facts.assertions import Relation, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.errors import ProposalOutdated
from afterword.pipeline.judging import PairJudging, PairsToJudge, pair_ids
from afterword.pipeline.resolution import replace_statements
from afterword.pipeline.run_storage import retry_or_raise_busy
from afterword.store import agent_requests, ledger, lookup, runs, sessions
from afterword.store.database.engine import Store
from afterword.store.proposals import Proposal, RunEffect, dry_run_transcript, effect_of, read_proposal


async def apply_proposal(
    store: Store,
    run_id: int,
    *,
    judge: Judge,
    budget: Budget | CostTracker | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunEffect:
    """Apply the statements and verdicts of a proposal, and return the run that was applied and what it changed.

    If the scope has not changed since, the proposed run itself is applied. Otherwise its statements are judged against
    the new ones, and a new run is applied in its place. A dry run is applied only if it still has the effect that it
    showed. Pairs that the `budget` leaves no room for are left to consolidation.

    Raises `NotFound` if there is no such run, `StateConflict` if it is no proposal (any more), `ProposalOutdated` if
    its session has been read further since or a dry run would have another effect, an `ExtractionError` if the judge
    gave no answer, and `ScopeBusy` if other processes kept changing the scope.
    """
    run = await store.read(lambda transaction: runs.read_run(transaction, run_id))
    account = Account(as_cost_tracker(budget), store, run.scope, run.source)
    application = _ProposalApplication(store, run, clock, account, PairJudging(store, run.scope, judge))
    busy = f"{run.scope} kept changing while run {run_id} was judged again; try again"
    with account.charging_requests():
        return await retry_or_raise_busy(application.run, busy)


@dataclass(frozen=True, slots=True)
class _StoredProposal:
    """A proposal as it is stored now, and the revision of its scope.

    `to_judge` are the pairs that its statements form with newer ones, or None if the scope has not changed since.
    """

    run: runs.Run
    proposal: Proposal
    session_pk: int | None
    revision: int
    to_judge: PairsToJudge | None


@dataclass(frozen=True, slots=True)
class _ProposalApplication:
    """Applies the proposal of a run."""

    store: Store
    proposed_run: runs.Run
    clock: Callable[[], datetime]
    account: Account
    judging: PairJudging

    async def run(self) -> RunEffect:
        stored = await self.store.read(self._read)
        if stored.to_judge is None:
            return await self.store.write(partial(_apply_as_proposed, stored.run, self.clock()))
        judged = await self.judging.judge(stored.to_judge)
        if any(map(_has_effect, judged.verdicts)):
            _refuse_changed_dry_run(stored.run)
        verdicts = (*stored.proposal.verdicts, *judged.verdicts)
        fresh = replace(stored.proposal, revision=stored.revision, verdicts=verdicts, started_at=self.clock())
        return await self.store.write(
            partial(_apply_fresh_proposal, stored.run, fresh, stored.session_pk, self.account)
        )

    def _read(self, transaction: Session) -> _StoredProposal:
        run = runs.read_run(transaction, self.proposed_run.id)
        proposal, session_pk = read_proposal(transaction, run)
        known = lookup.read_knowledge(transaction, run.scope)
        is_same = known.revision == proposal.revision
        to_judge = None if is_same else self._pairs_to_judge(transaction, run, proposal, known)
        return _StoredProposal(run, proposal, session_pk, known.revision, to_judge)

    def _pairs_to_judge(
        self, transaction: Session, run: runs.Run, proposal: Proposal, known: Knowledge
    ) -> PairsToJudge:
        session_ids = {assertion.session_id for assertion in proposal.assertions} - {None}
        old = [assertion for assertion in known.assertions if assertion.session_id in session_ids]
        replaced = replace_statements(known, old, proposal.assertions, self.judging.pairs_a_statement)
        judged_before = {verdict.pair for verdict in proposal.verdicts}
        pairs = [pair for pair in replaced.pairs if pair_ids(pair) not in judged_before]
        relied_on = {id_ for verdict in proposal.verdicts if _has_effect(verdict) for id_ in verdict.pair}
        if not relied_on <= replaced.combined.by_id.keys():
            _refuse_changed_dry_run(run)
        return self.judging.prepare(transaction, replaced.others, pairs)


def _has_effect(verdict: Verdict) -> bool:
    return verdict.relation is not Relation.BESIDE or verdict.joins_subjects or verdict.parts_subjects


def _refuse_changed_dry_run(run: runs.Run) -> None:
    """Raise `ProposalOutdated` if the run is a dry run: it would not have the effect that it showed any more."""
    if run.status == ledger.RunStatus.PROPOSED:
        raise ProposalOutdated(
            f"{run.scope} has changed since run {run.id} was proposed, and the run would no longer do what it showed; "
            f"make a new proposal of {run.source}, look at it, and apply that"
        )


def _apply_as_proposed(run: runs.Run, at: datetime, transaction: Session) -> RunEffect:
    """Apply a proposal whose scope has not changed since it was judged."""
    _save_dry_run_turns(transaction, run, at)
    effect = effect_of(transaction, run.id, ledger.apply_run(transaction, run.scope, run.id, at), at)
    _close_requests(transaction, run, read_proposal(transaction, run)[0])
    return effect


def _apply_fresh_proposal(
    run: runs.Run, fresh: Proposal, session_pk: int | None, account: Account, transaction: Session
) -> RunEffect:
    """Apply the fresh proposal that was judged against what is known now; the former one is satisfied by it."""
    at = fresh.started_at
    key = _save_dry_run_turns(transaction, run, at) or session_pk
    ledger.satisfy_run(transaction, run.scope, run.id)
    run_id, change = ledger.propose_and_apply(transaction, fresh, session_pk=key)
    account.assign_to_run(transaction, run_id)
    effect = effect_of(transaction, run_id, change, at)
    _close_requests(transaction, run, fresh)
    return effect


def _close_requests(transaction: Session, run: runs.Run, proposal: Proposal) -> None:
    """Close the waiting requests of agents to remember something that the session says as well."""
    if run.purpose == "session":
        agent_requests.satisfy_held_requests(transaction, run.scope, proposal.assertions)


def _save_dry_run_turns(transaction: Session, run: runs.Run, at: datetime) -> int | None:
    """Store the turns that a dry run has read, and return the key of its session; None for any other run."""
    transcript = dry_run_transcript(transaction, run)
    if transcript is None:
        return None
    session_id = run.source.removeprefix(ledger.session_run_source(""))
    stored = sessions.read_turns(transaction, run.scope, session_id)
    if [turn.text for turn in stored] != [turn.text for turn in transcript.turns][: len(stored)]:
        raise ProposalOutdated(
            f"session {session_id!r} has been read further since run {run.id} was proposed; run it again"
        )
    saved_at = sessions.state_saved_at(transaction, run.scope, session_id)
    is_done = saved_at is None or saved_at <= run.started_at
    return sessions.save_transcript(transaction, run.scope, session_id, transcript, at, is_done=is_done)
