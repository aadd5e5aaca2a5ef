"""The JSON forms of answers that only the service gives. The OpenAPI document is made from them and from the others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from afterword import Scope
from afterword.client.access.keys import audit_entry_json
from afterword.client.access.webhooks import webhook_post_json, webhook_status_json
from afterword.client.forms.finding_forms import dated_finding_json
from afterword.client.forms.memory_forms import (
    JsonForm,
    Nullable,
    fact_json,
    held_run_json,
    itself,
    job_outcome_json,
    numbered_contest_json,
    receipt_json,
    review_json,
    run_record_json,
    saved_session_json,
    session_details_json,
    spending_json,
)

if TYPE_CHECKING:
    from afterword import (
        AgentFinding,
        AuditPage,
        FactPage,
        HeldRun,
        ProcessedSession,
        Receipt,
        Review,
        RunEffect,
        RunPage,
        ScopeCosts,
        ScopePage,
        SearchHit,
        SessionDetails,
        SessionOutcome,
        SessionPage,
        TurnFacts,
    )
    from afterword.client.access.webhooks import WebhookStatus

NEXT = "`total` counts all pages; `next` is to be sent as `after` for the next page, and null on the last one."

fact_page_json: JsonForm[FactPage] = JsonForm(
    "FactPage",
    f"A page of facts. {NEXT} `other_statuses` counts the facts that match all filters but the status.",
    facts=[fact_json],
    total=int,
    other_statuses=int,
    next=Nullable(str),
)
session_page_json: JsonForm[SessionPage] = JsonForm(
    "SessionPage", f"A page of sessions. {NEXT}", sessions=[saved_session_json], total=int, next=Nullable(str)
)
run_page_json: JsonForm[RunPage] = JsonForm(
    "RunPage", f"A page of runs. {NEXT}", runs=[run_record_json], total=int, next=Nullable(str)
)
scope_page_json: JsonForm[ScopePage] = JsonForm(
    "ScopePage", f"A page of the names of memories. {NEXT}", scopes=[Scope], total=int, next=Nullable(str)
)
audit_page_json: JsonForm[AuditPage] = JsonForm(
    "AuditPage",
    "A page of the audit log. `next` is to be sent as `after` for the next page, and null on the last one.",
    entries=[audit_entry_json],
    next=Nullable(str),
)
change_json: JsonForm[RunEffect] = JsonForm(
    "Change",
    "A run, its status, and the ids of the facts that it changed, removed or is about.",
    run=(int, "run.id"),
    status=(str, "run.status"),
    facts=(
        [str],
        lambda effect: [
            *(fact.id for fact in effect.facts),
            *(change.before.id for change in effect.changes if change.before and change.after is None),
        ],
    ),
)
remembered_json: JsonForm[RunEffect] = JsonForm(
    "Remembered",
    "What was remembered. `id` finds it again.",
    **change_json.parts,
    id=(str, lambda effect: next(iter(change_json(effect)["facts"]), f"run:{effect.run.id}")),
)
_memory_json: JsonForm[SearchHit] = JsonForm(
    "RecalledMemory",
    "Something that is remembered, with how well it matches. `source` is the session it comes from, null if the "
    "application said it.",
    id=(str, "fact.id"),
    content=(str, "fact.statement"),
    tags=([str], "fact.tags"),
    score=float,
    created_at=(Nullable(datetime), "fact.recorded_at"),
    kind=(str, "fact.kind"),
    about=(str, "fact.subject"),
    source=(
        Nullable(str),
        lambda hit: next((cited.session_id for cited in hit.fact.evidence if cited.session_id), None),
    ),
)
memories_json: JsonForm[Sequence[SearchHit]] = JsonForm(
    "Memories", "What is remembered, best match first.", memories=([_memory_json], itself)
)
decided_finding_json: JsonForm[tuple[AgentFinding, str]] = JsonForm(
    "DecidedFinding",
    "A finding, its status now, and the decision.",
    **{name: dated_finding_json.parts[name] for name in ("id", "status", "review")},
)
_turn_json: JsonForm[TurnFacts] = JsonForm(
    "TranscriptTurn",
    "A turn of a session, with the ids of the facts that cite it.",
    turn=(int, "turn.number"),
    speaker=(str, "turn.speaker"),
    role=(str, "turn.role"),
    text=(str, "turn.text"),
    said_at=(Nullable(datetime), "turn.said_at"),
    facts=([str], lambda entry: [fact.id for fact in entry.facts]),
)
session_json: JsonForm[SessionDetails] = JsonForm(
    "Session",
    "A session: how it was read, what was left out and why, and its transcript.",
    **session_details_json.parts,
    transcript=([_turn_json], "turns"),
)
read_session_json: JsonForm[SessionOutcome] = JsonForm(
    "ReadSession",
    "The run that a session made, and the ids of the facts that it changed.",
    result=(str, "result_name"),
    run=(Nullable(int), "run_id"),
    turns=int,
    learned=([str], lambda outcome: [fact.id for fact in outcome.changes.learned]),
    repeated=([str], lambda outcome: [fact.id for fact in outcome.changes.repeated]),
    retired=([str], lambda outcome: [old.id for old, _ in outcome.changes.retired]),
    contested=([str], lambda outcome: [fact.id for fact in outcome.changes.contested]),
    unclear=([str], lambda outcome: [fact.id for fact in outcome.changes.unclear]),
    refused=({str: int}, "rejected"),
)
unread_session_json: JsonForm[ProcessedSession] = JsonForm(
    "UnreadSession", "Why a session was not read.", result=(str, "result_name"), reason=(str, "result.reason")
)
paused_json: JsonForm[str] = JsonForm(
    "SessionResult",
    "What became of a session whose memory is paused, or whose request is repeated.",
    result=(str, itself),
)
pending_json: JsonForm[str] = JsonForm("Pending", "The session waits to be processed.", progress=(str, itself))
_review_contest_json: JsonForm[Any] = JsonForm(
    "ReviewContest",
    "Two statements that contradict each other. `id` is the item to decide.",
    **numbered_contest_json.parts,
    id=(str, lambda numbered: numbered[1].id),
)
_review_run_json: JsonForm[HeldRun] = JsonForm(
    "ReviewRun",
    "A run that waits for a person's approval. `item` is the item to decide.",
    **held_run_json.parts,
    item=(str, "id"),
)
open_review_json: JsonForm[Review] = JsonForm(
    "Review",
    "What waits for a person's decision.",
    **{
        **review_json.parts,
        "contests": ([_review_contest_json], review_json.parts["contests"][1]),
        "held": [_review_run_json],
    },
)
costs_json: JsonForm[ScopeCosts] = JsonForm(
    "Costs",
    "What models cost in a memory: in total, by source, and by run.",
    total=spending_json,
    sources=({str: spending_json}, "by_source"),
    runs=({str: spending_json}, "by_run"),
)
preview_json: JsonForm[tuple[Receipt | None, str, int]] = JsonForm(
    "Preview",
    "What would be erased, and the confirmation that `forget` needs within `valid_s` seconds.",
    preview=(Nullable(receipt_json), itemgetter(0)),
    confirmation=(str, itemgetter(1)),
    valid_s=(int, itemgetter(2)),
)
forgotten_json: JsonForm[Receipt | None] = JsonForm(
    "Forgotten", "What was erased, in counts. Null if nothing was.", receipt=(Nullable(receipt_json), itself)
)
jobs_json: JsonForm[Sequence[object]] = JsonForm(
    "Jobs", "The periodic jobs of the store.", jobs=([job_outcome_json], itself)
)
queued_json: JsonForm[int] = JsonForm("Queued", "How many were queued again.", queued=(int, itself))
webhooks_json: JsonForm[Sequence[WebhookStatus]] = JsonForm(
    "Webhooks", "The webhooks of a tenant.", webhooks=([webhook_status_json], itself)
)
posts_json: JsonForm[Sequence[Any]] = JsonForm(
    "WebhookPosts", "The last posts of a webhook, newest first.", posts=([webhook_post_json], itself)
)
ready_json: JsonForm[Sequence[str]] = JsonForm(
    "Readiness",
    "The store can be read and written. `failed_jobs` are the periodic jobs that failed when they last ran.",
    status=(str, lambda _: "ok"),
    failed_jobs=([str], itself),
)
