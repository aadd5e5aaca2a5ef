"""Routes of one memory: facts, findings and recall. `text_router` has the remember/recall API of other programs."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.responses import JSONResponse, Response

from afterword import Layer, Scope
from afterword.client.forms.finding_forms import finding_origin_json, findings_json
from afterword.client.forms.memory_forms import context_json, fact_origin_json, search_json
from afterword.server import answer_forms
from afterword.server.access import Answer, AnyCaller, Change, Memory, select_own_memory
from afterword.server.request_paths import decode_path_part
from afterword.server.request_types import (
    Cursor,
    EditBody,
    FactBody,
    FlagBody,
    Limit,
    QueryList,
    QueryMoment,
    RememberBody,
)

router: APIRouter = APIRouter()

FactId = Annotated[str, Path(max_length=200, description="The id of a fact, or its first 6 digits or more.")]

FindingId = Annotated[str, Path(max_length=100)]
text_router: APIRouter = APIRouter(
    prefix="/v1/memory", tags=["remember and recall"], dependencies=[Depends(select_own_memory)]
)


def response_with_etag(content: dict[str, Any], if_none_match: str | None) -> Response:
    """Return a JSON response with its ETag, or 304 if the header If-None-Match names the same ETag."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    if if_none_match is not None and tag in [each.strip().removeprefix("W/") for each in if_none_match.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


