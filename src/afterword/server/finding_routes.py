"""What agents found in one memory: listing it, and a person's decision about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from afterword.client.findings.finding_forms import finding_json, finding_origin_json, findings_json
from afterword.server.access import Memory
from afterword.server.changes import Answer, Changing
from afterword.server.contents import Names, QueryMoment
from afterword.server.paths import path_part

router = APIRouter()

FindingId = Annotated[str, Path(max_length=100)]


@router.get("/findings")
async def list_findings(
    memory: Memory,
    status: Names = None,
    agent: Annotated[str | None, Query(max_length=255)] = None,
    as_of: QueryMoment = None,
) -> JSONResponse:
    """List what agents found, newest first: what is current and what waits, or what has the named states."""
    return JSONResponse(findings_json(await memory.findings(status=status, agent=agent, as_of=as_of)))


@router.get("/findings/{finding_id}")
async def read_one_finding(memory: Memory, finding_id: FindingId) -> JSONResponse:
    """Return a finding with every time that it was said."""
    return JSONResponse(finding_origin_json(await memory.finding_history(path_part(finding_id))))


@router.post("/findings/{finding_id}/{decision}")
async def decide_one_finding(
    finding_id: FindingId, decision: Literal["approve", "drop"], changing: Changing
) -> JSONResponse:
    """Let a finding count, or tell no agent of it any more, on behalf of a person."""

    async def work() -> Answer:
        memory = changing.memory
        decide = memory.approve_finding if decision == "approve" else memory.drop_finding
        decided = finding_json(await decide(path_part(finding_id)), datetime.now(UTC))
        return {name: decided[name] for name in ("id", "status", "review")}

    return await changing.carried_out(f"finding {decision}", work, {"finding": finding_id, "decision": decision})
