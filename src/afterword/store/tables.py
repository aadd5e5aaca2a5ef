"""The rows of the store. Shapes for the database alone: what reasons about them are the frozen values.

Assertions and windows are written once and never changed. What is live follows from runs: a session is read as its
latest applied run reads it, and a run that is undone is left out.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, UniqueConstraint
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMING


class ScopeRow(SQLModel, table=True):
    """Whose memory. `revision` grows with every change of what is known, so that caches see it; `policy` says what a
    person wants to see before it counts. Since `paused_at` no session is kept; `sessions_not_kept` counts them."""

    __tablename__ = "scopes"
    __table_args__ = (UniqueConstraint("tenant", "kind", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    tenant: str
    kind: str
    name: str
    revision: int = 0
    policy: str = "auto"
    stamp: str = ""
    paused_at: datetime | None = None
    sessions_not_kept: int = 0


class ScopeChangeRow(SQLModel, table=True):
    """One revision of a scope: the facts that it wrote or removed, and the source of the run that made it."""

    __tablename__ = "scope_changes"

    scope_id: int = Field(primary_key=True, foreign_key="scopes.id")
    revision: int = Field(primary_key=True)
    stamp: str
    source: str
    fact_ids: list[str] = Field(sa_type=JSON)
    is_unlinked: bool = False


class SessionRow(SQLModel, table=True):
    """One conversation of a scope, and how far its processing has come (`progress`)."""

    __tablename__ = "sessions"
    __table_args__ = (UniqueConstraint("scope_id", "session_id"), Index(None, "progress"))

    id: int | None = Field(default=None, primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    session_id: str
    layout: str | None = None
    time_basis: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    humans: list[str] = Field(default_factory=list, sa_type=JSON)
    assumed: list[str] = Field(default_factory=list, sa_type=JSON)
    skipped: dict[str, int] = Field(default_factory=dict, sa_type=JSON)
    progress: str
    failure: str | None = None
    attempts: int = 0
    next_try_at: datetime | None = None
    updated_at: datetime


class StateRow(SQLModel, table=True):
    """The saved state of a session, as AutoGen loads it back (JSON, compressed)."""

    __tablename__ = "states"

    session_pk: int = Field(primary_key=True, foreign_key="sessions.id")
    component: str
    content: bytes = Field(sa_type=LargeBinary)
    saved_at: datetime


class TurnRow(SQLModel, table=True):
    """One turn of a session as it was read."""

    __tablename__ = "turns"

    session_pk: int = Field(primary_key=True, foreign_key="sessions.id")
    number: int = Field(primary_key=True)
    speaker: str
    role: str
    text: str
    said_at: datetime | None = None
    message_id: str | None = None
    time_is_guess: bool = False


class RunRow(SQLModel, table=True):
    """One processing. `source` is what it reads (a session's key, or its own where the application speaks): of the
    applied runs of one source only the latest counts. `applied_revision` orders them. `transcript` is what a dry run
    read (JSON, compressed), kept as the session's turns only when the run is applied. An undone run that counts again
    has a `redone_at`. `caused_by` is the run whose undoing made this one."""

    __tablename__ = "runs"
    __table_args__ = (Index(None, "scope_id", "source"),)

    id: int | None = Field(default=None, primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    session_pk: int | None = Field(default=None, foreign_key="sessions.id")
    source: str
    purpose: str
    status: str
    extractor: str
    judge: str
    started_at: datetime
    applied_at: datetime | None = None
    undone_at: datetime | None = None
    redone_at: datetime | None = None
    caused_by: int | None = None
    applied_revision: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    counts: dict[str, int] = Field(default_factory=dict, sa_type=JSON)
    transcript: bytes | None = Field(default=None, sa_type=LargeBinary)


class MovedSourceRow(SQLModel, table=True):
    """A source that a run of purpose merge or rename took over from another scope, with its name there."""

    __tablename__ = "moved_sources"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    source: str = Field(primary_key=True)
    former_source: str
    former_scope_id: int = Field(foreign_key="scopes.id", index=True)


class WindowRow(SQLModel, table=True):
    """What one extractor gave for one stretch of a session. Found again by `key`, it costs no second call."""

    __tablename__ = "windows"
    __table_args__ = (UniqueConstraint("scope_id", "source", "key"),)

    id: int | None = Field(default=None, primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    source: str
    key: str
    first_turn: int | None = None
    last_turn: int | None = None


class RunWindowRow(SQLModel, table=True):
    """Which windows a run reads its source as, in order."""

    __tablename__ = "run_windows"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    ordinal: int = Field(primary_key=True)
    window_id: int = Field(foreign_key="windows.id", index=True)


class AssertionRow(SQLModel, table=True):
    """One grounded statement. Written once; only forgetting removes it."""

    __tablename__ = "assertions"
    __table_args__ = (Index(None, "scope_id", "subject_key", "attribute_key"),)

    id: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    session_id: str | None = None
    act: str
    kind: str
    subject: str
    attribute: str
    subject_key: str
    attribute_key: str
    value: str
    statement: str
    speaker: str | None = None
    authority: int
    said_at: datetime
    time_is_guess: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    cue: str | None = None
    limited_to: str | None = None
    outcome: str | None = None
    recorded_at: datetime


class WindowAssertionRow(SQLModel, table=True):
    """Which assertions a window holds."""

    __tablename__ = "window_assertions"

    window_id: int = Field(primary_key=True, foreign_key="windows.id")
    assertion_id: str = Field(primary_key=True, foreign_key="assertions.id", index=True)


class RejectionRow(SQLModel, table=True):
    """A candidate of a window that grounding refused: shown by `why`, never served."""

    __tablename__ = "rejections"

    window_id: int = Field(primary_key=True, foreign_key="windows.id")
    ordinal: int = Field(primary_key=True)
    reason: str
    statement: str
    detail: str


class EvidenceRow(SQLModel, table=True):
    """The words that support an assertion."""

    __tablename__ = "evidence"

    assertion_id: str = Field(primary_key=True, foreign_key="assertions.id")
    ordinal: int = Field(primary_key=True)
    kind: str
    quote: str
    session_id: str | None = None
    turn: int | None = None
    speaker: str | None = None
    start: int | None = None


class VerdictRow(SQLModel, table=True):
    """One judged pair, kept by the hash of what was judged, and reused for ever."""

    __tablename__ = "verdicts"
    __table_args__ = (Index(None, "scope_id", "earlier_id"), Index(None, "scope_id", "later_id"))

    key: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    earlier_id: str = Field(foreign_key="assertions.id")
    later_id: str = Field(foreign_key="assertions.id")
    relation: str
    reason: str
    judge: str
    joins_subjects: bool = False
    parts_subjects: bool = False
    recorded_at: datetime


class RunVerdictRow(SQLModel, table=True):
    """Which verdicts a run stands on: one is in force while any live run does."""

    __tablename__ = "run_verdicts"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    verdict_key: str = Field(primary_key=True, foreign_key="verdicts.key", index=True)


class FactRow(SQLModel, table=True):
    """What follows from live assertions and verdicts, laid out over all time; derived again whenever those change."""

    __tablename__ = "facts"
    __table_args__ = (Index(None, "scope_id", "subject_key", "attribute_key"),)

    id: str = Field(primary_key=True, foreign_key="assertions.id")
    scope_id: int = Field(foreign_key="scopes.id")
    lead_id: str = Field(foreign_key="assertions.id")
    subject_key: str
    attribute_key: str
    spans: list[dict[str, Any]] = Field(sa_type=JSON)
    undone_as: str
    undone_by: str | None = None
    contested_by: list[str] = Field(default_factory=list, sa_type=JSON)
    may_be: list[str] = Field(default_factory=list, sa_type=JSON)


class FactAssertionRow(SQLModel, table=True):
    """Which assertions say a fact, first-said first; any of their ids finds it."""

    __tablename__ = "fact_assertions"

    fact_id: str = Field(primary_key=True, foreign_key="facts.id")
    ordinal: int = Field(primary_key=True)
    assertion_id: str = Field(foreign_key="assertions.id", unique=True)


class SpendingRow(SQLModel, table=True):
    """One question to a model and what it cost, answered or not; while it is asked, what it may cost.

    `source` is what it was asked for (as in runs), `run_id` the run that came of it, None where none did. `day` is that
    of asking, in UTC. `micro_usd` is at the price of that day, None where no price is known. What nobody has reported
    `is_estimate`.
    """

    __tablename__ = "spendings"
    __table_args__ = (Index(None, "day"), Index(None, "scope_id", "source"), Index(None, "run_id"))

    id: int | None = Field(default=None, primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    source: str
    run_id: int | None = Field(default=None, foreign_key="runs.id")
    purpose: str
    model: str
    day: date
    asked_at: datetime
    status: str
    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    micro_usd: int | None = Field(default=None, sa_type=BigInteger)
    is_estimate: bool = False


class VectorRow(SQLModel, table=True):
    """The vector of a text that can be found, by the model that made it; derived, and made again where it is missing.

    `key` is a hash of the text, so that a vector never stands for other words than its own."""

    __tablename__ = "vectors"

    scope_id: int = Field(primary_key=True, foreign_key="scopes.id")
    model: str = Field(primary_key=True)
    dimension: int = Field(primary_key=True)
    key: str = Field(primary_key=True)
    content: bytes = Field(sa_type=LargeBinary)


class JobRow(SQLModel, table=True):
    """A periodic job: who does it until when (`holder`, `leased_until`), and for which due time it was last done."""

    __tablename__ = "jobs"

    name: str = Field(primary_key=True)
    holder: str | None = None
    leased_until: datetime | None = None
    done_for: datetime | None = None
    last_success_at: datetime | None = None
    failure: str | None = None


class TombstoneKeyRow(SQLModel, table=True):
    """A random key under which tombstones are hashed: the store's own (`is_own`), and those that came with imports."""

    __tablename__ = "tombstone_keys"

    id: str = Field(primary_key=True)
    key: str
    is_own: bool = False


class TombstoneRow(SQLModel, table=True):
    """What keeps something forgotten from coming back; holds no words, only keyed hashes of them, and no time but
    `until`: what was said at or before it stays forgotten."""

    __tablename__ = "tombstones"
    __table_args__ = (Index(None, "scope_id", "place"),)

    id: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    key_id: str = Field(foreign_key="tombstone_keys.id")
    kind: str
    place: str
    mark: str
    spans: list[list[int]] = Field(default_factory=list, sa_type=JSON)
    times: int = 0
    until: datetime


class ImportedRunRow(SQLModel, table=True):
    """Which run of another store (`origin`) a run is the copy of, so that importing again copies nothing twice."""

    __tablename__ = "imported_runs"

    origin: str = Field(primary_key=True)
    their_id: int = Field(primary_key=True)
    run_id: int = Field(foreign_key="runs.id", index=True)
