"""Routes of one memory: sessions, runs, the review, costs, forgetting in two steps, and exports."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from afterword import ProcessingReport, SessionOutcome
from afterword.client.json_forms import (
    iso_instant,
    receipt_json,
    review_json,
    run_record_json,
    saved_session_json,
    session_details_json,
    spending_json,
)
from afterword.client.values import check_depth, read_state
from afterword.errors import NotFound
from afterword.server.access import (
    Answer,
    AnyCaller,
    Changing,
    KeyHolder,
    Memory,
    check_may_undo,
    decode_path_part,
    export_content,
    parse_number,
)
from afterword.server.contents import (
    Change,
    ConfirmedForgetBody,
    Cursor,
    DecisionBody,
    ForgetBody,
    Limit,
    Names,
    SessionBody,
)
from afterword.server.problems import Refused, encoded_path

router: APIRouter = APIRouter()

SessionId = Annotated[str, Path(max_length=600)]
QUEUED: dict[int | str, dict[str, Any]] = {
    202: {"description": "The session waits to be processed. `Location` says where to ask how far it is."}
}

RunNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
CONFIRMED_FOR_S = 600
"""How long a confirmation may be used."""


@router.get("/sessions")
async def list_sessions_of_memory(
    memory: Memory,
    state: Annotated[list[str] | None, Query(max_length=4, description="pending, done, failed, set aside")] = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> JSONResponse:
    """List sessions, oldest first."""
    page = await memory.sessions(state=state, limit=limit, after=after)
    sessions = [saved_session_json(session) for session in page.sessions]
    return JSONResponse({"sessions": sessions, "total": page.total, "next": page.next})


@router.get("/sessions/{session_id}")
async def read_one_session(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return a session: its transcript, the facts it supports, and what was left out and why."""
    details = await memory.session(decode_path_part(session_id))
    transcript = [
        {
            "turn": entry.turn.number,
            "speaker": entry.turn.speaker,
            "role": str(entry.turn.role),
            "text": entry.turn.text,
            "said_at": iso_instant(entry.turn.said_at),
            "facts": [fact.id for fact in entry.facts],
        }
        for entry in details.turns
    ]
    return JSONResponse({**session_details_json(details), "transcript": transcript})


