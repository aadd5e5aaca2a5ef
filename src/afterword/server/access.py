"""Who asks: the bearer key of a request, its rights and its rate; ids in paths; and how a route changes something."""

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
from afterword.server.problems import Refused, status_of

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
NO_SUCH_MEMORY = "this key opens no such memory"
bearer: HTTPBearer = HTTPBearer(auto_error=False, description="A key that `afterword keys create` has made.")
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="A text of your choice. The same request with the same key is done once, and answered again.",
        examples=["4b6f2c1e"],
    ),
]
Answer = dict[str, Any]


def path_part(text: str) -> str:
    """Return an id as it was meant, from a part of `routable_path`."""
    return text.replace("%2F", "/").replace("%2f", "/").replace("%25", "%")


def number_in(text: str, *, most_digits: int) -> int | None:
    """Return the number that a text is, None if it is none, or has more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


def opened_scope(name: str, opens: Callable[[Scope], bool], *, tenant: str | None = None) -> Scope:
    """Return the scope of this name. Raises `Refused` alike if there is none, or if it is not opened."""
    with suppress(ScopeInvalid):
        scope = Scope.parse(name)
        if tenant in (None, scope.tenant) and opens(scope):
            return scope
    raise Refused(404, NO_SUCH_MEMORY)


class Service:
    """What every route uses: the store, and the limit of requests."""

    def __init__(self, app: Afterword, requests_per_minute: int) -> None:
        self.app = app
        self._limit = RateLimitItemPerMinute(requests_per_minute)
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    async def count_request(self, request: Request, key: ApiKey) -> None:
        """Count a request with a key. Raises `Refused` if there were too many."""
        request.state.key_id = key.id
        if not await self._limiter.hit(self._limit, key.id):
            window = await self._limiter.get_window_stats(self._limit, key.id)
            wait_s = max(1, round(window.reset_time - time.time()))
            raise Refused(429, "too many requests with this key", headers={"Retry-After": str(wait_s)})


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Who asks, with which key. `secret` is the key itself, which signs what only its holder may use again."""

    app: Afterword
    key: ApiKey
    secret: str = field(repr=False)

    def memory(self, scope: Scope) -> ScopeMemory:
        """Return the memory of a scope. Raises `Refused` if the key does not open it, whether it exists or not."""
        if not self.key.opens(scope):
            raise Refused(404, NO_SUCH_MEMORY)
        return self.app.scope(scope)


async def export_content(memory: ScopeMemory, name: str, **options: bool) -> bytes:
    """Return what `ScopeMemory.export` writes to a file of this name.

    The file on the way has no name, so that nothing is left of it if the process is killed.
    """
    with await asyncio.to_thread(TemporaryFile, "w+", encoding="utf-8") as file:
        await memory.export(name, file=file, **options)
        file.seek(0)
        return file.read().encode()


def check_may_switch(key: ApiKey, run: Run) -> None:
    """Raise `Refused` unless a key may undo and redo a run. What moves a memory changes another one, and its keys."""
    if run.moves_scope and not key.is_admin:
        raise Refused(403, "this run moved a memory; undoing and redoing it needs an admin key")


async def verified_key(request: Request, credentials: HTTPAuthorizationCredentials | None) -> ApiKey:
    """Return the key of a request, which counts against its limit. Raises `Refused` and `KeyInvalid`."""
    key = await presented_key(request, credentials)
    await request.app.state.service.count_request(request, key)
    return key


async def presented_key(request: Request, credentials: HTTPAuthorizationCredentials | None) -> ApiKey:
    """Return the key of a request, which is not counted. Raises `Refused` and `KeyInvalid`."""
    if credentials is None:
        raise Refused(401, "give a key: Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"})
    service: Service = request.app.state.service
    return await service.app.keys.verify(credentials.credentials)


async def caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> KeyHolder:
    """Return who asks. Raises `Refused` and `KeyInvalid`."""
    key = await verified_key(request, credentials)
    if credentials is None or (key.is_read_only and request.method not in SAFE_METHODS):
        raise Refused(403, "this key may only read")
    return KeyHolder(request.app.state.service.app, key, credentials.credentials)


