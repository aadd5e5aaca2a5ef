"""Every kind of context, client and company: one block, where the model sees it, and no exception that we cause.

The clients are real; they refuse a request whose system messages do not stand together, as their models do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent, SocietyOfMindAgent
from autogen_agentchat.base import ChatAgent, Team
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    HeadAndTailChatCompletionContext,
    TokenLimitedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import ChatCompletionClient, ModelFamily, ModelInfo
from autogen_ext.models.openai import OpenAIChatCompletionClient

from afterword import FactMemory
from afterword.extractors.testing import Reply, ScriptedEndpoint
from afterword.recall.block import OPENING
from afterword.store.database.engine import open_store
from conversing import know, replying

TURNS = 3
FAMILIES = {
    "gpt": ModelFamily.GPT_4O,
    "gemini": ModelFamily.GEMINI_2_0_FLASH,
    "claude": ModelFamily.CLAUDE_3_7_SONNET,
    "unknown": ModelFamily.UNKNOWN,
}
CONTEXTS: dict[str, Callable[[], ChatCompletionContext]] = {
    "unbounded": UnboundedChatCompletionContext,
    "buffered": lambda: BufferedChatCompletionContext(buffer_size=3),
    "head and tail": lambda: HeadAndTailChatCompletionContext(head_size=1, tail_size=2),
    "token limited": lambda: TokenLimitedChatCompletionContext(replying(), token_limit=150),
}


def info(family: str, *, many: bool) -> ModelInfo:
    return ModelInfo(
        vision=False,
        function_calling=True,
        json_output=False,
        family=FAMILIES[family],
        structured_output=False,
        multiple_system_messages=many,
    )


Make = Callable[[list[Memory]], AssistantAgent]
Company = Callable[[Make, Memory], ChatAgent | Team]


def alone(make: Make, memory: Memory) -> ChatAgent | Team:
    return make([memory])


def in_a_team(make: Make, memory: Memory) -> ChatAgent | Team:
    other = AssistantAgent("other", replying(*["go on"] * 20))
    return RoundRobinGroupChat([other, make([memory])], max_turns=2)


def in_a_nested_team(make: Make, memory: Memory) -> ChatAgent | Team:
    other = AssistantAgent("other", replying(*["go on"] * 20))
    return RoundRobinGroupChat([other, RoundRobinGroupChat([make([memory])], name="inner", max_turns=1)], max_turns=2)


def in_a_society_of_mind(make: Make, memory: Memory) -> ChatAgent | Team:
    inner = RoundRobinGroupChat([make([memory])], max_turns=1)
    return SocietyOfMindAgent("society", team=inner, model_client=replying(*["summed up"] * 20))


COMPANIES: dict[str, Company] = {
    "alone": alone,
    "team": in_a_team,
    "nested team": in_a_nested_team,
    "society of mind": in_a_society_of_mind,
}


@pytest.fixture
async def lena(tmp_path: Path) -> AsyncIterator[FactMemory]:
    async with await open_store(f"sqlite:///{tmp_path / 'facts.db'}") as store:
        memory = FactMemory(user="lena", store=store)
        await know(memory, "Lena likes tea.")
        yield memory


async def requests(
    model: ModelInfo, talk: Callable[[ChatCompletionClient], Awaitable[None]]
) -> list[list[dict[str, Any]]]:
    """What the client really sent while an agent talked."""
    with ScriptedEndpoint(lambda _: Reply("fine")) as endpoint:
        client = OpenAIChatCompletionClient(
            model="scripted", base_url=endpoint.base_url, api_key="none", model_info=model
        )
        try:
            await talk(client)
        finally:
            await client.close()
        return [one["messages"] for one in endpoint.requests]


def check(sent: list[dict[str, Any]]) -> None:
    """One block: in the system messages at the start, else right before what is to be answered."""
    places = [place for place, one in enumerate(sent) if OPENING in one["content"]]
    assert len(places) == 1, sent
    assert sent[places[0]]["content"].count(OPENING) == 1
    roles = [one["role"] for one in sent]
    if roles[places[0]] == "system":
        assert roles[: places[0]] == ["system"] * places[0]
    else:
        assert roles[places[0] : places[0] + 2] == ["user", "user"]
        assert "user" not in roles[places[0] + 2 :]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("company", COMPANIES.values(), ids=COMPANIES)
@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
async def test_one_block_in_the_right_place(
    family: str, company: Company, context: Callable[[], ChatCompletionContext], lena: FactMemory
) -> None:
    for many in (True, False):

        async def talk(client: ChatCompletionClient) -> None:
            kept = context()
            talker = company(lambda memory: AssistantAgent("helper", client, memory=memory, model_context=kept), lena)
            for number in range(TURNS):
                await talker.run(task=f"question {number}")
            assert sum(OPENING in str(one.content) for one in kept._messages) <= 1

        sent = await requests(info(family, many=many), talk)
        assert len(sent) == TURNS
        for one in sent:
            check(one)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("context", [CONTEXTS["unbounded"], CONTEXTS["buffered"]], ids=["unbounded", "buffered"])
async def test_beside_a_list_memory_nothing_breaks_that_works_without_us(
    family: str, is_first: bool, context: Callable[[], ChatCompletionContext], lena: FactMemory
) -> None:
    """A ListMemory adds system messages at the end, which clients that take one refuse, with us or without."""

    async def outcome(ours: list[Memory], many: bool) -> tuple[str | None, list[list[dict[str, Any]]]]:
        broken: list[str] = []

        async def talk(client: ChatCompletionClient) -> None:
            other = ListMemory(memory_contents=[MemoryContent(content="Be kind.", mime_type=MemoryMimeType.TEXT)])
            memory: list[Memory] = [*ours, other] if is_first else [other, *ours]
            agent = AssistantAgent("helper", client, memory=memory, model_context=context())
            try:
                for number in range(TURNS):
                    await agent.run(task=f"question {number}")
            except ValueError as error:
                broken.append(str(error))

        sent = await requests(info(family, many=many), talk)
        return (broken[0] if broken else None), sent

    for many in (True, False):
        without, _ = await outcome([], many)
        beside, sent = await outcome([lena], many)
        assert beside == without
        for one in sent:
            check(one)