@router.post("/sessions", responses=QUEUED)
async def send_session(body: SessionBody, request: Request, changing: Changing) -> JSONResponse:
    """Read a saved state: at once, or with `queue` later. A state that is no conversation is refused with 422."""
    check_depth(body.state)
    memory, started_at = changing.memory, body.started_at
    state = body.state if isinstance(body.state, dict) else {"messages": body.state}

    async def work() -> Answer:
        await asyncio.to_thread(read_state, state)
        # A session that is read at once is stored first, too. So its new turns get the present time, and it is tried
        # again later if the model is unavailable.
        await memory.queue(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        if await memory.paused() is not None:
            return {"result": "paused"}
        if body.queue:
            request.app.state.background.wake(memory.scope, body.session_id)
            return {"progress": "pending"}
        processing = memory.process(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        return await _processed(request, changing.who, processing)

    response = await changing.carry_out("session", work, body.model_dump())
    if response.status_code == 202:
        response.headers["Location"] = f"{encoded_path(request)}/{quote(body.session_id, safe='')}/job"
    return response


@router.get("/sessions/{session_id}/job")
async def read_job(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return how far the processing of a session has come: pending, done, failed or set aside, and why."""
    return JSONResponse(saved_session_json((await memory.session(decode_path_part(session_id))).session))


@router.post("/sessions/{session_id}/reprocess")
async def reprocess_session(session_id: SessionId, request: Request, changing: Changing) -> JSONResponse:
    """Read the stored turns of a session again."""

    async def work() -> Answer:
        return await _processed(request, changing.who, changing.memory.reprocess(decode_path_part(session_id)))

    return await changing.carry_out("reprocess", work, {"session": session_id})


async def _processed(request: Request, who: KeyHolder, work: Coroutine[Any, Any, ProcessingReport]) -> Answer:
    """Process a session in a work thread, and return its run and the ids of its facts as a JSON answer."""
    processed = (await request.app.state.background.in_thread(who.key.id, work)).sessions[0]
    result = processed.result
    if not isinstance(result, SessionOutcome):
        return {"result": processed.result_name, "reason": result.reason}
    changes = result.changes
    return {
        "result": processed.result_name,
        "run": result.run_id,
        "turns": result.turns,
        "learned": [fact.id for fact in changes.learned],
        "repeated": [fact.id for fact in changes.repeated],
        "retired": [old.id for old, _ in changes.retired],
        "contested": [fact.id for fact in changes.contested],
        "unclear": [fact.id for fact in changes.unclear],
        "refused": dict(Counter(result.rejected)),
    }


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
    await _check_may_undo(changing, run_id)
    return await changing.make_run("undo", lambda: changing.memory.undo(run_id), {"run": run_id})


@router.post("/runs/{run_id}/redo", response_model=Change)
async def redo_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Apply an undone run again."""
    await _check_may_undo(changing, run_id)
    return await changing.make_run("redo", lambda: changing.memory.redo(run_id), {"run": run_id})


async def _check_may_undo(changing: Changing, run_id: int) -> None:
    with suppress(NotFound):  # the change itself reports a missing run
        run = await changing.who.app.run(run_id)
        if run.scope == changing.memory.scope:
            check_may_undo(changing.who.key, run)


@router.post("/runs/{run_id}/apply", response_model=Change)
async def apply_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Apply a proposed or held run."""
    return await changing.make_run("apply", lambda: changing.memory.apply(run_id), {"run": run_id})


@router.get("/review")
async def list_review(memory: Memory) -> JSONResponse:
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
    work = partial(changing.memory.decide, decode_path_part(item_id), body.decision)
    return await changing.make_run("decide", work, {"item": item_id, "decision": body.decision})


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


class ExportForm(StrEnum):
    """The forms of an export."""

    JSON = "json"
    MARKDOWN = "markdown"
    FULL = "full"


FORMS = {
    ExportForm.JSON: ("memory.json", "application/json"),
    ExportForm.MARKDOWN: ("memory.md", "text/markdown; charset=utf-8"),
    ExportForm.FULL: ("memory.jsonl", "application/jsonl"),
}
EXPORTS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {media_type: {} for _, media_type in FORMS.values()}}
}


@router.post("/forget/preview")
async def preview_forgetting(body: ForgetBody, who: AnyCaller, memory: Memory) -> JSONResponse:
    """Return what would be erased, in counts, and the confirmation that `forget` needs. Nothing is changed."""
    receipt = await memory.preview_forget(**body.target())
    expires = int(time.time()) + CONFIRMED_FOR_S
    confirmation = f"{expires}.{_signature(who, str(memory.scope), body.target(), expires)}"
    return JSONResponse(
        {
            "preview": None if receipt is None else receipt_json(receipt),
            "confirmation": confirmation,
            "valid_s": CONFIRMED_FOR_S,
        }
    )


@router.post("/forget")
async def forget_in_two_steps(body: ConfirmedForgetBody, changing: Changing) -> JSONResponse:
    """Erase for good what was previewed, and return counts. It cannot be undone."""
    memory = changing.memory
    _check_confirmation(changing.who, str(memory.scope), body)

    async def work() -> Answer:
        receipt = await memory.forget(**body.target())
        return {"receipt": None if receipt is None else receipt_json(receipt)}

    return await changing.carry_out("forget", work, body.target())


@router.get("/export", responses=EXPORTS)
async def export_memory(who: AnyCaller, memory: Memory, form: ExportForm = ExportForm.JSON) -> Response:
    """Return the facts of a memory and what was said, as JSON or Markdown, or in full as a file for `afterword import`.

    The full export contains the key of the store's tombstones, so it needs an admin key.
    """
    if form is ExportForm.FULL and not who.key.is_admin:
        raise Refused(403, "the full export needs an admin key; json and markdown do not")
    name, media_type = FORMS[form]
    content = await export_content(memory, name, readable=form is not ExportForm.FULL)
    async with who.app.requests.begin(who.key, "export", scope=memory.scope):
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media_type, headers=headers)


def _signature(who: KeyHolder, scope: str, target: dict[str, Any], expires: int) -> str:
    """Return the signature of a scope, a target and a time of expiry, made with the caller's key."""
    signed = json.dumps([scope, target, expires], sort_keys=True).encode()
    return hmac.new(who.secret.encode(), signed, hashlib.sha256).hexdigest()


def _check_confirmation(who: KeyHolder, scope: str, body: ConfirmedForgetBody) -> None:
    until, _, signature = body.confirmation.partition(".")
    expires = parse_number(until, most_digits=11)
    if expires is None or expires < time.time():
        raise Refused(403, "this confirmation has expired; ask for a preview again")
    expected = _signature(who, scope, body.target(), expires)
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise Refused(403, "this confirmation was given for another request; ask for a preview first")
