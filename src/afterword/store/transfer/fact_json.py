"""A fact as JSON for machines: the form of the readable export, the command line and the services. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from afterword.facts.fact import Fact


def iso_instant(instant: datetime | None) -> str | None:
    """Return an instant as ISO 8601 with its offset (Z for UTC), None for none."""
    return instant.isoformat().replace("+00:00", "Z") if instant else None


def fact_json(fact: Fact) -> dict[str, Any]:
    """Return a fact as a JSON object: instants in ISO 8601, evidence with its quotes."""
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