@router.get(
    "/facts", response_model=answer_forms.fact_page_json.model, responses={304: {"description": "Nothing has changed."}}
)
async def list_facts(
    memory: Memory,
    status: QueryList = None,
    kind: QueryList = None,
    about: Annotated[str | None, Query(max_length=255)] = None,
    tag: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006
    as_of: QueryMoment = None,
    known_at: QueryMoment = None,
    limit: Limit = 50,
    after: Cursor = None,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """List facts in the order in which they were said. By default only those that hold; `status=all` lists all."""
    statuses = "all" if status == ["all"] else status
    page = await memory.facts(
        status=statuses, kind=kind, about=about, tags=tag, as_of=as_of, known_at=known_at, limit=limit, after=after
    )
    return response_with_etag(answer_forms.fact_page_json(page), if_none_match)


@router.post("/facts", response_model=answer_forms.change_json.model)
async def remember_fact(body: FactBody, change: Change) -> JSONResponse:
    """Remember a sentence that the application states."""
    content = body.model_dump()
    return await change.make_run("remember", lambda: change.memory.remember(**content), content)


@router.get(
    "/facts/{fact_id}", response_model=fact_origin_json.model, responses={304: {"description": "Nothing has changed."}}
)
async def read_one_fact(
    memory: Memory,
    fact_id: FactId,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return a fact with its history: every assertion, quote and verdict."""
    return response_with_etag(fact_origin_json(await memory.history(decode_path_part(fact_id))), if_none_match)


@router.patch("/facts/{fact_id}", response_model=answer_forms.change_json.model)
async def edit_one_fact(fact_id: FactId, body: EditBody, change: Change) -> JSONResponse:
    """Correct a fact on behalf of a person."""
    content = body.model_dump()
    work = partial(change.memory.edit, decode_path_part(fact_id), **content)
    return await change.make_run("edit", work, {**content, "fact": fact_id})


@router.post("/facts/{fact_id}/confirm", response_model=answer_forms.change_json.model)
async def confirm_one_fact(fact_id: FactId, change: Change) -> JSONResponse:
    """Mark a fact as confirmed by a person."""
    return await change.make_run("confirm", lambda: change.memory.confirm(decode_path_part(fact_id)), {"fact": fact_id})


@router.post("/facts/{fact_id}/withdraw", response_model=answer_forms.change_json.model)
async def withdraw_one_fact(fact_id: FactId, change: Change) -> JSONResponse:
    """Withdraw a fact on behalf of a person: it no longer holds. Nothing is erased."""
    return await change.make_run(
        "withdraw", lambda: change.memory.withdraw(decode_path_part(fact_id)), {"fact": fact_id}
    )


@router.post("/facts/{fact_id}/flag", response_model=answer_forms.change_json.model)
async def flag_one_fact(fact_id: FactId, body: FlagBody, change: Change) -> JSONResponse:
    """Flag a fact that an agent must never miss, or remove the flag."""
    work = partial(change.memory.flag, decode_path_part(fact_id), flagged=body.flagged)
    return await change.make_run("flag", work, {"fact": fact_id, "flagged": body.flagged})


@router.get("/recall", response_model=search_json.model)
async def recall_all_layers(
    memory: Memory,
    q: Annotated[str, Query(max_length=2000)] = "",
    limit: Limit = 10,
    kind: QueryList = None,
    tag: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006
    turns: bool = True,
    as_of: QueryMoment = None,
) -> JSONResponse:
    """Return what matches a question, in all layers: what holds, what held before, what was said."""
    results = await memory.search(q, limit=limit, kind=kind, tags=tag, turns=turns, as_of=as_of)
    return JSONResponse(search_json(results))


@router.get("/context", response_model=context_json.model)
async def context_for_agent(
    who: AnyCaller,
    memory: Memory,
    q: Annotated[str, Query(max_length=2000)] = "",
    budget_tokens: Annotated[int | None, Query(ge=1, le=200_000)] = None,
    also: Annotated[list[str], Query(max_length=10, description="Other memories, as tenant/kind/id.")] = [],  # noqa: B006
) -> JSONResponse:
    """Return the block that an agent is told for a question, and what is left out of it and why."""
    others = [who.memory(Scope.parse(scope)).scope for scope in also]
    return JSONResponse(context_json(await memory.context(q, budget_tokens=budget_tokens, also=others)))


@router.get("/findings", response_model=findings_json.model)
async def list_findings(
    memory: Memory,
    status: QueryList = None,
    agent: Annotated[str | None, Query(max_length=255)] = None,
    as_of: QueryMoment = None,
) -> JSONResponse:
    """List what agents found, newest first: what is current and what waits, or what has the named states."""
    return JSONResponse(findings_json(await memory.findings(status=status, agent=agent, as_of=as_of)))


@router.get("/findings/{finding_id}", response_model=finding_origin_json.model)
async def read_one_finding(memory: Memory, finding_id: FindingId) -> JSONResponse:
    """Return a finding with every time that it was said."""
    return JSONResponse(finding_origin_json(await memory.finding_history(decode_path_part(finding_id))))


@router.post("/findings/{finding_id}/{decision}", response_model=answer_forms.decided_finding_json.model)
async def decide_one_finding(
    finding_id: FindingId, decision: Literal["approve", "drop"], change: Change
) -> JSONResponse:
    """Approve a finding, or drop it so that no agent is told it any more, on behalf of a person."""

    async def work() -> Answer:
        memory = change.memory
        decide = memory.approve_finding if decision == "approve" else memory.drop_finding
        decided = await decide(decode_path_part(finding_id))
        return answer_forms.decided_finding_json((decided, decided.status_at(datetime.now(UTC))))

    return await change.carry_out(f"finding {decision}", work, {"finding": finding_id, "decision": decision})


@text_router.post("/remember", response_model=answer_forms.remembered_json.model)
async def remember_text(body: RememberBody, change: Change) -> JSONResponse:
    """Remember a text. It counts as said by the application, and is kept as it is."""

    async def work() -> Answer:
        return answer_forms.remembered_json(await change.memory.remember_text(body.content, tags=body.tags))

    return await change.carry_out("remember", work, body.model_dump())


@text_router.get("/recall", response_model=answer_forms.memories_json.model)
async def recall_texts(
    memory: Memory,
    q: Annotated[str, Query(max_length=2000, description="The question; empty for everything.")] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 10,
    tags: Annotated[list[str], Query(description="All of these; several, or one text with commas.")] = [],  # noqa: B006
) -> JSONResponse:
    """Return the facts that hold now and match a question, best first."""
    names = [name.strip() for text in tags for name in text.split(",") if name.strip()]
    results = await memory.search(q, limit=limit, tags=names, turns=False, explain=False)
    return JSONResponse(answer_forms.memories_json(results.of_layer(Layer.NOW)))
