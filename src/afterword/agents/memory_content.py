"""Conversion between facts and the contents of AutoGen memories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from typing import Any

from autogen_core.memory import MemoryContent, MemoryMimeType

from afterword.agents.recall_results import RecallResult
from afterword.facts.assertions import OWNER, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.transcripts import SourceTurn
from afterword.recall.block import safe_line, with_exceptions
from afterword.store.entered_statements import Entry


def content_of(
    fact: Fact,
    score: float | None = None,
    matched: Sequence[str] | None = None,
    parts: Mapping[str, float] | None = None,
) -> MemoryContent:
    """Return a fact as the content of a memory: its sentence, and its details and evidence as JSON metadata.

    `matched` are the query words that explain the score, and `parts` the parts that the score is the sum of.
    """
    metadata: dict[str, Any] = {
        "fact_id": fact.id,
        "scope_kind": str(fact.scope.kind),
        "kind": str(fact.kind),
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "status": str(fact.status),
        "layer": "now" if fact.is_served else "before",
        "said_at": fact.said_at.isoformat(),
        "valid_from": fact.valid_from.isoformat() if fact.valid_from else None,
        "valid_to": fact.valid_to.isoformat() if fact.valid_to else None,
        "evidence": [
            {
                "kind": str(evidence.kind),
                "quote": evidence.quote,
                "session_id": evidence.session_id,
                "turn": evidence.turn,
                "speaker": evidence.speaker,
            }
            for evidence in fact.evidence
        ],
    }
    if score is not None:
        metadata["score"] = round(score, 4)
    if parts is not None:
        metadata["parts"] = {part: round(share, 4) for part, share in parts.items()}
    if matched is not None:
        metadata["matched"] = list(matched)
    return MemoryContent(content=with_exceptions(fact), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def content_of_turn(turn: SourceTurn, score: float) -> MemoryContent:
    """Return a turn as the content of a memory: its words, and where, when and by whom they were said."""
    metadata = {
        "layer": "said",
        "session_id": turn.session_id,
        "turn": turn.number,
        "speaker": turn.speaker,
        "said_at": turn.said_at.isoformat() if turn.said_at else None,
        "score": round(score, 4),
    }
    return MemoryContent(content=safe_line(turn.text), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def content_of_finding(finding: AgentFinding, score: float) -> MemoryContent:
    """Return what an agent found as the content of a memory. Its layer says that no person said it."""
    metadata = {
        "layer": "found",
        "finding_id": finding.id,
        "agent": finding.agent,
        "topic": finding.topic,
        "is_advice": finding.is_advice,
        "source": finding.source,
        "session_id": finding.session_id,
        "said_at": finding.said_at.isoformat(),
        "expires_at": finding.expires_at.isoformat(),
        "score": round(score, 4),
    }
    return MemoryContent(content=safe_line(finding.statement), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def contents_of(result: RecallResult, others: Sequence[Fact] = (), *, explain: bool = False) -> list[MemoryContent]:
    """Return a result as contents: the matching facts, the others with score 0, former facts, turns, findings."""
    matches = [
        content_of(match.fact, match.score, match.matched if explain else None, match.parts) for match in result.matches
    ]
    beside = [content_of(fact, 0.0, () if explain else None) for fact in others]
    turns = [content_of_turn(turn, score) for turn, score in result.turns]
    findings = [content_of_finding(finding, score) for finding, score in result.findings]
    return [*matches, *beside, *map(content_of, result.former), *turns, *findings]


def text_of_content(content: MemoryContent) -> str:
    """Return the text of a memory's content. Raises ValueError if it is bytes or an image."""
    if isinstance(content.content, str):
        return content.content
    if isinstance(content.content, dict):
        return json.dumps(content.content, ensure_ascii=False, sort_keys=True, default=str)
    raise ValueError(f"facts are text: {type(content.content).__name__} is neither a string nor a JSON object")


def entry_of(content: MemoryContent) -> Entry:
    """Return the entry to store. Raises ValueError if it is empty or no text, or if its metadata does not fit."""
    statement = " ".join(text_of_content(content).split())
    if not statement:
        raise ValueError("there is nothing to remember: the content is empty")
    metadata: Mapping[str, Any] = content.metadata or {}
    return Entry(
        statement=statement,
        kind=Kind(metadata.get("kind", Kind.ENTITY)),
        subject=str(metadata.get("subject") or OWNER),
        attribute=str(metadata.get("attribute") or "note"),
        value=str(metadata["value"]) if metadata.get("value") else None,
        valid_from=instant_from(metadata.get("valid_from"), time.min),
        valid_to=instant_from(metadata.get("valid_to"), time(23, 59, 59)),
    )


def instant_from(value: object, clock: time) -> datetime | None:
    """Return the instant of an ISO date (at this clock time, UTC) or of an ISO date and time; None for no value.

    Raises ValueError for any other text.
    """
    if value is None or value == "":
        return None
    text = str(value)
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2026-05-01"):
        moment = datetime.combine(moment.date(), clock)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
