"""Agents of Agent Framework that need no model: a client with scripted replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any

from agent_framework import (
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

Reply = str | Content | Exception


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Gives its replies in turn, then repeats the last one. `requests` holds what the model was sent."""

    def __init__(self, *replies: Reply, service_session: str | None = None) -> None:
        super().__init__()
        self.replies = list(replies)
        self.requests: list[list[tuple[str, str]]] = []
        self._service_session = service_session

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        system = [("system", options["instructions"])] if options.get("instructions") else []
        self.requests.append([*system, *((message.role, message.text) for message in messages)])
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        contents = [reply if isinstance(reply, Content) else Content.from_text(str(reply))]
        if stream:
            return self._build_response_stream(self._updates(reply, contents))
        return self._answer(reply, contents)

    async def pause(self) -> None:
        """Wait before each reply."""

    async def _updates(self, reply: Reply, contents: list[Content]) -> AsyncIterator[ChatResponseUpdate]:
        await self.pause()
        if isinstance(reply, Exception):
            raise reply
        words = reply.split(" ") if isinstance(reply, str) else []
        for place, word in enumerate(words):
            text = word if place == 0 else f" {word}"
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(text)])
        if not words:
            yield ChatResponseUpdate(role="assistant", contents=contents)

    async def _answer(self, reply: Reply, contents: list[Content]) -> ChatResponse[Any]:
        await self.pause()
        if isinstance(reply, Exception):
            raise reply
        return ChatResponse(messages=[Message("assistant", contents)], conversation_id=self._service_session)


def tool_call(name: str, **arguments: Any) -> Content:
    return Content.from_function_call(call_id=f"call-{name}", name=name, arguments=arguments)
