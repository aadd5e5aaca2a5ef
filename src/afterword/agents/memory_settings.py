"""Settings of agents' memories and recorders: the scope, the store, the defaults, and the background processor."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Protocol

from pydantic import BaseModel
from sqlalchemy import make_url

from afterword.errors import ArgumentInvalid, ScopeInvalid, StoreError
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.recall.vectors import Embedder
from afterword.store.database.engine import Store, open_store
from afterword.store.database.urls import shown_url
from afterword.store.limits import StoreLimits

STORE_VARIABLE = "AFTERWORD_STORE__URL"

BUDGET_TOKENS = 2_000
TIMEOUT_S = 2.0
_AFTER_CHANGE = timedelta(milliseconds=1)
_LONGEST_STEP_BACK = timedelta(minutes=1)
_registered_sources: list[SettingSources] = []


class FromEnvironment(BaseModel):
    """Refers to a store whose URL is in the environment variable `env`, for example because it contains a password.

    Apart from AFTERWORD_STORE__URL, the name must not begin with AFTERWORD_: such a variable must be a setting.
    """

    env: str


@dataclass(frozen=True, slots=True)
class SharedStore:
    """Refers to a store that somebody else opens (by `open`, at the first use) and closes. `url` is its address."""

    url: str
    open: Callable[[], Awaitable[Store]]

    @property
    def shown_url(self) -> str:
        """The address without a password."""
        return shown_url(self.url)


StoreReference = Store | SharedStore | FromEnvironment | str
"""An opened store, a store that somebody else opens, or the URL of a store."""


def named_scope(user: str | None, scope: Scope | str | None) -> Scope:
    """Return the scope of the user, or `scope`. Raises `ScopeInvalid` unless exactly one of them is given."""
    if (user is None) == (scope is None):
        raise ScopeInvalid("name the memory: give exactly one of user='lena' and scope='tenant/kind/id'")
    if user is not None:
        return Scope.user(user)
    return scope if isinstance(scope, Scope) else Scope.parse(str(scope))


def additional_scopes(scope: Scope, also: Collection[Scope | str]) -> tuple[Scope, ...]:
    """Return the scopes in `also`, without duplicates and without `scope`, in order.

    Raises `ScopeInvalid` for a scope of another tenant, because tenants must never see each other's facts.
    """
    others = dict.fromkeys(name if isinstance(name, Scope) else Scope.parse(name) for name in also)
    for other in others:
        if other.tenant != scope.tenant:
            raise ScopeInvalid(f"{other} belongs to another tenant than {scope}; a memory reads only one tenant")
    return tuple(other for other in others if other != scope)


def resolve_url(store: str | FromEnvironment | None) -> str | None:
    """Return the URL of the store, None for the default store. Raises `StoreError` if its variable is not set."""
    if not isinstance(store, FromEnvironment):
        return store
    url = os.environ.get(store.env)
    if not url:
        raise StoreError(f"the environment variable {store.env} is not set; set it to the URL of the store")
    return url


def dump_store_reference(store: StoreReference | None) -> str | FromEnvironment | None:
    """Return the reference to the store for `dump_component`. A URL with a password or options is not dumped.

    The environment must name that store where the dump is loaded.
    """
    if store is None or isinstance(store, FromEnvironment):
        return store
    shown = shown_url(store) if isinstance(store, str) else store.shown_url
    url = make_url(shown)
    is_dumped = url.get_backend_name() == "sqlite" or (url.password is None and not url.query)
    return shown if is_dumped else FromEnvironment(env=STORE_VARIABLE)


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """How memories and recorders open a store."""

    url: str | None = None
    privacy: Privacy | None = None
    limits: StoreLimits | None = None

    async def open(self, store: str | FromEnvironment | None) -> Store:
        """Open a store, by default the configured one. Raises `StoreError`."""
        return await open_store(resolve_url(store) or self.url, privacy=self.privacy, limits=self.limits)


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """The defaults of a `FactMemory`: its store, its embedder, the most tokens of its text, and its timeout."""

    store: StoreSettings = StoreSettings()
    embedder: Embedder | None = None
    budget_tokens: int = BUDGET_TOKENS
    timeout_s: float = TIMEOUT_S


@asynccontextmanager
async def opened_store(store: StoreReference | None, settings: StoreSettings) -> AsyncIterator[Store]:
    """Yield the opened store. If this function opens it, it is closed after the block. Raises `StoreError`."""
    if isinstance(store, Store | SharedStore):
        yield await store.open() if isinstance(store, SharedStore) else store
        return
    async with await settings.open(store) as opened:
        yield opened


class FactMemoryConfig(BaseModel):
    """The serialised form of a `FactMemory`.

    It never holds a password. With `store` None the environment names the store.
    """

    scope: str
    also: list[str] | None = None
    budget_tokens: int | None = None
    timeout_s: float | None = None
    store: str | FromEnvironment | None = None


def check_above_zero(argument: str, value: object) -> None:
    """Raise `ArgumentInvalid` unless an argument is None or a number above 0."""
    if value is not None and not (isinstance(value, int | float) and value > 0):
        raise ArgumentInvalid(f"{argument}={value!r} is not possible; give a number above 0")


def utc_now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


class ChangeClock:
    """A clock whose times lie after every change so far, even if `clock` stands still or steps back by seconds."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._after_change: datetime | None = None

    def __call__(self) -> datetime:
        """Return the present time, or a moment after the last change if the clock lags behind it by seconds."""
        at, after = self._clock(), self._after_change
        return after.astimezone(at.tzinfo) if after and after - _LONGEST_STEP_BACK < at < after else at

    def change_time(self) -> datetime:
        """Return the present time for a change. Every later call returns a later time."""
        at = self()
        self._after_change = at + _AFTER_CHANGE
        return at


class SessionProcessor(Protocol):
    """Processes recorded sessions in the background, such as `Afterword.processor()`."""

    def start(self, scope: Scope, session_id: str, *, after_s: float = 0.0) -> None:
        """Let a recorded session be processed in `after_s` seconds, and return at once."""
        ...

    async def finish(self) -> None:
        """Process at once all sessions that were passed to `start`, and wait until that is done."""
        ...


ProcessorOfStore = Callable[[StoreReference | None], SessionProcessor]


@dataclass(frozen=True, slots=True)
class SettingSources:
    """The functions that read the settings of stores and memories, and that return the processor of a store."""

    store_settings: Callable[[], StoreSettings]
    memory_settings: Callable[[], MemorySettings]
    processor_of: ProcessorOfStore


def register_setting_sources(sources: SettingSources) -> None:
    """Let memories and recorders read their settings from these sources."""
    _registered_sources[:] = [sources]


def memory_settings() -> MemorySettings:
    """Return the settings of memories. Raises `SettingsInvalid`, and what the configured embedder raises."""
    return _sources().memory_settings()


def settings_for_opening(store: StoreReference | None) -> StoreSettings:
    """Return the settings with which a store is to be opened. None are read if somebody else opens it.

    Raises `SettingsInvalid`.
    """
    return StoreSettings() if isinstance(store, Store | SharedStore) else _sources().store_settings()


def chosen_processor(process: bool | SessionProcessor, store: StoreReference | None) -> SessionProcessor | None:
    """Return `process` if it is a processor. True means the configured processor of the store, and False none."""
    if not isinstance(process, bool):
        return process
    return _sources().processor_of(store) if process else None


def _sources() -> SettingSources:
    if not _registered_sources:
        # `import afterword` loads no settings, so that it is fast. They are loaded when they are first needed.
        import_module("afterword.live_settings")
    return _registered_sources[0]
