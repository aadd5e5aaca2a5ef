"""Finding what has begun to wait for a person, and announcing it to webhooks."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import partial

from sqlalchemy import func
from sqlmodel import Session, col, select

from afterword.facts.findings import FindingStatus
from afterword.facts.scopes import Scope
from afterword.store import reviews, runs
from afterword.store.access.tables import WebhookPostRow, WebhookRow
from afterword.store.access.webhooks import WebhookEvent, announce
from afterword.store.database.engine import Store
from afterword.store.findings.held_findings import read_findings
from afterword.store.forgetting.erase_requests import read_erase_requests
from afterword.store.ledger import RunStatus
from afterword.store.scope_rows import scope_key, scope_of_row
from afterword.store.tables import RunRow, ScopeRow

MOST_SCOPES = 200
"""So many scopes are looked at in one round. The others follow in the next one."""
OVERLAP = 20
"""So many runs are looked at again: PostgreSQL may commit a run after others with greater numbers."""


async def announce_waiting_reviews(store: Store, at: datetime) -> None:
    """Queue a post for each scope in which something new waits, among those with runs since the last round."""
    last_seen, scopes = await store.read(_changed_scopes)
    if last_seen is None:
        return
    for scope in scopes:
        waiting = await store.read(partial(_waiting_ids, scope=scope, at=at))
        if any(waiting.values()):
            await store.write(partial(_announce, scope=scope, waiting=waiting, at=at))
    await store.write(partial(_mark_seen, run_id=last_seen))


def _changed_scopes(transaction: Session) -> tuple[int | None, list[Scope]]:
    """Return the last run that is looked at, None if there is nothing to do, and the scopes of the runs up to it."""
    hooks = [row for row in transaction.exec(select(WebhookRow)) if WebhookEvent.REVIEW_WAITS in row.events]
    if not hooks:
        return None, []
    seen = min(hook.seen_run_id for hook in hooks)
    if seen == transaction.exec(select(func.max(RunRow.id))).one():
        return None, []
    query = select(RunRow.id, RunRow.scope_id).where(col(RunRow.id) > seen - OVERLAP).order_by(col(RunRow.id))
    last, scope_ids = 0, dict[int, None]()
    for run_id, scope_id in transaction.exec(query):
        if len(scope_ids) == MOST_SCOPES and scope_id not in scope_ids:
            break
        last, scope_ids[scope_id] = run_id or 0, None
    rows = transaction.exec(select(ScopeRow).where(col(ScopeRow.id).in_(scope_ids)))
    tenants = {hook.tenant for hook in hooks}
    return last, [scope_of_row(row) for row in rows if row.tenant in tenants]


def _waiting_ids(transaction: Session, scope: Scope, at: datetime) -> dict[str, list[str]]:
    """Return the ids of what waits for a person in a scope, by kind."""
    findings = read_findings(transaction, scope)
    return {
        "contests": [contest.id for contest in reviews.read_contests(transaction, scope)],
        "held_runs": [f"run:{run.id}" for run in runs.read_runs(transaction, scope, statuses=[RunStatus.HELD])],
        "erase_requests": [f"erase:{asked.id}" for asked in read_erase_requests(transaction, scope)],
        "findings": [finding.id for finding in findings if finding.status_at(at) is FindingStatus.WAITING],
    }


def _announce(transaction: Session, scope: Scope, waiting: dict[str, list[str]], at: datetime) -> None:
    """Queue a post if something waits that no earlier post of the scope counted."""
    ids = sorted(id_ for of_kind in waiting.values() for id_ in of_kind)
    query = select(WebhookPostRow.content).where(
        WebhookPostRow.scope_id == scope_key(transaction, scope), WebhookPostRow.event == WebhookEvent.REVIEW_WAITS
    )
    known = {id_ for content in transaction.exec(query) for id_ in content["items"]}
    if set(ids) <= known:
        return
    digest = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:20]
    content = {"scope": str(scope), "waiting": {kind: len(of_kind) for kind, of_kind in waiting.items()}, "items": ids}
    announce(transaction, WebhookEvent.REVIEW_WAITS, scope, f"review/{scope}/{digest}", content, at)


def _mark_seen(transaction: Session, run_id: int) -> None:
    for row in transaction.exec(select(WebhookRow)):
        row.seen_run_id = max(row.seen_run_id, run_id)
