"""Agents with a memory and a scripted model, and the blocks that the model is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    HeadAndTailChatCompletionContext,
    TokenLimitedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import (
    LLMMessage,
    ModelFamily,
    ModelInfo,
    SystemMessage,
)
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.recall.block import OPENING

FACT = "Lena likes tea."
CUSTOM = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)
GEMINI = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.GEMINI_2_0_FLASH,
    structured_output=False,
    multiple_system_messages=False,
)
MANY_SYSTEM_MESSAGES = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.GPT_4O,
    structured_output=False,
    multiple_system_messages=True,
)


def replaying(turns: int = 60) -> ReplayChatCompletionClient:
    return ReplayChatCompletionClient([f"answer {number}" for number in range(turns)], model_info=CUSTOM)


CONTEXTS: dict[str, Callable[[], ChatCompletionContext]] = {
    "unbounded": UnboundedChatCompletionContext,
    "buffered 2": lambda: BufferedChatCompletionContext(buffer_size=2),
    "buffered 5": lambda: BufferedChatCompletionContext(buffer_size=5),
    "head and tail": lambda: HeadAndTailChatCompletionContext(head_size=1, tail_size=2),
    "head and tail 3": lambda: HeadAndTailChatCompletionContext(head_size=3, tail_size=3),
    "token limited": lambda: TokenLimitedChatCompletionContext(replaying(), token_limit=120),
}


def blocks(messages: Sequence[LLMMessage]) -> list[LLMMessage]:
    return [one for one in messages if isinstance(one.content, str) and OPENING in one.content]


def kept(context: ChatCompletionContext) -> list[LLMMessage]:
    return list(context._messages)


def last_request(client: ReplayChatCompletionClient) -> list[LLMMessage]:
    return list(client.create_calls[-1]["messages"])


def is_merged(messages: Sequence[LLMMessage]) -> bool:
    """Whether all system messages stand together, as clients that take one need it."""
    places = [place for place, message in enumerate(messages) if isinstance(message, SystemMessage)]
    return not places or places == list(range(places[0], places[-1] + 1))
