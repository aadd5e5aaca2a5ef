"""Pages of one memory: its facts, the context of an agent, the person's own data, exports, and forgetting."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Review
from afterword.client.values import FactOrder, Status
from afterword.errors import ArgumentInvalid, NotFound
from afterword.server.access import export_content, parse_number
from afterword.server.pages.rendering import HEADERS
from afterword.server.pages.visit import (
    PER_PAGE,
    SCOPE,
    SHOWN_STATUSES,
    Visit,
    find_browser_session_and_count,
    page_or_last,
    page_route,
)
from afterword.server.problems import Refused

LATEST_FACTS_SHOWN = 5
MOST_REVIEWED_AT_ONCE = 1000
KINDS = ("preference", "entity", "decision")
FILTERS = ("kind", "about", "status", "tag")
NO_OVERVIEW = {"lately": (), "review": None, "waiting": 0, "is_review_later": False, "pause": None, "is_empty": False}
LARGEST_BUDGET = 200_000
MOST_LEFT_OUT = 100
FORMATS = {
    "memory.md": "text/markdown; charset=utf-8",
    "memory.json": "application/json",
    "memory.jsonl": "application/jsonl",
}
FOR_ADMINISTRATORS = "memory.jsonl"
"""The file that `afterword import` takes. It contains the key of the store's tombstones. Whoever has this key can check
guesses at what was forgotten."""
MOST_ENTRIES, MOST_SUBJECTS = 50, 20
MOST_SHOWN = 50


def decision_count(review: Review) -> int:
    """Return how many decisions a review asks for."""
    listed = (review.contests, review.held, review.dependents, review.unclear, review.erasures, review.findings)
    return sum(map(len, listed))


async def _overview(visit: Visit) -> dict[str, Any]:
    """Return what the page shows only without filters: the latest facts, and what waits for a decision."""
    learned = await visit.memory.facts(status="all", order=FactOrder.LEARNED, limit=LATEST_FACTS_SHOWN)
    # In a large memory the review takes longer than the list, so the page loads it afterwards.
    is_review_later = learned.total > MOST_REVIEWED_AT_ONCE
    review = None if is_review_later else await visit.memory.review()
    return {
        "lately": learned.facts,
        "review": review,
        "waiting": decision_count(review) if review is not None else 0,
        "is_review_later": is_review_later,
        "pause": await visit.memory.paused(),
        "is_empty": not learned.total,
    }


def _filters(visit: Visit) -> dict[str, str]:
    """Return the filters in the address. A kind or status that does not exist is left out."""
    filters = {name: visit.query_value(name) for name in FILTERS}
    for name, known in (("kind", KINDS), ("status", (*SHOWN_STATUSES, "all"))):
        if filters[name] not in known:
            filters[name] = ""
    return filters


async def show_memory(visit: Visit) -> Response:
    """Show what is remembered, by kind and subject, or what a search finds."""
    query, as_of, filters = visit.query_value("q"), visit.query_value("as_of"), _filters(visit)
    kind, about, status, tag = (filters[name] or None for name in FILTERS)
    narrowed: dict[str, Any] = {"kind": kind, "tags": tag or (), "as_of": as_of or None}
    listing = partial(
        visit.memory.facts, status=status, about=about, order=FactOrder.SUBJECT, limit=PER_PAGE, **narrowed
    )
    listed, page = await page_or_last(listing, visit.page_number())
    groups = groupby(listed.facts, key=lambda fact: (str(fact.kind), fact.subject))
    is_overview = not (query or as_of or any(filters.values()) or page.number > 1)
    return visit.render(
        "memory.html",
        groups=[(*of_group, list(facts)) for of_group, facts in groups],
        page=page,
        query=query,
        as_of=as_of,
        filters=filters,
        results=await visit.memory.search(query, limit=30, **narrowed) if query else None,
        kinds=KINDS,
        statuses=SHOWN_STATUSES,
        list_query={"as_of": as_of, **filters},
        **(await _overview(visit) if is_overview else NO_OVERVIEW),
    )


async def redirect_to_memory(visit: Visit) -> Response:
    """Redirect from the address of a memory to its first page."""
    return visit.redirect(visit.path_to("memory"))


async def show_decision_count(visit: Visit) -> Response:
    """Show how many decisions wait. The page of a large memory loads this part afterwards."""
    review = await visit.memory.review()
    return visit.render("waiting.html", review=review, waiting=decision_count(review))


async def show_context_page(visit: Visit) -> Response:
    """Show what an agent would be told for a question: the block by layers, and what is left out of it."""
    budget, query = parse_number(visit.query_value("budget"), most_digits=6), visit.query_value("q")
    if budget is not None:
        budget = min(max(budget, 1), LARGEST_BUDGET)
    block = await visit.memory.context(query, budget_tokens=budget, most_left_out=MOST_LEFT_OUT)
    more_left_out = block.left_out_count - len(block.left_out)
    return visit.render("context.html", query=query, block=block, left_out=block.left_out, more_left_out=more_left_out)


async def show_own_data(visit: Visit) -> Response:
    """Show how much is stored about a person, and what was done with it."""
    counts = await visit.memory.fact_counts()
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
        entries=(await visit.app.audit(scope=visit.memory.scope, limit=MOST_ENTRIES)).entries,
        formats=[name for name in FORMATS if _may_download(visit, name)],
    )


async def send_export(visit: Visit) -> Response:
    """Send the memory as a file: for people, for programs, or to an administrator for `afterword import`."""
    name = visit.path_value("name")
    if name not in FORMATS:
        raise Refused(404, "there is no such file")
    if not _may_download(visit, name):
        raise Refused(403, "this file needs an admin key; the others do not")
    async with visit.recording_change("export"):
        try:
            content = await export_content(visit.memory, name, readable=name != FOR_ADMINISTRATORS, even_asked=True)
        except NotFound:
            return visit.redirect(visit.path_to("mine"), done="empty")
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=FORMATS[name], headers=headers)


def _may_download(visit: Visit, name: str) -> bool:
    return name != FOR_ADMINISTRATORS or visit.visitor.key.is_admin


async def pause_or_resume(visit: Visit, action: str) -> Response:
    """Pause a memory, so that no session is stored, or resume it."""
    async with visit.recording_change(action):
        await (visit.memory.pause() if action == "pause" else visit.memory.resume_keeping())
    return visit.redirect(visit.path_to("mine"), done=action)


def _forget_target(value_of: Callable[[str], str]) -> dict[str, Any]:
    """Return the arguments of `ScopeMemory.forget` that are set, which must be exactly one."""
    chosen: dict[str, Any] = {name: value_of(name) for name in ("fact", "session")}
    chosen |= {name: value_of(name) == "yes" for name in ("everything", "asked")}
    return {name: value for name, value in chosen.items() if value}


async def show_forget_preview(visit: Visit) -> Response:
    """Show what would be erased: the sentences, and how many other rows."""
    target = _forget_target(visit.query_value)
    receipt, statements, total = await visit.memory.preview_forget(**target), list[str](), 0
    match target:
        case {"fact": fact_id}:
            origin = await visit.memory.history(fact_id)
            statements = list(dict.fromkeys([origin.fact.statement, *(said.statement for said in origin.assertions)]))
        case {"session": session_id}:
            statements = [fact.statement for fact in (await visit.memory.session(session_id)).facts]
        case {"everything": True}:
            listed = await visit.memory.facts(status="all", limit=MOST_SHOWN)
            statements, total = [fact.statement for fact in listed.facts], listed.total
    return visit.render(
        "forget.html",
        receipt=receipt,
        target=target,
        statements=statements[:MOST_SHOWN],
        more=max(0, (total or len(statements)) - MOST_SHOWN),
    )


async def forget_previewed(visit: Visit) -> Response:
    """Erase what was previewed, and show the receipt."""
    target = _forget_target(lambda name: visit.form.get(name, ""))
    if "everything" in target and visit.form.get("name", "").strip() != visit.memory.scope.id:
        raise ArgumentInvalid(visit.reader.text("forget.name_differs"))
    async with visit.recording_change("forget"):
        receipt = await visit.memory.forget(**target)
    return visit.render(
        "forgotten.html", receipt=receipt, is_signed_out=await find_browser_session_and_count(visit.request) is None
    )


ROUTES: list[BaseRoute] = [
    page_route(SCOPE, redirect_to_memory),
    page_route(f"{SCOPE}/memory", show_memory),
    page_route(f"{SCOPE}/waiting", show_decision_count),
    page_route(f"{SCOPE}/context", show_context_page),
    page_route(f"{SCOPE}/mine", show_own_data),
    page_route(f"{SCOPE}/mine/export/{{name}}", send_export),
    page_route(f"{SCOPE}/mine/pause", partial(pause_or_resume, action="pause"), is_change=True),
    page_route(f"{SCOPE}/mine/resume", partial(pause_or_resume, action="resume"), is_change=True),
    page_route(f"{SCOPE}/forget", show_forget_preview),
    page_route(f"{SCOPE}/forget", forget_previewed, is_change=True),
]
