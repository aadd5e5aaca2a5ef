"""Between facts and what AutoGen's memories hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from autogen_core.memory import MemoryContent, MemoryMimeType

from afterword.facts.assertions import OWNER, Kind
from afterword.facts.fact import Fact
from afterword.recall.block import safe_line
from afterword.store.entered_statements import Entry


def content_of(
    fact: Fact,
    score: float | None = None,
    matched: Sequence[str] | None = None,
    parts: Mapping[str, float] | None = None,
) -> MemoryContent:
    """Return a fact as a memory holds it: its sentence, and where it comes from as metadata that JSON can hold.

    `matched` are the words that explain the score, `parts` what it adds up from, where they were asked for.
    """
    metadata: dict[str, Any] = {
        "fact_id": fact.id,
        "scope_kind": str(fact.scope.kind),
        "kind": str(fact.kind),
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "status": str(fact.status),
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "evidence": [
            {
                "kind": str(item.kind),
                "quote": item.quote,
                "session_id": item.session_id,
                "turn": item.turn,
                "speaker": item.speaker,
            }
            for item in fact.evidence
        ],
    }
    if score is not None:
        metadata["score"] = round(score, 4)
    if parts is not None:
        metadata["parts"] = {part: round(share, 4) for part, share in parts.items()}
    if matched is not None:
        metadata["matched"] = list(matched)
    return MemoryContent(content=safe_line(fact.statement), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def content_text(content: MemoryContent) -> str:
    """Return the text of a memory's content. Raises ValueError where it is bytes or an image."""
    if isinstance(content.content, str):
        return content.content
    if isinstance(content.content, dict):
        return json.dumps(content.content, ensure_ascii=False, sort_keys=True, default=str)
    raise ValueError(f"facts are text: {type(content.content).__name__} is neither a string nor a JSON object")


def entry_of(content: MemoryContent) -> Entry:
    """Return what the application says. Raises ValueError where it is empty, no text, or its metadata does not fit."""
    statement = " ".join(content_text(content).split())
    if not statement:
        raise ValueError("there is nothing to remember: the content is empty")
    given: Mapping[str, Any] = content.metadata or {}
    return Entry(
        statement=statement,
        kind=Kind(given.get("kind", Kind.ENTITY)),
        subject=str(given.get("subject") or OWNER),
        attribute=str(given.get("attribute") or "note"),
        value=str(given["value"]) if given.get("value") else None,
        valid_from=parse_instant(given.get("valid_from"), time.min),
        valid_to=parse_instant(given.get("valid_to"), time(23, 59, 59)),
    )


def parse_instant(given: object, clock: time) -> datetime | None:
    """Return the instant that a date (with this clock time, UTC) or a date and time names, None for none.

    Raises ValueError for what is neither.
    """
    if given is None or given == "":
        return None
    text = str(given)
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2026-05-01"):
        moment = datetime.combine(moment.date(), clock)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
