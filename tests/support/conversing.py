"""Conversations with scripted models: an agent calls its tools as told, and we see what came back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.models import CreateResult, FunctionExecutionResultMessage, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword import FactMemory, memory_tools
from afterword.extractors.extractor import Extractor
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.store import lookup, runs
from afterword.store.database.engine import Store
from afterword.store.runs import Run

LENA = Scope.user("lena")
TOOLS = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)


def call(name: str, **arguments: Any) -> CreateResult:
    asked = [FunctionCall(id=f"call-{name}", name=name, arguments=json.dumps(arguments))]
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return CreateResult(finish_reason="function_calls", content=asked, usage=usage, cached=False)


def replying(*steps: str | CreateResult) -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient([*steps], model_info=TOOLS)


async def told(
    memory: FactMemory,
    said: str,
    *calls: CreateResult,
    tools: list[Any] | None = None,
    extractor: Extractor | None = None,
) -> list[str]:
    """What an agent is told by its tools when it calls them after a person has said something."""
    agent = AssistantAgent(
        "helper",
        replying(*calls, "done"),
        memory=[memory],
        tools=[*memory_tools(memory, extractor=extractor), *(tools or [])],
        max_tool_iterations=len(calls) + 1,
    )
    await agent.run(task=said)
    return results(agent)


def results(agent: AssistantAgent) -> list[str]:
    kept = agent.model_context._messages
    return [one.content for each in kept if isinstance(each, FunctionExecutionResultMessage) for one in each.content]


async def facts(store: Store, scope: Scope = LENA) -> list[Fact]:
    with store.reading() as db:
        return lookup.read_facts(db, scope, at=datetime.now(UTC))


async def served(store: Store, scope: Scope = LENA) -> list[str]:
    return [fact.statement for fact in await facts(store, scope) if fact.is_served]


async def held(store: Store, scope: Scope = LENA) -> list[Run]:
    with store.reading() as db:
        return runs.read_runs(db, scope, statuses=["held"])


async def know(memory: FactMemory, statement: str, **metadata: str) -> None:
    await memory.add(MemoryContent(content=statement, mime_type=MemoryMimeType.TEXT, metadata=metadata))
