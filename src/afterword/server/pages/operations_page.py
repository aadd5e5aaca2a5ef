"""The page for operators of the service: memories, the queue, failures, the schedule, costs, and the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import NamedTuple, TypeVar

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword import Scope, Spending, StoreCosts
from afterword.server.access import accessible_scope
from afterword.server.pages.visit import Visit, page_route

PER_LIST = 25
DAYS_SHOWN = 31
CHART_WIDTH = 200
T = TypeVar("T", date, Scope)


class CostBar(NamedTuple):
    """The cost of a day or a memory, and the length of its bar in the chart."""

    label: date | Scope
    spent: Spending
    width: int


async def show_operations(visit: Visit) -> Response:
    """Show the operations page."""
    app, tenant, prefix = visit.app, visit.visitor.tenant, visit.query_value("prefix")
    scopes_after, queue_after, failures_after, audit_after = (
        visit.query_value(f"{name}_after") or None for name in ("scopes", "queue", "failures", "audit")
    )
    failed, costs = ("failed", "set aside"), await app.costs(tenant=tenant)
    return visit.render(
        "operations.html",
        prefix=prefix,
        scopes=await app.scopes(prefix=prefix, tenant=tenant, limit=PER_LIST, after=scopes_after),
        queue=await app.sessions(state="pending", tenant=tenant, limit=PER_LIST, after=queue_after),
        failures=await app.sessions(state=failed, tenant=tenant, limit=PER_LIST, after=failures_after),
        jobs=await app.jobs(),
        costs=costs,
        charts=_cost_charts(costs),
        audit=await app.audit(tenant=tenant, limit=PER_LIST, after=audit_after),
    )


def _cost_charts(costs: StoreCosts) -> dict[str, tuple[CostBar, ...]]:
    """Return the charts of the last days, and of the memories that cost most."""
    by_amount = sorted(costs.by_scope.items(), key=lambda cost: (-cost[1].micro_usd, -cost[1].tokens, str(cost[0])))
    return {
        "day": cost_bars(dict(sorted(costs.by_day.items(), reverse=True)[:DAYS_SHOWN])),
        "scope": cost_bars(dict(by_amount[:PER_LIST])),
    }


def cost_bars(spent: Mapping[T, Spending]) -> tuple[CostBar, ...]:
    """Return the bars of a cost chart, in the order of `spent`. If no price is known, they show tokens."""
    has_prices = any(spending.micro_usd for spending in spent.values())
    sizes = [spending.micro_usd if has_prices else spending.tokens for spending in spent.values()]
    most = max(sizes, default=0) or 1
    sized = zip(spent.items(), sizes, strict=True)
    return tuple(CostBar(label, spending, round(CHART_WIDTH * size / most)) for (label, spending), size in sized)


async def queue_failed_session(visit: Visit) -> Response:
    """Queue a failed session again."""
    scope = accessible_scope(visit.form.get("scope", ""), visit.visitor.opens)
    session_id = visit.form.get("session", "")
    async with visit.recording_change("retry"):
        await visit.app.retry(session_id, scope=scope)
    visit.request.app.state.background.enqueue_session(scope, session_id)
    return visit.redirect(visit.path_to("operations"), done="retry")


ROUTES: list[BaseRoute] = [
    page_route("/operations", show_operations, is_for_admins=True),
    page_route("/operations/retry", queue_failed_session, is_change=True, is_for_admins=True),
]
