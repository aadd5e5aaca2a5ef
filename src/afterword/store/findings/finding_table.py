"""The table of findings. It stands apart from the tables that facts are derived from."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON
from sqlmodel import Field, SQLModel

from afterword.store import tables  # its naming of constraints must be set first

__all__ = ["FindingRow", "tables"]


class FindingRow(SQLModel, table=True):
    """A finding or advice of an agent in a window of a session. It is no assertion, and no fact rests on it.

    `evidence` are the words of the agent, each with its turn. `review` is what a person has decided."""

    __tablename__ = "findings"

    id: str = Field(primary_key=True)
    scope_id: int = Field(foreign_key="scopes.id", index=True)
    window_id: int = Field(foreign_key="windows.id", index=True)
    session_id: str | None = None
    agent: str
    topic: str
    statement: str
    is_advice: bool = False
    source: str | None = None
    after_tools: bool = False
    review: str
    evidence: list[dict[str, Any]] = Field(default_factory=list, sa_type=JSON)
    said_at: datetime
    expires_at: datetime
    recorded_at: datetime
