"""The frozen dataclasses that methods of `Afterword` return about the whole store. All datetimes have a time zone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from afterword.client.paging import Page
from afterword.facts.scopes import Scope
from afterword.store.access.audit import AuditEntry
from afterword.store.costs import Spending
from afterword.store.forgetting.pauses import Pause
from afterword.store.jobs import JobState
from afterword.store.sessions import SavedSession


@dataclass(frozen=True, slots=True)
class StoreCosts:
    """What requests to models have cost in the whole store: in total, by scope, and by day (UTC)."""

    total: Spending
    by_scope: Mapping[Scope, Spending]
    by_day: Mapping[date, Spending]


@dataclass(frozen=True, slots=True)
class OutdatedSession:
    """A session that was last read by `extractor`, which is not the present extractor in its present version."""

    scope: Scope
    session_id: str
    extractor: str


@dataclass(frozen=True, slots=True)
class CostRange:
    """An estimate of what processing would cost, from `least` to `most`. `sessions` are counted by state."""

    sessions: Mapping[str, int]
    windows: int
    least: Spending
    most: Spending


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """An estimate of what processing would cost. `model` is None if no request to a model would be sent."""

    extractor: str
    model: str | None
    total: CostRange
    by_scope: Mapping[Scope, CostRange]


@dataclass(frozen=True, slots=True)
class ScopePage(Page[Scope]):
    """A page of scopes, sorted by tenant, kind and id.

    `total` counts the matching scopes on all pages. `next` is the cursor of the next page, None on the last page.
    """

    scopes: tuple[Scope, ...]
    total: int
    next: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeStatus:
    """How much the store holds of one scope.

    `current` counts the facts that agents may be told, and `facts` all facts. `to_forget` counts the requests to forget
    that wait, as `review` lists them. `pairs` counts the pairs of statements that must be compared, and `judged_pairs`
    those of them that have been compared. `erase_due_at` is when the first request to forget is carried out
    automatically, None if there is no such request.
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
    """How many texts have a vector of one embedding model, and how many lack one."""

    model: str
    dimension: int
    is_configured: bool
    vectors: int
    lacking: int


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What the store holds, what waits, and what failed and why.

    `sessions` counts the sessions in each state. `failures` counts the sessions in `failed` by kind of failure.
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
    """A file that was written. `count` is the number of its lines, or of its facts in a readable export."""

    path: Path
    count: int


@dataclass(frozen=True, slots=True)
class BackupFile:
    """A copy of the SQLite store, and its size."""

    path: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TombstoneReplay:
    """How many tombstones were replayed, and how many rows of each table were erased because of them.

    `is_clean` tells whether the erased words are gone from the files of the database, too, as that of a `Receipt` does.
    """

    tombstones: int
    erased: Mapping[str, int]
    is_clean: bool


@dataclass(frozen=True, slots=True)
class AuditPage(Page[AuditEntry]):
    """A page of audit entries, newest first. `next` is the cursor of the next page, None on the last page."""

    entries: tuple[AuditEntry, ...]
    next: str | None = None
