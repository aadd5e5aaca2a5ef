"""The memory tools of one run: those of AutoGen agents, called as functions of Agent Framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import FunctionTool
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from afterword.agents.agent_framework.session_record import JsonMessage, spoken_words
from afterword.agents.conversations import enter_conversation
from afterword.agents.memory import FactMemory
from afterword.agents.tools import MemoryTool, RecallTool, RememberTool, WithdrawTool
from afterword.extractors.extractor import Extractor
from afterword.extractors.readers.agent_framework import is_injected, is_loop_text
from afterword.facts.owners import HUMAN_NAMES

TOOLS = (RememberTool, RecallTool, WithdrawTool)


def run_tools(memory: FactMemory, said: Sequence[LLMMessage], extractor: Extractor | None) -> list[FunctionTool]:
    """Return the tools `remember`, `recall` and `withdraw` for a run in which this was said so far."""
    humans = {message.source for message in said if isinstance(message, UserMessage)} | HUMAN_NAMES
    return [_function_tool(kind(memory, humans=humans, extractor=extractor), memory, said) for kind in TOOLS]


def said_messages(messages: Sequence[JsonMessage]) -> list[LLMMessage]:
    """Return what people and agents said, without what other memories and the framework itself put in."""
    said: list[LLMMessage] = []
    for message in messages:
        text = spoken_words(message)
        if not text or is_injected(message["additional_properties"]):
            continue
        author = message.get("author_name")
        if message["role"] == "user" and not is_loop_text(text):
            said.append(UserMessage(content=text, source=author or "user"))
        elif message["role"] == "assistant":
            said.append(AssistantMessage(content=text, source=author or "assistant"))
    return said


def _function_tool(tool: MemoryTool[Any], memory: FactMemory, said: Sequence[LLMMessage]) -> FunctionTool:
    async def answer(**arguments: Any) -> str:
        # The tool finds what the person has said by the conversation of its task.
        enter_conversation(memory.scope, UnboundedChatCompletionContext(initial_messages=list(said)))
        return (await tool.run(tool.arguments(**arguments), CancellationToken())).text

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        approval_mode="never_require",
        func=answer,
        input_model=tool.arguments,
    )
