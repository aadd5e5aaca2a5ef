"""Formats facts as JSON for programs and as Markdown for people, with quotes and dates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from afterword.facts.assertions import EvidenceKind
from afterword.facts.fact import SERVED, Fact, Status
from afterword.facts.scopes import Scope

_KINDS = {
    EvidenceKind.APPLICATION: "entered by the application",
    EvidenceKind.PERSON: "entered by a person",
    EvidenceKind.IMPORT: "imported",
}


def iso_instant(instant: datetime | None) -> str | None:
    """Return an instant in ISO 8601 with its offset (Z for UTC); None stays None."""
    return instant.isoformat().replace("+00:00", "Z") if instant else None


def fact_json(fact: Fact) -> dict[str, Any]:
    """Return a fact as a JSON object, with its evidence. Instants are in ISO 8601."""
    return {
        "id": fact.id,
        "kind": str(fact.kind),
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "statement": fact.statement,
        "status": str(fact.status),
        "tags": list(fact.tags),
        "valid_from": iso_instant(fact.valid_from),
        "valid_to": iso_instant(fact.valid_to),
        "recorded_at": iso_instant(fact.recorded_at),
        "support": fact.support,
        "flagged": fact.is_flagged,
        "evidence": [
            {
                "session_id": evidence.session_id,
                "turn": evidence.turn,
                "speaker": evidence.speaker,
                "quote": evidence.quote,
            }
            for evidence in fact.evidence
        ],
    }


def facts_as_markdown(scope: Scope, facts: Sequence[Fact]) -> str:
    """Return the facts of a scope as Markdown, with quotes and dates: first the facts that hold, then the others."""
    ordered = sorted(facts, key=lambda fact: (fact.status not in SERVED, fact.kind, fact.said_at, fact.id))
    statements = {id_: fact.statement for fact in ordered for id_ in (*fact.assertion_ids, fact.id)}
    lines = [f"# What is remembered of {scope}", "", "1 fact." if len(facts) == 1 else f"{len(facts)} facts."]
    for is_served, group in groupby(ordered, key=lambda fact: fact.status in SERVED):
        lines += ["", "## What holds" if is_served else "## What held once, or is open"]
        for fact in group:
            lines += _fact_lines(fact, statements.get(fact.retired_by or ""))
    return "\n".join(lines) + "\n"


def _fact_lines(fact: Fact, successor: str | None) -> Iterable[str]:
    until = f" until {fact.ends_at:%Y-%m-%d}" if fact.ends_at else ""
    since = f"since {fact.valid_from:%Y-%m-%d}" if fact.valid_from else "no date"
    yield ""
    status = "withdrawn" if fact.status is Status.RETRACTED else fact.status
    yield f"- **{fact.statement}** ({fact.kind}, {status}, {since}{until}; said {fact.said_at:%Y-%m-%d})"
    if successor is not None:
        yield f"  - replaced by: {successor}"
    for evidence in fact.evidence:
        place = _KINDS.get(evidence.kind) or f"session {evidence.session_id}, turn {evidence.turn}"
        quote = " ".join(evidence.quote.split())
        yield f'  - "{quote}" ({place})'
