"""Runs that can be undone: undoing and redoing a run, and merging or renaming scopes.

A run is undone as if it had never been applied, and redone as if it had never been undone. A merge moves everything
that is known of one scope into another. It is a run as well, so it can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

from sqlmodel import Session

from afterword.errors import NotFound, StateConflict
from afterword.extractors.judge import Judge, Pair, judge_without_waiting, pairs_a_statement
from afterword.facts.assertions import Assertion, Verdict
from afterword.facts.fact import Fact
from afterword.facts.knowledge import Knowledge
from afterword.facts.scopes import Scope
from afterword.pipeline.consolidation import verdicts_proposal
from afterword.pipeline.judging import pair_ids
from afterword.pipeline.resolution import comparison_partners, required_pairs
from afterword.store import ledger, lookup, reviews, runs
from afterword.store.access.keys import has_unrevoked_key_of_scope
from afterword.store.database.engine import Store
from afterword.store.merging import moves
from afterword.store.proposals import RunEffect, effect_between, read_proposal, read_verdicts
from afterword.store.runs import MERGE, RENAME, Run
from afterword.store.scope_rows import check_known, scope_key


async def undo_run(
    store: Store,
    run_id: int,
    *,
    judge: Judge,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunEffect:
    """Undo an applied run, as if it had never been applied, and return it with the facts that changed.

    Statements that were compared only with removed ones are compared with the next ones, by stored verdicts or by a
    judge that asks no model. Other pairs are left to consolidation, and so are those that were left to it before.
    Raises `NotFound` if there is no such run, and `StateConflict` if it is not applied.
    """

    def revert(transaction: Session, run: Run, at: datetime) -> None:
        ledger.revert_run(transaction, run.scope, run.id, at)
        if run.moves_scope:
            moves.move_sources_of_run(transaction, run.scope, run.id, is_back=True)

    return await _switch_run(store, run_id, revert, judge, clock)


async def redo_run(
    store: Store,
    run_id: int,
    *,
    judge: Judge,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunEffect:
    """Redo an undone run, as if it had never been undone, and return it with the facts that changed.

    The runs that undoing it added are undone. Its statements are compared, as in `undo_run`, with those that were added
    meanwhile. Raises `NotFound` if there is no such run, and `StateConflict` if it is not undone, or if a person has
    made a decision meanwhile that must be undone first.
    """

    def reinstate(transaction: Session, run: Run, at: datetime) -> None:
        if run.status == ledger.RunStatus.UNDONE:
            if run.moves_scope:
                moves.move_sources_of_run(transaction, run.scope, run.id, is_back=False)
            reviews.check_pairs_undecided(transaction, run.scope, read_proposal(transaction, run)[0].verdicts)
        ledger.reinstate_run(transaction, run.scope, run.id, at)
        for closing in runs.runs_caused_by(transaction, run):
            ledger.revert_run(transaction, run.scope, closing.id, at)

    return await _switch_run(store, run_id, reinstate, judge, clock)


async def _switch_run(
    store: Store,
    run_id: int,
    switch: Callable[[Session, Run, datetime], None],
    judge: Judge,
    clock: Callable[[], datetime],
) -> RunEffect:
    """Undo or redo a run by `switch`, compare what lacks a verdict then, and return the run with the changed facts."""

    def work(transaction: Session) -> RunEffect:
        at = clock()
        run = runs.read_run(transaction, run_id)
        judged_ids = _ids_judged_by(transaction, run)
        before = lookup.read_knowledge(transaction, run.scope)
        facts_before = lookup.read_facts(transaction, run.scope, at=at)
        switch(transaction, run, at)
        after = lookup.read_knowledge(transaction, run.scope)
        pairs = _missing_pairs(after, _assertions_to_compare(before, after, judged_ids), judge)
        pairs = _without_pairs_left(transaction, run, pairs, facts_before, at)
        verdicts = _verdicts_without_model(transaction, pairs, run.scope, judge)
        if verdicts:
            closing = verdicts_proposal(run.scope, judge, after, verdicts, at)
            ledger.propose_and_apply(transaction, closing, caused_by=run.id)
        return effect_between(transaction, run_id, facts_before, lookup.read_facts(transaction, run.scope, at=at))

    return await store.write(work)


def _ids_judged_by(transaction: Session, run: Run) -> list[str]:
    """Return the ids of the assertions that the verdicts of a run are about.

    A run without statements has none: the pairs that it judged are not compared again when it is undone.
    """
    proposal, _ = read_proposal(transaction, run)
    return [id_ for verdict in proposal.verdicts for id_ in verdict.pair] if proposal.assertions else []


def _assertions_to_compare(before: Knowledge, after: Knowledge, judged_ids: Sequence[str]) -> list[Assertion]:
    """Return the assertions that may lack a verdict.

    These are the added ones, those that were compared with removed ones, and those that the run had judged.
    """
    removed = [assertion for assertion in before.assertions if assertion.id not in after.by_id]
    added = [assertion for assertion in after.assertions if assertion.id not in before.by_id]
    partners = [assertion for assertion in comparison_partners(removed, before) if assertion.id in after.by_id]
    return [*added, *partners, *(after.by_id[id_] for id_ in judged_ids if id_ in after.by_id)]


def _without_pairs_left(
    transaction: Session, run: Run, pairs: list[Pair], facts_before: Sequence[Fact], at: datetime
) -> list[Pair]:
    """Return the pairs without those that are left to consolidation."""
    if not any(map(_has_entry, pairs)):
        return pairs
    facts = lookup.read_facts(transaction, run.scope, at=at)
    pairs = [pair for pair in pairs if not _is_left_to_consolidation(pair, facts_before, facts)]
    if run.status != ledger.RunStatus.UNDONE or run.undone_at is None or not any(map(_has_entry, pairs)):
        return pairs
    # What was known together with an entry before the undo was not compared with it then either.
    known = lookup.read_knowledge(transaction, run.scope, run.undone_at - timedelta(microseconds=1))
    return [pair for pair in pairs if not (_has_entry(pair) and known.by_id.keys() >= set(pair_ids(pair)))]


async def merge_scopes(
    store: Store,
    scope: Scope,
    into: Scope,
    *,
    judge: Judge,
    is_rename: bool = False,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> RunEffect:
    """Move everything that is known of a scope into another one, and return the run with the facts that changed there.

    The statements of both are compared if the judge asks no model; otherwise the pairs are left to consolidation. What
    was forgotten in either stays forgotten, and a pause of either holds for both. A renamed scope keeps its settings.
    Undoing the run moves everything back. With `is_rename` nothing may be stored for the target scope yet. Raises
    `NotFound` if nothing was ever stored for the scope, or for the target of a merge, unless a key opens it. Raises
    `StateConflict` if both scopes are the same or belong to different tenants, or if the target of a rename exists.
    """
    move = partial(_move_scope, scope=scope, into=into, judge=judge, purpose=RENAME if is_rename else MERGE)
    return await store.write(lambda transaction: move(transaction, at=clock()))


def _move_scope(
    transaction: Session, scope: Scope, into: Scope, *, judge: Judge, purpose: str, at: datetime
) -> RunEffect:
    check = _check_rename if purpose == RENAME else _check_merge
    check(transaction, scope, into)
    facts_before = lookup.read_facts(transaction, into, at=at)
    moved = moves.move_everything(transaction, scope, into)
    known = lookup.read_knowledge(transaction, into)
    pairs = _missing_pairs(known, known.assertions, judge) if facts_before else []
    proposal = replace(
        verdicts_proposal(into, judge, known, _verdicts_without_model(transaction, pairs, into, judge), at),
        source=f"{purpose}:{uuid4().hex}",
        purpose=purpose,
        extractor="application",
        counts={"sources": len(moved)},
    )
    run_id, _ = ledger.propose_and_apply(transaction, proposal)
    moves.record_move_and_reassign_api_keys(transaction, run_id, scope, into, moved)
    moves.copy_settings(transaction, scope, into, is_rename=purpose == RENAME)
    return effect_between(transaction, run_id, facts_before, lookup.read_facts(transaction, into, at=at))


def _check_rename(transaction: Session, scope: Scope, into: Scope) -> None:
    """Raise `StateConflict` if a memory has, or may get, the new name already."""
    if into in moves.scopes_merged_into(transaction, scope_key(transaction, scope)):
        way = f"undo that run, which `afterword runs --scope {scope}` lists"
        raise StateConflict(f"{into} was renamed to {scope} or merged into it; to get it back, {way}")
    if scope_key(transaction, into):
        raise StateConflict(f"{into} exists already; merge {scope} into it instead")
    if has_unrevoked_key_of_scope(transaction, into):
        raise StateConflict(f"a key opens {into} already, and would open {scope}; revoke it first")


def _check_merge(transaction: Session, scope: Scope, into: Scope) -> None:
    """Raise `NotFound` if a memory would be merged into a new one, whose name may be mistyped."""
    # A scope that a key opens cannot be the target of a rename.
    if scope.tenant != into.tenant or has_unrevoked_key_of_scope(transaction, into):
        return
    try:
        check_known(transaction, into)
    except NotFound as error:
        way = f"to give {scope} this name, use `afterword rename`"
        raise NotFound(f"{error}{' ' if error.nearest else '; '}{way}", nearest=error.nearest) from None


def _missing_pairs(known: Knowledge, affected: Sequence[Assertion], judge: Judge) -> list[Pair]:
    """Return the required pairs of these assertions that have no verdict."""
    in_force = {verdict.pair for assertion in affected for verdict in known.verdicts_by_id.get(assertion.id, ())}
    required = required_pairs((), known, compared_before=affected, pairs_a_statement=pairs_a_statement(judge))
    return [pair for pair in required if pair_ids(pair) not in in_force]


def _is_left_to_consolidation(pair: Pair, before: Sequence[Fact], after: Sequence[Fact]) -> bool:
    """Whether a pair with an entry is left to consolidation, which alone compares an entry with what was known before.

    Such a pair is left if one of its two facts has ended, or if both held beside each other before.
    """
    ids = set(pair_ids(pair))
    old, new = ([fact for fact in facts if not ids.isdisjoint(fact.assertion_ids)] for facts in (before, after))
    if not _has_entry(pair) or any(ids.issubset(fact.assertion_ids) for fact in old):
        return False
    held = [fact for fact in old if fact.is_served]
    return not all(fact.is_served for fact in new) or (len(held) > 1 and held[0].id not in held[1].contested_by)


def _has_entry(pair: Pair) -> bool:
    return any(said.session_id is None for said in pair)


def _verdicts_without_model(
    transaction: Session, pairs: Sequence[Pair], scope: Scope, judge: Judge
) -> tuple[Verdict, ...]:
    """Return the verdicts on these pairs, as far as no model must be asked."""
    stored = read_verdicts(transaction, scope, pairs, judge.version)
    judged: list[Verdict] = []
    if judge.pairs_a_call is None:
        judged, _ = judge_without_waiting(judge, [pair for pair in pairs if pair_ids(pair) not in stored])
    return (*stored.values(), *judged)
