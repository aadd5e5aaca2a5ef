"""Webhooks and the posts that are sent to them. A post holds ids and counts, but no words of a user."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, func, update
from sqlmodel import Session, col, select

from afterword.errors import NotFound
from afterword.facts.scopes import Scope
from afterword.store.access.tables import WebhookPostRow, WebhookRow
from afterword.store.database.statements import insert_missing
from afterword.store.scope_rows import scope_key
from afterword.store.tables import RunRow

PREFIX = "afterword_webhook_"
SENT_POSTS_ARE_KEPT = timedelta(days=7)


class WebhookEvent(StrEnum):
    """An event that is posted to webhooks.

    A session failed for good, the budget for models is used up, something waits for a person's decision, or a periodic
    job or other background work failed.
    """

    SESSION_SET_ASIDE = "session set aside"
    BUDGET_REACHED = "budget reached"
    REVIEW_WAITS = "review waits"
    JOB_FAILED = "job failed"


TEST_EVENT = "test"
QUEUED_SESSIONS = "queued sessions"
"""The name of a job in posts about sessions that were not processed by a periodic job, but by a worker or program."""


class PostState(StrEnum):
    """The state of a post. A post that failed too often is set aside, and is not tried again by itself."""

    WAITING = "waiting"
    SENT = "sent"
    SET_ASIDE = "set aside"


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook: a URL to which `events` in a tenant are posted. The secret that signs the posts is not part of it."""

    id: str
    url: str
    tenant: str
    events: tuple[WebhookEvent, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WebhookPost:
    """A post to a webhook, and how often it was tried. `failure` is why the last try failed."""

    id: str
    webhook_id: str
    event: str
    content: Mapping[str, Any]
    created_at: datetime
    state: PostState
    tries: int = 0
    next_try_at: datetime | None = None
    sent_at: datetime | None = None
    failure: str | None = None


def add_webhook(transaction: Session, webhook: Webhook, secret: str) -> None:
    """Store a webhook. Earlier events are not posted to it."""
    latest_run = transaction.exec(select(func.max(RunRow.id))).one()
    events = [str(event) for event in webhook.events]
    transaction.add(
        WebhookRow(
            id=webhook.id,
            url=webhook.url,
            tenant=webhook.tenant,
            secret=secret,
            events=events,
            created_at=webhook.created_at,
            seen_run_id=latest_run or 0,
        )
    )


def read_webhooks(transaction: Session, tenant: str | None = None) -> list[Webhook]:
    """Return the webhooks of the store or of a tenant, oldest first."""
    query = select(WebhookRow).order_by(col(WebhookRow.created_at), col(WebhookRow.id))
    if tenant is not None:
        query = query.where(WebhookRow.tenant == tenant)
    return [_webhook_of(row) for row in transaction.exec(query)]


def read_webhook_and_secret(transaction: Session, webhook_id: str, tenant: str | None = None) -> tuple[Webhook, str]:
    """Return a webhook and its secret. Raises `NotFound`, also if the webhook belongs to another tenant."""
    row = transaction.get(WebhookRow, webhook_id)
    if row is None or tenant not in (None, row.tenant):
        raise NotFound(f"no webhook {webhook_id!r}; see `afterword webhooks list`")
    return _webhook_of(row), row.secret


def remove_webhook(transaction: Session, webhook_id: str, tenant: str | None = None) -> Webhook:
    """Remove a webhook with its posts, and return it. Raises `NotFound`."""
    webhook, _ = read_webhook_and_secret(transaction, webhook_id, tenant)
    connection = transaction.connection()
    connection.execute(delete(WebhookPostRow).where(col(WebhookPostRow.webhook_id) == webhook_id))
    connection.execute(delete(WebhookRow).where(col(WebhookRow.id) == webhook_id))
    return webhook


def announce(
    transaction: Session, event: WebhookEvent, scope: Scope, key: str, content: Mapping[str, Any], at: datetime
) -> None:
    """Queue a post about an event for every webhook of the scope's tenant that is registered for such events.

    Events with the same `key` are posted only once. `content` must hold ids and counts only.
    """
    rows = transaction.exec(select(WebhookRow).where(WebhookRow.tenant == scope.tenant)).all()
    _queue_posts(transaction, rows, event, key, scope_key(transaction, scope) or None, content, at)


def announce_failed_sessions(transaction: Session, scope: Scope, failed_sessions: int, at: datetime) -> None:
    """Queue a post, at most one a day, about sessions of the scope that failed in background processing."""
    content = {"job": QUEUED_SESSIONS, "failures": failed_sessions}
    announce(transaction, WebhookEvent.JOB_FAILED, scope, f"job/{QUEUED_SESSIONS}/{at.date()}", content, at)


def announce_everywhere(
    transaction: Session, event: WebhookEvent, key: str, content: Mapping[str, Any], at: datetime
) -> None:
    """Queue a post about an event of the whole store for every webhook, of any tenant, registered for such events."""
    _queue_posts(transaction, transaction.exec(select(WebhookRow)).all(), event, key, None, content, at)


def _queue_posts(
    transaction: Session,
    rows: Sequence[WebhookRow],
    event: WebhookEvent,
    key: str,
    scope_id: int | None,
    content: Mapping[str, Any],
    at: datetime,
) -> None:
    posts = [_post_values(row.id, event, key, scope_id, content, at) for row in rows if event in row.events]
    insert_missing(transaction, WebhookPostRow, posts)


def event_key_prefix(session_pk: int) -> str:
    """Return the prefix of the keys of all events about a session."""
    return f"session/{session_pk}/"


def add_test_post(transaction: Session, webhook_id: str, at: datetime) -> WebhookPost:
    """Queue a post that only tests the webhook, and return it."""
    values = _post_values(webhook_id, TEST_EVENT, f"{TEST_EVENT}/{secrets.token_hex(8)}", None, {}, at)
    insert_missing(transaction, WebhookPostRow, [values])
    return _post_of(transaction.get_one(WebhookPostRow, values["id"]))


def _post_values(
    webhook_id: str, event: str, key: str, scope_id: int | None, content: Mapping[str, Any], at: datetime
) -> dict[str, Any]:
    return {
        "id": hashlib.sha256(f"{webhook_id}/{key}".encode()).hexdigest()[:20],
        "webhook_id": webhook_id,
        "key": key,
        "event": str(event),
        "scope_id": scope_id,
        "content": dict(content),
        "created_at": at,
        "state": str(PostState.WAITING),
        "tries": 0,
        "next_try_at": at,
    }


def read_due_posts(transaction: Session, webhook_id: str, at: datetime, *, most: int) -> list[WebhookPost]:
    """Return the posts to a webhook that are due, oldest first."""
    is_due = WebhookPostRow.webhook_id == webhook_id, WebhookPostRow.state == PostState.WAITING
    query = select(WebhookPostRow).where(*is_due, col(WebhookPostRow.next_try_at) <= at)
    rows = transaction.exec(query.order_by(col(WebhookPostRow.created_at), col(WebhookPostRow.id)).limit(most))
    return [_post_of(row) for row in rows]


def read_posts(transaction: Session, webhook_id: str, *, most: int) -> list[WebhookPost]:
    """Return the posts to a webhook, newest first."""
    query = select(WebhookPostRow).where(WebhookPostRow.webhook_id == webhook_id)
    rows = transaction.exec(query.order_by(col(WebhookPostRow.created_at).desc(), col(WebhookPostRow.id)).limit(most))
    return [_post_of(row) for row in rows]


def count_posts(transaction: Session) -> dict[str, dict[str, int]]:
    """Return how many posts each webhook has in each state."""
    query = select(WebhookPostRow.webhook_id, WebhookPostRow.state, func.count()).group_by(
        WebhookPostRow.webhook_id, WebhookPostRow.state
    )
    counts: dict[str, dict[str, int]] = {}
    for webhook_id, state, number in transaction.exec(query):
        counts.setdefault(webhook_id, {})[state] = number
    return counts


def note_post_try(
    transaction: Session, post_id: str, at: datetime, *, failure: str | None, next_try_at: datetime | None
) -> None:
    """Record that a post was tried. Without a `failure` it was sent; after a failure it waits for `next_try_at`.

    A post that failed and has no `next_try_at` is set aside.
    """
    row = transaction.get(WebhookPostRow, post_id)
    if row is None:
        return  # the webhook was removed, or the scope forgotten, meanwhile
    row.tries, row.failure = row.tries + 1, failure
    row.next_try_at = next_try_at if failure is not None else None
    row.sent_at = None if failure is not None else at
    state = PostState.SENT if failure is None else PostState.WAITING if next_try_at else PostState.SET_ASIDE
    row.state = str(state)


def requeue_set_aside_posts(transaction: Session, webhook_id: str, at: datetime) -> int:
    """Queue again the posts of a webhook that were set aside, and return how many there are."""
    is_set_aside = col(WebhookPostRow.webhook_id) == webhook_id, col(WebhookPostRow.state) == PostState.SET_ASIDE
    waiting = {"state": str(PostState.WAITING), "tries": 0, "next_try_at": at}
    return transaction.connection().execute(update(WebhookPostRow).where(*is_set_aside).values(waiting)).rowcount


def discard_sent_posts(transaction: Session, at: datetime) -> None:
    """Discard the posts that were sent more than a week ago."""
    is_old = col(WebhookPostRow.sent_at) < at - SENT_POSTS_ARE_KEPT
    transaction.connection().execute(delete(WebhookPostRow).where(is_old))


def _webhook_of(row: WebhookRow) -> Webhook:
    return Webhook(row.id, row.url, row.tenant, tuple(map(WebhookEvent, row.events)), row.created_at)


def _post_of(row: WebhookPostRow) -> WebhookPost:
    values = row.model_dump(exclude={"key", "scope_id", "state"})
    return WebhookPost(state=PostState(row.state), **values)
