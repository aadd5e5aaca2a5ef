"""What HTTP routes share: they check the API key and its rate, find the memory in the path, and record changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from afterword import Afterword, ApiKey, Run, RunEffect, Scope, ScopeMemory
from afterword.errors import AfterwordError, NotFound, ScopeInvalid
from afterword.server.answer_forms import change_json
from afterword.server.problems import Refused, http_status_of
from afterword.server.request_paths import decode_path_part

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
NO_SUCH_MEMORY = "there is no such memory, or this key does not open it"
bearer: HTTPBearer = HTTPBearer(auto_error=False, description="A key that `afterword keys create` has made.")
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="A text of your choice. A repeated request with the same key is not carried out again, and gets "
        "the same answer.",
        examples=["4b6f2c1e"],
    ),
]
Answer = dict[str, Any]


def parse_number(text: str, *, most_digits: int) -> int | None:
    """Parse a whole number. Return None if the text contains anything but digits, or more than `most_digits`."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


def accessible_scope(name: str, may_open: Callable[[Scope], bool], *, tenant: str | None = None) -> Scope:
    """Return the scope with this name.

    Raises the same `Refused` for an invalid name and for a scope that `may_open` rejects, so that they look alike.
    """
    with suppress(ScopeInvalid):
        scope = Scope.parse(name)
        if tenant in (None, scope.tenant) and may_open(scope):
            return scope
    raise Refused(404, NO_SUCH_MEMORY)


class SharedByRoutes:
    """What all routes share: the store, and the rate limiter for API keys."""

    def __init__(self, app: Afterword, requests_per_minute: int) -> None:
        self.app = app
        self._limit = RateLimitItemPerMinute(requests_per_minute)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def count_or_refuse_request(self, request: Request, key: ApiKey) -> None:
        """Count a request against the rate limit of its key. Raises `Refused` if the limit is exceeded."""
        request.state.key_id = key.id
        if not await self._limiter.hit(self._limit, key.id):
            window = await self._limiter.get_window_stats(self._limit, key.id)
            wait_s = max(1, round(window.reset_time - time.time()))
            raise Refused(429, "too many requests with this key", headers={"Retry-After": str(wait_s)})


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The caller of a request, identified by an API key.

    `secret` is the key as the caller sent it. It signs confirmations that only this caller can use.
    """

    app: Afterword
    key: ApiKey
    secret: str = field(repr=False)

    def memory(self, scope: Scope) -> ScopeMemory:
        """Return the memory of a scope. Raises `Refused` if the key gives no access to it, whether it exists or not."""
        if not self.key.opens(scope):
            raise Refused(404, NO_SUCH_MEMORY)
        return self.app.scope(scope)


async def export_content(memory: ScopeMemory, name: str, **options: bool) -> bytes:
    """Return the content of an export by `ScopeMemory.export`, which chooses the format by the ending of `name`.

    The temporary file has no name, so that the system removes it even if the process is killed.
    """
    with await asyncio.to_thread(TemporaryFile, "w+", encoding="utf-8") as file:
        await memory.export(name, file=file, **options)
        file.seek(0)
        return file.read().encode()


def check_may_undo(key: ApiKey, run: Run) -> None:
    """Raise `Refused` unless a key may undo and redo a run.

    A run that merged or renamed a memory needs an admin key, because it also changed another memory and its keys.
    """
    if run.moves_scope and not key.is_admin:
        raise Refused(403, "this run merged or renamed a memory; undoing and redoing it needs an admin key")


async def verify_key_and_count_request(request: Request, credentials: HTTPAuthorizationCredentials | None) -> ApiKey:
    """Return the valid API key of a request, and count the request. Raises `Refused` and `KeyInvalid`."""
    key = await verify_key(request, credentials)
    await request.app.state.shared.count_or_refuse_request(request, key)
    return key


async def verify_key(request: Request, credentials: HTTPAuthorizationCredentials | None) -> ApiKey:
    """Return the valid API key of a request without counting the request. Raises `Refused` and `KeyInvalid`."""
    if credentials is None:
        raise Refused(
            401, "the API key is missing; send it as Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"}
        )
    shared: SharedByRoutes = request.app.state.shared
    return await shared.app.keys.verify(credentials.credentials)


async def authenticate_caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> KeyHolder:
    """Return the authenticated caller. Raises `KeyInvalid`, and `Refused` for a change with a read-only key."""
    key = await verify_key_and_count_request(request, credentials)
    if credentials is None or (key.is_read_only and request.method not in SAFE_METHODS):
        raise Refused(403, "this key may only read")
    return KeyHolder(request.app.state.shared.app, key, credentials.credentials)


AnyCaller = Annotated[KeyHolder, Depends(authenticate_caller)]


async def select_memory_in_path(
    request: Request,
    who: AnyCaller,
    tenant: Annotated[str, Path(examples=["default"])],
    scope_kind: Annotated[str, Path(examples=["user"])],
    scope_id: Annotated[str, Path(examples=["mira"])],
) -> None:
    """Store the memory that the path names in `request.state`. Raises `Refused` if the key gives no access to it."""
    name = "/".join(map(decode_path_part, (tenant, scope_kind, scope_id)))
    request.state.memory = who.app.scope(accessible_scope(name, who.key.opens, tenant=decode_path_part(tenant)))


async def select_own_memory(request: Request, who: AnyCaller) -> None:
    """Store the key's own memory in `request.state`. Raises `Refused` if the key has none."""
    if who.key.scope is None:
        raise Refused(404, "this key has no memory of its own; name one under /v1/scopes")
    request.state.memory = who.memory(who.key.scope)


