"""Many changes of one attribute: one value holds after each of them, before any consolidation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from afterword.extractors.extractor import Usage
from afterword.extractors.judge import Judge, Pair
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.assertions import Relation, Verdict
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store, open_store

MIRA = Scope.user("mira")
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


class FortyPairs:
    """A judge that calls every pair a change, and takes forty pairs a call as the model's judge does."""

    version = "forty-1"
    pairs_a_call = 40

    def __init__(self) -> None:
        self.calls = 0

    async def judge(self, pairs: Sequence[Pair]) -> tuple[list[Verdict], Usage]:
        self.calls += 1
        assert len(pairs) <= self.pairs_a_call
        return [
            Verdict(earlier.id, later.id, Relation.CHANGES, "moved", self.version) for earlier, later in pairs
        ], Usage(calls=1)


async def homes_after(store: Store, judge: Judge, moves: int) -> list[str]:
    for day in range(moves):
        town = f"{chr(65 + day % 26)}{chr(97 + day // 26)}burg"
        message = {"content": f"I now live in {town}.", "source": "user", "type": "UserMessage"}
        state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
        saved = Saved(MIRA, f"day-{day}", state=state, started_at=FIRST_DAY + timedelta(days=day))
        await process_session(store, saved, extractor=RulesExtractor(), judge=judge)
    at = FIRST_DAY + timedelta(days=moves + 1)
    facts = await store.read(lambda transaction: lookup.read_facts(transaction, MIRA, at=at))
    return [fact.value for fact in facts if fact.is_served]


@pytest.mark.parametrize("judge", [RulesJudge(), FortyPairs()], ids=["rules", "forty pairs a call"])
async def test_after_sixty_moves_one_home_is_current(judge: Judge) -> None:
    async with await open_store("sqlite://") as store:
        assert await homes_after(store, judge, 60) == ["Hcburg"]


@pytest.mark.soak
@pytest.mark.parametrize("judge", [RulesJudge(), FortyPairs()], ids=["rules", "forty pairs a call"])
async def test_after_two_hundred_moves_one_home_is_current(judge: Judge) -> None:
    async with await open_store("sqlite://") as store:
        assert await homes_after(store, judge, 200) == ["Rhburg"]
