"""The same chat with an agent of AutoGen and with one of Agent Framework, each with a memory and a scripted model."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from agent_framework import Agent
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_core.models import CreateResult, LLMMessage
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword import FactMemory, record_session
from afterword.agents.agent_framework import FactMemoryProvider
from afterword.agents.memory_settings import StoreReference
from afterword.recall.block import OPENING
from conversing import TOOLS
from framework_agents import ScriptedClient

SYSTEM = "Be brief."


class LiveChat(ABC):
    """One session of one person. `replies` are what the model says in turn; an exception is raised by it."""

    def __init__(
        self, user: str, session_id: str, store: StoreReference, *replies: str, timeout_s: float = 20.0
    ) -> None:
        self.user, self.session_id, self.store = user, session_id, store
        self.replies = replies or ("Noted.",)
        self.timeout_s = timeout_s
        self.delay_s = 0.0
        self.asked = asyncio.Event()

    async def think(self) -> None:
        """Let the model take its time."""
        self.asked.set()
        await asyncio.sleep(self.delay_s)

    @abstractmethod
    async def say(self, *texts: str, stream: bool = False) -> list[str]:
        """Say something, and return the answers. The session is recorded at the end."""

    @abstractmethod
    async def close(self) -> None:
        """Close the memory."""

    @property
    @abstractmethod
    def requests(self) -> list[str]:
        """What the model was sent each time, as one text."""

    def blocks(self) -> list[int]:
        """Return how many stable blocks each request held."""
        return [text.count(OPENING) - text.count('about="the next message"') for text in self.requests]


class _Replaying(ReplayChatCompletionClient):
    def __init__(self, chat: LiveChat) -> None:
        super().__init__(list(chat.replies) * 40, model_info=TOOLS)
        self.chat = chat
        self.sent: list[str] = []

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        self.sent.append("\n".join(str(message.content) for message in messages))
        await self.chat.think()
        return await super().create(messages, **options)

    async def create_stream(
        self, messages: Sequence[LLMMessage], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        self.sent.append("\n".join(str(message.content) for message in messages))
        await self.chat.think()
        async for part in super().create_stream(messages, **options):
            yield part


class AutoGenChat(LiveChat):
    """A chat with an `AssistantAgent`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.client = _Replaying(self)
        self.memory = FactMemory(
            user=self.user, store=self.store, timeout_s=self.timeout_s, budget_tokens=2_000, embedder=None
        )

    async def say(self, *texts: str, stream: bool = False) -> list[str]:
        agent = AssistantAgent(
            "helper", self.client, memory=[self.memory], system_message=SYSTEM, model_client_stream=stream
        )
        answers = []
        async with record_session(agent, user=self.user, session_id=self.session_id, store=self.store):
            for text in texts:
                if not stream:
                    answers.append((await agent.run(task=text)).messages[-1].to_text())
                    continue
                async for part in agent.run_stream(task=text):
                    if isinstance(part, TaskResult):
                        answers.append(part.messages[-1].to_text())
        return answers

    async def close(self) -> None:
        await self.memory.close()

    @property
    def requests(self) -> list[str]:
        return self.client.sent


class _Scripted(ScriptedClient):
    def __init__(self, chat: LiveChat) -> None:
        super().__init__(*list(chat.replies) * 40)
        self.chat = chat

    async def pause(self) -> None:
        await self.chat.think()


class FrameworkChat(LiveChat):
    """A chat with an `Agent` of Agent Framework."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.client = _Scripted(self)
        self.provider = FactMemoryProvider(
            self.user, store=self.store, timeout_s=self.timeout_s, budget_tokens=2_000, embedder=None
        )
        self.agent = Agent(self.client, SYSTEM, name="helper", context_providers=[self.provider])

    async def say(self, *texts: str, stream: bool = False) -> list[str]:
        session = self.agent.create_session(session_id=self.session_id)
        answers = []
        for text in texts:
            if stream:
                parts = [update.text async for update in self.agent.run(text, session=session, stream=True)]
                answers.append("".join(parts))
            else:
                answers.append((await self.agent.run(text, session=session)).text)
        return answers

    async def close(self) -> None:
        await self.provider.close()

    @property
    def requests(self) -> list[str]:
        return ["\n".join(text for _, text in request) for request in self.client.requests]


FRAMEWORKS: Mapping[str, type[LiveChat]] = {"autogen": AutoGenChat, "agent framework": FrameworkChat}
