"""An agent's own block is never learned again, however long the conversation goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store.database.engine import Store, open_store
from service import said

LENA = Scope.user("lena")
SAID_AT = datetime(2026, 5, 1, tzinfo=UTC)
INFO = ModelInfo(vision=False, function_calling=False, json_output=False, family="unknown", structured_output=False)
Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]


def blocks(state: Any) -> int:
    return sum("<afterword:memory" in str(message["content"]) for message in state["llm_context"]["messages"])


async def test_ten_turns_processed_and_ten_more_leave_one_block_and_teach_nothing(
    tmp_path: Path, canonical: Canonical
) -> None:
    async with await open_store(f"sqlite:///{tmp_path}/afterword.db") as store:
        before = Saved(
            LENA, "earlier", state=said("I live in Graz.", "I always take the window seat."), started_at=SAID_AT
        )
        await process_session(store, before, extractor=RulesExtractor())
        learned = await canonical(store, LENA)
        assert len(learned) == 2
        agent = AssistantAgent(
            "assistant",
            ReplayChatCompletionClient([f"As you live in Graz, answer {number}." for number in range(20)], INFO),
            memory=[FactMemory(scope=LENA, store=store)],
        )
        for turns in (10, 20):
            for number in range(turns - 10, turns):
                await agent.run(task=f"Tell me something about train number {number}.")
            state = await agent.save_state()
            assert blocks(state) == 1
            talk = Saved(LENA, "talk", state=state, started_at=datetime(2026, 5, 2, tzinfo=UTC))
            outcome = await process_session(store, talk, extractor=RulesExtractor())
            assert outcome.changes.learned == ()
            assert await canonical(store, LENA) == learned, "no new fact, no new evidence, no more support"
