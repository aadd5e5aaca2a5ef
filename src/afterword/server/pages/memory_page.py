"""What is remembered in one memory: what holds, what changed lately, what waits, and a search as agents do it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Fact, Review
from afterword.client.values import Status
from afterword.server.pages.list_pages import PER_PAGE, PageOfList
from afterword.server.pages.visit import SCOPE, Visit, page_route

LATELY = 5
MOST_REVIEWED_AT_ONCE = 1000
KINDS = ("preference", "entity", "decision")
SHOWN_STATUSES = ("current", "contested", "pending", "superseded", "retracted", "expired")


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


def _list_order(fact: Fact) -> tuple[int, bool, str, float]:
    """Return where a fact stands in the list: by kind, first about the owner, the newest first."""
    return KINDS.index(str(fact.kind)), fact.subject != "user", fact.subject.lower(), -fact.said_at.timestamp()


async def show_memory(visit: Visit) -> Response:
    """Show what is remembered, or what a search finds."""
    query, as_of = visit.query("q"), visit.query("as_of")
    filters = {name: visit.query(name) for name in ("kind", "about", "status", "tag")}
    if filters["kind"] not in KINDS:
        filters["kind"] = ""
    if filters["status"] not in (*SHOWN_STATUSES, "all"):
        filters["status"] = ""
    tags, about, kind = filters["tag"] or (), filters["about"] or None, filters["kind"] or None
    facts = (await visit.memory.facts(status="all", kind=kind, about=about, tags=tags, as_of=as_of or None)).facts
    chosen = sorted(filter(lambda fact: _is_chosen(fact, filters["status"]), facts), key=_list_order)
    page = PageOfList.of(len(chosen), visit.page_number())
    is_plain = not (query or as_of or any(filters.values()) or page.number > 1)
    results = None
    if query:
        results = await visit.memory.search(query, limit=30, kind=kind, tags=tags, as_of=as_of or None)
    # In a large memory the review takes longer than the list: the page asks for it afterwards.
    review = await visit.memory.review() if is_plain and len(facts) <= MOST_REVIEWED_AT_ONCE else None
    return visit.render(
        "memory.html",
        groups=grouped(chosen[page.first_row : page.first_row + PER_PAGE]),
        page=page,
        query=query,
        as_of=as_of,
        filters=filters,
        results=results,
        lately=_changed_lately(facts) if is_plain else (),
        review=review,
        waiting=waiting_count(review) if review is not None else 0,
        is_review_later=is_plain and review is None,
        pause=await visit.memory.paused() if is_plain else None,
        is_empty=is_plain and not facts,
        kinds=KINDS,
        statuses=SHOWN_STATUSES,
        list_query={"as_of": as_of, **filters},
    )


async def show_waiting(visit: Visit) -> Response:
    """Show how many decisions wait: a part of the page of a large memory."""
    review = await visit.memory.review()
    return visit.render("waiting.html", review=review, waiting=waiting_count(review))


def _is_chosen(fact: Fact, status: str) -> bool:
    if not status:
        return fact.is_served
    return status == "all" or fact.status == Status(status)


def _changed_lately(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the facts that were learned last, the newest first."""
    learned = [fact for fact in facts if fact.recorded_at is not None]
    return tuple(sorted(learned, key=lambda fact: fact.recorded_at or fact.said_at, reverse=True)[:LATELY])


ROUTES: list[BaseRoute] = [page_route(f"{SCOPE}/memory", show_memory), page_route(f"{SCOPE}/waiting", show_waiting)]
