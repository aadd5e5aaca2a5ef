"""What is remembered in one memory: what holds, what changed lately, what waits, and a search as agents do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Fact, FactPage, Review
from afterword.client.values import FactOrder
from afterword.server.pages.list_pages import PER_PAGE, SHOWN_STATUSES, PageOfList, page_or_last
from afterword.server.pages.visit import SCOPE, Visit, page_route

LATELY = 5
MOST_REVIEWED_AT_ONCE = 1000
KINDS = ("preference", "entity", "decision")


@dataclass(frozen=True, slots=True)
class FactGroup:
    """The facts of one kind about one subject."""

    kind: str
    subject: str
    facts: tuple[Fact, ...]


def waiting_count(review: Review) -> int:
    """Return how many decisions a review asks for."""
    listed = (review.contests, review.held, review.dependents, review.unclear, review.erasures, review.findings)
    return sum(map(len, listed))


def grouped(facts: Sequence[Fact]) -> tuple[FactGroup, ...]:
    """Return facts by kind and subject, in the order of the facts."""
    groups = groupby(facts, key=lambda fact: (str(fact.kind), fact.subject))
    return tuple(FactGroup(kind, subject, tuple(members)) for (kind, subject), members in groups)


def _filters(visit: Visit) -> dict[str, str]:
    """Return the filters that the address names; unknown names count as none."""
    filters = {name: visit.query(name) for name in ("kind", "about", "status", "tag")}
    if filters["kind"] not in KINDS:
        filters["kind"] = ""
    if filters["status"] not in (*SHOWN_STATUSES, "all"):
        filters["status"] = ""
    return filters


async def _fact_list(visit: Visit, filters: dict[str, str], as_of: str) -> tuple[Sequence[Fact], PageOfList]:
    """Return the facts of the page of the list that the address names; of the last page, if there are fewer."""
    arguments: dict[str, Any] = {
        "status": filters["status"] or None,
        "kind": filters["kind"] or None,
        "about": filters["about"] or None,
        "tags": filters["tag"] or (),
        "as_of": as_of or None,
        "order": FactOrder.SUBJECT,
        "limit": PER_PAGE,
    }

    async def rows(first_row: int) -> FactPage:
        return await visit.memory.facts(**arguments, offset=first_row)

    listed, page = await page_or_last(rows, visit.page_number())
    return listed.facts, page


async def _news(visit: Visit) -> dict[str, Any]:
    """Return what stands beside a list without filters: what was learned lately, and what waits for a decision."""
    learned = await visit.memory.facts(status="all", order=FactOrder.LEARNED, limit=LATELY)
    # In a large memory the review takes longer than the list: the page asks for it afterwards.
    is_review_later = learned.total > MOST_REVIEWED_AT_ONCE
    review = None if is_review_later else await visit.memory.review()
    return {
        "lately": learned.facts,
        "review": review,
        "waiting": waiting_count(review) if review is not None else 0,
        "is_review_later": is_review_later,
        "pause": await visit.memory.paused(),
        "is_empty": not learned.total,
    }


NO_NEWS = {"lately": (), "review": None, "waiting": 0, "is_review_later": False, "pause": None, "is_empty": False}


async def show_memory(visit: Visit) -> Response:
    """Show what is remembered, or what a search finds."""
    query, as_of, filters = visit.query("q"), visit.query("as_of"), _filters(visit)
    facts, page = await _fact_list(visit, filters, as_of)
    results = None
    if query:
        results = await visit.memory.search(
            query, limit=30, kind=filters["kind"] or None, tags=filters["tag"] or (), as_of=as_of or None
        )
    has_news = not (query or as_of or any(filters.values()) or page.number > 1)
    return visit.render(
        "memory.html",
        groups=grouped(facts),
        page=page,
        query=query,
        as_of=as_of,
        filters=filters,
        results=results,
        kinds=KINDS,
        statuses=SHOWN_STATUSES,
        list_query={"as_of": as_of, **filters},
        **(await _news(visit) if has_news else NO_NEWS),
    )


async def show_waiting(visit: Visit) -> Response:
    """Show how many decisions wait: a part of the page of a large memory."""
    review = await visit.memory.review()
    return visit.render("waiting.html", review=review, waiting=waiting_count(review))


ROUTES: list[BaseRoute] = [page_route(f"{SCOPE}/memory", show_memory), page_route(f"{SCOPE}/waiting", show_waiting)]
