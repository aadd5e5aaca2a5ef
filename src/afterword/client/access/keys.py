"""API keys of the HTTP service, for `Afterword.keys`, and requests made with them, for `Afterword.requests`.

Each request is recorded in the audit log with its key. The answer to a request that may be repeated is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from sqlmodel import Session

from afterword.client.arguments import Instant, instant, scope_of
from afterword.client.resources import Resources
from afterword.client.type_checks import TypeCheckedMethods
from afterword.errors import AfterwordError, ArgumentInvalid, KeyInvalid, StoreError
from afterword.facts.scopes import DEFAULT_TENANT, Scope, ScopeKind
from afterword.json_form import JsonForm, Nullable
from afterword.store.access import audit, keys
from afterword.store.access.keys import USE_IS_NOTED_AFTER, ApiKey

LONGEST_KEY = 200
"""The most characters of a key. A longer text is refused before it is hashed."""

LEASE_S = 5.0
"""How long the lease of the process that works on a request lasts. The process renews the lease while it works.

If the process has died, another process may repeat the request after this time.
"""
RENEWALS = 3
"""How many times the lease is renewed within `LEASE_S`."""
LONGEST_IDEMPOTENCY_KEY = 255
HOLDER = secrets.token_hex(8)
"""The random id of this process, which leases are recorded under."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new API key. `secret` is the text that clients send. It is shown once and cannot be read again."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"NewKey({self.key!r})"


key_json: JsonForm[ApiKey] = JsonForm(
    "ApiKey",
    "An API key, without its secret.",
    id=str,
    name=str,
    tenant=str,
    scope=Nullable(Scope),
    read_only=(bool, "is_read_only"),
    admin=(bool, "is_admin"),
    created_at=datetime,
    last_used_at=Nullable(datetime),
    expires_at=Nullable(datetime),
    revoked_at=Nullable(datetime),
)


class Keys(TypeCheckedMethods):
    """Creates, lists, checks and revokes API keys. Use it through `Afterword.keys`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def create(
        self,
        *,
        user: str | None = None,
        scope: Scope | str | None = None,
        tenant: str | None = None,
        name: str = "",
        read_only: bool = False,
        admin: bool = False,
        expires_at: Instant | None = None,
    ) -> NewKey:
        """Create an API key for the memory of a `user` of the default tenant, or of a `scope`, and return it.

        An `admin` key gives access to all scopes of a tenant: that of the scope, or without a scope `tenant`. A
        `read_only` key cannot change anything. The scope need not exist yet, and is not created. Raises
        `ArgumentInvalid` and `ScopeInvalid`.
        """
        owner = _scope_of_key(user, scope)
        if owner is None and not admin:
            raise ArgumentInvalid("name the memory that the key gives access to: user or scope")
        key_tenant = _tenant_of_key(owner, tenant)
        now, expiry = self._resources.now(), None if expires_at is None else instant(expires_at)
        if expiry is not None and expiry <= now:
            raise ArgumentInvalid(f"the key would expire at {expiry.isoformat()}, which is in the past")
        key_id, secret = keys.new_id_and_secret()
        key = ApiKey(
            key_id, " ".join(name.split()), key_tenant, owner, read_only, admin, created_at=now, expires_at=expiry
        )
        await self._resources.write(lambda transaction: keys.add_key(transaction, key, secret))
        return NewKey(key, secret)

    async def list(self) -> tuple[ApiKey, ...]:
        """Return all keys, including revoked and expired ones, oldest first."""
        return tuple(await self._resources.read(keys.read_keys))

    async def get(self, key_id: str) -> ApiKey:
        """Return the key with this id. Raises `NotFound`, and `KeyInvalid` if it is revoked or expired."""
        key = await self._resources.read(lambda transaction: keys.read_key(transaction, key_id))
        key.check(self._resources.now())
        return key

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for good, and return it. Raises `NotFound`."""
        at = self._resources.now()
        return await self._resources.write(lambda transaction: keys.revoke_key(transaction, key_id, at))

    async def verify(self, secret: str) -> ApiKey:
        """Return the key with this secret. Raises `KeyInvalid` if the key is unknown, revoked or expired.

        Its last use is recorded, at most every ten minutes.
        """
        key, at = None, self._resources.now()
        if 0 < len(secret) <= LONGEST_KEY:
            key = await self._resources.read(lambda transaction: keys.find_key(transaction, secret))
        if key is None:
            raise KeyInvalid("this store has no such key; `afterword keys create` makes one")
        key.check(at)
        if key.last_used_at is None or at - key.last_used_at >= USE_IS_NOTED_AFTER:
            key_id = key.id
            await self._resources.write(lambda transaction: keys.note_key_use(transaction, key_id, at), lasting=False)
        return key


def _scope_of_key(user: str | None, scope: Scope | str | None) -> Scope | None:
    if user is not None and scope is not None:
        raise ArgumentInvalid("give a user or a scope, not both")
    if user is not None:
        return Scope.user(user)
    return scope_of(scope) if scope is not None else None


