"""Requests of keys, for `Afterword.requests`: who asked for what, and the answers to repeated requests."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlmodel import Session

from afterword.client.resources import Resources
from afterword.errors import AfterwordError, ArgumentInvalid, StoreError
from afterword.facts.scopes import Scope
from afterword.store.access import audit
from afterword.store.access.audit import AuditedRequest, AuditEntry, Repeatable
from afterword.store.access.keys import ApiKey
from afterword.store.transfer.fact_json import iso_instant

HOLD_S = 5.0
"""How long a request is held by the process that works on it. If that process has died, another may then repeat it.

The process extends the hold while it works.
"""
RENEWALS = 3
"""How often a hold is extended within its time."""
LONGEST_IDEMPOTENCY_KEY = 255
HOLDER = secrets.token_hex(8)
"""Stands for this process."""


@dataclass(slots=True)
class OpenRequest:
    """A request that is worked on.

    `answer` is the stored answer if the request was answered before. `made` are the runs of an earlier try whose
    process ended before it could answer, each with its first statement. The caller sets `result` and `answer`, which
    holds ids and counts only.
    """

    made: tuple[tuple[int, str | None], ...] = ()
    answer: Mapping[str, Any] | None = None
    result: int = 200
    is_repeated: bool = field(default=False)


def audit_entry_json(entry: AuditEntry) -> dict[str, Any]:
    """Return which key asked for what, and the runs that came of it."""
    return {
        "id": entry.id,
        "at": iso_instant(entry.at),
        "key": entry.key_id,
        "action": entry.action,
        "tenant": entry.tenant,
        "scope": None if entry.scope is None else str(entry.scope),
        "result": entry.result,
        "runs": list(entry.run_ids),
    }


class KeyedRequests:
    """The requests of keys. Use it through `Afterword.requests`."""

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
        """Record a request of a key, and attribute the runs that are made inside to it.

        With an `idempotency_key` the answer is stored, and yielded when the request is repeated with the same
        `content`. A request that failed may be tried again. Raises `RequestReused` if the key belongs to a request with
        another content, `RequestPending` if that request is still worked on, and `ArgumentInvalid`.
        """
        store, at = await self._resources.store(), self._resources.now()
        repeatable = None
        if idempotency_key is not None:
            repeatable = _repeatable(action, scope, idempotency_key, content or {})
        begun = await store.write(
            lambda transaction: audit.begin_request(
                transaction, key.id, action, tenant=key.tenant, scope=scope, repeatable=repeatable, at=at
            )
        )
        opened = OpenRequest(begun.made, begun.answer, is_repeated=begun.answer is not None)
        if opened.is_repeated:
            yield opened
            return
        try:
            async with self._held(begun):
                with audit.audited(begun):
                    yield opened
        except AfterwordError:
            await self._end(begun, opened.result if opened.result >= 400 else 400, None)
            raise
        await self._end(begun, opened.result, opened.answer)

    @asynccontextmanager
    async def _held(self, request: AuditedRequest) -> AsyncIterator[None]:
        """Extend the hold of a request that may be repeated until the end of the block."""
        if request.repeatable is None:
            yield
            return
        renewal = asyncio.create_task(self._keep_holding(request))
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _keep_holding(self, request: AuditedRequest) -> None:
        store = await self._resources.store()

        def hold_longer(transaction: Session) -> None:
            audit.hold_longer(transaction, request, self._resources.now() + timedelta(seconds=HOLD_S))

        while True:
            await asyncio.sleep(HOLD_S / RENEWALS)
            with suppress(StoreError):  # the next attempt may succeed before the hold ends
                await store.write(hold_longer, lasting=False)

    async def _end(self, request: AuditedRequest, result: int, answer: Mapping[str, Any] | None) -> None:
        store, at = await self._resources.store(), self._resources.now()
        await store.write(
            lambda transaction: audit.end_request(transaction, request, result=result, answer=answer, at=at),
            lasting=False,
        )

    async def discard_old_answers(self) -> None:
        """Discard the stored answers that are older than a day."""
        at = self._resources.now()
        await (await self._resources.store()).write(lambda transaction: audit.discard_old_answers(transaction, at))


def _repeatable(action: str, scope: Scope | None, idempotency_key: str, content: Mapping[str, Any]) -> Repeatable:
    if not 0 < len(idempotency_key) <= LONGEST_IDEMPOTENCY_KEY:
        raise ArgumentInvalid(f"an idempotency key is a text of 1 to {LONGEST_IDEMPOTENCY_KEY} characters")
    request = json.dumps([action, str(scope), content], sort_keys=True, default=str)
    key = idempotency_key.encode("utf-8", "surrogatepass")
    # Without the idempotency key, which is not stored, nobody can find out whether a request held certain words.
    fingerprint = hmac.new(key, request.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
    return Repeatable(hashlib.sha256(key).hexdigest(), fingerprint, HOLDER, timedelta(seconds=HOLD_S))
