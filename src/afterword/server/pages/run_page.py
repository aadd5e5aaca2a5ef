"""Runs: what each changed, and taking it back or counting it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Run, RunEffect, RunPage
from afterword.errors import NotFound
from afterword.server.pages.list_pages import PER_PAGE, page_or_last
from afterword.server.pages.visit import SCOPE, Visit, page_route

MOST_FACTS_AT_ONCE = 1000
"""In a larger memory the page of a run comes before what the run changed is found."""


async def show_runs(visit: Visit) -> Response:
    """Show the runs of a memory, the newest first."""

    async def rows(first_row: int) -> RunPage:
        return await visit.memory.runs(limit=PER_PAGE, offset=first_row, newest_first=True)

    listed, page = await page_or_last(rows, visit.page_number())
    return visit.render("runs.html", records=listed.runs, page=page)


async def show_run(visit: Visit) -> Response:
    """Show a run with what it changed. Of a large memory the page asks for that afterwards, or by a link."""
    run = await _run(visit)
    counts = await visit.memory.fact_counts()
    is_later = sum(counts.by_status.values()) > MOST_FACTS_AT_ONCE and visit.query("changes") != "now"
    changes = None if is_later else await visit.memory.run_changes(run.id)
    return visit.render("run.html", run=run, changes=changes, effect=None)


async def show_run_changes(visit: Visit) -> Response:
    """Show what a run changed: a part of its page."""
    run = await _run(visit)
    return visit.render("run_changes.html", changes=await visit.memory.run_changes(run.id))


async def show_undone(visit: Visit) -> Response:
    """Undo a run, and show what that changed."""
    return await _switched(visit, "undo", visit.memory.undo)


async def show_redone(visit: Visit) -> Response:
    """Let an undone run count again, and show what that changed."""
    return await _switched(visit, "redo", visit.memory.redo)


async def show_applied(visit: Visit) -> Response:
    """Apply a proposed or held run, and show what that changed."""
    return await _switched(visit, "apply", visit.memory.apply)


async def discard_run(visit: Visit) -> Response:
    """Discard a proposed or held run."""
    run = await _run(visit)
    await visit.change("decide", lambda: visit.memory.decide(f"run:{run.id}", "reject"))
    return visit.redirect(visit.path_to("runs"), done="reject")


async def _switched(visit: Visit, action: str, switch: Callable[[int], Awaitable[RunEffect]]) -> Response:
    run = await _run(visit)
    effect = await visit.change(action, lambda: switch(run.id))
    return visit.render("run.html", run=effect.run, changes=effect.changes, effect=action)


async def _run(visit: Visit) -> Run:
    """Return the run that the path names. Raises `NotFound`, also for a run of another memory."""
    number = visit.path_value("run_id")
    if not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise NotFound("no such run")
    run = await visit.app.run(int(number))
    if run.scope != visit.memory.scope:
        raise NotFound("no such run")
    return run


RUN = f"{SCOPE}/runs/{{run_id}}"
ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/runs", show_runs),
    page_route(RUN, show_run),
    page_route(f"{RUN}/changes", show_run_changes),
    page_route(f"{RUN}/undo", show_undone, is_change=True),
    page_route(f"{RUN}/redo", show_redone, is_change=True),
    page_route(f"{RUN}/apply", show_applied, is_change=True),
    page_route(f"{RUN}/reject", discard_run, is_change=True),
]
