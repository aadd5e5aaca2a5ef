"""Divides one budget of tokens among several scopes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from afterword.facts.scopes import Scope
from afterword.recall.tokens import estimated_token_count
from afterword.store.reading.recall import Recall


async def recall_in_shared_budget(
    recall_of: Callable[[Scope, int], Awaitable[Recall]], scopes: Sequence[Scope], budget_tokens: int
) -> list[Recall]:
    """Call `recall_of` with each scope and a budget, and return the results.

    If not everything fits the budget, each scope gets a share of the budget.
    """
    recalls = [await recall_of(scope, budget_tokens) for scope in scopes]
    if len(scopes) == 1:
        return recalls
    needs = [estimated_token_count(recalled.layers.text) if recalled.layers is not None else 0 for recalled in recalls]
    for number, share in enumerate(budget_shares(needs, budget_tokens)):
        if share < needs[number]:
            recalls[number] = await recall_of(scopes[number], share)
    return recalls


def budget_shares(needs: Sequence[int], budget: int) -> list[int]:
    """Return an equal share of the budget for each scope. What a scope does not need goes to the others."""
    assigned = [0] * len(needs)
    left = budget
    for done, number in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        assigned[number] = min(needs[number], left // (len(needs) - done))
        left -= assigned[number]
    return assigned
