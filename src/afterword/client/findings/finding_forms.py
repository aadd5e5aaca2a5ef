"""Converts findings of agents to JSON, for `--json` of the command line and for the HTTP service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afterword.store.transfer.fact_formats import iso_instant

if TYPE_CHECKING:
    from datetime import datetime

    from afterword.client.results import FindingOrigin, FindingPage
    from afterword.facts.findings import AgentFinding


def finding_json(finding: AgentFinding, at: datetime | None = None) -> dict[str, Any]:
    """Return a finding as JSON, and if `at` is given, its status at that time."""
    return {
        "id": finding.id,
        "agent": finding.agent,
        "kind": "advice" if finding.is_advice else "finding",
        "topic": finding.topic,
        "statement": finding.statement,
        **({"status": str(finding.status_at(at))} if at is not None else {}),
        "said_at": iso_instant(finding.said_at),
        "first_said_at": iso_instant(finding.first_said_at),
        "expires_at": iso_instant(finding.expires_at),
        "times": len(finding.sayings),
        "after_tools": finding.after_tools,
        "review": str(finding.review),
        "source": finding.source,
        "session_id": finding.session_id,
        "evidence": [{"turn": cited.turn, "quote": cited.quote} for cited in finding.evidence],
    }


def findings_json(page: FindingPage) -> dict[str, Any]:
    """Return a page of findings as JSON."""
    listed = [finding_json(finding, page.at) for finding in page.findings]
    return {"findings": listed, "other_statuses": page.other_statuses}


def finding_origin_json(origin: FindingOrigin) -> dict[str, Any]:
    """Return as JSON a finding, and each time that an agent stated it."""
    sayings = [{**finding_json(saying), "runs": list(run_ids)} for saying, run_ids in origin.sayings]
    return {"finding": finding_json(origin.finding), "sayings": sayings}
