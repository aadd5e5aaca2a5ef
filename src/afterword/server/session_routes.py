"""The sessions of one memory: send one to be read, and see what came of it."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from afterword import ProcessedSession, SessionDetails
from afterword.client.json_forms import iso_instant, saved_session_json, session_details_json
from afterword.client.values import SessionOutcome, check_depth
from afterword.server.access import Memory
from afterword.server.changes import Answer, Changing
from afterword.server.contents import Cursor, Limit, SessionBody
from afterword.server.paths import path_part

router = APIRouter()

SessionId = Annotated[str, Path(max_length=600)]
QUEUED: dict[int | str, dict[str, Any]] = {
    202: {"description": "The session waits to be processed. `job` says where to ask for it."}
}


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
    details = await memory.session(path_part(session_id))
    return JSONResponse({**session_details_json(details), "transcript": _transcript_json(details)})


def _transcript_json(details: SessionDetails) -> list[dict[str, Any]]:
    return [
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


@router.post("/sessions", responses=QUEUED)
async def send_session(body: SessionBody, request: Request, changing: Changing) -> JSONResponse:
    """Read a saved state: at once, or with `queue` later."""
    check_depth(body.state)
    memory, started_at = changing.memory, body.started_at
    state = body.state if isinstance(body.state, dict) else {"messages": body.state}

    async def work() -> Answer:
        if body.queue:
            await memory.queue(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
            request.app.state.background.wake(memory.scope, body.session_id)
            return {"progress": "pending"}
        processing = memory.process(state, session_id=body.session_id, humans=body.humans, started_at=started_at)
        report = await request.app.state.background.in_thread(processing)
        return processed_answer(report.sessions[0])

    response = await changing.carried_out("session", work, body.model_dump(), status=202 if body.queue else 200)
    if body.queue:
        # A slash and a percent sign in an id are still encoded in the path, and everything else is not.
        path = quote(request.url.path, safe="/%")
        response.headers["Location"] = f"{path}/{quote(body.session_id, safe='')}/job"
    return response


@router.get("/sessions/{session_id}/job")
async def read_job(memory: Memory, session_id: SessionId) -> JSONResponse:
    """Return how far the processing of a session has come: pending, done, failed or set aside, and why."""
    details = await memory.session(path_part(session_id))
    return JSONResponse(saved_session_json(details.session))


@router.post("/sessions/{session_id}/reprocess")
async def reprocess_session(session_id: SessionId, request: Request, changing: Changing) -> JSONResponse:
    """Read the stored turns of a session again."""

    async def work() -> Answer:
        reading = changing.memory.reprocess(path_part(session_id))
        report = await request.app.state.background.in_thread(reading)
        return processed_answer(report.sessions[0])

    return await changing.carried_out("reprocess", work, {"session": session_id})


def processed_answer(processed: ProcessedSession) -> Answer:
    """Return what became of a session: its run, and the ids of the facts."""
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
        "refused": dict(Counter(result.rejected)),
    }
