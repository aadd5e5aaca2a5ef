"""How commands tell what was spent."""

from __future__ import annotations

from typing import Any

from afterword.pipeline.budget import dollars
from afterword.store.costs import Spending

NO_PRICE = "no price known"


def spent_json(spent: Spending) -> dict[str, Any]:
    """Return a sum as machines get it: `usd` is a decimal number as text, null where no price is known."""
    return {
        "calls": spent.calls,
        "prompt_tokens": spent.prompt_tokens,
        "cached_tokens": spent.cached_tokens,
        "completion_tokens": spent.completion_tokens,
        "usd": None if spent.usd is None else f"{spent.usd:.6f}",
        "unpriced_calls": spent.unpriced_calls,
        "estimated_calls": spent.estimated_calls,
    }


def money(spent: Spending) -> str:
    """Return what it cost in dollars, and for how many calls no price is known."""
    if spent.usd is None:
        return NO_PRICE
    unpriced = f" and {spent.unpriced_calls} calls without a known price" if spent.unpriced_calls else ""
    return f"{dollars(spent.usd)}{unpriced}"


def told(spent: Spending) -> str:
    """Return a sum in one line."""
    if not spent.calls:
        return "no model was asked"
    estimated = f" ({spent.estimated_calls} calls estimated)" if spent.estimated_calls else ""
    tokens = f"{spent.prompt_tokens:,} prompt and {spent.completion_tokens:,} completion tokens"
    return f"{spent.calls:,} calls, {tokens}, {money(spent)}{estimated}"
