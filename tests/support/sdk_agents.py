"""Talk with agents of the OpenAI Agents SDK that need no model, and save each conversation in a folder.

Run it as `python -P tests/support/sdk_agents.py FOLDER`. It is a program of its own, since the folder `agents` of this
repository has the name of the SDK's package.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from agents import (
    Agent,
    Model,
    ModelResponse,
    Runner,
    RunState,
    Session,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.extensions.memory import AdvancedSQLiteSession
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputItem,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

BERGEN = "I live in Bergen."


class ScriptedModel(Model):
    """Gives its replies in turn: a text, a list of items, or an exception that is raised."""

    def __init__(self, *replies: str | list[ResponseOutputItem] | Exception) -> None:
        self.replies = list(replies)

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        output = [spoken(reply)] if isinstance(reply, str) else reply
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


def spoken(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(id="said", type="message", role="assistant", status="completed", content=[content])


def thought(text: str) -> ResponseReasoningItem:
    summary = [{"type": "summary_text", "text": text}]
    return ResponseReasoningItem.model_validate({"id": "thought", "type": "reasoning", "summary": summary})


def call(name: str, **arguments: Any) -> ResponseFunctionToolCall:
    written = json.dumps(arguments)
    return ResponseFunctionToolCall(type="function_call", call_id=f"call-{name}", name=name, arguments=written)


@function_tool
def look_up(page: str) -> str:
    """Return a page."""
    return "I live in Rome."


async def talk(session: Session) -> None:
    """Have two turns: with a thought and a tool, and with a picture and another agent."""
    writer = Agent(name="writer", model=ScriptedModel("A cat."))
    looking = [thought("I like beer."), call("look_up", page="home")]
    model = ScriptedModel(looking, "Noted. I like wine.", [call("transfer_to_writer")])
    helper = Agent(name="helper", model=model, tools=[look_up], handoffs=[writer])
    await Runner.run(helper, BERGEN, session=session)
    picture = {"type": "input_image", "image_url": "data:image/png;base64,iVBO", "detail": "auto"}
    content = [{"type": "input_text", "text": "I like tea."}, picture]
    await Runner.run(helper, cast(Any, [{"role": "user", "content": content}]), session=session)


async def save(folder: Path) -> None:
    """Save the items of three sessions, the state of a run, and two databases."""
    sessions = {name: SQLiteSession(name) for name in ("monday", "failed", "equal")}
    await talk(sessions["monday"])
    with suppress(RuntimeError):
        failing = Agent(name="helper", model=ScriptedModel(RuntimeError("away")))
        await Runner.run(failing, BERGEN, session=sessions["failed"])
    agreeing = Agent(name="helper", model=ScriptedModel("ok", "ok", "ok"))
    for _ in range(3):
        await Runner.run(agreeing, "yes", session=sessions["equal"])
    for name, session in sessions.items():
        (folder / f"{name}.json").write_text(json.dumps(await session.get_items()))
    looking_up = Agent(name="helper", model=ScriptedModel([call("look_up", page="home")], "Noted."), tools=[look_up])
    state: RunState[Any, Any] = (await Runner.run(looking_up, BERGEN)).to_state()
    (folder / "run_state.json").write_text(state.to_string())
    plain, advanced = folder / "plain.db", folder / "advanced.db"
    await talk(SQLiteSession("monday", plain))
    await talk(AdvancedSQLiteSession(session_id="monday", db_path=advanced, create_tables=True))
    for session in (
        SQLiteSession("tuesday", plain),
        AdvancedSQLiteSession(session_id="tuesday", db_path=advanced, create_tables=True),
    ):
        await Runner.run(Agent(name="helper", model=ScriptedModel("ok")), "I work at Voestalpine.", session=session)


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(save(Path(sys.argv[1])))
