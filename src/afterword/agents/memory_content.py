"""The results of memory queries, and conversions between them and AutoGen's `MemoryContent`."""

from __future__ import annotations

import json
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from enum import StrEnum
from typing import Any

from autogen_core.memory import MemoryContent, MemoryMimeType, MemoryQueryResult

from afterword.errors import ArgumentInvalid
from afterword.facts.assertions import OWNER, Evidence, Kind
from afterword.facts.fact import Fact
from afterword.facts.findings import AgentFinding
from afterword.facts.transcripts import SourceTurn
from afterword.recall.block import safe_line, text_with_exceptions
from afterword.recall.search_terms import matched_words
from afterword.store.entered_statements import Entry
from afterword.store.reading.recall import Recall


class RecallOutcome(StrEnum):
    """Whether a query found something, and if not, why."""

    FOUND = "found"
    NOTHING_STORED = "nothing_stored"
    NOTHING_RELEVANT = "nothing_relevant"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class FactMatch:
    """A fact that matches a query, its score (0 for an empty query), and the words of the query that it contains.

    `parts` are the summands of the score (words, meaning, neighbours ...), or None unless `explain` was set.
    """

    fact: Fact
    score: float
    matched: tuple[str, ...] = ()
    parts: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class RecallResult:
    """What matches a query: `matches` are facts, best first. `stored` counts all facts that were searched.

    `former` are matching facts that held before; for a question about the past they are among `matches` instead.
    `turns` are matching turns of conversations, and `findings` what agents found, each with its score.
    """

    outcome: RecallOutcome
    matches: tuple[FactMatch, ...] = ()
    stored: int = 0
    former: tuple[Fact, ...] = ()
    turns: tuple[tuple[SourceTurn, float], ...] = ()
    findings: tuple[tuple[AgentFinding, float], ...] = ()

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts alone, best first."""
        return tuple(match.fact for match in self.matches)

    @property
    def found(self) -> tuple[FactMatch, ...]:
        """The former name of `matches`. It will be removed in release 0.3."""
        message = "RecallResult.found is now called RecallResult.matches; the old name will be removed in release 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.matches


class FactQueryResult(MemoryQueryResult):
    """An AutoGen memory result that also says why it is empty, and how many facts were searched."""

    outcome: RecallOutcome
    stored: int = 0


UNAVAILABLE = RecallResult(RecallOutcome.UNAVAILABLE)


def as_recall_result(query: str, ranked: Recall) -> RecallResult:
    """Return the result of a search in one scope as a `RecallResult`, with the matched words of each fact."""
    scored = zip(ranked.facts, ranked.scores, ranked.score_components or [None] * len(ranked.facts), strict=True)
    matches = [FactMatch(fact, score, matched_words(query, fact), parts) for fact, score, parts in scored]
    turns = list(zip(ranked.turns, ranked.turn_scores, strict=True))
    return _result_with_outcome(matches, ranked.stored, [each.fact for each in ranked.former], turns, ranked.findings)


def merge_results(results: Sequence[RecallResult], limit: int | None) -> RecallResult:
    """Return the results of several scopes as one result, best first. With equal scores, earlier scopes come first."""
    matches = sorted((match for result in results for match in result.matches), key=lambda match: -match.score)
    turns = sorted((turn for result in results for turn in result.turns), key=lambda scored: -scored[1])
    former = [fact for result in results for fact in result.former]
    findings = sorted((each for result in results for each in result.findings), key=lambda scored: -scored[1])
    stored = sum(result.stored for result in results)
    return _result_with_outcome(matches[:limit], stored, former[:limit], turns[:limit], findings[:limit])


def _result_with_outcome(
    matches: Sequence[FactMatch],
    stored: int,
    former: Sequence[Fact] = (),
    turns: Sequence[tuple[SourceTurn, float]] = (),
    findings: Sequence[tuple[AgentFinding, float]] = (),
) -> RecallResult:
    """Return a `RecallResult` with the outcome that these matches and the number of stored facts imply."""
    if matches or former or turns or findings:
        found = tuple(matches), stored, tuple(former), tuple(turns), tuple(findings)
        return RecallResult(RecallOutcome.FOUND, *found)
    return RecallResult(RecallOutcome.NOTHING_RELEVANT if stored else RecallOutcome.NOTHING_STORED, (), stored)


def content_of_fact(
    fact: Fact,
    score: float | None = None,
    matched: Sequence[str] | None = None,
    parts: Mapping[str, float] | None = None,
) -> MemoryContent:
    """Return a fact as `MemoryContent`: its sentence as text, its details and evidence as metadata.

    `matched` are the words of the query that the fact contains, and `parts` the summands of the score.
    """
    metadata = _metadata_of_fact(fact)
    if score is not None:
        metadata["score"] = round(score, 4)
    if parts is not None:
        metadata["parts"] = {part: round(share, 4) for part, share in parts.items()}
    if matched is not None:
        metadata["matched"] = list(matched)
    return MemoryContent(content=text_with_exceptions(fact), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def _metadata_of_fact(fact: Fact) -> dict[str, Any]:
    return {
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
        "evidence": list(map(_metadata_of_evidence, fact.evidence)),
    }


def _metadata_of_evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "kind": str(evidence.kind),
        "quote": evidence.quote,
        "session_id": evidence.session_id,
        "turn": evidence.turn,
        "speaker": evidence.speaker,
    }


def content_of_turn(turn: SourceTurn, score: float) -> MemoryContent:
    """Return a turn as `MemoryContent`: its words, and as metadata its session, time and speaker."""
    return _content_of_text(
        turn.text,
        layer="said",
        session_id=turn.session_id,
        turn=turn.number,
        speaker=turn.speaker,
        said_at=turn.said_at.isoformat() if turn.said_at else None,
        score=round(score, 4),
    )


def content_of_finding(finding: AgentFinding, score: float) -> MemoryContent:
    """Return a finding of an agent as `MemoryContent`. The layer "found" marks that no person said it."""
    return _content_of_text(
        finding.statement,
        layer="found",
        finding_id=finding.id,
        agent=finding.agent,
        topic=finding.topic,
        is_advice=finding.is_advice,
        source=finding.source,
        session_id=finding.session_id,
        said_at=finding.said_at.isoformat(),
        expires_at=finding.expires_at.isoformat(),
        score=round(score, 4),
    )


def _content_of_text(text: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=safe_line(text), mime_type=MemoryMimeType.TEXT, metadata=metadata)


def contents_of_result(
    result: RecallResult, others: Sequence[Fact] = (), *, explain: bool = False
) -> list[MemoryContent]:
    """Return a result as `MemoryContent`: the matching facts, `others` with score 0, former facts, turns, findings."""
    return [
        *(content_of_fact(hit.fact, hit.score, hit.matched if explain else None, hit.parts) for hit in result.matches),
        *(content_of_fact(fact, 0.0, () if explain else None) for fact in others),
        *map(content_of_fact, result.former),
        *(content_of_turn(turn, score) for turn, score in result.turns),
        *(content_of_finding(finding, score) for finding, score in result.findings),
    ]


def text_of_content(content: MemoryContent) -> str:
    """Return the text of `content`. Raises ValueError if it is bytes or an image."""
    if isinstance(content.content, str):
        return content.content
    if isinstance(content.content, dict):
        return json.dumps(content.content, ensure_ascii=False, sort_keys=True, default=str)
    raise ValueError(f"facts are text: {type(content.content).__name__} is neither a string nor a JSON object")


def entry_of_content(content: MemoryContent) -> Entry:
    """Return the entry to store for `content`. Raises ValueError if it is empty, not text, or has invalid metadata."""
    if not isinstance(content, MemoryContent):
        raise ArgumentInvalid(
            f"content={reprlib.repr(content)} is not possible; give MemoryContent(content=..., mime_type=...)"
        )
    metadata: Mapping[str, Any] = content.metadata or {}
    return Entry(
        statement=text_of_content(content),
        kind=Kind(metadata.get("kind", Kind.ENTITY)),
        subject=str(metadata.get("subject") or OWNER),
        attribute=str(metadata.get("attribute") or "note"),
        value=str(metadata["value"]) if metadata.get("value") else None,
        valid_from=parse_instant(metadata.get("valid_from"), time.min),
        valid_to=parse_instant(metadata.get("valid_to"), time(23, 59, 59)),
    )


def parse_instant(value: object, time_of_day: time) -> datetime | None:
    """Return an ISO 8601 date or time as a datetime in UTC; None for None and for an empty text.

    A date becomes that day at `time_of_day`. Raises ValueError for any other text.
    """
    if value is None or value == "":
        return None
    text = str(value)
    moment = datetime.fromisoformat(text)
    if len(text) <= len("2026-05-01"):
        moment = datetime.combine(moment.date(), time_of_day)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
