"""What memories and recorders are given: the scope and the store that a caller names, the settings, and a processor."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Protocol

from pydantic import BaseModel
from sqlalchemy import make_url

from afterword.errors import ScopeInvalid, StoreError
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.recall.vectors import Embedder
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import shown_url
from afterword.store.limits import StoreLimits

STORE_VARIABLE = "AFTERWORD_STORE__URL"
_MASK = "***"

BUDGET_TOKENS = 2_000
TIMEOUT_S = 2.0
_processor_sources: list[ProcessorOfStore] = []


class FromEnvironment(BaseModel):
    """A store whose URL is in an environment variable, for example because it holds a password."""

    env: str


@dataclass(frozen=True, slots=True)
class SharedStore:
    """A store that its owner opens when it is first needed, and closes. `url` is its address."""

    url: str
    open: Callable[[], Awaitable[Store]]

    @property
    def shown_url(self) -> str:
        """The address without a password."""
        return shown_url(self.url)


StoreReference = Store | SharedStore | FromEnvironment | str
"""A store that is open, one that its owner opens, or the URL of one."""


def named_scope(user: str | None, scope: Scope | str | None) -> Scope:
    """Return the scope. Raises `ScopeInvalid` unless exactly one of `user` and `scope` is given."""
    if (user is None) == (scope is None):
        raise ScopeInvalid("whose memory? give exactly one of user='lena' and scope='tenant/kind/id'")
    if user is not None:
        return Scope.user(user)
    return scope if isinstance(scope, Scope) else Scope.parse(str(scope))


def additional_scopes(scope: Scope, also: Collection[Scope | str]) -> tuple[Scope, ...]:
    """Return the scopes that are read in addition to `scope`, each once, in order.

    Raises `ScopeInvalid` for a scope of another tenant: tenants never see each other's facts.
    """
    others = dict.fromkeys(name if isinstance(name, Scope) else Scope.parse(name) for name in also)
    for other in others:
        if other.tenant != scope.tenant:
            raise ScopeInvalid(f"{other} belongs to another tenant than {scope}; a memory reads one tenant")
    return tuple(other for other in others if other != scope)


def resolve_url(store: str | FromEnvironment | None) -> str | None:
    """Return the URL of the store, None for the default. Raises `StoreError` if its variable is not set."""
    if not isinstance(store, FromEnvironment):
        return store
    url = os.environ.get(store.env)
    if not url:
        raise StoreError(f"the environment variable {store.env} is not set; it holds the URL of the store")
    return url


def dump_store_reference(store: StoreReference | None) -> str | FromEnvironment | None:
    """Return the store as a dump names it: without a password, and without anything that may hold one."""
    if store is None or isinstance(store, FromEnvironment):
        return store
    shown = shown_url(store) if isinstance(store, str) else store.shown_url
    url = make_url(shown)
    if url.get_backend_name() == "sqlite" or (url.password is None and not url.query):
        return shown
    environment_url = os.environ.get(STORE_VARIABLE)
    if environment_url and shown_url(environment_url) == shown:
        return FromEnvironment(env=STORE_VARIABLE)
    # SQLAlchemy shows a password, even a masked one, only with a user name.
    masked = url.set(username=url.username or "user", password=_MASK, query={})
    return masked.render_as_string(hide_password=True)


def load_store(store: str | FromEnvironment | None) -> str | FromEnvironment | None:
    """Return the store that a dump names. Raises `StoreError` if its password was left out and is not set anywhere."""
    if not isinstance(store, str) or f":{_MASK}@" not in store:
        return store
    if os.environ.get(STORE_VARIABLE):
        return FromEnvironment(env=STORE_VARIABLE)
    raise StoreError(f"the dumped memory holds no password ({store}): set {STORE_VARIABLE} to the URL of the store")


@asynccontextmanager
async def opened_store(store: StoreReference | None) -> AsyncIterator[Store]:
    """Yield the store. A store that is opened here is closed at the end. Raises `StoreError`."""
    if isinstance(store, Store | SharedStore):
        yield await store.open() if isinstance(store, SharedStore) else store
        return
    async with await open_store(resolve_url(store)) as opened:
        yield opened


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The defaults: the store that is opened, the embedder, and the limits of a block."""

    url: str | None = None
    privacy: Privacy | None = None
    limits: StoreLimits | None = None
    embedder: Embedder | None = None
    budget_tokens: int = BUDGET_TOKENS
    timeout_s: float = TIMEOUT_S


class FactMemoryConfig(BaseModel):
    """The serialised form of a `FactMemory`.

    It never holds a password. With `store` None the environment names the store.
    """

    scope: str
    also: list[str] | None = None
    budget_tokens: int | None = None
    timeout_s: float | None = None
    store: str | FromEnvironment | None = None


def utc_now() -> datetime:
    """Return the present instant, aware."""
    return datetime.now(UTC)


class SessionProcessor(Protocol):
    """Processes recorded sessions in the background, such as `Afterword.processor()`."""

    def start(self, scope: Scope, session_id: str, *, after_s: float = 0.0) -> None:
        """Process a recorded session in `after_s` seconds. It returns at once."""
        ...

    async def finish(self) -> None:
        """Process what was started, without a pause, and wait for the end."""
        ...


ProcessorOfStore = Callable[[StoreReference | None], SessionProcessor]

_settings_sources: list[Callable[[], MemorySettings]] = [MemorySettings]


def register_sources(settings: Callable[[], MemorySettings], processor: ProcessorOfStore) -> None:
    """Let memories take their settings from `settings`, and sessions be processed by what `processor` returns."""
    _settings_sources[:], _processor_sources[:] = [settings], [processor]


def memory_settings() -> MemorySettings:
    """Return the settings of memories. Raises what their source raises."""
    return _settings_sources[0]()


def chosen_processor(process: bool | SessionProcessor, store: StoreReference | None) -> SessionProcessor | None:
    """Return the processor that a caller passed, with True the configured one of the store, with False none."""
    if not isinstance(process, bool):
        return process
    if not process:
        return None
    if not _processor_sources:
        # `import afterword` loads nothing, so that it is light; its settings are read when they are first needed.
        import_module("afterword.live_settings").provide()
    return _processor_sources[0](store)
