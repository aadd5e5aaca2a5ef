"""What an agent would be told for a question: the block by layers, and what is left out of it."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword.server.pages.visit import SCOPE, Visit, page_route

LARGEST_BUDGET = 200_000
MOST_LEFT_OUT = 100


async def show_context_page(visit: Visit) -> Response:
    """Show what an agent would be told."""
    typed = visit.query("budget")
    budget = int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 7 else None
    if budget is not None:
        budget = min(max(budget, 1), LARGEST_BUDGET)
    block = await visit.memory.context(visit.query("q"), budget_tokens=budget, most_left_out=MOST_LEFT_OUT)
    return visit.render(
        "context.html",
        query=visit.query("q"),
        block=block,
        left_out=block.left_out,
        more_left_out=block.left_out_count - len(block.left_out),
    )


ROUTES: list[BaseRoute] = [page_route(f"{SCOPE}/context", show_context_page)]
