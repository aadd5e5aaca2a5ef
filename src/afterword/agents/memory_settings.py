"""The settings of live memories and the processing of recorded sessions, which modules above this package provide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Protocol

from pydantic import BaseModel

from afterword.agents.store_reference import FromEnvironment, StoreReference
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.recall.vectors import Embedder
from afterword.store.limits import StoreLimits

BUDGET_TOKENS = 2_000
TIMEOUT_S = 2.0


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
_processor_sources: list[ProcessorOfStore] = []


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
