"""Routes of one memory: sessions, runs, the review, costs, forgetting in two steps, and exports."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Coroutine
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse, Response

from afterword import ProcessingReport, SessionOutcome
from afterword.client.forms.memory_forms import saved_session_json
from afterword.client.values import check_depth, read_state
from afterword.errors import NotFound
from afterword.server import answer_forms
from afterword.server.access import (
    Answer,
    AnyCaller,
    Change,
    KeyHolder,
    Memory,
    check_may_undo,
    export_content,
    parse_number,
)
from afterword.server.problems import Refused
from afterword.server.request_paths import decode_path_part, encoded_path
from afterword.server.request_types import (
    ConfirmedForgetBody,
    Cursor,
    DecisionBody,
    ForgetBody,
    Limit,
    QueryList,
    SessionBody,
)

router: APIRouter = APIRouter()

SessionId = Annotated[str, Path(max_length=600)]
QUEUED: dict[int | str, dict[str, Any]] = {
    202: {
        "model": answer_forms.pending_json.model,
        "description": "The session waits to be processed. `Location` says where to ask how far it is.",
    }
}
PROCESSED = (
    answer_forms.read_session_json.model
    | answer_forms.unread_session_json.model
    | answer_forms.paused_json.model
    | answer_forms.remembered_json.model
)
"""The answers to a request to process a session. The last is for a request that is repeated after a crash."""

RunNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
CONFIRMED_FOR_S = 600
"""How long a confirmation may be used."""


@router.get("/sessions", response_model=answer_forms.session_page_json.model)
async def list_sessions_of_memory(
    memory: Memory,
    state: Annotated[list[str] | None, Query(max_length=4, description="pending, done, failed, set aside")] = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> JSONResponse:
    """List sessions, oldest first."""
    page = await memory.sessions(state=state, limit=limit, after=after)
    return JSONResponse(answer_forms.session_page_json(page))


@router.get("/sessions/{session_id}", response_model=answer_forms.session_json.model)
async def read_one_session(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return a session: its transcript, the facts it supports, and what was left out and why."""
    return JSONResponse(answer_forms.session_json(await memory.session(decode_path_part(session_id))))


