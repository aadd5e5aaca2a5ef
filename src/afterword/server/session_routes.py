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
from afterword.server import answers
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
    202: {
        "model": answers.pending_json.model,
        "description": "The session waits to be processed. `Location` says where to ask how far it is.",
    }
}
PROCESSED = (
    answers.read_session_json.model
    | answers.unread_session_json.model
    | answers.paused_json.model
    | answers.remembered_json.model
)
"""What a request to process a session is answered with. A request that is repeated after a crash gets the last."""

RunNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]
CONFIRMED_FOR_S = 600
"""How long a confirmation may be used."""


@router.get("/sessions", response_model=answers.session_page_json.model)
async def list_sessions_of_memory(
    memory: Memory,
    state: Annotated[list[str] | None, Query(max_length=4, description="pending, done, failed, set aside")] = None,
    limit: Limit = 50,
    after: Cursor = None,
) -> JSONResponse:
    """List sessions, oldest first."""
    page = await memory.sessions(state=state, limit=limit, after=after)
    return JSONResponse(answers.session_page_json(page))


@router.get("/sessions/{session_id}", response_model=answers.session_json.model)
async def read_one_session(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return a session: its transcript, the facts it supports, and what was left out and why."""
    return JSONResponse(answers.session_json(await memory.session(decode_path_part(session_id))))


@router.post("/sessions", response_model=PROCESSED, responses=QUEUED)
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
            return answers.paused_json("paused")
        if body.queue:
            request.app.state.background.wake(memory.scope, body.session_id)
            return answers.pending_json("pending")
        processing = memory.process(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        return await _processed(request, changing.who, processing)

    response = await changing.carry_out("session", work, body.model_dump())
    if response.status_code == 202:
        response.headers["Location"] = f"{encoded_path(request)}/{quote(body.session_id, safe='')}/job"
    return response


@router.get("/sessions/{session_id}/job", response_model=saved_session_json.model)
async def read_job(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return how far the processing of a session has come: pending, done, failed or set aside, and why."""
    return JSONResponse(saved_session_json((await memory.session(decode_path_part(session_id))).session))


@router.post("/sessions/{session_id}/reprocess", response_model=PROCESSED)
async def reprocess_session(session_id: SessionId, request: Request, changing: Changing) -> JSONResponse:
    """Read the stored turns of a session again."""

    async def work() -> Answer:
        return await _processed(request, changing.who, changing.memory.reprocess(decode_path_part(session_id)))

    return await changing.carry_out("reprocess", work, {"session": session_id})


async def _processed(request: Request, who: KeyHolder, work: Coroutine[Any, Any, ProcessingReport]) -> Answer:
    """Process a session in a work thread, and return its run and the ids of its facts as a JSON answer."""
    processed = (await request.app.state.background.in_thread(who.key.id, work)).sessions[0]
    result = processed.result
    if isinstance(result, SessionOutcome):
        return answers.read_session_json(result)
    return answers.unread_session_json(processed)


@router.get("/runs", response_model=answers.run_page_json.model)
async def list_runs(memory: Memory, status: Names = None, limit: Limit = 50, after: Cursor = None) -> JSONResponse:
    """List runs, oldest first, each with its cost and the key that asked for it."""
    page = await memory.runs(status=status, limit=limit, after=after)
    return JSONResponse(answers.run_page_json(page))


@router.post("/runs/{run_id}/undo", response_model=answers.change_json.model)
async def undo_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Undo an applied run with everything that it caused."""
    await _check_may_undo(changing, run_id)
    return await changing.make_run("undo", lambda: changing.memory.undo(run_id), {"run": run_id})


@router.post("/runs/{run_id}/redo", response_model=answers.change_json.model)
async def redo_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Apply an undone run again."""
    await _check_may_undo(changing, run_id)
    return await changing.make_run("redo", lambda: changing.memory.redo(run_id), {"run": run_id})


async def _check_may_undo(changing: Changing, run_id: int) -> None:
    with suppress(NotFound):  # the change itself reports a missing run
        run = await changing.who.app.run(run_id)
        if run.scope == changing.memory.scope:
            check_may_undo(changing.who.key, run)


@router.post("/runs/{run_id}/apply", response_model=answers.change_json.model)
async def apply_one_run(run_id: RunNumber, changing: Changing) -> JSONResponse:
    """Apply a proposed or held run."""
    return await changing.make_run("apply", lambda: changing.memory.apply(run_id), {"run": run_id})


@router.get("/review", response_model=answers.open_review_json.model)
async def list_review(memory: Memory) -> JSONResponse:
    """Return what waits for a person: contests, held runs, unclear names, requests to erase."""
    return JSONResponse(answers.open_review_json(await memory.review()))


@router.post("/review/{item_id}", response_model=answers.change_json.model)
async def decide_one_item(
    item_id: Annotated[str, Path(max_length=300, description="The id of a contest, run:N, or erase:ID.")],
    body: DecisionBody,
    changing: Changing,
) -> JSONResponse:
    """Carry out a person's decision on an item of the review."""
    work = partial(changing.memory.decide, decode_path_part(item_id), body.decision)
    return await changing.make_run("decide", work, {"item": item_id, "decision": body.decision})


@router.get("/costs", response_model=answers.costs_json.model)
async def read_costs(memory: Memory) -> JSONResponse:
    """Return what models cost in this memory, by source and by run."""
    return JSONResponse(answers.costs_json(await memory.costs()))


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


@router.post("/forget/preview", response_model=answers.preview_json.model)
async def preview_forgetting(body: ForgetBody, who: AnyCaller, memory: Memory) -> JSONResponse:
    """Return what would be erased, in counts, and the confirmation that `forget` needs. Nothing is changed."""
    receipt = await memory.preview_forget(**body.target())
    expires = int(time.time()) + CONFIRMED_FOR_S
    confirmation = f"{expires}.{_signature(who, str(memory.scope), body.target(), expires)}"
    return JSONResponse(answers.preview_json((receipt, confirmation, CONFIRMED_FOR_S)))


@router.post("/forget", response_model=answers.forgotten_json.model)
async def forget_in_two_steps(body: ConfirmedForgetBody, changing: Changing) -> JSONResponse:
    """Erase for good what was previewed, and return counts. It cannot be undone."""
    memory = changing.memory
    _check_confirmation(changing.who, str(memory.scope), body)

    async def work() -> Answer:
        return answers.forgotten_json(await memory.forget(**body.target()))

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
