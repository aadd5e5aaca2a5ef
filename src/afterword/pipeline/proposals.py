"""Letting a stored proposal count, exactly as it says, judged against what is known now; and taking a run back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from sqlmodel import Session

from afterword.errors import Overtaken
from afterword.extractors.judge import Judge, judged_at_once
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.pipeline.budget import Account, Budget, CostTracker, as_cost_tracker
from afterword.pipeline.consolidation import consolidation
from afterword.pipeline.errors import ProposalOutdated, ScopeBusy
from afterword.pipeline.judging import Docket, gone
from afterword.pipeline.resolution import partners, required_pairs
from afterword.store import ledger, lookup, runs, sessions
from afterword.store.database.engine import Store, pause_s
from afterword.store.proposals import Proposal
from afterword.store.runs import Run

TRIES = 20


async def apply_proposal(
    store: Store,
    run_id: int,
    *,
    judge: Judge,
    budget: Budget | CostTracker | None = None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Run:
    """Let the assertions and verdicts of a proposal count, and return the run that was applied.

    Where the scope has not changed since, that is the proposed run itself. Where it has, the same assertions are judged
    against what has come since, and the run that is applied is a new one in place of the proposed. Raises `NotFound`
    where there is no such proposal, `ProposalOutdated` where its session has been read further since, an
    `ExtractionError` where the judge gave no answer, `ScopeBusy` where others kept changing the scope. What the
    `budget` leaves no room to judge is left to consolidation.
    """
    found = await store.read(lambda db: runs.read_run(db, run_id))
    account = Account(as_cost_tracker(budget), store, found.scope, found.source)
    with account.open():
        applied = await _applied(store, run_id, judge, clock)
    await account.tie(applied.id)
    return applied


async def _applied(store: Store, run_id: int, judge: Judge, clock: Callable[[], datetime]) -> Run:
    docket: Docket | None = None

    def proposed(db: Session) -> tuple[Run, Proposal, int | None, Knowledge]:
        found = runs.read_run(db, run_id)
        return found, *runs.read_proposal(db, found), lookup.read_knowledge(db, found.scope)

    for attempt in range(TRIES):
        found, proposal, session_pk, known = await store.read(proposed)
        try:
            if known.revision == proposal.revision:
                return await store.write(partial(_apply_unchanged, found, clock()))
            docket = docket or Docket(store, found.scope, judge)
            said = [one for reading in proposal.readings for one in reading.assertions]
            sessions = {one.session_id for one in said if one.session_id is not None}
            rest = known.revised(
                known.revision, removed=[one for one in known.assertions if one.session_id in sessions]
            )
            pairs = required_pairs(said, rest.revised(known.revision, added=said).index)
            judged = await docket.judge(pairs, hidden=gone(known, pairs))
            verdicts = {
                (one.earlier_id, one.later_id, one.judge): one for one in (*proposal.verdicts, *judged.verdicts)
            }
            fresh = replace(proposal, revision=known.revision, verdicts=tuple(verdicts.values()), started_at=clock())
            return await store.write(partial(_apply_in_place_of, found, fresh, session_pk))
        except Overtaken:
            await asyncio.sleep(pause_s(attempt))
            continue
    raise ScopeBusy(f"{found.scope} kept changing while run {run_id} was judged again; try again")


def _apply_unchanged(found: Run, at: datetime, db: Session) -> Run:
    """Apply a proposal whose scope is as it was when it was judged."""
    _keep_read(db, found, at)
    ledger.apply_run(db, found.scope, found.id, at)
    return runs.read_run(db, found.id)


def _apply_in_place_of(found: Run, fresh: Proposal, session_pk: int | None, db: Session) -> Run:
    """Reject a proposal and apply the fresh one, which was judged against what is known now."""
    at = fresh.started_at
    key = _keep_read(db, found, at) or session_pk
    ledger.reject_run(db, found.scope, found.id)
    run_id = ledger.propose_run(db, fresh, session_pk=key)
    ledger.apply_run(db, found.scope, run_id, at)
    return runs.read_run(db, run_id)


def _keep_read(db: Session, found: Run, at: datetime) -> int | None:
    """Keep as the session's turns what a dry run has read; return the session's key."""
    transcript = runs.dry_run_transcript(db, found)
    if transcript is None:
        return None
    session_id = found.source.removeprefix(ledger.session_source(""))
    kept = sessions.read_turns(db, found.scope, session_id)
    if [turn.text for turn in kept] != [turn.text for turn in transcript.turns][: len(kept)]:
        raise ProposalOutdated(
            f"session {session_id!r} has been read further since run {found.id} was proposed; run it again"
        )
    saved_at = sessions.state_saved_at(db, found.scope, session_id)
    is_done = saved_at is None or saved_at <= found.started_at
    return sessions.save_transcript(db, found.scope, session_id, transcript, at, is_done=is_done)


async def undo_run(
    store: Store,
    run_id: int,
    *,
    judge: Judge,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Run:
    """Leave an applied run out, as if it had never been, and return it.

    What was compared only with what is gone now is compared with the next statement: by verdicts that are kept, and by
    a judge that costs nothing; what would need a call is left to consolidation. Raises `NotFound` where there is no
    such applied run.
    """

    def work(db: Session) -> Run:
        found = runs.read_run(db, run_id)
        proposal, _ = runs.read_proposal(db, found)
        before = lookup.read_knowledge(db, found.scope)
        ledger.undo_run(db, found.scope, run_id, clock())
        known = lookup.read_knowledge(db, found.scope)
        taken = [one for one in before.assertions if one.id not in known.by_id]
        left = [one for one in known.assertions if one.id not in before.by_id]
        left += partners(taken, before.index)
        ends = (end for one in proposal.verdicts for end in (one.earlier_id, one.later_id))
        left += (known.by_id[end] for end in ends if end in known.by_id)
        verdicts = _standing(db, known, [one for one in left if one.id in known.by_id], found.scope, judge)
        if verdicts:
            closing = consolidation(found.scope, judge, known, verdicts, clock())
            ledger.apply_run(db, found.scope, ledger.propose_run(db, closing), clock())
        return runs.read_run(db, run_id)

    return await store.write(work)


def _standing(
    db: Session, known: Knowledge, left: Sequence[Assertion], scope: Scope, judge: Judge
) -> tuple[Verdict, ...]:
    """Return the verdicts on these that no run stands on any more, or none ever has."""
    in_force = {(one.earlier_id, one.later_id) for side in left for one in known.verdicts_by_id.get(side.id, ())}
    required = required_pairs(list(dict.fromkeys(left)), known.index)
    pairs = [pair for pair in required if (pair[0].id, pair[1].id) not in in_force]
    kept = runs.read_verdicts(db, scope, pairs, judge.version)
    fresh: list[Verdict] = []
    if judge.pairs_a_call is None:
        fresh, _ = judged_at_once(judge, [pair for pair in pairs if (pair[0].id, pair[1].id) not in kept])
    return (*kept.values(), *fresh)
