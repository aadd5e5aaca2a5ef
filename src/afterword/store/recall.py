"""Choosing what an agent is told: everything while it is little, else what matters for the query."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from afterword.store import lookup
from afterword.store.assertions import Kind
from afterword.store.engine import Store
from afterword.store.facts import Fact
from afterword.store.ranking import rank
from afterword.store.rendering import block, fitted, in_order, label
from afterword.store.scopes import Scope
from afterword.store.timeline import Course, facts_at
from afterword.store.tokens import tokens

STANDING = frozenset({Kind.PREFERENCE, Kind.DECISION})


@dataclass(frozen=True, slots=True)
class Recall:
    """The facts chosen, and the score of each for the query (0 where it was not the query that chose it).

    `whole` says that nothing was left out, `stored` how many facts could have been chosen: 0 means that nothing is
    known, no facts with `stored` above 0 that nothing known is relevant.
    """

    facts: tuple[Fact, ...]
    scores: tuple[float, ...]
    whole: bool
    stored: int


@dataclass(slots=True)
class Remembered:
    """What was read of one scope of one store, kept for the next question while the scope's revision is the same."""

    revision: int = -1
    courses: Sequence[Course] = ()


async def recall(
    store: Store,
    scope: Scope,
    query: str,
    *,
    at: datetime,
    budget_tokens: int,
    limit: int | None = None,
    kinds: Collection[Kind] | None = None,
    remembered: Remembered | None = None,
) -> Recall:
    """Return the facts for an agent's block, by kind and in the order of saying, within the budget.

    Every current or contested fact of the scope where all of them fit. Else preferences and decisions first, up to half
    the budget (those about the query before others, the later said before the earlier), then what the query is about,
    then what was said last. `remembered` spares reading what has not changed. Raises TypeError without a scope, and
    `StoreError` where the store does not answer.
    """
    facts = await _served(store, scope, at, kinds, remembered or Remembered())
    scored = {fact.id: score for fact, score in rank(query, facts)}
    chosen = choose(facts, scored, label=label(scope), budget_tokens=budget_tokens, limit=limit)
    return _recall(chosen, scored, stored=len(facts))


async def search(
    store: Store,
    scope: Scope,
    query: str,
    *,
    at: datetime,
    limit: int | None = None,
    kinds: Collection[Kind] | None = None,
    remembered: Remembered | None = None,
) -> Recall:
    """Return only the facts that share words with the query, best first. An empty query finds every fact, in order.

    Raises TypeError without a scope, and `StoreError` where the store does not answer.
    """
    facts = await _served(store, scope, at, kinds, remembered or Remembered())
    ranked = rank(query, facts)
    found = [fact for fact, _ in ranked] if query.strip() else in_order(facts)
    return _recall(found[:limit], {fact.id: score for fact, score in ranked}, stored=len(facts))


def choose(
    facts: Sequence[Fact], scored: dict[str, float], *, label: str, budget_tokens: int, limit: int | None = None
) -> list[Fact]:
    """Return the facts that an agent is told, in the order of the block; `scored` holds each relevant one's score."""
    if (limit is None or len(facts) <= limit) and tokens(block(facts, label=label)) <= budget_tokens:
        return in_order(facts)
    place = {fact.id: number for number, fact in enumerate(facts)}
    by_use = sorted(facts, key=lambda fact: (-scored.get(fact.id, 0.0), -place[fact.id]))
    standing = fitted((one for one in by_use if one.kind in STANDING), label=label, budget_tokens=budget_tokens // 2)
    first = {fact.id for fact in standing}
    wanted = [*standing, *(fact for fact in by_use if fact.id not in first)]
    kept = fitted(wanted, label=label, budget_tokens=budget_tokens)[:limit]
    return in_order(sorted(kept, key=lambda fact: place[fact.id]))


async def _served(
    store: Store, scope: Scope, at: datetime, kinds: Collection[Kind] | None, remembered: Remembered
) -> list[Fact]:
    if not isinstance(scope, Scope):
        raise TypeError(f"whose facts? give a Scope, for example Scope.user('lena'), not {type(scope).__name__}")
    async with store.read() as db:
        revision = await lookup.revision_of(db, scope)
        if remembered.revision != revision:
            remembered.courses = await lookup.kept_courses(db, scope)
            remembered.revision = revision
    facts = facts_at(remembered.courses, at)
    return [fact for fact in facts if fact.is_served and (kinds is None or fact.kind in kinds)]


def _recall(facts: Sequence[Fact], scored: dict[str, float], *, stored: int) -> Recall:
    return Recall(
        facts=tuple(facts),
        scores=tuple(scored.get(fact.id, 0.0) for fact in facts),
        whole=len(facts) == stored,
        stored=stored,
    )
