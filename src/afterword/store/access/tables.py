"""The tables of API keys, keys that a merge moved, audit entries, requests with an idempotency key, and webhooks.

None of them holds a user's words.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel


class ApiKeyRow(SQLModel, table=True):
    """An API key of the HTTP service. Of the key itself only the SHA-256 is stored.

    `scope` is the full name of the scope that it opens, None for a key that only administers `tenant`."""

    __tablename__: ClassVar[str] = "api_keys"

    id: str = Field(primary_key=True)
    digest: str = Field(unique=True)
    name: str = ""
    tenant: str
    scope: str | None = None
    is_read_only: bool = False
    is_admin: bool = False
    created_at: datetime
    last_used_at: datetime | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class AuditEntryRow(SQLModel, table=True):
    """One request that changes or exports something: which key asked for what, when, and in which scope.

    `result` is the HTTP status of the answer, None while the request runs or if the server stopped before its end."""

    __tablename__: ClassVar[str] = "audit_entries"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    key_id: str = Field(index=True)
    action: str
    tenant: str
    scope: str | None = Field(default=None, index=True)
    result: int | None = None


class AuditedRunRow(SQLModel, table=True):
    """A run that a request made, and the first statement in it."""

    __tablename__: ClassVar[str] = "audited_runs"

    run_id: int = Field(primary_key=True)
    entry_id: int = Field(foreign_key="audit_entries.id", index=True)
    assertion_id: str | None = None


class RepeatableRequestRow(SQLModel, table=True):
    """A request with an idempotency key. `name` is a hash of that key, `fingerprint` an HMAC of the request with it.

    `holder` is the process that works on the request, and until `held_until` no other process takes the request over.
    `answer` holds ids and counts, and the secret of a new webhook."""

    __tablename__: ClassVar[str] = "repeatable_requests"

    key_id: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    fingerprint: str
    entry_id: int = Field(foreign_key="audit_entries.id", index=True)
    holder: str
    held_until: datetime
    answer: dict[str, Any] | None = Field(default=None, sa_type=JSON)


class MovedKeyRow(SQLModel, table=True):
    """A key that a run of purpose merge or rename moved to another scope."""

    __tablename__: ClassVar[str] = "moved_keys"

    run_id: int = Field(primary_key=True)
    key_id: str = Field(primary_key=True)


class WebhookRow(SQLModel, table=True):
    """A URL to which events in a tenant are posted. `secret` signs the posts, so it is stored as it is.

    The scopes of all runs up to `seen_run_id` were already checked for reviews that wait for a person."""

    __tablename__: ClassVar[str] = "webhooks"

    id: str = Field(primary_key=True)
    url: str
    tenant: str = Field(index=True)
    secret: str
    events: list[str] = Field(sa_type=JSON)
    created_at: datetime
    seen_run_id: int = 0


class WebhookPostRow(SQLModel, table=True):
    """A post to a webhook. `key` names the event, which is posted once. `content` holds ids and counts, no words."""

    __tablename__: ClassVar[str] = "webhook_posts"

    id: str = Field(primary_key=True)
    webhook_id: str = Field(foreign_key="webhooks.id", index=True)
    key: str
    event: str
    scope_id: int | None = Field(default=None, index=True)
    content: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime
    state: str
    tries: int = 0
    next_try_at: datetime | None = None
    sent_at: datetime | None = None
    failure: str | None = None
