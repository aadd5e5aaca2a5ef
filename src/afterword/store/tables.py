"""The tables of the store. Their rows are used for storage alone; the rest of the program uses frozen dataclasses.

Assertions and windows are written once and never changed. Runs decide what is live: of the runs of one source only the
latest that is applied and not undone counts.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, Index, LargeBinary, UniqueConstraint, text
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMING
_FEW = text("former_name IS NOT NULL")
_RENAMINGS = Index("ix_assertions_renaming", "scope_id", sqlite_where=_FEW, postgresql_where=_FEW)


class ScopeRow(SQLModel, table=True):
    """A scope. `revision` grows with every change of what is known, so that caches notice it. `policy` says which runs
    wait for a person's approval. While `paused_at` is set, sessions are not stored, only counted (`sessions_not_kept`).
    `derivation` is the version of the rules that derived the facts. `zone` is the time zone of times without an offset.
    `findings` says which findings of agents are stored, and `other_people` whether agents are told the words of other
    people than the owner; if they are None, the settings decide."""

    __tablename__: ClassVar[str] = "scopes"
    __table_args__: ClassVar[Any] = (UniqueConstraint("tenant", "kind", "name"),)

    id: int | None = Field(default=None, primary_key=True)
    tenant: str
    kind: str
    name: str
    revision: int = 0
    policy: str = "auto"
    stamp: str = ""
    paused_at: datetime | None = None
    sessions_not_kept: int = 0
    derivation: int = 0
    zone: str | None = None
    findings: dict[str, Any] | None = Field(default=None, sa_type=JSON)
    other_people: bool | None = None


class ScopeChangeRow(SQLModel, table=True):
    """One revision of a scope: the facts that were written or removed, and the source of the run that did it."""

    __tablename__: ClassVar[str] = "scope_changes"

    scope_id: int = Field(primary_key=True, foreign_key="scopes.id")
    revision: int = Field(primary_key=True)
    stamp: str
    source: str
    fact_ids: list[str] = Field(sa_type=JSON)
    is_unlinked: bool = False


class SessionRow(SQLModel, table=True):
    """One conversation of a scope, and how far its processing has come (`progress`)."""

    __tablename__: ClassVar[str] = "sessions"
    __table_args__: ClassVar[Any] = (UniqueConstraint("scope_id", "session_id"), Index(None, "progress"))

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

    __tablename__: ClassVar[str] = "states"

    session_pk: int = Field(primary_key=True, foreign_key="sessions.id")
    component: str
    content: bytes = Field(sa_type=LargeBinary)
    saved_at: datetime


class TurnRow(SQLModel, table=True):
    """One turn of a session as it was read. `utc_offset_s` is how many seconds the speaker's local time is ahead of
    UTC, None for UTC. `search_terms` and `shown` are set for a person's turn only: the words by which a search finds
    it, and what an agent is shown of it (`recall.said_index.shown_text_to_store`)."""

    __tablename__: ClassVar[str] = "turns"

    session_pk: int = Field(primary_key=True, foreign_key="sessions.id")
    number: int = Field(primary_key=True)
    speaker: str
    role: str
    text: str
    said_at: datetime | None = None
    utc_offset_s: int | None = None
    message_id: str | None = None
    time_is_guess: bool = False
    search_terms: str | None = None
    shown: str | None = None


class RunRow(SQLModel, table=True):
    """One run. `source` is the name of the session that it read, or a unique name for what an application or a person
    entered. `transcript` is what a dry run has read (JSON, compressed); it becomes the turns of the session when the
    run is applied. An undone run that was applied again has a `redone_at`. `caused_by` is the id of the run whose
    undoing made this run necessary. The id of an erased run is given to no other run: people, webhooks and the audit
    know it."""

    __tablename__: ClassVar[str] = "runs"
    __table_args__: ClassVar[Any] = (Index(None, "scope_id", "source"), {"sqlite_autoincrement": True})

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
    """A source that a run of purpose merge or rename moved from another scope, and the name that it had there."""

    __tablename__: ClassVar[str] = "moved_sources"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    source: str = Field(primary_key=True)
    former_source: str
    former_scope_id: int = Field(foreign_key="scopes.id", index=True)


class WindowRow(SQLModel, table=True):
    """What an extractor returned for one window of a session. A window whose `key` is stored is not extracted again."""

    __tablename__: ClassVar[str] = "windows"
    __table_args__: ClassVar[Any] = (UniqueConstraint("scope_id", "source", "key"),)

    id: int | None = Field(default=None, primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    source: str
    key: str
    first_turn: int | None = None
    last_turn: int | None = None


class RunWindowRow(SQLModel, table=True):
    """The windows of a run, in order."""

    __tablename__: ClassVar[str] = "run_windows"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    ordinal: int = Field(primary_key=True)
    window_id: int = Field(foreign_key="windows.id", index=True)


class AssertionRow(SQLModel, table=True):
    """One grounded statement. It is written once, and only forgetting removes it. `tags` holds one tag on each line.
    `utc_offset_s` is how many seconds the speaker's local time is ahead of UTC, None for UTC. The days that the
    statement names are days of that local time."""

    __tablename__: ClassVar[str] = "assertions"
    __table_args__: ClassVar[Any] = (Index(None, "scope_id", "subject_key", "attribute_key"), _RENAMINGS)

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
    utc_offset_s: int | None = None
    time_is_guess: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    cue: str | None = None
    limited_to: str | None = None
    outcome: str | None = None
    is_flagged: bool | None = None
    tags: str | None = None
    former_name: str | None = None
    recorded_at: datetime


class WindowAssertionRow(SQLModel, table=True):
    """The assertions of a window."""

    __tablename__: ClassVar[str] = "window_assertions"

    window_id: int = Field(primary_key=True, foreign_key="windows.id")
    assertion_id: str = Field(primary_key=True, foreign_key="assertions.id", index=True)


class RejectionRow(SQLModel, table=True):
    """A candidate of a window that grounding refused. `afterword why` shows it; it is never served."""

    __tablename__: ClassVar[str] = "rejections"

    window_id: int = Field(primary_key=True, foreign_key="windows.id")
    ordinal: int = Field(primary_key=True)
    reason: str
    statement: str
    detail: str


class EvidenceRow(SQLModel, table=True):
    """The words that support an assertion."""

    __tablename__: ClassVar[str] = "evidence"

    assertion_id: str = Field(primary_key=True, foreign_key="assertions.id")
    ordinal: int = Field(primary_key=True)
    kind: str
    quote: str
    session_id: str | None = Field(default=None, index=True)
    turn: int | None = None
    speaker: str | None = None
    start: int | None = None


class VerdictRow(SQLModel, table=True):
    """One judged pair. `key` is a hash of what was judged, so that the verdict is reused."""

    __tablename__: ClassVar[str] = "verdicts"
    __table_args__: ClassVar[Any] = (Index(None, "scope_id", "earlier_id"), Index(None, "scope_id", "later_id"))

    key: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    earlier_id: str = Field(foreign_key="assertions.id")
    later_id: str = Field(foreign_key="assertions.id")
    relation: str
    reason: str
    judge: str
    joins_subjects: bool = False
    parts_subjects: bool = False
    extent: str | None = None
    remainder: str | None = None
    recorded_at: datetime


class RunVerdictRow(SQLModel, table=True):
    """The verdicts of a run. A verdict is in force as long as any of its runs is live."""

    __tablename__: ClassVar[str] = "run_verdicts"

    run_id: int = Field(primary_key=True, foreign_key="runs.id")
    verdict_key: str = Field(primary_key=True, foreign_key="verdicts.key", index=True)


class FactRow(SQLModel, table=True):
    """The history of a fact, derived from the live assertions and verdicts. A search finds it by `search_terms`."""

    __tablename__: ClassVar[str] = "facts"
    __table_args__: ClassVar[Any] = (Index(None, "scope_id", "subject_key", "attribute_key"),)

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
    exceptions: list[str] = Field(default_factory=list, sa_type=JSON)
    rewordings: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    search_terms: str | None = None


class FactAssertionRow(SQLModel, table=True):
    """The assertions of a fact in the order of saying. The fact can be found by the id of each of them."""

    __tablename__: ClassVar[str] = "fact_assertions"

    fact_id: str = Field(primary_key=True, foreign_key="facts.id")
    ordinal: int = Field(primary_key=True)
    assertion_id: str = Field(foreign_key="assertions.id", unique=True)


class SpendingRow(SQLModel, table=True):
    """One request to a model, answered or not, and its cost. While it is open, this is the highest possible cost.

    `source` is what the request was sent for (as in runs), and `run_id` the run, if there is one. `day` is the day
    (UTC) of the request. `micro_usd` is the cost at the price of that day, None if no price is known. `is_estimate`
    says that the endpoint did not report the cost."""

    __tablename__: ClassVar[str] = "spendings"
    __table_args__: ClassVar[Any] = (Index(None, "day"), Index(None, "scope_id", "source"), Index(None, "run_id"))

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
    """The vector of a text, made by one model. `key` is a hash of the text, so it is never used for another text."""

    __tablename__: ClassVar[str] = "vectors"

    scope_id: int = Field(primary_key=True, foreign_key="scopes.id")
    model: str = Field(primary_key=True)
    dimension: int = Field(primary_key=True)
    key: str = Field(primary_key=True)
    content: bytes = Field(sa_type=LargeBinary)


class ImportedRunRow(SQLModel, table=True):
    """The run of another store (`origin`) that a run is a copy of, so that no run is imported twice."""

    __tablename__: ClassVar[str] = "imported_runs"

    origin: str = Field(primary_key=True)
    their_id: int = Field(primary_key=True)
    run_id: int = Field(foreign_key="runs.id", index=True)
