"""Forgetting for good: first a preview of what goes with it, then the confirmation."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from afterword.errors import ArgumentInvalid
from afterword.server.pages.visit import SCOPE, Visit, page_route, signed_in

MOST_SHOWN = 50


def _target(fact: str, session: str, everything: str, asked: str) -> dict[str, Any]:
    """Return the arguments of `ScopeMemory.forget`. Raises `ArgumentInvalid` unless exactly one is set."""
    chosen: dict[str, Any] = {"fact": fact or None, "session": session or None}
    chosen |= {"everything": everything == "yes", "asked": asked == "yes"}
    named = {name: value for name, value in chosen.items() if value}
    if len(named) != 1:
        raise ArgumentInvalid("name exactly one of fact, session, everything and asked")
    return named


async def show_forget_preview(visit: Visit) -> Response:
    """Show what would be erased: the sentences, and in counts what goes with them."""
    names = ("fact", "session", "everything", "asked")
    target = _target(*(visit.query(name) for name in names))
    receipt = await visit.memory.preview_forget(**target)
    statements: list[str] = []
    total = None
    if "fact" in target:
        origin = await visit.memory.history(target["fact"])
        statements = list(dict.fromkeys([origin.fact.statement, *(said.statement for said in origin.assertions)]))
    elif "session" in target:
        statements = [fact.statement for fact in (await visit.memory.session(target["session"])).facts]
    elif "everything" in target:
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
    target = _target(*(visit.form.get(name, "") for name in ("fact", "session", "everything", "asked")))
    if "everything" in target and visit.form.get("name", "").strip() != visit.memory.scope.id:
        raise ArgumentInvalid(visit.reader.text("forget.name_differs"))
    async with visit.recorded("forget"):
        receipt = await visit.memory.forget(**target)
    is_signed_out = await signed_in(visit.request) is None
    return visit.render("forgotten.html", receipt=receipt, is_signed_out=is_signed_out)


ROUTES: list[BaseRoute] = [
    page_route(f"{SCOPE}/forget", show_forget_preview),
    page_route(f"{SCOPE}/forget", forget_previewed, is_change=True),
]
