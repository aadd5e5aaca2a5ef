"""Reads results of the Python interface from the store: pages of lists, and details of one fact or session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sqlmodel import Session

from afterword.client.arguments import (
    NameOrNames,
    chosen_members,
    cursor_of_number,
    fact_cursor,
    first_page,
    limit_plus_one,
    number_of_cursor,
    page_after_cursor,
)
from afterword.client.results import (
    ContextBlock,
    FactOrigin,
    FactPage,
    HeldRun,
    Layer,
    Omission,
    OmittedFact,
    RecordedVerdict,
    RejectedCandidate,
    RunPage,
    RunRecord,
    SearchHit,
    SessionDetails,
    SessionPage,
    TurnFacts,
    VerdictEffect,
)
from afterword.client.store_results import AuditPage
from afterword.errors import ArgumentInvalid, NotFound
from afterword.facts.assertions import RETIRING_RELATIONS, Verdict
from afterword.facts.fact import Fact, FactChange, FactFilter, FactOrder
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Turn
from afterword.facts.validity.judged_pairs import JudgedPairs
from afterword.privacy.foreign.stretches import foreign_stretches_by_turn
from afterword.recall.block import OPENING
from afterword.recall.search_terms import matched_words
from afterword.recall.tokens import estimated_token_count
from afterword.store import costs, fact_ids, ledger, lookup, runs, sessions
from afterword.store.access import audit
from afterword.store.database.statements import RowRange
from afterword.store.forgetting.forgotten_statements import read_erase_requests_in_force, read_erase_requests_with_facts
from afterword.store.ledger import RunStatus
from afterword.store.proposals import past_changes, read_proposal
from afterword.store.reading import recall
from afterword.store.reading.views import View

_EFFECT_BY_RUN_STATUS = {
    RunStatus.HELD: VerdictEffect.WAITS,
    RunStatus.APPLIED: VerdictEffect.UNDONE,  # a later reading of the same session has replaced the run
    RunStatus.UNDONE: VerdictEffect.UNDONE,
    RunStatus.REJECTED: VerdictEffect.REJECTED,
    RunStatus.PROPOSED: VerdictEffect.PROPOSED,
    RunStatus.SATISFIED: VerdictEffect.OVERRULED,
}
"""Why a verdict has no effect, by the status of its run. If it has several runs, the first status here counts."""


def fact_origin(transaction: Session, scope: Scope, fact_id: str, at: datetime) -> FactOrigin:
    """Return the assertions of a fact, and the verdicts on them. Raises `NotFound`."""
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
    with_effects = _with_effects(transaction, scope, recorded) if recorded else ()
    return FactOrigin(fact, tuple(said[id_] for id_ in fact.assertion_ids), tuple(with_effects), held)


def _with_effects(transaction: Session, scope: Scope, recorded: Sequence[RecordedVerdict]) -> list[RecordedVerdict]:
    """Return the verdicts with `effect` and `refused_because` set."""
    known = lookup.read_knowledge(transaction, scope)
    pairs = known.judged_pairs({id_ for entry in recorded for id_ in entry.verdict.pair})
    refused = {refusal.verdict.pair: refusal.reason for refusal in pairs.refused_retirements}
    statuses = runs.statuses_of(transaction, {run_id for entry in recorded for run_id in entry.run_ids})

    def with_effect(entry: RecordedVerdict) -> RecordedVerdict:
        verdict = entry.verdict
        if verdict not in known.verdicts_by_id.get(verdict.earlier_id, ()):
            effect = _effect_of_runs({statuses[run_id] for run_id in entry.run_ids})
        elif pairs.verdicts.get(verdict.pair) == verdict and verdict.pair in refused:
            return replace(entry, effect=VerdictEffect.REFUSED, refused_because=refused[verdict.pair])
        else:
            effect = VerdictEffect.COUNTS if _takes_effect(verdict, pairs) else VerdictEffect.OVERRULED
        return replace(entry, effect=effect, refused_because=None)

    return list(map(with_effect, recorded))


def _effect_of_runs(statuses: Collection[str]) -> VerdictEffect:
    """Return why a verdict has no effect whose runs have these statuses."""
    return next(
        (effect for status, effect in _EFFECT_BY_RUN_STATUS.items() if status in statuses), VerdictEffect.UNDONE
    )


def _takes_effect(verdict: Verdict, pairs: JudgedPairs) -> bool:
    """Whether a verdict decides its pair and, if it is to retire the earlier assertion, does retire it."""
    if pairs.verdicts.get(verdict.pair) != verdict:
        return False
    retired_by = {later_id for later_id, _ in pairs.retirements.get(verdict.earlier_id, ())}
    return verdict.relation not in RETIRING_RELATIONS or verdict.later_id in retired_by


def session_details(transaction: Session, scope: Scope, session_id: str, at: datetime) -> SessionDetails:
    """Return a session with its turns, without the blocks that agents were told, and its facts. Raises `NotFound`."""
    saved = sessions.find_session(transaction, scope, session_id)
    if saved is None:
        raise NotFound(f"no session {session_id!r} in {scope}; see `afterword sessions`")
    facts, cited = _facts_and_citations(transaction, scope, session_id, at)
    source = ledger.session_run_source(session_id)
    spent = costs.spending_by_run_source(transaction, scope, run_source=source).get(source, costs.Spending())
    held = [waiting for waiting in held_runs(transaction, scope) if waiting.run.source == source]
    rejected = lookup.read_rejected_candidates(transaction, scope, session_id)
    turns = sessions.read_turns(transaction, scope, session_id)
    return SessionDetails(
        saved,
        tuple(_turns_with_facts(turns, cited)),
        tuple(facts),
        tuple(RejectedCandidate(*refusal) for refusal in rejected),
        spent,
        held[-1] if held else None,
        _statements_of_unfound_requests(transaction, scope, session_id),
    )


def _statements_of_unfound_requests(transaction: Session, scope: Scope, session_id: str) -> tuple[str, ...]:
    """Return the requests to forget in a session that match no fact and wait for a person."""
    return tuple(
        asked.request.statement
        for asked in read_erase_requests_in_force(transaction, scope)
        if asked.request.session_id == session_id and not asked.finds_facts
    )


def _facts_and_citations(
    transaction: Session, scope: Scope, session_id: str, at: datetime
) -> tuple[list[Fact], dict[int | None, list[Fact]]]:
    """Return the facts that a session supports, and by the number of each turn those that cite it."""
    supported, cited = [], defaultdict[int | None, list[Fact]](list)
    fact_ids_of_session = lookup.fact_ids_of_session(transaction, scope, session_id)
    for fact in lookup.read_facts_by_id(transaction, scope, fact_ids_of_session, at=at):
        numbers = {evidence.turn for evidence in fact.evidence if evidence.session_id == session_id}
        supported += [fact] if numbers else []
        for number in numbers:
            cited[number].append(fact)
    return supported, cited


def _turns_with_facts(turns: Sequence[Turn], cited: Mapping[int | None, Sequence[Fact]]) -> Iterator[TurnFacts]:
    """Yield the turns, without the memory blocks that agents were told, each with the facts that cite it."""
    for turn, stretches in zip(turns, foreign_stretches_by_turn(turns), strict=True):
        if turn.is_said or not turn.text.startswith(OPENING):
            yield TurnFacts(turn, tuple(cited.get(turn.number, ())), stretches)


def run_changes(transaction: Session, scope: Scope, run_id: int) -> tuple[FactChange, ...]:
    """Return the facts that a run of this scope changed when it was applied. Raises `NotFound`."""
    run = runs.read_run(transaction, run_id)
    if run.scope != scope:
        raise NotFound(f"no run {run_id} in {scope}; see `afterword runs`")
    hidden = {id_ for asked in read_erase_requests_with_facts(transaction, scope) for id_ in asked.erased_ids}
    return past_changes(transaction, run, hidden)


def held_runs(transaction: Session, scope: Scope) -> list[HeldRun]:
    """Return the runs of a scope that wait for a person's approval, with the statements in them."""
    held = runs.read_runs(transaction, scope, statuses=[RunStatus.HELD])
    return [HeldRun(run, read_proposal(transaction, run)[0].statements) for run in held]


