"""What waits for a person's decision, one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Review, RunEffect, ScopeMemory
from afterword.errors import ArgumentInvalid
from afterword.server.pages.visit import SCOPE, Visit, page_route


@dataclass(frozen=True, slots=True)
class Waiting:
    """One decision. `kind` says which of the lists of the review it comes from, `subject` is its entry there."""

    id: str
    kind: str
    subject: Any


def decisions(review: Review) -> tuple[Waiting, ...]:
    """Return every decision of a review: first what agents are told wrongly meanwhile."""
    return (
        *(Waiting(contest.id, "contest", contest) for contest in review.contests),
        *(Waiting(held.id, "held", held) for held in review.held),
        *(Waiting(erasure.id, "erasure", erasure) for erasure in review.erasures),
        *(Waiting(f"name:{fact.id}", "name", fact) for fact in review.unclear),
        *(Waiting(f"finding:{finding.id}", "finding", finding) for finding in review.findings),
        *(Waiting(f"dependent:{each.fact.id}", "dependent", each) for each in review.dependents),
    )


async def show_review(visit: Visit) -> Response:
    """Show the decision that the address names, or the first."""
    waiting = decisions(await visit.memory.review())
    wanted = visit.query("item")
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


async def decide(visit: Visit) -> Response:
    """Carry out a decision, and show the next one."""
    wanted, decision = visit.form.get("item", ""), visit.form.get("decision", "")
    waiting = decisions(await visit.memory.review())
    place = next((place for place, each in enumerate(waiting) if each.id == wanted), None)
    following = waiting[place + 1].id if place is not None and place + 1 < len(waiting) else ""
    run: object = ""
    if wanted.startswith("finding:"):
        async with visit.recorded("decide"):
            await _decide_finding(visit.memory, wanted.removeprefix("finding:"), decision)
    else:
        effect = await visit.change("decide", _work(visit, wanted, decision))
        run = effect.run.id if effect.run.status == "applied" else ""
    return visit.redirect(visit.path_to("review"), item=following, done="decide", run=run)


def _work(visit: Visit, wanted: str, decision: str) -> Callable[[], Awaitable[RunEffect]]:
    """Return what carries a decision out. Raises `ArgumentInvalid`."""
    memory, (kind, _, fact_id) = visit.memory, wanted.partition(":")
    if kind == "name" and decision == "about":
        return lambda: memory.edit(fact_id, about=visit.form.get("about", "").strip())
    if kind in ("name", "dependent") and decision == "withdraw":
        return lambda: memory.withdraw(fact_id)
    if kind == "dependent" and decision == "confirm":
        return lambda: memory.confirm(fact_id)
    if kind in ("name", "dependent"):
        raise ArgumentInvalid(f"decision={decision!r} is unknown")
    return lambda: memory.decide(wanted, decision)


async def _decide_finding(memory: ScopeMemory, finding_id: str, decision: str) -> None:
    if decision not in ("approve", "reject"):
        raise ArgumentInvalid(f"decision={decision!r} is unknown")
    await (memory.approve_finding if decision == "approve" else memory.drop_finding)(finding_id)


async def save_policy(visit: Visit) -> Response:
    """Set which runs wait for a person."""
    async with visit.recorded("policy"):
        await visit.memory.set_policy(visit.form.get("policy", ""))
    return visit.redirect(visit.path_to("review"), done="policy")


ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/review", show_review),
    page_route(f"{SCOPE}/review", decide, is_change=True),
    page_route(f"{SCOPE}/policy", save_policy, is_change=True),
]
