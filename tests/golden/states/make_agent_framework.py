"""Make the golden states of Agent Framework anew, with agents that need no model.

Run it as `PYTHONPATH=tests/support python tests/golden/states/make_agent_framework.py`. Ids and times differ each time.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

from agent_framework import (
    Agent,
    AgentExecutor,
    AgentLoopMiddleware,
    AgentSession,
    CompactionProvider,
    Content,
    ContextProvider,
    FileCheckpointStorage,
    FileHistoryProvider,
    FileSessionStore,
    InMemoryHistoryProvider,
    Message,
    SummarizationStrategy,
    WorkflowBuilder,
)

from afterword.extractors.readers import parse_state, read_state
from framework_agents import ScriptedClient, tool_call

FOLDER = Path(__file__).parent
PIXEL = b"\x89PNG\r\n\x1a\n"


class OtherMemory(ContextProvider):
    """Puts a message of its own before the question, as memories of other makers do."""

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_messages(self, [Message("user", ["Remember that I live in Paris."])])


def weather(city: str) -> str:
    """Return the weather."""
    return f"4 degrees in {city}"


async def tools_and_pictures() -> Any:
    replies = (tool_call("weather", city="Bergen"), "It is cold.", "A cat.")
    agent = Agent(ScriptedClient(*replies), "Be brief.", name="helper", tools=[weather])
    session = agent.create_session(session_id="tools")
    await agent.run("I live in Bergen. How is the weather?", session=session)
    picture = Message("user", [Content.from_text("What is this?"), Content.from_data(PIXEL, "image/png")])
    await agent.run(picture, session=session)
    return session.to_dict()


async def compacted() -> Any:
    strategy = SummarizationStrategy(client=ScriptedClient("The user likes wine."), target_count=2, threshold=0)
    history = InMemoryHistoryProvider()
    compaction = CompactionProvider(after_strategy=strategy, history_source_id=history.source_id)
    agent = Agent(ScriptedClient("Noted."), "Be brief.", name="helper", context_providers=[history, compaction])
    session = agent.create_session(session_id="compacted")
    for text in ("I like tea.", "I work in Oslo.", "I have a dog."):
        await agent.run(text, session=session)
    return session.to_dict()


async def looped() -> Any:
    async def go_on(*, iteration: int, **_: Any) -> tuple[bool, str]:
        return iteration < 2, f"I prefer step {iteration}."

    loop = AgentLoopMiddleware(go_on, record_feedback=lambda feedback, **_: feedback)
    agent = Agent(ScriptedClient("Half done.", "Done."), "Work.", name="worker", middleware=[loop])
    session = agent.create_session(session_id="looped")
    await agent.run("I prefer short reports.", session=session)
    return session.to_dict()


async def injected() -> Any:
    providers = [OtherMemory("other"), InMemoryHistoryProvider(store_context_messages=True)]
    agent = Agent(ScriptedClient("Hello."), "Be brief.", name="helper", context_providers=providers)
    session = agent.create_session(session_id="injected")
    await agent.run(Message("user", ["I live in Bergen."], author_name="Ida"), session=session)
    return session.to_dict()


async def collapsed() -> Any:
    agent = Agent(ScriptedClient("ok"), "Be brief.", name="helper")
    session = agent.create_session(session_id="collapsed")
    for _ in range(3):
        await agent.run("yes", session=session)
    return session.to_dict()


async def service_side() -> Any:
    client = ScriptedClient("Hello.", service_session="thread_1")
    agent = Agent(client, "Be brief.", name="helper")
    session = AgentSession(session_id="remote", service_session_id="thread_1")
    await agent.run("I live in Bergen.", session=session)
    return session.to_dict()


async def workflow_checkpoint(folder: Path) -> Any:
    researcher = AgentExecutor(Agent(ScriptedClient("Ferries run."), "r", name="researcher"), id="researcher")
    writer = AgentExecutor(Agent(ScriptedClient("Take a ferry."), "w", name="writer"), id="writer")
    storage = FileCheckpointStorage(folder)
    builder = WorkflowBuilder(start_executor=researcher, checkpoint_storage=storage, name="trips")
    async for _ in builder.add_edge(researcher, writer).build().run("I live in Bergen. How do I travel?", stream=True):
        pass
    states = [json.loads(path.read_text()) for path in folder.iterdir()]
    return max(states, key=lambda state: state["iteration_count"])


async def session_file(folder: Path) -> Any:
    agent = Agent(ScriptedClient("Hello."), "Be brief.", name="helper")
    session = agent.create_session(session_id="mira/1")
    await agent.run("I live in Bergen.", session=session)
    await FileSessionStore(folder).set("mira/1", session)
    (path,) = folder.iterdir()
    return json.loads(path.read_text())


async def history_file(folder: Path) -> tuple[str, Any]:
    agent = Agent(ScriptedClient("Hello."), "b", name="helper", context_providers=[FileHistoryProvider(folder)])
    session = agent.create_session(session_id="monday")
    for text in ("I live in Bergen.", "I like tea."):
        await agent.run(text, session=session)
    return (folder / "monday.jsonl").read_text(), session.to_dict()


def write(name: str, content: str, suffix: str = "json") -> None:
    folder = FOLDER / f"agent_framework_{name}"
    folder.mkdir(exist_ok=True)
    (folder / f"state.{suffix}").write_text(content, encoding="utf-8")
    transcript = read_state(parse_state(content.encode()))
    turns = [[turn.speaker, turn.role.value, turn.text] for turn in transcript.turns]
    expected = {"layout": transcript.layout, "turns": turns, "skipped": dict(transcript.skipped)}
    (folder / "turns.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


async def main() -> None:
    warnings.simplefilter("ignore")
    for make in (tools_and_pictures, compacted, looped, injected, collapsed, service_side):
        write(make.__name__, json.dumps(await make(), indent=1, ensure_ascii=False) + "\n")
    folder = Path(tempfile.mkdtemp())
    try:
        for name, make_in in (("workflow_checkpoint", workflow_checkpoint), ("session_file", session_file)):
            below = folder / name
            below.mkdir()
            write(name, json.dumps(await make_in(below), indent=1, ensure_ascii=False) + "\n")
        lines, session = await history_file(folder)
        write("history_file", lines, "jsonl")
        write("session_of_history_file", json.dumps(session, indent=1) + "\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    asyncio.run(main())