def fact_page(
    facts: Iterable[Fact], wanted: FactFilter, order: FactOrder, *, limit: int | None, after: str | None, offset: int
) -> FactPage:
    """Return a page of `facts`, which must be sorted by the time of saying. Raises `ArgumentInvalid`."""
    fitting = [fact for fact in facts if wanted.accepts_apart_from_status(fact)]
    chosen = order.sorted(filter(wanted.accepts_status, fitting))
    shown, cursor = page_after_cursor(chosen[offset:], fact_cursor, limit=limit, after=after)
    return FactPage(shown, len(chosen), len(fitting) - len(chosen), cursor if order is FactOrder.SAID else None)


def fact_page_of_view(
    view: View, wanted: FactFilter, order: FactOrder, *, limit: int, after: str | None, offset: int
) -> FactPage:
    """Return the same page as `fact_page`, from a cached view. Only the `Fact` objects of the page are built."""
    lists = view.lists
    places, other_status_count = lists.select_places(wanted, order)
    shown, cursor = page_after_cursor(
        places[offset:], lambda place: fact_cursor(lists.stored_fact(place)), limit=limit, after=after
    )
    facts = tuple(map(view.fact, map(lists.stored_fact, shown)))
    return FactPage(facts, len(places), other_status_count, cursor if order is FactOrder.SAID else None)


