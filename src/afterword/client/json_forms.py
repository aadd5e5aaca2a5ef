"""Converts the results of `Afterword` to JSON, for `--json` of the command line and for the HTTP service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afterword.client.findings.finding_forms import finding_json
from afterword.store.transfer.fact_formats import fact_json, iso_instant

if TYPE_CHECKING:
    from afterword.client.results import (
        ContextBlock,
        FactOrigin,
        HeldRun,
        ProcessedSession,
        Review,
        RunRecord,
        SearchResults,
        SessionDetails,
    )
    from afterword.client.store_results import CostEstimate, CostRange, StoreStatus
    from afterword.facts.assertions import Assertion
    from afterword.pipeline.resolution import Changes
    from afterword.pipeline.session_outcome import SessionOutcome
    from afterword.store.costs import Spending
    from afterword.store.forgetting.erasure import Receipt
    from afterword.store.jobs import JobState
    from afterword.store.runs import Run
    from afterword.store.sessions import SavedSession

__all__ = ["fact_json", "iso_instant"]

SESSION_STATES = ("new", "grown", "unchanged", "unreadable")
"""The states by which an estimate counts sessions."""


def spending_json(spent: Spending) -> dict[str, Any]:
    """Return a cost as JSON. `usd` is a decimal number as text, null if no price is known."""
    return {
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "cached_tokens": spent.cached_tokens,
        "completion_tokens": spent.completion_tokens,
        "usd": None if spent.usd is None else f"{spent.usd:.6f}",
        "unpriced_calls": spent.unpriced_calls,
        "estimated_calls": spent.estimated_calls,
    }


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as JSON."""
    return {
        "id": run.id,
        "scope": str(run.scope),
        "source": run.source,
        "purpose": run.purpose,
        "status": run.status,
        "extractor": run.extractor,
        "judge": run.judge,
        "started_at": iso_instant(run.started_at),
        "applied_at": iso_instant(run.applied_at),
        "undone_at": iso_instant(run.undone_at),
        "calls": run.calls,
        "prompt_tokens": run.prompt_tokens,
        "completion_tokens": run.completion_tokens,
        "counts": dict(run.counts),
    }


def run_record_json(record: RunRecord) -> dict[str, Any]:
    """Return as JSON a run, its cost, and the id of the API key that requested it."""
    return {**run_json(record.run), "spent": spending_json(record.spent), "actor": record.actor}


def origin_json(origin: FactOrigin) -> dict[str, Any]:
    """Return as JSON a fact, its assertions, and the verdicts on them."""
    return {
        "scope": str(origin.fact.scope),
        "fact": fact_json(origin.fact),
        "said": [assertion_json(assertion) for assertion in origin.assertions],
        "verdicts": [
            {
                "relation": str(recorded.verdict.relation),
                "earlier": recorded.earlier.statement,
                "later": recorded.later.statement,
                "reason": recorded.verdict.reason,
                "judge": recorded.verdict.judge,
                "recorded_at": iso_instant(recorded.recorded_at),
                "runs": list(recorded.run_ids),
                "effect": str(recorded.effect),
                "refused_because": recorded.refused_because,
            }
            for recorded in origin.verdicts
        ],
        "held": [held_json(held) for held in origin.held],
    }


def assertion_json(assertion: Assertion) -> dict[str, Any]:
    """Return an assertion with its quotes as JSON."""
    return {
        "id": assertion.id,
        "said_at": iso_instant(assertion.said_at),
        "session_id": assertion.session_id,
        "statement": assertion.statement,
        "quotes": [evidence.quote for evidence in assertion.evidence],
    }


def search_json(results: SearchResults) -> dict[str, Any]:
    """Return search results as JSON. `facts` holds the facts with their scores, and `found` all hits."""
    facts = [{**fact_json(hit.fact), "score": hit.score, "parts": dict(hit.parts)} for hit in results.hits if hit.fact]
    hits = [
        {
            "layer": str(hit.layer),
            "text": hit.text,
            "said_at": iso_instant(hit.said_at),
            "speaker": hit.speaker,
            "score": hit.score,
            "fact": hit.fact.id if hit.fact else None,
            "session_id": hit.turn.session_id if hit.turn else None,
            "turn": hit.turn.number if hit.turn else None,
            "finding": hit.finding.id if hit.finding else None,
        }
        for hit in results.hits
    ]
    return {"stored": results.stored, "without_vector": results.without_vector, "facts": facts, "found": hits}


