"""For the person whose memory it is: everything about me, taking it away, a pause, and what was forgotten."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword.client.values import Status
from afterword.errors import NotFound
from afterword.server.pages.list_pages import SHOWN_STATUSES
from afterword.server.pages.rendering import HEADERS
from afterword.server.pages.visit import SCOPE, Visit, page_route
from afterword.server.problems import Refused

FORMATS = {
    "memory.md": "text/markdown; charset=utf-8",
    "memory.json": "application/json",
    "memory.jsonl": "application/jsonl",
}
MOST_ENTRIES, MOST_SUBJECTS = 50, 20


async def show_own_data(visit: Visit) -> Response:
    """Show what is held about a person, in counts, and what was done with it."""
    counts = await visit.memory.fact_counts()
    entries = (await visit.app.audit(scope=visit.memory.scope, limit=MOST_ENTRIES)).entries
    return visit.render(
        "own_data.html",
        statuses={name: count for name in SHOWN_STATUSES if (count := counts.by_status.get(Status(name)))},
        subjects=list(counts.by_subject.items())[:MOST_SUBJECTS],
        fact_count=sum(counts.by_status.values()),
        session_count=(await visit.memory.sessions(limit=1)).total,
        asked=await visit.memory.erasures(),
        pause=await visit.memory.paused(),
        zone=await visit.memory.zone(),
        costs=await visit.memory.spent(),
        entries=entries,
        formats=FORMATS,
    )


async def send_export(visit: Visit) -> Response:
    """Send the memory as a file: for people, for programs, or for `afterword import`."""
    name = visit.path_value("name")
    if name not in FORMATS:
        raise Refused(404, "there is no such file")
    with tempfile.TemporaryDirectory(prefix="afterword-export-") as folder:
        path = Path(folder) / name
        async with visit.recorded("export"):
            try:
                await visit.memory.export(path, readable=name != "memory.jsonl", even_asked=True)
            except NotFound:
                return visit.redirect(visit.path_to("mine"), done="empty")
        content = await asyncio.to_thread(path.read_bytes)
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=FORMATS[name], headers=headers)


async def save_pause(visit: Visit) -> Response:
    """Store no session from now on."""
    async with visit.recorded("pause"):
        await visit.memory.pause()
    return visit.redirect(visit.path_to("mine"), done="pause")


async def save_pause_end(visit: Visit) -> Response:
    """Store sessions again."""
    async with visit.recorded("resume"):
        await visit.memory.resume_keeping()
    return visit.redirect(visit.path_to("mine"), done="resume")


ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/mine", show_own_data),
    page_route(f"{SCOPE}/mine/export/{{name}}", send_export),
    page_route(f"{SCOPE}/mine/pause", save_pause, is_change=True),
    page_route(f"{SCOPE}/mine/resume", save_pause_end, is_change=True),
]