def omitted_facts(
    views: Sequence[View], chosen_ids: Collection[str], most: int | None
) -> tuple[tuple[OmittedFact, ...], int]:
    """Return the facts that an agent is not told, at most `most` of them, and how many there are in total."""
    places = [
        (view, place, Omission.NO_ROOM) for view in views for place in view.lists.served_places_except(chosen_ids)
    ]
    for view in views:
        for place in view.lists.pending_places():
            stored = view.lists.stored_fact(place)
            if stored.id not in chosen_ids:
                places.append((view, place, Omission.NO_ROOM if stored.is_flagged else Omission.UNCLEAR_SUBJECT))
    shown = places if most is None else places[:most]
    left_out = (OmittedFact(view.fact(view.lists.stored_fact(place)), reason) for view, place, reason in shown)
    return tuple(left_out), len(places)


def search_hits(query: str, results: recall.Recall, *, explain: bool) -> list[SearchHit]:
    """Return what a search found: facts, facts that held before, turns, findings. With `explain` they tell why."""
    parts = results.score_components or tuple({} for _ in results.facts)
    hits = [
        SearchHit(
            Layer.NOW if fact.is_served else Layer.BEFORE,
            score,
            fact=fact,
            matched=matched_words(query, fact) if explain else (),
            parts=shares,
        )
        for fact, score, shares in zip(results.facts, results.scores, parts, strict=True)
    ]
    hits += [
        SearchHit(Layer.BEFORE, 0.0, former.fact, matched=matched_words(query, former.fact) if explain else ())
        for former in results.former
    ]
    said = zip(results.turns, results.turn_scores, strict=True)
    hits += [SearchHit(Layer.SAID, score, turn=turn) for turn, score in said]
    hits += [SearchHit(Layer.FOUND, score, finding=finding) for finding, score in results.findings]
    return hits


