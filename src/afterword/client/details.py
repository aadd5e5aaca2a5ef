"""One fact and one session with all that belongs to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from afterword.client.results import (
    FactOrigin,
    HeldRun,
    RecordedVerdict,
    RejectedCandidate,
    SessionDetails,
    TurnFacts,
    VerdictEffect,
)
from afterword.errors import NotFound
from afterword.facts.assertions import RETIRING
from afterword.facts.fact import Fact
from afterword.facts.fact_changes import FactChange
from afterword.facts.scopes import Scope
from afterword.privacy.foreign.stretches import foreign_turns
from afterword.store import costs, fact_ids, ledger, lookup, runs, sessions
from afterword.store.costs import Spending
from afterword.store.forgetting.erase_requests import read_erase_requests
from afterword.store.ledger import RunStatus
from afterword.store.proposals import read_proposal
from afterword.store.run_effects import past_changes

_NOT_IN_FORCE = {
    RunStatus.HELD: VerdictEffect.WAITS,
    RunStatus.APPLIED: VerdictEffect.UNDONE,  # the session was read again
    RunStatus.UNDONE: VerdictEffect.UNDONE,
    RunStatus.REJECTED: VerdictEffect.REJECTED,
    RunStatus.PROPOSED: VerdictEffect.PROPOSED,
    RunStatus.SATISFIED: VerdictEffect.OVERRULED,
}
"""Why a verdict has no effect whose runs have these statuses. Of several statuses the first one counts."""


def fact_origin(transaction: Session, scope: Scope, fact_id: str, at: datetime) -> FactOrigin:
    """Return how a fact came to be. Raises `NotFound`."""
    fact = fact_ids.read_fact(transaction, scope, fact_id, at=at)
    verdicts = lookup.verdicts_on(transaction, scope, fact.assertion_ids)
    ids = {end for verdict, _, _ in verdicts for end in (verdict.earlier_id, verdict.later_id)}
    said = lookup.assertions_by_id(transaction, scope, [*fact.assertion_ids, *ids])
    recorded = [
        RecordedVerdict(verdict, said[verdict.earlier_id], said[verdict.later_id], recorded_at, tuple(run_ids))
        for verdict, recorded_at, run_ids in verdicts
        if verdict.earlier_id in said and verdict.later_id in said
    ]
    run_ids = {run_id for entry in recorded for run_id in entry.run_ids}
    held = tuple(waiting for waiting in held_runs(transaction, scope) if waiting.run.id in run_ids)
    if recorded:
        recorded = _with_effects(transaction, scope, recorded)
    return FactOrigin(fact, tuple(said[id_] for id_ in fact.assertion_ids), tuple(recorded), held)


def _with_effects(transaction: Session, scope: Scope, recorded: Sequence[RecordedVerdict]) -> list[RecordedVerdict]:
    """Return recorded verdicts with whether each counts, and why it does not."""
    known = lookup.read_knowledge(transaction, scope)
    pairs = known.judged_pairs({id_ for entry in recorded for id_ in entry.verdict.pair})
    refused = {refusal.verdict.pair: refusal.reason for refusal in pairs.refused}
    statuses = runs.statuses_of(transaction, {run_id for entry in recorded for run_id in entry.run_ids})

    def effect(entry: RecordedVerdict) -> VerdictEffect:
        verdict = entry.verdict
        if verdict not in known.verdicts_by_id.get(verdict.earlier_id, ()):
            of_runs = {statuses[run_id] for run_id in entry.run_ids}
            return next((effect for status, effect in _NOT_IN_FORCE.items() if status in of_runs), VerdictEffect.UNDONE)
        if pairs.decided.get(verdict.pair) != verdict:
            return VerdictEffect.OVERRULED
        if verdict.pair in refused:
            return VerdictEffect.REFUSED
        retired_by = {later_id for later_id, _ in pairs.retirements.get(verdict.earlier_id, ())}
        is_without_effect = verdict.relation in RETIRING and verdict.later_id not in retired_by
        return VerdictEffect.OVERRULED if is_without_effect else VerdictEffect.COUNTS

    shown = [replace(entry, effect=effect(entry)) for entry in recorded]
    return [
        replace(entry, refused_because=refused[entry.verdict.pair]) if entry.effect is VerdictEffect.REFUSED else entry
        for entry in shown
    ]


def session_details(transaction: Session, scope: Scope, session_id: str, at: datetime) -> SessionDetails:
    """Return a session with the facts that rest on it. Raises `NotFound`."""
    saved = sessions.find_session(transaction, scope, session_id)
    if saved is None:
        raise NotFound(f"no session {session_id!r} in {scope}; see `afterword status`")
    cited: dict[int | None, list[Fact]] = defaultdict(list)
    supported = []
    resting_ids = lookup.fact_ids_of_session(transaction, scope, session_id)
    for fact in lookup.read_facts_by_id(transaction, scope, resting_ids, at=at):
        numbers = {evidence.turn for evidence in fact.evidence if evidence.session_id == session_id}
        supported += [fact] if numbers else []
        for number in numbers:
            cited[number].append(fact)
    source = ledger.session_source(session_id)
    spent = costs.spending_by_source(transaction, scope, source=source).get(source, Spending())
    held = [waiting for waiting in held_runs(transaction, scope) if waiting.run.source == source]
    rejected = lookup.rejections(transaction, scope, session_id)
    turns = sessions.read_turns(transaction, scope, session_id)
    return SessionDetails(
        saved,
        tuple(
            TurnFacts(turn, tuple(cited[turn.number]), stretches)
            for turn, stretches in zip(turns, foreign_turns(turns), strict=True)
        ),
        tuple(supported),
        tuple(RejectedCandidate(*refusal) for refusal in rejected),
        spent,
        held[-1] if held else None,
    )


def run_changes(transaction: Session, scope: Scope, run_id: int) -> tuple[FactChange, ...]:
    """Return what a run of a scope changed when it was applied. Raises `NotFound`."""
    run = runs.read_run(transaction, run_id)
    if run.scope != scope:
        raise NotFound(f"no run {run_id} in {scope}; see `afterword runs`")
    hidden = {id_ for asked in read_erase_requests(transaction, scope) for id_ in asked.erased_ids}
    return past_changes(transaction, run, hidden)


def held_runs(transaction: Session, scope: Scope) -> list[HeldRun]:
    """Return the runs of a scope that wait for a person, with the statements in them."""
    held = runs.read_runs(transaction, scope, statuses=[RunStatus.HELD])
    return [HeldRun(run, read_proposal(transaction, run)[0].statements) for run in held]
