"""A chat service with streamed answers and a memory for each person.

    python examples/chat_service.py [FOLDER]
    curl -N -H 'X-User: mira' -d '{"text": "I live in Bergen."}' -H 'Content-Type: application/json' \
        http://127.0.0.1:8000/chats/monday
    curl -H 'X-User: mira' http://127.0.0.1:8000/notes

It needs `pip install 'afterword[agent-framework,server]'`, and runs offline with a scripted model. A conversation is
processed in the background, in a process of its own, when nothing was said in it for a while. What was not processed
when the service ended is processed when it starts again.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from fastapi import FastAPI, Header
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

import afterword
from afterword import ProcessingOptions
from afterword.agents.agent_framework import FactMemoryProvider

User = Annotated[str, Header(alias="X-User", min_length=1)]
"""The name of the user who sends the request. A real service takes it from its sign-in, never from a header."""


class Question(BaseModel):
    """The message of a person."""

    text: str


class ScriptedModel(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A model that answers with the notes in its prompt. A real service uses the client of a language model."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **_: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        notes = [line for line in (options.get("instructions") or "").splitlines() if line.startswith("- ")]
        text = f"I know {len(notes)} notes about you. {' '.join(notes)}".strip()
        return self._build_response_stream(_streamed(text)) if stream else _whole(text)


async def _streamed(text: str) -> AsyncIterator[ChatResponseUpdate]:
    for word in text.split(" "):
        yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(f"{word} ")])


async def _whole(text: str) -> ChatResponse[Any]:
    return ChatResponse(messages=[Message("assistant", [text])])


def create_app(url: str, *, idle_s: float = 30.0) -> FastAPI:
    """Return the service for a store. A conversation is processed after `idle_s` seconds without a new message."""

    @asynccontextmanager
    async def lifespan(service: FastAPI) -> AsyncIterator[None]:
        async with afterword.open(url) as memory:
            provider = FactMemoryProvider(
                lambda session: str(session.state["user"]),
                store=await memory.store(),
                process=memory.processor(),
                idle_s=idle_s,
            )
            service.state.memory, service.state.sessions = memory, {}
            service.state.agent = Agent(ScriptedModel(), "Be brief.", name="assistant", context_providers=[provider])
            # What an earlier process left is processed while this one answers already.
            left = asyncio.create_task(memory.run_pending(options=ProcessingOptions(own_process=True)))
            try:
                yield
            finally:
                left.cancel()
                with suppress(asyncio.CancelledError):
                    await left

    service = FastAPI(lifespan=lifespan)

    @service.post("/chats/{chat_id}")
    async def say(chat_id: str, question: Question, user: User) -> StreamingResponse:
        """Stream the answer."""
        sessions: dict[tuple[str, str], AgentSession] = service.state.sessions
        session = sessions.setdefault((user, chat_id), AgentSession(session_id=chat_id))
        session.state["user"] = user
        stream = service.state.agent.run(question.text, session=session, stream=True)
        return StreamingResponse((update.text async for update in stream), media_type="text/plain")

    @service.get("/notes")
    async def notes(user: User) -> list[str]:
        """Return the facts about the user who sends the request."""
        return [fact.statement for fact in (await service.state.memory.user(user).facts()).facts]

    return service


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()
    uvicorn.run(create_app(f"sqlite:///{Path(folder)}/chats.db"))
