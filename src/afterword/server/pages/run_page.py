"""Runs: what each changed, and taking it back or counting it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Fact, FactChange, Run, RunEffect, ScopeMemory
from afterword.errors import NotFound
from afterword.server.pages.list_pages import PER_PAGE, PageOfList
from afterword.server.pages.visit import SCOPE, Visit, page_route

MOMENT = timedelta(microseconds=1)


async def changes_of(memory: ScopeMemory, run: Run) -> tuple[FactChange, ...]:
    """Return what a run changed when it was applied: what was believed just before, and then."""
    if run.applied_at is None:
        return ()
    before = await _believed(memory, run.applied_at, run.applied_at - MOMENT)
    after = await _believed(memory, run.applied_at, run.applied_at)
    changed = [FactChange(before.get(id_), fact) for id_, fact in after.items() if before.get(id_) != fact]
    return (*changed, *(FactChange(fact, None) for id_, fact in before.items() if id_ not in after))


async def _believed(memory: ScopeMemory, as_of: datetime, known_at: datetime) -> dict[str, Fact]:
    page = await memory.facts(status="all", as_of=as_of, known_at=known_at)
    return {fact.id: fact for fact in page.facts}


async def show_runs(visit: Visit) -> Response:
    """Show the runs of a memory, the newest first."""
    records = (await visit.memory.runs()).runs[::-1]
    page = PageOfList.of(len(records), visit.page_number())
    return visit.render("runs.html", records=records[page.first_row : page.first_row + PER_PAGE], page=page)


async def show_run(visit: Visit) -> Response:
    """Show a run with what it changed."""
    run = await _run(visit)
    changes = await changes_of(visit.memory, run)
    return visit.render("run.html", run=run, changes=changes, effect=None)


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
    page_route(f"{RUN}/undo", show_undone, is_change=True),
    page_route(f"{RUN}/redo", show_redone, is_change=True),
    page_route(f"{RUN}/apply", show_applied, is_change=True),
    page_route(f"{RUN}/reject", discard_run, is_change=True),
]
