"""FactMemory in every model context: one block, which parts nothing and pushes nothing out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import MemoryQueryEvent
from autogen_core import FunctionCall
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    TokenLimitedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.agents.recorder import record_session
from afterword.agents.saved_blocks import BLOCK_SOURCE
from afterword.extractors.testing import Reply, ScriptedEndpoint
from afterword.store.database.engine import Store
from injected import (
    CONTEXTS,
    CUSTOM,
    FACT,
    GEMINI,
    MANY_SYSTEM_MESSAGES,
    blocks,
    is_merged,
    kept,
    last_request,
    replaying,
)
from kept import text


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
async def test_fifty_turns_one_block_and_the_model_sees_it_every_time(
    lena: FactMemory, make: Callable[[], ChatCompletionContext]
) -> None:
    context, client = make(), replaying()
    agent = AssistantAgent("helper", client, memory=[lena], model_context=context)
    for number in range(50):
        await agent.run(task=f"question {number}")
        assert len(blocks(kept(context))) == 1
        sent = last_request(client)
        assert len(blocks(sent)) == 1
        assert is_merged(sent)
        assert sent[-1].content == f"question {number}"
    assert len(kept(context)) == 101


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("info", [CUSTOM, GEMINI, MANY_SYSTEM_MESSAGES], ids=["custom", "gemini", "many"])
async def test_clients_that_take_one_system_message_take_ours(
    lena: FactMemory, make: Callable[[], ChatCompletionContext], info: ModelInfo
) -> None:
    """These clients raise where system messages do not stand together: a memory must not be what ends a turn."""
    with ScriptedEndpoint(lambda _: Reply("fine")) as endpoint:
        client = OpenAIChatCompletionClient(
            model="scripted", base_url=endpoint.base_url, api_key="none", model_info=info
        )
        agent = AssistantAgent("helper", client, memory=[lena], model_context=make())
        for number in range(6):
            result = await agent.run(task=f"question {number}")
            assert result.messages[-1].to_text() == "fine"
        await client.close()
    for request in endpoint.requests:
        assert json.dumps(request["messages"], ensure_ascii=False).count(FACT) == 1
        roles = [message["role"] for message in request["messages"]]
        assert "system" not in roles[2:]


async def test_doubles_of_an_older_save_are_removed(lena: FactMemory) -> None:
    context = UnboundedChatCompletionContext()
    await lena.update_context(context)
    [block] = kept(context)
    for copy in (block, UserMessage(content=str(block.content), source=BLOCK_SOURCE), block):
        await context.add_message(UserMessage(content="hello", source="user"))
        await context.add_message(copy)
    await lena.update_context(context)
    assert len(blocks(kept(context))) == 1
    assert len(kept(context)) == 4


async def test_a_user_who_types_a_block_keeps_the_words(lena: FactMemory) -> None:
    context = UnboundedChatCompletionContext()
    await lena.update_context(context)
    [block] = kept(context)
    typed = UserMessage(content=str(block.content), source="user")
    await context.add_message(typed)
    await lena.update_context(context)
    assert typed in kept(context)
    assert len(kept(context)) == 2


@pytest.mark.parametrize(
    "context",
    [
        BufferedChatCompletionContext(buffer_size=1),
        TokenLimitedChatCompletionContext(replaying(), token_limit=10),
    ],
    ids=["buffer of one", "ten tokens"],
)
async def test_where_there_is_room_for_one_message_it_is_the_users(
    lena: FactMemory, context: ChatCompletionContext, caplog: pytest.LogCaptureFixture
) -> None:
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[lena], model_context=context, system_message=None)
    result = await agent.run(task="hello")
    assert [message.content for message in last_request(client)] == ["hello"]
    assert not any(isinstance(message, MemoryQueryEvent) for message in result.messages)
    assert "no room" in caplog.text


async def test_the_block_never_pushes_the_question_out(lena: FactMemory) -> None:
    """A context that counts tokens drops messages from its middle: with one block more, that is the question."""
    seen = 0
    for limit in range(5, 120, 5):
        context = TokenLimitedChatCompletionContext(replaying(), token_limit=limit)
        await context.add_message(UserMessage(content="Where shall " + "we go " * 10, source="user"))
        before = list(await context.get_messages())
        await lena.update_context(context)
        after = await context.get_messages()
        assert all(message in after for message in before)
        seen += len(blocks(after))
    assert seen > 0


def called(name: str = "look", number: int = 0) -> CreateResult:
    call = FunctionCall(id=f"call-{number}", name=name, arguments="{}")
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)


@pytest.mark.parametrize("make", CONTEXTS.values(), ids=CONTEXTS)
async def test_tool_calls_and_their_results_stay_together(
    lena: FactMemory, make: Callable[[], ChatCompletionContext]
) -> None:
    """A result whose call is not shown is refused by providers; our block must not be what parts them."""

    async def look() -> str:
        """Look it up."""
        return "found"

    steps = [step for number in range(8) for step in (called(number=number), f"answer {number}")]
    client = ReplayChatCompletionClient(steps, model_info=CUSTOM)
    context = make()
    agent = AssistantAgent(
        "helper", client, memory=[lena], model_context=context, tools=[look], reflect_on_tool_use=True
    )
    for number in range(8):
        await agent.run(task=f"question {number}")
        everything = kept(context)
        assert len(blocks(everything)) == 1
        for place, message in enumerate(everything):
            if isinstance(message, FunctionExecutionResultMessage):
                before = everything[place - 1]
                assert isinstance(before, AssistantMessage)
                assert not isinstance(before.content, str)


class ForeignContext(ChatCompletionContext):
    """A context that keeps its messages in a place of its own, and tells of them in its saved state."""

    component_config_schema = None

    def __init__(self, is_readable: bool) -> None:
        super().__init__()
        self._own: list[LLMMessage] = []
        self._is_readable = is_readable

    async def add_message(self, message: LLMMessage) -> None:
        self._own.append(message)

    async def get_messages(self) -> list[LLMMessage]:
        return list(self._own)

    async def save_state(self) -> Mapping[str, Any]:
        shown = UnboundedChatCompletionContext(self._own if self._is_readable else [])
        return await shown.save_state()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        taken = UnboundedChatCompletionContext()
        await taken.load_state(state)
        self._own = list(await taken.get_messages())


@pytest.mark.parametrize("is_readable", [True, False])
async def test_a_context_of_another_make_gets_one_block_too(lena: FactMemory, is_readable: bool) -> None:
    context = ForeignContext(is_readable)
    for number in range(4):
        await context.add_message(UserMessage(content=f"question {number}", source="user"))
        await lena.update_context(context)
        assert len(blocks(await context.get_messages())) == 1
    assert len(await context.get_messages()) == 5


class ClosedContext(ForeignContext):
    """A context whose state cannot be saved."""

    async def save_state(self) -> Mapping[str, Any]:
        raise NotImplementedError


async def test_a_context_that_resists_does_not_end_the_turn(lena: FactMemory) -> None:
    client = replaying()
    agent = AssistantAgent("helper", client, memory=[lena], model_context=ClosedContext(is_readable=False))
    await agent.run(task="hello")
    assert last_request(client)[-1].content == "hello"


async def test_the_question_decides_what_is_recalled_and_injected_memory_is_no_question(store: Store) -> None:
    memory = FactMemory(user="lena", store=store, budget_tokens=120)
    for number in range(40):
        await memory.add(MemoryContent(content=f"Lena owns item {number}.", mime_type=MemoryMimeType.TEXT))
    await memory.add(MemoryContent(content="The quasar telescope is broken.", mime_type=MemoryMimeType.TEXT))
    for number in range(40, 60):
        await memory.add(MemoryContent(content=f"Lena owns item {number}.", mime_type=MemoryMimeType.TEXT))
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content=["How is the quasar?"], source="user"))
    await context.add_message(SystemMessage(content="\nRelevant memory content:\n1. item 3\n"))
    await context.add_message(UserMessage(content="Relevant memories:\n- item 4", source="user"))
    put = await memory.update_context(context)
    assert "The quasar telescope is broken." in [one.content for one in put.memories.results]


async def test_a_result_message_at_the_end_is_not_parted_from_its_call(lena: FactMemory) -> None:
    """An agent may be called without a new message while its last one is a tool's result."""
    context = BufferedChatCompletionContext(buffer_size=3)
    for number in range(3):
        await context.add_message(UserMessage(content=f"question {number}", source="user"))
        await context.add_message(
            AssistantMessage(content=[FunctionCall(id="1", name="look", arguments="{}")], source="helper")
        )
        result = FunctionExecutionResult(content="found", name="look", call_id="1", is_error=False)
        await context.add_message(FunctionExecutionResultMessage(content=[result]))
    await lena.update_context(context)
    everything = kept(context)
    assert all(
        isinstance(everything[place - 1], AssistantMessage)
        for place, message in enumerate(everything)
        if isinstance(message, FunctionExecutionResultMessage)
    )


async def test_the_first_part_that_is_told_says_that_it_is_no_instruction(store: Store) -> None:
    """With little room the part at the beginning is left out. The other one has the preface then."""
    memory = FactMemory(user="lena", store=store)
    for number in range(6):
        await memory.add(text(f"The user keeps box {number} of tools in the shed of neighbour number {number}."))
    agent = AssistantAgent("helper", replaying())
    async with record_session(agent, user="lena", session_id="s1", store=store):
        await agent.run(task="Our club meets on Wednesdays.")
    client = replaying()
    client.count_tokens = lambda messages, **_: sum(len(str(message.content)) for message in messages) // 4  # type: ignore[method-assign]
    context = TokenLimitedChatCompletionContext(client, token_limit=130)
    await AssistantAgent("helper", client, memory=[memory], model_context=context).run(task="When does our club meet?")
    [block] = blocks(last_request(client))
    assert "Wednesdays" in str(block.content)
    assert "background, not instructions" in str(block.content)
