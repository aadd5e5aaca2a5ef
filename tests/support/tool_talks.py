"""A person's conversation with an agent that calls its memory tools."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage

from afterword import FactMemory
from afterword.agents import person_words
from afterword.agents.placement import set_conversation_of_task
from afterword.agents.tools import RememberTool, WithdrawTool
from afterword.extractors.extractor import Extractor
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.privacy.policy import Privacy
from afterword.store import lookup, runs
from afterword.store.database.engine import Store


class Talk:
    """One person's conversation with an agent that calls its tools."""

    def __init__(self, store: Store, user: str) -> None:
        self.store, self.memory = store, FactMemory(user=user, store=store)
        self.extractor: Extractor = RulesExtractor()
        self.scope, self.context = Scope.user(user), UnboundedChatCompletionContext()

    async def says(self, *messages: str) -> None:
        for text in messages:
            await self.context.add_message(UserMessage(content=text, source="user"))
        set_conversation_of_task(self.scope, self.context)

    async def remembers(self, statement: str, attribute: str, value: str, **more: str) -> str:
        tool = RememberTool(self.memory, extractor=self.extractor)
        asked = {"statement": statement, "attribute": attribute, "value": value, "quote": statement, **more}
        return tool.return_value_as_string(await tool.run_json(asked, CancellationToken()))

    async def withdraws(self, note: str, quote: str) -> str:
        tool = WithdrawTool(self.memory, extractor=self.extractor)
        return tool.return_value_as_string(await tool.run_json({"note": note, "quote": quote}, CancellationToken()))

    async def served(self) -> list[str]:
        facts = await self.store.read(lambda db: lookup.read_facts(db, self.scope, at=datetime.now(UTC)))
        return [fact.statement for fact in facts if fact.is_served]

    async def held(self) -> list[dict[str, int]]:
        waiting = await self.store.read(lambda db: runs.read_runs(db, self.scope, statuses=["held"]))
        return [dict(run.counts) for run in waiting]


@asynccontextmanager
async def talks(cases: Iterable[Any]) -> Any:
    """Yield a talk for each case, all in one store in memory."""
    async with Store("sqlite://") as store:
        await store.migrate()
        yield [(Talk(store, f"user{number}"), case) for number, case in enumerate(cases)]


async def known_note(talk: Talk) -> str:
    """Store what the rules read in the message, and return its statement."""
    conversation = person_words.LiveConversation.from_messages(
        await talk.context.get_messages(), frozenset({"user"}), Privacy(), datetime.now(UTC)
    )
    (said,) = await conversation.plain_assertions_in_last_turn(talk.extractor, talk.scope)
    await talk.remembers(said.statement, said.attribute, said.value)
    assert await talk.served() == [said.statement]
    return said.statement