def context_block(recalls: Sequence[recall.Recall], budget_tokens: int) -> ContextBlock:
    """Return what an agent is told of several scopes, in this order, without the facts that are left out."""
    layers = [recalled.layers for recalled in recalls if recalled.layers is not None]
    return ContextBlock(
        text=_joined_lines(each.text for each in layers),
        tokens=sum(estimated_token_count(each.text) for each in layers),
        budget_tokens=budget_tokens,
        facts=tuple(fact for recalled in recalls for fact in recalled.facts),
        turns=tuple(turn for recalled in recalls for turn in recalled.turns),
        left_out=(),
        former=tuple(former.fact for recalled in recalls for former in recalled.former),
        stable_text=_joined_lines(each.stable_text for each in layers),
        question_text=_joined_lines(each.question_text for each in layers),
        missing=sum(each.missing_fact_count for each in layers),
        findings=tuple(finding for each in layers for finding in each.findings),
    )


def _joined_lines(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text)


def session_page_reader(
    scope: Scope | None,
    session_id: str | None,
    state: NameOrNames | None,
    limit: int | None,
    after: str | None,
    *,
    tenant: str | None = None,
    newest_first: bool = False,
    offset: int = 0,
) -> Callable[[Session], SessionPage]:
    """Return a function that reads a page of the sessions that match these filters. Raises `ArgumentInvalid`."""
    states = None if state is None else chosen_members(sessions.Progress, state, "state")
    rows = _row_range(limit, after, offset, newest_first)

    def work(transaction: Session) -> SessionPage:
        saved, total = sessions.list_sessions(
            transaction, scope=scope, tenant=tenant, session_id=session_id, progress=states, rows=rows
        )
        shown, cursor = first_page(saved, lambda session: cursor_of_number(session.key), limit=limit)
        return SessionPage(shown, total, cursor)

    return work


def run_page_reader(
    scope: Scope | None,
    status: NameOrNames | None,
    limit: int | None,
    after: str | None,
    *,
    newest_first: bool = False,
    offset: int = 0,
) -> Callable[[Session], RunPage]:
    """Return a function that reads a page of the runs of a scope, or of all scopes. Raises `ArgumentInvalid`."""
    statuses = () if status is None else tuple(chosen_members(RunStatus, status, "status"))
    rows = _row_range(limit, after, offset, newest_first)

    def work(transaction: Session) -> RunPage:
        stored, total = runs.read_run_range(transaction, scope, statuses=statuses, rows=rows)
        shown, cursor = first_page(stored, lambda run: cursor_of_number(run.id), limit=limit)
        ids = [run.id for run in shown]
        spent, actors = costs.spending_of_runs(transaction, ids), audit.actors_of_runs(transaction, ids)
        records = (
            RunRecord(run, spent.get(run.id) or _spending_without_price(run), actors.get(run.id)) for run in shown
        )
        return RunPage(tuple(records), total, cursor)

    return work


def _spending_without_price(run: runs.Run) -> costs.Spending:
    """Return the tokens of a run that is older than the recording of costs, so that its price is not known."""
    return costs.Spending(run.calls, run.prompt_tokens, 0, run.completion_tokens, unpriced_calls=run.calls)


def _row_range(limit: int | None, after: str | None, offset: int, newest_first: bool) -> RowRange:
    if offset < 0:
        raise ArgumentInvalid(f"offset={offset} is below 0")
    # No list is longer than the largest id, and a database cannot read every larger number.
    return RowRange(limit_plus_one(limit), number_of_cursor(after), min(offset, runs.LARGEST_ID), newest_first)


def audit_page_reader(
    tenant: str | None, scope: Scope | None, key_id: str | None, limit: int | None, after: str | None
) -> Callable[[Session], AuditPage]:
    """Return a function that reads a page of the audit entries. Raises `ArgumentInvalid`."""
    most, before = limit_plus_one(limit), number_of_cursor(after)

    def work(transaction: Session) -> AuditPage:
        entries = audit.read_audit_entries(
            transaction, tenant=tenant, scope=scope, key_id=key_id, most=most, before_id=before
        )
        return AuditPage(*first_page(entries, lambda entry: cursor_of_number(entry.id), limit=limit))

    return work
