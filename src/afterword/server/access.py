"""Who asks: the bearer key of a request, its rights, and how many requests it may make."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import SlidingWindowCounterRateLimiter

from afterword import Afterword, ApiKey, Scope, ScopeMemory
from afterword.errors import ScopeInvalid
from afterword.server.paths import path_part
from afterword.server.problems import Refused

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
NO_SUCH_MEMORY = "this key opens no such memory"

_bearer = HTTPBearer(auto_error=False, description="A key that `afterword keys create` has made.")


@dataclass(frozen=True, slots=True)
class Service:
    """What every route uses: the store, and the limit of requests."""

    app: Afterword
    limiter: SlidingWindowCounterRateLimiter
    limit: RateLimitItemPerMinute

    @classmethod
    def of(cls, app: Afterword, requests_per_minute: int) -> Service:
        """Return the service of a store."""
        limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        return cls(app, limiter, RateLimitItemPerMinute(requests_per_minute))


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


async def verified_key(request: Request, credentials: HTTPAuthorizationCredentials | None) -> ApiKey:
    """Return the key of a request, which counts against its limit. Raises `Refused` and `KeyInvalid`."""
    if credentials is None:
        raise Refused(401, "give a key: Authorization: Bearer KEY", headers={"WWW-Authenticate": "Bearer"})
    service: Service = request.app.state.service
    key = await service.app.keys.verify(credentials.credentials)
    request.state.key_id = key.id
    if not await service.limiter.hit(service.limit, key.id):
        window = await service.limiter.get_window_stats(service.limit, key.id)
        wait_s = max(1, round(window.reset_time - time.time()))
        raise Refused(429, "too many requests with this key", headers={"Retry-After": str(wait_s)})
    return key


async def caller(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
) -> KeyHolder:
    """Return who asks. Raises `Refused` and `KeyInvalid`."""
    key = await verified_key(request, credentials)
    if credentials is None or (key.is_read_only and request.method not in SAFE_METHODS):
        raise Refused(403, "this key may only read")
    service: Service = request.app.state.service
    return KeyHolder(service.app, key, credentials.credentials)


AnyCaller = Annotated[KeyHolder, Depends(caller)]


async def memory_in_path(
    request: Request,
    who: AnyCaller,
    tenant: Annotated[str, Path(examples=["default"])],
    scope_kind: Annotated[str, Path(examples=["user"])],
    scope_id: Annotated[str, Path(examples=["mira"])],
) -> None:
    """Set the memory that the path names. Raises `Refused` if the key does not open it."""
    try:
        scope = Scope.parse("/".join(path_part(part) for part in (tenant, scope_kind, scope_id)))
    except ScopeInvalid:
        raise Refused(404, NO_SUCH_MEMORY) from None
    if scope.tenant != path_part(tenant):
        raise Refused(404, NO_SUCH_MEMORY)
    request.state.memory = who.memory(scope)


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
