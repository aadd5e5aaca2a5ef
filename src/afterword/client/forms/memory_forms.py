"""The JSON forms of what belongs to one memory: facts, searches, sessions, runs and reviews."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from afterword.client.forms.finding_forms import finding_json
from afterword.facts.scopes import Scope
from afterword.json_form import JsonForm, Nullable, iso_instant, itself
from afterword.store.transfer.fact_formats import fact_json

if TYPE_CHECKING:
    from afterword.client.results import (
        ContextBlock,
        FactOrigin,
        HeldRun,
        OmittedFact,
        ProcessedSession,
        RecordedVerdict,
        RejectedCandidate,
        Review,
        RunRecord,
        SearchHit,
        SearchResults,
        SessionDetails,
        WaitingErasure,
    )
    from afterword.facts.assertions import Assertion
    from afterword.facts.dependents import Dependent
    from afterword.facts.fact import Fact
    from afterword.facts.transcripts import SourceTurn
    from afterword.pipeline.resolution import Changes
    from afterword.pipeline.session_outcome import SessionOutcome
    from afterword.store.costs import Spending
    from afterword.store.forgetting.erasure import Receipt
    from afterword.store.jobs import JobState
    from afterword.store.reviews import Contest
    from afterword.store.runs import Run
    from afterword.store.sessions import SavedSession

__all__ = ["JsonForm", "Nullable", "fact_json", "iso_instant", "itself"]

spending_json: JsonForm[Spending] = JsonForm(
    "Spending",
    "A cost. `usd` is a decimal number as text, null if no price is known.",
    calls=int,
    prompt_tokens=int,
    cached_tokens=int,
    completion_tokens=int,
    usd=(Nullable(str), lambda spent: None if spent.usd is None else f"{spent.usd:.6f}"),
    unpriced_calls=int,
    estimated_calls=int,
)
run_json: JsonForm[Run] = JsonForm(
    "Run",
    "A run: a change of a memory that can be undone.",
    id=int,
    scope=Scope,
    source=str,
    purpose=str,
    status=str,
    extractor=str,
    judge=str,
    started_at=datetime,
    applied_at=Nullable(datetime),
    undone_at=Nullable(datetime),
    calls=int,
    prompt_tokens=int,
    completion_tokens=int,
    counts={str: int},
)
run_record_json: JsonForm[RunRecord] = JsonForm(
    "RunRecord",
    "A run, its cost, and the id of the API key that requested it.",
    **run_json.parts_at("run"),
    spent=spending_json,
    actor=Nullable(str),
)
held_run_json: JsonForm[HeldRun] = JsonForm(
    "HeldRun",
    "A run that waits for a person's approval, its statements, and the check that holds it.",
    **run_json.parts_at("run"),
    says=([str], "statements"),
    held_because=(Nullable(str), "reason"),
)
assertion_json: JsonForm[Assertion] = JsonForm(
    "Assertion",
    "A statement of a fact, with its quotes.",
    id=str,
    said_at=datetime,
    session_id=Nullable(str),
    statement=str,
    quotes=([str], lambda assertion: [evidence.quote for evidence in assertion.evidence]),
)
_verdict_json: JsonForm[RecordedVerdict] = JsonForm(
    "Verdict",
    "How a later statement relates to an earlier one, and whether the verdict takes effect.",
    relation=(str, "verdict.relation"),
    earlier=(str, "earlier.statement"),
    later=(str, "later.statement"),
    reason=(str, "verdict.reason"),
    judge=(str, "verdict.judge"),
    recorded_at=datetime,
    runs=([int], "run_ids"),
    effect=str,
    refused_because=Nullable(str),
)
fact_origin_json: JsonForm[FactOrigin] = JsonForm(
    "FactOrigin",
    "A fact, its statements, and the verdicts on them.",
    scope=(Scope, "fact.scope"),
    fact=fact_json,
    said=([assertion_json], "assertions"),
    verdicts=[_verdict_json],
    held=[held_run_json],
)
_scored_fact_json: JsonForm[SearchHit] = JsonForm(
    "ScoredFact",
    "A fact that matches, with its score and the summands of the score.",
    **fact_json.parts_at("fact"),
    score=float,
    parts={str: float},
)
_hit_json: JsonForm[SearchHit] = JsonForm(
    "Hit",
    "What matches: a fact, a turn or a finding, which one of the ids names.",
    layer=str,
    text=str,
    said_at=Nullable(datetime),
    speaker=Nullable(str),
    score=float,
    fact=(Nullable(str), lambda hit: hit.fact and hit.fact.id),
    session_id=(Nullable(str), lambda hit: hit.turn and hit.turn.session_id),
    turn=(Nullable(int), lambda hit: hit.turn and hit.turn.number),
    finding=(Nullable(str), lambda hit: hit.finding and hit.finding.id),
)
search_json: JsonForm[SearchResults] = JsonForm(
    "SearchResults",
    "The matches of a query. `facts` holds the facts with their scores, and `found` all hits.",
    stored=int,
    without_vector=int,
    facts=([_scored_fact_json], lambda results: [hit for hit in results.hits if hit.fact]),
    found=([_hit_json], "hits"),
)
_turn_json: JsonForm[SourceTurn] = JsonForm(
    "Turn", "What was said in a turn of a session.", session_id=str, turn=(int, "number"), speaker=str, text=str
)
_omitted_fact_json: JsonForm[OmittedFact] = JsonForm(
    "OmittedFact", "A fact that an agent is not told, and why.", fact=fact_json, reason=str
)
context_json: JsonForm[ContextBlock] = JsonForm(
    "ContextBlock",
    "The memory block for an agent, and the facts that are left out of it.",
    text=str,
    tokens=int,
    budget_tokens=int,
    stable_text=str,
    question_text=str,
    missing=int,
    facts=[fact_json],
    before=([fact_json], "former"),
    turns=[_turn_json],
    findings=[finding_json],
    left_out=[_omitted_fact_json],
)


def pasted_stretches(details: SessionDetails) -> list[tuple[int, str, str]]:
    """Return each part of a session that a speaker pasted: the number of its turn, its form, and its words."""
    return [
        (read.turn.number, str(stretch.kind), read.turn.text[stretch.start : stretch.end])
        for read in details.turns
        for stretch in read.pasted
    ]


_rejected_candidate_json: JsonForm[RejectedCandidate] = JsonForm(
    "RefusedCandidate", "What a check refused, and why.", reason=str, statement=str, detail=str
)
_pasted_json: JsonForm[tuple[int, str, str]] = JsonForm(
    "PastedText",
    "A part of a turn that its speaker pasted.",
    turn=(int, itemgetter(0)),
    form=(str, itemgetter(1)),
    text=(str, itemgetter(2)),
)
session_details_json: JsonForm[SessionDetails] = JsonForm(
    "SessionDetails",
    "How a session was read, which facts it supports, and which candidates were refused.",
    scope=(Scope, "session.scope"),
    session_id=(str, "session.session_id"),
    spent=spending_json,
    progress=(str, "session.progress"),
    failure=(Nullable(str), "session.failure"),
    layout=(Nullable(str), "session.layout"),
    turns=(int, lambda details: len(details.turns)),
    humans=([str], "session.humans"),
    assumed=([str], "session.assumed"),
    time_basis=(Nullable(str), "session.time_basis"),
    started_at=(Nullable(datetime), "session.started_at"),
    ended_at=(Nullable(datetime), "session.ended_at"),
    skipped=({str: int}, "session.skipped"),
    kept=([fact_json], "facts"),
    dropped=([_rejected_candidate_json], "rejected"),
    not_found=([str], "unfound"),
    pasted=([_pasted_json], pasted_stretches),
    held=Nullable(held_run_json),
)
saved_session_json: JsonForm[SavedSession] = JsonForm(
    "SavedSession",
    "A session and its state.",
    scope=Scope,
    session_id=str,
    progress=str,
    failure=Nullable(str),
    tries=(int, "attempts"),
    next_try_at=Nullable(datetime),
    started_at=Nullable(datetime),
    ended_at=Nullable(datetime),
    updated_at=datetime,
)
numbered_contest_json: JsonForm[tuple[int, Contest]] = JsonForm(
    "Contest",
    "Two statements that contradict each other, with their number in the review.",
    number=(int, itemgetter(0)),
    relation=(str, lambda numbered: numbered[1].relation),
    judged_because=(str, lambda numbered: numbered[1].judged_because),
    refused_because=(str, lambda numbered: numbered[1].refused_because),
    earlier=(assertion_json, lambda numbered: numbered[1].earlier),
    later=(assertion_json, lambda numbered: numbered[1].later),
)
_dependent_json: JsonForm[Dependent] = JsonForm(
    "Dependent",
    "A fact that may be outdated since another fact changed.",
    fact=fact_json,
    changed=fact_json,
    changed_at=(Nullable(datetime), "changed.valid_to"),
    reason=str,
)
_erasure_json: JsonForm[WaitingErasure] = JsonForm(
    "WaitingErasure",
    "A request to forget something, which is hidden until it is erased.",
    id=str,
    statement=str,
    hidden_since=datetime,
    due_at=Nullable(datetime),
    finds_facts=bool,
    everything=(bool, "is_everything"),
)
_unclear_name_json: JsonForm[Fact] = JsonForm(
    "UnclearName", "A fact about a name that fits several people.", fact=(fact_json, itself), may_be=[str]
)
review_json: JsonForm[Review] = JsonForm(
    "Review",
    "What waits for a person's decision.",
    contests=([numbered_contest_json], lambda review: enumerate(review.contests, 1)),
    held=[held_run_json],
    findings=[finding_json],
    dependents=[_dependent_json],
    erasures=[_erasure_json],
    unclear_names=([_unclear_name_json], "unclear"),
)
receipt_json: JsonForm[Receipt] = JsonForm(
    "Receipt",
    "How much was forgotten. `done` is false for a preview.",
    scope=Scope,
    done=(bool, lambda receipt: receipt.is_clean is not None),
    erased={str: int},
    blanked={str: int},
    tombstones=int,
    files_clean=(Nullable(bool), "is_clean"),
)
job_outcome_json: JsonForm[JobState] = JsonForm(
    "JobOutcome",
    "When a periodic job last ended, and its counts. Reasons are left out: they may contain a URL.",
    job=(str, "name"),
    ended_at=Nullable(datetime),
    last_success_at=Nullable(datetime),
    held_until=(Nullable(datetime), lambda job: job.leased_until if job.holder else None),
    counts={str: int},
    failures=int,
)
_retired_fact_json: JsonForm[tuple[Fact, Fact | None]] = JsonForm(
    "RetiredFact",
    "A fact that a run ended, and the fact that took its place.",
    fact=(fact_json, itemgetter(0)),
    by=(Nullable(fact_json), itemgetter(1)),
)
changes_json: JsonForm[Changes] = JsonForm(
    "Changes",
    "The facts that a run changes.",
    learned=[fact_json],
    repeated=[fact_json],
    retired=[_retired_fact_json],
    contested=[fact_json],
    unclear=[fact_json],
    hidden=int,
    not_found=(int, "unfound"),
)
outcome_json: JsonForm[SessionOutcome] = JsonForm(
    "SessionOutcome",
    "The result of a session that was read successfully.",
    scope=Scope,
    session_id=str,
    result=(str, "result_name"),
    run=(Nullable(int), "run_id"),
    turns=int,
    layout=(Nullable(str), "transcript.layout"),
    time_basis=(Nullable(str), "transcript.time_basis"),
    humans=([str], "transcript.humans"),
    assumed=([str], "transcript.assumed"),
    owner=([str], "owners"),
    skipped=({str: int}, "transcript.skipped"),
    refused=({str: int}, "rejected"),
    **changes_json.parts_at("changes"),
    unjudged=int,
    splits=int,
    calls=(int, "usage.calls"),
    prompt_tokens=(int, "usage.prompt_tokens"),
    completion_tokens=(int, "usage.completion_tokens"),
)


def processed_json(processed: ProcessedSession) -> dict[str, Any]:
    """Return as JSON the result of processing a session, and what the call cost for it."""
    from afterword.pipeline.session_outcome import SessionOutcome

    result, spent = processed.result, spending_json(processed.spent)
    if isinstance(result, SessionOutcome):
        return {**outcome_json(result), "spent": spent}
    names = {"scope": str(result.scope), "session_id": result.session_id}
    return {**names, "result": processed.result_name, "reason": result.reason, "spent": spent}