def context_json(block: ContextBlock) -> dict[str, Any]:
    """Return as JSON the memory block for an agent, and the facts that are left out of it."""
    return {
        "text": block.text,
        "tokens": block.tokens,
        "budget_tokens": block.budget_tokens,
        "stable_text": block.stable_text,
        "question_text": block.question_text,
        "missing": block.missing,
        "facts": [fact_json(fact) for fact in block.facts],
        "before": [fact_json(fact) for fact in block.former],
        "turns": [
            {"session_id": turn.session_id, "turn": turn.number, "speaker": turn.speaker, "text": turn.text}
            for turn in block.turns
        ],
        "findings": [finding_json(finding) for finding in block.findings],
        "left_out": [{"fact": fact_json(omitted.fact), "reason": str(omitted.reason)} for omitted in block.left_out],
    }


def session_details_json(details: SessionDetails) -> dict[str, Any]:
    """Return as JSON how a session was read, which facts it supports, and which candidates were refused."""
    session = details.session
    return {
        "scope": str(session.scope),
        "session_id": session.session_id,
        "spent": spending_json(details.spent),
        "progress": str(session.progress),
        "failure": session.failure,
        "layout": session.layout,
        "turns": len(details.turns),
        "humans": list(session.humans),
        "assumed": list(session.assumed),
        "time_basis": session.time_basis,
        "started_at": iso_instant(session.started_at),
        "ended_at": iso_instant(session.ended_at),
        "skipped": dict(session.skipped),
        "kept": [fact_json(fact) for fact in details.facts],
        "dropped": [
            {"reason": refusal.reason, "statement": refusal.statement, "detail": refusal.detail}
            for refusal in details.rejected
        ],
        "not_found": list(details.unfound),
        "pasted": [dict(zip(("turn", "form", "text"), each, strict=True)) for each in pasted_stretches(details)],
        "held": held_json(details.held) if details.held else None,
    }


def pasted_stretches(details: SessionDetails) -> list[tuple[int, str, str]]:
    """Return each part of a session that a speaker pasted: the number of its turn, its form, and its words."""
    return [
        (read.turn.number, str(stretch.kind), read.turn.text[stretch.start : stretch.end])
        for read in details.turns
        for stretch in read.pasted
    ]


def saved_session_json(session: SavedSession) -> dict[str, Any]:
    """Return a session and its state as JSON."""
    return {
        "scope": str(session.scope),
        "session_id": session.session_id,
        "progress": str(session.progress),
        "failure": session.failure,
        "tries": session.attempts,
        "next_try_at": iso_instant(session.next_try_at),
        "started_at": iso_instant(session.started_at),
        "ended_at": iso_instant(session.ended_at),
        "updated_at": iso_instant(session.updated_at),
    }


def processed_json(processed: ProcessedSession) -> dict[str, Any]:
    """Return as JSON the result of processing a session, and what the call cost for it."""
    from afterword.pipeline.session_outcome import SessionOutcome

    result, spent = processed.result, spending_json(processed.spent)
    if isinstance(result, SessionOutcome):
        return {**outcome_json(result), "spent": spent}
    names = {"scope": str(result.scope), "session_id": result.session_id}
    return {**names, "result": processed.result_name, "reason": result.reason, "spent": spent}


def outcome_json(outcome: SessionOutcome) -> dict[str, Any]:
    """Return as JSON the result of a session that was read successfully."""
    transcript = outcome.transcript
    return {
        "scope": str(outcome.scope),
        "session_id": outcome.session_id,
        "result": outcome.result_name,
        "run": outcome.run_id,
        "turns": outcome.turns,
        "layout": transcript.layout,
        "time_basis": str(transcript.time_basis) if transcript.time_basis else None,
        "humans": list(transcript.humans),
        "assumed": list(transcript.assumed),
        "owner": list(outcome.owners),
        "skipped": dict(transcript.skipped),
        "refused": dict(outcome.rejected),
        **changes_json(outcome.changes),
        "unjudged": outcome.unjudged,
        "splits": outcome.splits,
        "calls": outcome.usage.calls,
        "prompt_tokens": outcome.usage.prompt_tokens,
        "completion_tokens": outcome.usage.completion_tokens,
    }


def changes_json(changes: Changes) -> dict[str, Any]:
    """Return as JSON the facts that a run changes."""
    return {
        "learned": [fact_json(fact) for fact in changes.learned],
        "repeated": [fact_json(fact) for fact in changes.repeated],
        "retired": [{"fact": fact_json(old), "by": fact_json(new) if new else None} for old, new in changes.retired],
        "contested": [fact_json(fact) for fact in changes.contested],
        "unclear": [fact_json(fact) for fact in changes.unclear],
        "hidden": changes.hidden,
        "not_found": changes.unfound,
    }


