"""The tables of what was forgotten: hash keys, tombstones, and the turns of sessions that were seen."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, Index
from sqlmodel import Field, SQLModel


class TombstoneKeyRow(SQLModel, table=True):
    """A random key for the hashes of tombstones: the store's own (`is_own`), and those that were imported."""

    __tablename__: ClassVar[str] = "tombstone_keys"

    id: str = Field(primary_key=True)
    key: str
    is_own: bool = False


class TombstoneRow(SQLModel, table=True):
    """A record of something forgotten, in keyed hashes. What was said at or before `until` stays forgotten."""

    __tablename__: ClassVar[str] = "tombstones"
    __table_args__: ClassVar[Any] = (Index(None, "scope_id", "place"),)

    id: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id")
    key_id: str = Field(foreign_key="tombstone_keys.id")
    kind: str
    place: str
    mark: str
    spans: list[list[int]] = Field(default_factory=list, sa_type=JSON)
    times: int = 0
    until: datetime


class SeenSessionRow(SQLModel, table=True):
    """Keyed hashes of the turns of a session that were seen, in order. They stay when the session is forgotten."""

    __tablename__: ClassVar[str] = "seen_sessions"

    place: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id", index=True)
    key_id: str = Field(foreign_key="tombstone_keys.id")
    stretches: list[dict[str, Any]] = Field(sa_type=JSON)
