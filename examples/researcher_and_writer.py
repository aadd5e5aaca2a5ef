"""A researcher saves what it finds, and a writer uses it in the next run. Nobody hands anything over.

    python examples/researcher_and_writer.py [FOLDER]

It runs offline: both models are scripted. The memory of the project keeps findings of the researcher, and of nobody
else. What people said stays apart: the findings are in a layer of their own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import ScopeMemory

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)
PROJECT = "default/project/newsletter"
FINDINGS = (
    ("Readers open the newsletter most often on Thursday mornings.", "opening times"),
    ("Issues with fewer than five links are read to the end twice as often.", "length"),
)


class ScriptedResearcher(ReplayChatCompletionClient):
    """Saves each finding by the tool, then says that it is done."""

    def __init__(self) -> None:
        calls = [_call(number, statement, topic) for number, (statement, topic) in enumerate(FINDINGS)]
        super().__init__([*calls, "I have looked through the statistics of last year."], model_info=INFO)


class ScriptedWriter(ReplayChatCompletionClient):
    """Writes a plan from the findings in its prompt, as a real model would."""

    def __init__(self) -> None:
        super().__init__([], model_info=INFO)

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the next answer."""
        prompt = "\n".join(str(message.content) for message in messages)
        day = "on Thursday morning" if "Thursday mornings" in prompt else "some day"
        links = "four links" if "fewer than five links" in prompt else "many links"
        self.chat_completions.append(f"I would send the next issue {day}, with {links}.")
        return await super().create(messages, **options)


def _call(number: int, statement: str, topic: str) -> CreateResult:
    arguments = json.dumps({"statement": statement, "topic": topic})
    call = FunctionCall(id=f"call-{number}", name="save_finding", arguments=arguments)
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return CreateResult(finish_reason="function_calls", content=[call], usage=usage, cached=False)


async def research(project: ScopeMemory) -> None:
    """Let the researcher work, and save what it finds."""
    researcher = AssistantAgent(
        "researcher",
        ScriptedResearcher(),
        memory=[project.memory()],
        tools=project.tools(humans=(), findings=True),
        max_tool_iterations=len(FINDINGS) + 1,
    )
    async with project.record(researcher, session_id="research"):
        await researcher.run(task="Find out how our newsletter is read.")


async def write(project: ScopeMemory) -> str:
    """Let the writer work, and return the answer. It knows the findings from the memory of the project alone."""
    writer = AssistantAgent("writer", ScriptedWriter(), memory=[project.memory()])
    result = await writer.run(task="Plan the next issue.")
    return result.messages[-1].to_text()


async def main(folder: Path) -> None:
    """Run the researcher, close everything, and run the writer."""
    async with afterword.open(f"sqlite:///{folder}/newsletter.db") as app:
        await app.scope(PROJECT).set_finding_policy(["researcher"])
        await research(app.scope(PROJECT))
    async with afterword.open(f"sqlite:///{folder}/newsletter.db") as app:
        project = app.scope(PROJECT)
        print((await project.context("Plan the next issue.")).text)  # noqa: T201 - an example prints its result
        print(f"writer: {await write(project)}")  # noqa: T201 - an example prints its result


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(Path(folder)))