def review_json(review: Review) -> dict[str, Any]:
    """Return as JSON what waits for a person's decision. `decide` accepts the numbers of the contests."""
    return {
        "contests": [
            {
                "number": number,
                "relation": str(contest.relation),
                "judged_because": contest.judged_because,
                "refused_because": contest.refused_because,
                "earlier": assertion_json(contest.earlier),
                "later": assertion_json(contest.later),
            }
            for number, contest in enumerate(review.contests, 1)
        ],
        "held": [held_json(held) for held in review.held],
        "findings": [finding_json(finding) for finding in review.findings],
        "dependents": [
            {
                "fact": fact_json(dependent.fact),
                "changed": fact_json(dependent.changed),
                "changed_at": iso_instant(dependent.changed.valid_to),
                "reason": dependent.reason,
            }
            for dependent in review.dependents
        ],
        "erasures": [
            {
                "id": waiting.id,
                "statement": waiting.statement,
                "hidden_since": iso_instant(waiting.hidden_since),
                "due_at": iso_instant(waiting.due_at),
                **{"finds_facts": waiting.finds_facts, "everything": waiting.is_everything},
            }
            for waiting in review.erasures
        ],
        "unclear_names": [{"fact": fact_json(fact), "may_be": list(fact.may_be)} for fact in review.unclear],
    }


def held_json(held: HeldRun) -> dict[str, Any]:
    """Return as JSON a run that waits for a person's approval, its statements, and the check that holds it."""
    return {**run_json(held.run), "says": list(held.statements), "held_because": held.reason}


def receipt_json(receipt: Receipt) -> dict[str, Any]:
    """Return as JSON how much was forgotten. `done` is false for a preview."""
    return {
        "scope": str(receipt.scope),
        "done": receipt.is_clean is not None,
        "erased": dict(receipt.erased),
        "blanked": dict(receipt.blanked),
        "tombstones": receipt.tombstones,
        "files_clean": receipt.is_clean,
    }


def estimate_json(estimate: CostEstimate) -> dict[str, Any]:
    """Return as JSON what processing would cost, in total and by scope."""
    return {
        "extractor": estimate.extractor,
        "model": estimate.model,
        **_range_json(estimate.total),
        "scopes": {str(scope): _range_json(costs) for scope, costs in estimate.by_scope.items()},
    }


def _range_json(costs: CostRange) -> dict[str, Any]:
    return {
        "sessions": {state: costs.sessions.get(state, 0) for state in SESSION_STATES},
        "windows": costs.windows,
        "least": spending_json(costs.least),
        "most": spending_json(costs.most),
    }


def status_json(status: StoreStatus) -> dict[str, Any]:
    """Return as JSON what the store holds, what waits, and what failed."""
    return {
        "store": status.store,
        "scopes": [
            {
                "scope": str(scope.scope),
                "current": scope.current,
                "all": scope.facts,
                "sessions": scope.sessions,
                "contested": scope.contested,
                "pending": scope.pending,
                "held": scope.held_runs,
                "to_forget": scope.to_forget,
                "erase_due_at": iso_instant(scope.erase_due_at),
                "pairs": scope.pairs,
                "judged": scope.judged_pairs,
                "spent": spending_json(scope.spent),
                "paused_at": iso_instant(scope.pause.paused_at) if scope.pause else None,
            }
            for scope in status.scopes
        ],
        "secrets_masked": status.secrets_masked,
        "turns_off_the_record": status.turns_off_the_record,
        "sessions": dict(status.sessions),
        "queue": {
            "waiting": status.queue.waiting,
            "oldest_since": iso_instant(status.queue.oldest_since),
            "oldest_age_s": status.queue.oldest_age_s,
        },
        "reasons": dict(status.failures),
        "failed": [
            {
                "scope": str(session.scope),
                "session_id": session.session_id,
                "reason": session.failure,
                "progress": str(session.progress),
                "tries": session.attempts,
                "next_try_at": iso_instant(session.next_try_at),
            }
            for session in status.failed
        ],
        "jobs": [{**job_outcome_json(job), "failure": job.failure} for job in status.jobs],
        "vectors": [
            {
                "model": vectors.model,
                "dimension": vectors.dimension,
                "configured": vectors.is_configured,
                "vectors": vectors.vectors,
                "lacking": vectors.lacking,
            }
            for vectors in status.vectors
        ],
        "spent": {
            "total": spending_json(status.costs.total),
            "days": {day.isoformat(): spending_json(spent) for day, spent in status.costs.by_day.items()},
        },
    }


def job_outcome_json(job: JobState) -> dict[str, Any]:
    """Return as JSON when a periodic job last ended, and its counts. Reasons are left out: they may contain a URL."""
    return {
        "job": job.name,
        "ended_at": iso_instant(job.ended_at),
        "last_success_at": iso_instant(job.last_success_at),
        "held_until": iso_instant(job.leased_until) if job.holder else None,
        "counts": dict(job.counts),
        "failures": job.failures,
    }
