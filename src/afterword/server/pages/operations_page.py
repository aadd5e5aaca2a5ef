"""For those who run the service: memories, the queue, failures, the schedule, costs, and the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Scope, Spending
from afterword.errors import ScopeInvalid
from afterword.server.access import NO_SUCH_MEMORY
from afterword.server.pages.visit import Visit, for_administrators, page_route
from afterword.server.problems import Refused

PER_LIST = 25
DAYS_SHOWN = 31
CHART_WIDTH = 200
T = TypeVar("T", date, Scope)


@dataclass(frozen=True, slots=True)
class CostBar:
    """What was spent on a day or a memory, and how long its bar is in the chart."""

    label: date | Scope
    spent: Spending
    width: int


async def show_operations(visit: Visit) -> Response:
    """Show the memories and what goes on in them."""
    tenant, prefix = visit.visitor.tenant, visit.query("prefix")
    costs = await visit.app.costs(tenant=tenant)
    return visit.render(
        "operations.html",
        prefix=prefix,
        scopes=await visit.app.scopes(
            prefix=prefix, tenant=tenant, limit=PER_LIST, after=_scope_cursor(visit.query("scopes_after"))
        ),
        queue=await visit.app.sessions(
            state="pending", tenant=tenant, limit=PER_LIST, after=_number_cursor(visit.query("queue_after"))
        ),
        failures=await visit.app.sessions(
            state=("failed", "set aside"),
            tenant=tenant,
            limit=PER_LIST,
            after=_number_cursor(visit.query("failures_after")),
        ),
        jobs=await visit.app.jobs(),
        costs=costs,
        charts={
            "day": cost_bars(dict(sorted(costs.by_day.items(), reverse=True)[:DAYS_SHOWN])),
            "scope": cost_bars(dict(sorted(costs.by_scope.items(), key=_most_first)[:PER_LIST])),
        },
        audit=await visit.app.audit(tenant=tenant, limit=PER_LIST, after=_number_cursor(visit.query("audit_after"))),
    )


def cost_bars(spent: Mapping[T, Spending]) -> tuple[CostBar, ...]:
    """Return what was spent with its bars, in the given order. Without prices the bars show tokens."""
    has_prices = any(spending.micro_usd for spending in spent.values())
    sizes = [spending.micro_usd if has_prices else spending.tokens for spending in spent.values()]
    most = max(sizes, default=0) or 1
    sized = zip(spent.items(), sizes, strict=True)
    return tuple(CostBar(label, spending, round(CHART_WIDTH * size / most)) for (label, spending), size in sized)


def _most_first(entry: tuple[Scope, Spending]) -> tuple[int, int, str]:
    scope, spent = entry
    return -spent.micro_usd, -spent.tokens, str(scope)


async def queue_failed_session(visit: Visit) -> Response:
    """Queue a failed session again."""
    try:
        scope = Scope.parse(visit.form.get("scope", ""))
    except ScopeInvalid:
        raise Refused(404, NO_SUCH_MEMORY) from None
    if not visit.visitor.opens(scope):
        raise Refused(404, NO_SUCH_MEMORY)
    session_id = visit.form.get("session", "")
    async with visit.recorded("retry"):
        await visit.app.retry(session_id, scope=scope)
    visit.request.app.state.background.wake(scope, session_id)
    return visit.redirect(visit.path_to("operations"), done="retry")


def _number_cursor(text: str) -> str | None:
    return text if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def _scope_cursor(text: str) -> str | None:
    try:
        return str(Scope.parse(text))
    except ScopeInvalid:
        return None


ROUTES: list[BaseRoute] = [
    page_route("/operations", for_administrators(show_operations)),
    page_route("/operations/retry", for_administrators(queue_failed_session), is_change=True),
]