def _tenant_of_key(owner: Scope | None, tenant: str | None) -> str:
    """Return the tenant that is named, or that of the scope. Raises an error if both are given and differ."""
    chosen = tenant
    if chosen is None:
        chosen = owner.tenant if owner is not None else DEFAULT_TENANT
    Scope(chosen, ScopeKind.USER, "anybody")  # checks the name of the tenant
    if owner is not None and chosen != owner.tenant:
        raise ArgumentInvalid(f"{owner} does not belong to the tenant {chosen!r}")
    return chosen


@dataclass(slots=True)
class OpenRequest:
    """A request that is being processed.

    If the same request was answered before, `is_repeated` is true and `answer` is the stored answer. `made` are the
    runs of an earlier attempt whose process ended before it could answer, each with its first statement. The caller
    sets `result` to the HTTP status, and `answer` to ids and counts only.
    """

    made: tuple[tuple[int, str | None], ...] = ()
    answer: Mapping[str, Any] | None = None
    result: int = 200
    is_repeated: bool = field(default=False)


audit_entry_json: JsonForm[audit.AuditEntry] = JsonForm(
    "AuditEntry",
    "Which API key requested which action, and the runs that resulted.",
    id=int,
    at=datetime,
    key=(str, "key_id"),
    action=str,
    tenant=str,
    scope=Nullable(Scope),
    result=Nullable(int),
    runs=([int], "run_ids"),
)


class KeyedRequests(TypeCheckedMethods):
    """Records requests made with API keys. Use it through `Afterword.requests`."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    @asynccontextmanager
    async def begin(
        self,
        key: ApiKey,
        action: str,
        *,
        scope: Scope | None = None,
        idempotency_key: str | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[OpenRequest]:
        """Record a request made with an API key, and attribute the runs of the `async with` block to it.

        With an `idempotency_key`, the answer is stored. If the request is repeated with the same `content`, the stored
        answer is yielded. A request that failed may be tried again. Raises `RequestReused` if a request with another
        content has this idempotency key, `RequestPending` if that request is still processed, and `ArgumentInvalid`.
        """
        at, repeatable = self._resources.now(), None
        if idempotency_key is not None:
            repeatable = _idempotent_request(action, scope, idempotency_key, content or {})
        begun = await self._resources.write(
            lambda transaction: audit.begin_request(
                transaction, key.id, action, tenant=key.tenant, scope=scope, repeatable=repeatable, at=at
            )
        )
        opened = OpenRequest(begun.made_runs, begun.answer, is_repeated=begun.answer is not None)
        if opened.is_repeated:
            yield opened
            return
        try:
            async with self._renewing_lease(begun):
                with audit.attribute_runs_to(begun):
                    yield opened
        except AfterwordError:
            await self._record_end(begun, opened.result if opened.result >= 400 else 400, None)
            raise
        await self._record_end(begun, opened.result, opened.answer)

    @asynccontextmanager
    async def _renewing_lease(self, request: audit.AuditedRequest) -> AsyncIterator[None]:
        """Renew the lease of a request that may be repeated, until the block ends."""
        if request.repeatable is None:
            yield
            return
        renewal = asyncio.create_task(self._renew_lease(request))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _renew_lease(self, request: audit.AuditedRequest) -> None:
        def extend_hold(transaction: Session) -> None:
            audit.extend_hold(transaction, request, self._resources.now() + timedelta(seconds=LEASE_S))

        while True:
            await asyncio.sleep(LEASE_S / RENEWALS)
            with suppress(StoreError):  # the next attempt may succeed before the lease ends
                await self._resources.write(extend_hold, lasting=False)

    async def _record_end(self, request: audit.AuditedRequest, result: int, answer: Mapping[str, Any] | None) -> None:
        end = partial(audit.end_request, request=request, result=result, answer=answer, at=self._resources.now())
        await self._resources.write(end, lasting=False)

    async def discard_old_answers(self) -> None:
        """Delete the stored answers that are older than a day."""
        await self._resources.write(partial(audit.discard_old_answers, at=self._resources.now()))


def _idempotent_request(
    action: str, scope: Scope | None, idempotency_key: str, content: Mapping[str, Any]
) -> audit.RepeatableRequest:
    if not 0 < len(idempotency_key) <= LONGEST_IDEMPOTENCY_KEY:
        raise ArgumentInvalid(f"an idempotency key is a text of 1 to {LONGEST_IDEMPOTENCY_KEY} characters")
    request = json.dumps([action, str(scope), content], sort_keys=True, default=str)
    key = idempotency_key.encode("utf-8", "surrogatepass")
    # The idempotency key is not stored, so nobody can test guesses of the content against the stored fingerprint.
    fingerprint = hmac.new(key, request.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return audit.RepeatableRequest(hashlib.sha256(key).hexdigest(), fingerprint, HOLDER, timedelta(seconds=LEASE_S))
