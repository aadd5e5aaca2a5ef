"""The same assistant on AutoGen and on Microsoft Agent Framework, on one store.

    python examples/two_frameworks.py [FOLDER]

It needs `pip install 'afterword[agent-framework]'`, and runs offline: the model is scripted and follows the notes in
its prompt. Mira talks to the assistant on AutoGen first. Then the program moves to Agent Framework. Nothing is lost.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any

try:
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatResponse,
        ChatResponseUpdate,
        Content,
        FunctionInvocationLayer,
        Message,
        ResponseStream,
    )
except ModuleNotFoundError as error:
    raise SystemExit(f"this example needs {error.name}: pip install 'afterword[agent-framework]'") from None
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import Afterword
from afterword.agents.agent_framework import FactMemoryProvider

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)
SYSTEM = "You help with travel."


def answer(prompt: str) -> str:
    """Return what a model would say that reads this prompt."""
    holds_now = prompt.partition("Held before, and no longer:")[0]
    seat = "window" if "window seat" in holds_now else "any"
    home = next((place for place in ("Bergen", "Oslo") if f"lives in {place}" in holds_now), None)
    return f"From {home or 'where?'}, {seat} seat."


class AutoGenModel(ReplayChatCompletionClient):
    """The scripted model as AutoGen calls it."""

    def __init__(self) -> None:
        super().__init__([], model_info=INFO)

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the next answer."""
        self.chat_completions.append(answer("\n".join(str(message.content) for message in messages)))
        return await super().create(messages, **options)


class FrameworkModel(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """The scripted model as Agent Framework calls it."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        text = answer("\n".join([options.get("instructions") or "", *(message.text for message in messages)]))
        return self._build_response_stream(_streamed(text)) if stream else _whole(text)


async def _streamed(text: str) -> AsyncIterator[ChatResponseUpdate]:
    for word in text.split(" "):
        yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(f"{word} ")])


async def _whole(text: str) -> ChatResponse[Any]:
    return ChatResponse(messages=[Message("assistant", [text])])


async def on_autogen(app: Afterword, session_id: str, *said: str) -> str:
    """Have a conversation on AutoGen, and return the last answer."""
    mira = app.user("mira")
    agent = AssistantAgent("assistant", AutoGenModel(), system_message=SYSTEM, memory=[mira.memory()])
    async with mira.record(agent, session_id=session_id, process=True):
        answers = [(await agent.run(task=text)).messages[-1].to_text() for text in said]
    return answers[-1]


async def on_agent_framework(app: Afterword, session_id: str, *said: str) -> str:
    """Have a conversation on Agent Framework, and return the last answer."""
    provider = FactMemoryProvider("mira", store=await app.store(), process=app.processor())
    agent = Agent(FrameworkModel(), SYSTEM, name="assistant", context_providers=[provider])
    session = agent.create_session(session_id=session_id)
    answers = [(await agent.run(text, session=session)).text for text in said]
    return answers[-1]


async def main(folder: Path) -> None:
    """Talk to both, and show what each of them knows of what the other one heard."""
    async with afterword.open(f"sqlite:///{folder}/travel.db") as app:
        await on_autogen(app, "monday", "I live in Bergen.", "I prefer the window seat.")
        await app.processor().finish()
        print("Agent Framework:", await on_agent_framework(app, "tuesday", "I fly on Friday."))  # noqa: T201 - an example prints its result
        await on_agent_framework(app, "wednesday", "I no longer live in Bergen. I live in Oslo.")
        await app.processor().finish()
        print("AutoGen:", await on_autogen(app, "thursday", "I fly again."))  # noqa: T201


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(Path(folder)))