async def require_admin_key(who: AnyCaller) -> KeyHolder:
    """Return the caller. Raises `Refused` unless they have an admin key."""
    if not who.key.is_admin:
        raise Refused(403, "this needs an admin key")
    return who


async def _selected_memory(request: Request) -> ScopeMemory:
    memory: ScopeMemory = request.state.memory
    return memory


Memory = Annotated[ScopeMemory, Depends(_selected_memory)]
Admin = Annotated[KeyHolder, Depends(require_admin_key)]


async def carry_out_change(
    who: KeyHolder,
    action: str,
    work: Callable[[], Awaitable[Answer]],
    *,
    scope: Scope | None = None,
    idempotency_key: str | None = None,
    content: Mapping[str, Any] | None = None,
) -> JSONResponse:
    """Carry out `work`, record it in the audit log, and return its answer.

    The status is 202 for an answer with `progress`, else 200. If the idempotency key was used for the same request
    before, the first answer is returned instead.
    """
    opened = who.app.requests.begin(who.key, action, scope=scope, idempotency_key=idempotency_key, content=content)
    async with opened as request:
        if request.is_repeated:
            return _response(dict(request.answer or {}), {"Idempotency-Replayed": "true"})
        try:
            if request.made and scope is not None:
                answer = await _answer_of_stored_run(who.app, scope, *request.made[-1])
            else:
                answer = await work()
        except AfterwordError as error:
            request.result = http_status_of(error)
            raise
        response = _response(answer)
        request.result = response.status_code
        # The reason of a failure may quote the session, whose words must not be stored a second time.
        request.answer = {name: part for name, part in answer.items() if name != "reason"}
    return response


def _response(answer: Answer, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(answer, 202 if "progress" in answer else 200, headers)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A request that changes a memory: the caller, the memory, and the idempotency key."""

    who: AnyCaller
    memory: Memory
    idempotency_key: IdempotencyKey = None

    async def carry_out(
        self, action: str, work: Callable[[], Awaitable[Answer]], content: Mapping[str, Any]
    ) -> JSONResponse:
        """Carry out a change of this memory. A repeated idempotency key is accepted only with the same `content`."""
        scope, key = self.memory.scope, self.idempotency_key
        return await carry_out_change(self.who, action, work, scope=scope, idempotency_key=key, content=content)

    async def make_run(
        self, action: str, work: Callable[[], Awaitable[RunEffect]], content: Mapping[str, Any]
    ) -> JSONResponse:
        """Carry out `work`, which makes one run, and return this run and its facts as the answer."""

        async def answer() -> Answer:
            return change_json(await work())

        return await self.carry_out(action, answer, content)


Change = Annotated[MemoryChange, Depends()]


async def _answer_of_stored_run(app: Afterword, scope: Scope, run_id: int, statement_id: str | None) -> Answer:
    """Return the answer to a repeated request whose run was stored before the server crashed."""
    run, facts = await app.run(run_id), list[str]()
    if statement_id is not None:
        with suppress(NotFound):
            facts = [(await app.scope(scope).fact(statement_id)).id]
    return {"run": run.id, "status": run.status, "facts": facts, "id": facts[0] if facts else f"run:{run.id}"}
