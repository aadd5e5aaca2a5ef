"""The JSON forms of the status of a store and of estimates, for `--json` of the command line."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from afterword.client.forms.memory_forms import job_outcome_json, saved_session_json, spending_json
from afterword.facts.scopes import Scope
from afterword.json_form import JsonForm, Nullable

if TYPE_CHECKING:
    from afterword.client.store_results import (
        CostEstimate,
        CostRange,
        QueueStatus,
        ScopeStatus,
        StoreCosts,
        StoreStatus,
        VectorStatus,
    )
    from afterword.store.jobs import JobState
    from afterword.store.sessions import SavedSession

SESSION_STATES = ("new", "grown", "unchanged", "unreadable")
"""The states by which an estimate counts sessions."""

_cost_range_json: JsonForm[CostRange] = JsonForm(
    "CostRange",
    "The least and the most that processing would cost.",
    sessions=({str: int}, lambda costs: {state: costs.sessions.get(state, 0) for state in SESSION_STATES}),
    windows=int,
    least=spending_json,
    most=spending_json,
)
estimate_json: JsonForm[CostEstimate] = JsonForm(
    "CostEstimate",
    "What processing would cost, in total and by scope.",
    extractor=str,
    model=Nullable(str),
    **_cost_range_json.parts_at("total"),
    scopes=({str: _cost_range_json}, "by_scope"),
)
_scope_json: JsonForm[ScopeStatus] = JsonForm(
    "ScopeStatus",
    "What the memory of a scope holds, and what waits in it.",
    scope=Scope,
    current=int,
    all=(int, "facts"),
    sessions=int,
    contested=int,
    pending=int,
    held=(int, "held_runs"),
    to_forget=int,
    erase_due_at=Nullable(datetime),
    pairs=int,
    judged=(int, "judged_pairs"),
    spent=spending_json,
    paused_at=(Nullable(datetime), lambda status: status.pause and status.pause.paused_at),
)
_queue_json: JsonForm[QueueStatus] = JsonForm(
    "QueueStatus",
    "How many sessions wait, and since when the oldest does.",
    waiting=int,
    oldest_since=Nullable(datetime),
    oldest_age_s=Nullable(float),
)
_failed_session_json: JsonForm[SavedSession] = JsonForm(
    "FailedSession",
    "A session that failed, with the reason.",
    **{key: saved_session_json.parts[key] for key in ("scope", "session_id")},
    reason=(Nullable(str), "failure"),
    **{key: saved_session_json.parts[key] for key in ("progress", "tries", "next_try_at")},
)
_job_json: JsonForm[JobState] = JsonForm(
    "JobState", "When a periodic job last ended, and why it failed.", **job_outcome_json.parts, failure=Nullable(str)
)
_vectors_json: JsonForm[VectorStatus] = JsonForm(
    "VectorStatus",
    "How many texts have a vector of a model, and how many lack one.",
    model=str,
    dimension=int,
    configured=(bool, "is_configured"),
    vectors=int,
    lacking=int,
)
_costs_json: JsonForm[StoreCosts] = JsonForm(
    "StoreCosts",
    "What models cost, in total and by day.",
    total=spending_json,
    days=({str: spending_json}, "by_day"),
)
status_json: JsonForm[StoreStatus] = JsonForm(
    "StoreStatus",
    "What the store holds, what waits, and what failed.",
    store=str,
    scopes=[_scope_json],
    secrets_masked=int,
    turns_off_the_record=int,
    sessions={str: int},
    queue=_queue_json,
    reasons=({str: int}, "failures"),
    failed=[_failed_session_json],
    jobs=[_job_json],
    vectors=[_vectors_json],
    spent=(_costs_json, "costs"),
)
