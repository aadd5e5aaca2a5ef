"""The defaults of a `FactMemory`. `live_settings` reads them from the profile and the environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel

from afterword.agents.store_reference import FromEnvironment
from afterword.privacy.policy import Privacy
from afterword.recall.vectors import Embedder
from afterword.store.database.limits import StoreLimits

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


_source: list[Callable[[], MemorySettings]] = [MemorySettings]


def read_from(source: Callable[[], MemorySettings]) -> None:
    """Let memories take their settings from `source` from now on."""
    _source[0] = source


def memory_settings() -> MemorySettings:
    """Return the settings of memories. Raises what their source raises."""
    return _source[0]()
