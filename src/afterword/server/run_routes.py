"""The runs, the review, the policy and the costs of one memory."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from afterword.client.json_forms import review_json, run_record_json, spending_json
from afterword.server.access import Memory
from afterword.server.changes import Changing
from afterword.server.contents import Change, Cursor, DecisionBody, Limit, Names
from afterword.server.paths import path_part

router = APIRouter()

RunNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/runs")
async def list_runs(memory: Memory, status: Names = None, limit: Limit = 50, after: Cursor = None) -> JSONResponse:
    """List runs, oldest first, each with its cost and the key that asked for it."""
    page = await memory.runs(status=status, limit=limit, after=after)
    return JSONResponse(
        {"runs": [run_record_json(record) for record in page.runs], "total": page.total, "next": page.next}
    )


@router.post("/runs/{run_id}/undo", response_model=Change)
async def undo_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Undo an applied run with everything that it caused."""
    return await changing.run("undo", lambda: changing.memory.undo(run_id), {"run": run_id})


@router.post("/runs/{run_id}/redo", response_model=Change)
async def redo_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Let an undone run count again."""
    return await changing.run("redo", lambda: changing.memory.redo(run_id), {"run": run_id})


@router.post("/runs/{run_id}/apply", response_model=Change)
async def apply_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Apply a proposed or held run."""
    return await changing.run("apply", lambda: changing.memory.apply(run_id), {"run": run_id})


@router.get("/review")
async def list_review(memory: Memory, _: Annotated[bool | None, Query(include_in_schema=False)] = None) -> JSONResponse:
    """Return what waits for a person: contests, held runs, unclear names, requests to erase."""
    review = await memory.review()
    content = review_json(review)
    for entry, contest in zip(content["contests"], review.contests, strict=True):
        entry["id"] = contest.id
    for entry, held in zip(content["held"], review.held, strict=True):
        entry["item"] = held.id
    return JSONResponse(content)


@router.post("/review/{item_id}", response_model=Change)
async def decide_one_item(
    item_id: Annotated[str, Path(max_length=300, description="The id of a contest, run:N, or erase:ID.")],
    body: DecisionBody,
    changing: Changing,
) -> JSONResponse:
    """Carry out a person's decision on an item of the review."""
    work = partial(changing.memory.decide, path_part(item_id), body.decision)
    return await changing.run("decide", work, {"item": item_id, "decision": body.decision})


@router.get("/costs")
async def read_costs(memory: Memory) -> JSONResponse:
    """Return what models cost in this memory, by source and by run."""
    costs = await memory.costs()
    return JSONResponse(
        {
            "total": spending_json(costs.total),
            "sources": {source: spending_json(spent) for source, spent in costs.by_source.items()},
            "runs": {str(run_id): spending_json(spent) for run_id, spent in costs.by_run.items()},
        }
    )
