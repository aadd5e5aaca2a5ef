"""What the methods of `Afterword` return about the whole store: frozen values. All instants are aware."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from afterword.facts.scopes import Scope
from afterword.store.access.audit import AuditEntry
from afterword.store.costs import Spending
from afterword.store.forgetting.pauses import Pause
from afterword.store.jobs import JobState
from afterword.store.sessions import SavedSession


@dataclass(frozen=True, slots=True)
class StoreCosts:
    """What models cost in the whole store: in all, by scope, and by day (UTC)."""

    total: Spending
    by_scope: Mapping[Scope, Spending]
    by_day: Mapping[date, Spending]


@dataclass(frozen=True, slots=True)
class OutdatedSession:
    """A session that was last read by another extractor, or another version of it, than the present one."""

    scope: Scope
    session_id: str
    extractor: str


@dataclass(frozen=True, slots=True)
class CostRange:
    """What processing would cost in one scope or in all: from `least` to `most`. `sessions` are counted by state."""

    sessions: Mapping[str, int]
    windows: int
    least: Spending
    most: Spending


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What processing would cost. `model` is None if no request to a model would be sent."""

    extractor: str
    model: str | None
    total: CostRange
    by_scope: Mapping[Scope, CostRange]


@dataclass(frozen=True, slots=True)
class ScopePage:
    """Scopes in the order of tenant, kind and id. `total` counts all that fit; `next` is the cursor after this page."""

    scopes: tuple[Scope, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    """What the store holds of one scope, in counts.

    `current` counts the facts that are served, `to_forget` the requests to forget that wait (as `review` lists them),
    `judged_pairs` how many of the `pairs` that must be judged are. `erase_due_at` says when the first
    request to forget is carried out by itself.
    """

    scope: Scope
    current: int
    facts: int
    sessions: int
    contested: int
    pending: int
    held_runs: int
    to_forget: int
    pairs: int
    judged_pairs: int
    spent: Spending
    pause: Pause | None
    erase_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """How many recorded sessions wait to be processed, and how long the oldest has waited."""

    waiting: int
    oldest_since: datetime | None
    oldest_age_s: float | None


@dataclass(frozen=True, slots=True)
class VectorStatus:
    """How many texts have and lack a vector of one embedding model."""

    model: str
    dimension: int
    is_configured: bool
    vectors: int
    lacking: int


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What the store holds, what waits, and what failed and why.

    `failed` are the sessions with a failure, `failures` how often each kind of failure occurs.
    """

    store: str
    scopes: tuple[ScopeStatus, ...]
    sessions: Mapping[str, int]
    secrets_masked: int
    turns_off_the_record: int
    queue: QueueStatus
    failed: tuple[SavedSession, ...]
    failures: Mapping[str, int]
    jobs: tuple[JobState, ...]
    vectors: tuple[VectorStatus, ...]
    costs: StoreCosts


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that was written, and how many lines (of a readable export: facts) it holds."""

    path: Path
    count: int


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A copy of the SQLite store, and its size."""

    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TombstoneReplay:
    """How many tombstones were taken in, and how many rows were erased for them, by table.

    `is_clean` says whether the words are gone from the database's files too.
    """

    tombstones: int
    erased: Mapping[str, int]
    is_clean: bool


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Audit entries, newest first. `next` is the cursor of the page after this one."""

    entries: tuple[AuditEntry, ...]
    next: str | None = None
