"""Pages of runs, which show and undo what each run changed, and of what waits for a person's decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Review, Run, RunEffect
from afterword.errors import ArgumentInvalid, NotFound
from afterword.server.access import check_may_undo, parse_number
from afterword.server.pages.visit import PER_PAGE, SCOPE, Visit, page_or_last, page_route

MOST_FACTS_AT_ONCE = 1000
"""In a memory with more facts, the page of a run loads what the run changed afterwards."""


async def show_runs(visit: Visit) -> Response:
    """Show the runs of a memory, the newest first."""
    rows = partial(visit.memory.runs, limit=PER_PAGE, newest_first=True)
    listed, page = await page_or_last(rows, visit.page_number())
    return visit.render("runs.html", records=listed.runs, page=page)


async def show_run(visit: Visit) -> Response:
    """Show a run with what it changed. In a large memory, the page loads that part afterwards, or by a link."""
    run, counts = await _run_in_path(visit), await visit.memory.fact_counts()
    is_later = sum(counts.by_status.values()) > MOST_FACTS_AT_ONCE and visit.query_value("changes") != "now"
    changes = None if is_later else await visit.memory.run_changes(run.id)
    return visit.render("run.html", run=run, changes=changes, effect=None)


async def show_run_changes(visit: Visit) -> Response:
    """Return the part of a run's page that shows what the run changed."""
    return visit.render("run_changes.html", changes=await visit.memory.run_changes((await _run_in_path(visit)).id))


async def change_run_status(visit: Visit, action: str) -> Response:
    """Undo, redo or apply a run, as `action` says, and show what that changed."""
    run = await _run_in_path(visit)
    check_may_undo(visit.visitor.key, run)
    effect = await visit.carry_out(action, lambda: getattr(visit.memory, action)(run.id))
    return visit.render("run.html", run=effect.run, changes=effect.changes, effect=action)


async def discard_run(visit: Visit) -> Response:
    """Discard a proposed or held run."""
    run = await _run_in_path(visit)
    await visit.carry_out("decide", lambda: visit.memory.decide(f"run:{run.id}", "reject"))
    return visit.redirect(visit.path_to("runs"), done="reject")


async def _run_in_path(visit: Visit) -> Run:
    """Return the run that the path names. Raises `NotFound`, also for a run of another memory."""
    number = parse_number(visit.path_value("run_id"), most_digits=9)
    run = None if number is None else await visit.app.run(number)
    if run is None or run.scope != visit.memory.scope:
        raise NotFound("no such run")
    return run


class WaitingDecision(NamedTuple):
    """A decision that a review asks for. `kind` names the list of the review, and `entry` is its entry there."""

    id: str
    kind: str
    entry: Any


def waiting_decisions(review: Review) -> tuple[WaitingDecision, ...]:
    """Return every decision that a review asks for. Those that may mislead agents meanwhile come first."""
    return (
        *(WaitingDecision(contest.id, "contest", contest) for contest in review.contests),
        *(WaitingDecision(held.id, "held", held) for held in review.held),
        *(WaitingDecision(erasure.id, "erasure", erasure) for erasure in review.erasures),
        *(WaitingDecision(f"name:{fact.id}", "name", fact) for fact in review.unclear),
        *(WaitingDecision(f"finding:{finding.id}", "finding", finding) for finding in review.findings),
        *(WaitingDecision(f"dependent:{each.fact.id}", "dependent", each) for each in review.dependents),
    )


async def show_review(visit: Visit) -> Response:
    """Show the decision that the address names, or the first."""
    waiting = waiting_decisions(await visit.memory.review())
    wanted = visit.query_value("item")
    place = next((place for place, each in enumerate(waiting) if each.id == wanted), 0)
    return visit.render(
        "review.html",
        waiting=waiting,
        place=place,
        shown=waiting[place] if waiting else None,
        before=waiting[place - 1] if place > 0 else None,
        after=waiting[place + 1] if place + 1 < len(waiting) else None,
        policy=str(await visit.memory.policy()),
    )


async def save_decision(visit: Visit) -> Response:
    """Carry out a decision, and show the next one."""
    wanted, decision = visit.form.get("item", ""), visit.form.get("decision", "")
    ids = [each.id for each in waiting_decisions(await visit.memory.review())]
    following = next((after for item_id, after in pairwise(ids) if item_id == wanted), "")
    work, run = _decision_work(visit, wanted, decision), ""
    async with visit.recording_change("decide"):
        effect = await work()
    if isinstance(effect, RunEffect) and effect.run.status == "applied":
        run = str(effect.run.id)
    return visit.redirect(visit.path_to("review"), item=following, done="decide", run=run)


def _decision_work(visit: Visit, wanted: str, decision: str) -> Callable[[], Awaitable[object]]:
    """Return the function that carries a decision out. Raises `ArgumentInvalid` for an unknown decision."""
    memory, (kind, _, wanted_id) = visit.memory, wanted.partition(":")
    match kind, decision:
        case "name", "about":
            return lambda: memory.edit(wanted_id, about=visit.form.get("about", "").strip())
        case (("name" | "dependent"), "withdraw"):
            return lambda: memory.withdraw(wanted_id)
        case "dependent", "confirm":
            return lambda: memory.confirm(wanted_id)
        case "finding", "approve":
            return lambda: memory.approve_finding(wanted_id)
        case "finding", "reject":
            return lambda: memory.drop_finding(wanted_id)
        case (("name" | "dependent" | "finding"), _):
            raise ArgumentInvalid(f"decision={decision!r} is unknown; use a button of the page")
    return lambda: memory.decide(wanted, decision)


async def save_policy(visit: Visit) -> Response:
    """Set which runs wait for a person."""
    async with visit.recording_change("policy"):
        await visit.memory.set_policy(visit.form.get("policy", ""))
    return visit.redirect(visit.path_to("review"), done="policy")


RUN = f"{SCOPE}/runs/{{run_id}}"
ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/runs", show_runs),
    page_route(RUN, show_run),
    page_route(f"{RUN}/changes", show_run_changes),
    *(
        page_route(f"{RUN}/{name}", partial(change_run_status, action=name), is_change=True)
        for name in ("undo", "redo", "apply")
    ),
    page_route(f"{RUN}/reject", discard_run, is_change=True),
    page_route(f"{SCOPE}/review", show_review),
    page_route(f"{SCOPE}/review", save_decision, is_change=True),
    page_route(f"{SCOPE}/policy", save_policy, is_change=True),
]