@router.post("/sessions", response_model=PROCESSED, responses=QUEUED)
async def send_session(body: SessionBody, request: Request, change: Change) -> JSONResponse:
    """Read a saved state: at once, or with `queue` later. A state that is no conversation is refused with 422."""
    check_depth(body.state)
    memory, started_at = change.memory, body.started_at
    state = body.state if isinstance(body.state, dict) else {"messages": body.state}

    async def work() -> Answer:
        await asyncio.to_thread(read_state, state)
        # A session that is read at once is stored first, too. So its new turns get the present time, and it is tried
        # again later if the model is unavailable.
        await memory.queue(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        if await memory.paused() is not None:
            return answer_forms.paused_json("paused")
        if body.queue:
            request.app.state.background.enqueue_session(memory.scope, body.session_id)
            return answer_forms.pending_json("pending")
        processing = memory.process(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        return await _process_in_thread(request, change.who, processing)

    response = await change.carry_out("session", work, body.model_dump())
    if response.status_code == 202:
        response.headers["Location"] = f"{encoded_path(request)}/{quote(body.session_id, safe='')}/job"
    return response


@router.get("/sessions/{session_id}/job", response_model=saved_session_json.model)
async def read_job(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return how far the processing of a session has come: pending, done, failed or set aside, and why."""
    return JSONResponse(saved_session_json((await memory.session(decode_path_part(session_id))).session))


@router.post("/sessions/{session_id}/reprocess", response_model=PROCESSED)
async def reprocess_session(session_id: SessionId, request: Request, change: Change) -> JSONResponse:
    """Read the stored turns of a session again."""

    async def work() -> Answer:
        return await _process_in_thread(request, change.who, change.memory.reprocess(decode_path_part(session_id)))

    return await change.carry_out("reprocess", work, {"session": session_id})


async def _process_in_thread(request: Request, who: KeyHolder, work: Coroutine[Any, Any, ProcessingReport]) -> Answer:
    """Process a session in a work thread, and return its run and the ids of its facts as a JSON answer."""
    processed = (await request.app.state.background.run_in_thread(who.key.id, work)).sessions[0]
    result = processed.result
    if isinstance(result, SessionOutcome):
        return answer_forms.read_session_json(result)
    return answer_forms.unread_session_json(processed)


@router.get("/runs", response_model=answer_forms.run_page_json.model)
async def list_runs(memory: Memory, status: QueryList = None, limit: Limit = 50, after: Cursor = None) -> JSONResponse:
    """List runs, oldest first, each with its cost and the key that asked for it."""
    page = await memory.runs(status=status, limit=limit, after=after)
    return JSONResponse(answer_forms.run_page_json(page))


@router.post("/runs/{run_id}/undo", response_model=answer_forms.change_json.model)
async def undo_one_run(run_id: RunNumber, change: Change) -> JSONResponse:
    """Undo an applied run with everything that it caused."""
    await _check_may_undo_run(change, run_id)
    return await change.make_run("undo", lambda: change.memory.undo(run_id), {"run": run_id})


@router.post("/runs/{run_id}/redo", response_model=answer_forms.change_json.model)
async def redo_one_run(run_id: RunNumber, change: Change) -> JSONResponse:
    """Apply an undone run again."""
    await _check_may_undo_run(change, run_id)
    return await change.make_run("redo", lambda: change.memory.redo(run_id), {"run": run_id})


async def _check_may_undo_run(change: Change, run_id: int) -> None:
    with suppress(NotFound):  # the change itself reports a missing run
        run = await change.who.app.run(run_id)
        if run.scope == change.memory.scope:
            check_may_undo(change.who.key, run)


@router.post("/runs/{run_id}/apply", response_model=answer_forms.change_json.model)
async def apply_one_run(run_id: RunNumber, change: Change) -> JSONResponse:
    """Apply a proposed or held run."""
    return await change.make_run("apply", lambda: change.memory.apply(run_id), {"run": run_id})


@router.get("/review", response_model=answer_forms.open_review_json.model)
async def list_review(memory: Memory) -> JSONResponse:
    """Return what waits for a person: contests, held runs, unclear names, requests to erase."""
    return JSONResponse(answer_forms.open_review_json(await memory.review()))


@router.post("/review/{item_id}", response_model=answer_forms.change_json.model)
async def decide_one_item(
    item_id: Annotated[str, Path(max_length=300, description="The id of a contest, run:N, or erase:ID.")],
    body: DecisionBody,
    change: Change,
) -> JSONResponse:
    """Carry out a person's decision on an item of the review."""
    work = partial(change.memory.decide, decode_path_part(item_id), body.decision)
    return await change.make_run("decide", work, {"item": item_id, "decision": body.decision})


@router.get("/costs", response_model=answer_forms.costs_json.model)
async def read_costs(memory: Memory) -> JSONResponse:
    """Return what models cost in this memory, by source and by run."""
    return JSONResponse(answer_forms.costs_json(await memory.costs()))


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
    200: {
        "description": "The file.",
        "content": {
            media_type: {"schema": {"type": "object" if form is ExportForm.JSON else "string"}}
            for form, (_, media_type) in FORMS.items()
        },
    }
}


@router.post("/forget/preview", response_model=answer_forms.preview_json.model)
async def preview_forgetting(body: ForgetBody, who: AnyCaller, memory: Memory) -> JSONResponse:
    """Return what would be erased, in counts, and the confirmation that `forget` needs. Nothing is changed."""
    receipt = await memory.preview_forget(**body.target())
    expires = int(time.time()) + CONFIRMED_FOR_S
    confirmation = f"{expires}.{_confirmation_signature(who, str(memory.scope), body.target(), expires)}"
    return JSONResponse(answer_forms.preview_json((receipt, confirmation, CONFIRMED_FOR_S)))


@router.post("/forget", response_model=answer_forms.forgotten_json.model)
async def forget_in_two_steps(body: ConfirmedForgetBody, change: Change) -> JSONResponse:
    """Erase for good what was previewed, and return counts. It cannot be undone."""
    memory = change.memory
    _check_confirmation(change.who, str(memory.scope), body)

    async def work() -> Answer:
        return answer_forms.forgotten_json(await memory.forget(**body.target()))

    return await change.carry_out("forget", work, body.target())


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


def _confirmation_signature(who: KeyHolder, scope: str, target: dict[str, Any], expires: int) -> str:
    """Return the signature of a scope, a target and a time of expiry, made with the caller's key."""
    signed = json.dumps([scope, target, expires], sort_keys=True).encode()
    return hmac.new(who.secret.encode(), signed, hashlib.sha256).hexdigest()


def _check_confirmation(who: KeyHolder, scope: str, body: ConfirmedForgetBody) -> None:
    until, _, signature = body.confirmation.partition(".")
    expires = parse_number(until, most_digits=11)
    if expires is None or expires < time.time():
        raise Refused(403, "this confirmation has expired; ask for a preview again")
    expected = _confirmation_signature(who, scope, body.target(), expires)
    if not hmac.compare_digest(expected.encode(), signature.encode()):
        raise Refused(403, "this confirmation was given for another request; ask for a preview first")
