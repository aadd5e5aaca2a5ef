"""What a run would take and cost: `afterword run --estimate`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from afterword.cli.output import console, print_json, table
from afterword.cli.spending import money, spent_json
from afterword.composition import configured_tracker, open_extractor_and_judge
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import queued_sessions
from afterword.pipeline.budget import CostTracker
from afterword.pipeline.estimate import GROWN, NEW, UNCHANGED, UNREADABLE, Estimate, estimate
from afterword.pipeline.intake import Saved
from afterword.settings import Settings
from afterword.store.database.engine import Store

STATES = (NEW, GROWN, UNCHANGED, UNREADABLE)


def show(found: Sequence[Saved] | None, kind: str, configured: Settings, *, as_json: bool) -> None:
    """Print what processing the sessions (the queued ones where None) would take, by scope and in all."""
    by_scope = asyncio.run(_estimated(found, kind, configured))
    # An estimate is told also where no price is known: nothing is asked.
    spending, model = configured_tracker(configured, "rules"), configured.model.name
    total = sum(by_scope.values(), start=Estimate())
    if as_json:
        scopes = {str(scope): _json(one, spending, model) for scope, one in by_scope.items()}
        named = model if kind == "model" else None
        print_json({"extractor": kind, "model": named, **_json(total, spending, model), "scopes": scopes})
        return
    rows = [_row(scope, one, spending, model) for scope, one in by_scope.items()]
    rows.append(_row("all", total, spending, model))
    names = ("scope", *STATES, "windows", "calls", "prompt tokens", "completion tokens", "cost")
    title = f"would be asked of {model}" if kind == "model" else "no model is asked: offline rules"
    console().print(table(f"estimate, {title}; nothing was asked or stored", names, rows))


async def _estimated(found: Sequence[Saved] | None, kind: str, configured: Settings) -> dict[Scope, Estimate]:
    async with _opened(configured.store.url) as store, open_extractor_and_judge(kind, configured.model) as workers:
        waiting = await queued_sessions(store) if found is None else found
        return await estimate(store, waiting, extractor=workers.extractor, judge=workers.judge)


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Store]:
    """Open the store as it is, its tables not brought up to date; where there is none, an empty one in memory."""
    store = Store(url)
    if store.path is not None and not store.path.exists():
        async with Store("sqlite://") as empty:
            await empty.migrate()
            yield empty
        return
    async with store:
        await store.check()
        yield store


def _json(one: Estimate, spending: CostTracker, model: str) -> dict[str, Any]:
    return {
        "sessions": {state: one.sessions.get(state, 0) for state in STATES},
        "windows": one.windows,
        "least": spent_json(spending.priced(model, one.least)),
        "most": spent_json(spending.priced(model, one.most)),
    }


def _row(scope: Scope | str, one: Estimate, spending: CostTracker, model: str) -> list[object]:
    least, most = spending.priced(model, one.least), spending.priced(model, one.most)
    cost = money(most) if most.usd is None or least.usd == most.usd else f"{money(least)} to {money(most)}"
    return [
        scope,
        *(one.sessions.get(state, 0) for state in STATES),
        one.windows,
        _span(least.calls, most.calls),
        _span(least.prompt_tokens, most.prompt_tokens),
        _span(least.completion_tokens, most.completion_tokens),
        cost,
    ]


def _span(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"
