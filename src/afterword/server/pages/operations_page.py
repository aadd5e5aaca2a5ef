"""For those who run the service: memories, the queue, failures, the schedule, costs, and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

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


@dataclass(frozen=True, slots=True)
class CostBar:
    """What was spent on a day, and how long its bar is in the chart."""

    day: date
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
        bars=cost_bars(dict(costs.by_day)),
        audit=await visit.app.audit(tenant=tenant, limit=PER_LIST, after=_number_cursor(visit.query("audit_after"))),
    )


def cost_bars(by_day: dict[date, Spending]) -> tuple[CostBar, ...]:
    """Return the latest days with their bars, the newest first. Without prices the bars show tokens."""
    days = sorted(by_day, reverse=True)[:DAYS_SHOWN]
    has_prices = any(by_day[day].micro_usd for day in days)
    sizes = {day: by_day[day].micro_usd if has_prices else by_day[day].tokens for day in days}
    most = max(sizes.values(), default=0) or 1
    return tuple(CostBar(day, by_day[day], round(CHART_WIDTH * sizes[day] / most)) for day in days)


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