AnyCaller = Annotated[KeyHolder, Depends(caller)]


async def memory_in_path(
    request: Request,
    who: AnyCaller,
    tenant: Annotated[str, Path(examples=["default"])],
    scope_kind: Annotated[str, Path(examples=["user"])],
    scope_id: Annotated[str, Path(examples=["mira"])],
) -> None:
    """Set the memory that the path names. Raises `Refused` if the key does not open it."""
    name = "/".join(map(path_part, (tenant, scope_kind, scope_id)))
    request.state.memory = who.app.scope(opened_scope(name, who.key.opens, tenant=path_part(tenant)))


async def own_memory(request: Request, who: AnyCaller) -> None:
    """Set the memory of the key itself. Raises `Refused` if it has none."""
    if who.key.scope is None:
        raise Refused(404, "this key has no memory of its own; name one under /v1/scopes")
    request.state.memory = who.memory(who.key.scope)


async def admin(who: AnyCaller) -> KeyHolder:
    """Return who asks, if the key administers its tenant. Raises `Refused`."""
    if not who.key.is_admin:
        raise Refused(403, "this needs an admin key")
    return who


async def _memory(request: Request) -> ScopeMemory:
    memory: ScopeMemory = request.state.memory
    return memory


Memory = Annotated[ScopeMemory, Depends(_memory)]
Admin = Annotated[KeyHolder, Depends(admin)]


def effect_answer(effect: RunEffect) -> Answer:
    """Return a run, and the ids of the facts that it changed or is about, those that are gone included."""
    gone = [changed.before.id for changed in effect.changes if changed.before and changed.after is None]
    return {"run": effect.run.id, "status": effect.run.status, "facts": [*(fact.id for fact in effect.facts), *gone]}


async def change(
    who: KeyHolder,
    action: str,
    work: Callable[[], Awaitable[Answer]],
    *,
    scope: Scope | None = None,
    idempotency_key: str | None = None,
    content: Mapping[str, Any] | None = None,
    status: int = 200,
) -> JSONResponse:
    """Return the answer of `work`, or the one that was given before to the same request."""
    opened = who.app.requests.begin(who.key, action, scope=scope, idempotency_key=idempotency_key, content=content)
    async with opened as request:
        if request.is_repeated:
            return JSONResponse(dict(request.answer or {}), status, headers={"Idempotency-Replayed": "true"})
        request.result = status
        try:
            if request.made and scope is not None:
                answer = await _answer_of_made(who.app, scope, *request.made[-1])
            else:
                answer = await work()
        except AfterwordError as error:
            request.result = status_of(error)
            raise
        # The reason of a failure may repeat words of the session, which are stored with the session alone.
        request.answer = {name: part for name, part in answer.items() if name != "reason"}
    return JSONResponse(answer, status)


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A request that changes a memory: who asks, the memory, and the idempotency key."""

    who: AnyCaller
    memory: Memory
    idempotency_key: IdempotencyKey = None

    async def carried_out(
        self, action: str, work: Callable[[], Awaitable[Answer]], content: Mapping[str, Any], *, status: int = 200
    ) -> JSONResponse:
        """Return the answer of `work`, as `change` does. `content` tells this request from others."""
        scope, key = self.memory.scope, self.idempotency_key
        return await change(self.who, action, work, scope=scope, idempotency_key=key, content=content, status=status)

    async def run(
        self, action: str, work: Callable[[], Awaitable[RunEffect]], content: Mapping[str, Any]
    ) -> JSONResponse:
        """Return the answer to a change that makes one run."""

        async def answer() -> Answer:
            return effect_answer(await work())

        return await self.carried_out(action, answer, content)


Changing = Annotated[MemoryChange, Depends()]


async def _answer_of_made(app: Afterword, scope: Scope, run_id: int, statement_id: str | None) -> Answer:
    """Return the answer to a request whose run was made before the server stopped."""
    run, facts = await app.run(run_id), list[str]()
    if statement_id is not None:
        with suppress(NotFound):
            facts = [(await app.scope(scope).fact(statement_id)).id]
    return {"run": run.id, "status": run.status, "facts": facts, "id": facts[0] if facts else f"run:{run.id}"}
