"""A personal assistant over several conversations. It remembers how you want to be spoken to.

    python examples/personal_assistant.py [FOLDER]

It runs offline: the model is scripted and follows the notes in its prompt, as a real model would. Each conversation has
a new agent. The user states language, units and level once, and changes the units later. The assistant also adds
`last_active` to its saved state, so it can say how long it was away.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import FactMemory, ScopeMemory

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)
VISITS = (
    (
        "monday",
        "Please always answer in German. I prefer metric units. I prefer explanations for beginners. How far is Graz?",
    ),
    ("tuesday", "How far is Linz?"),
    ("friday", "I no longer prefer metric units. I prefer imperial units. How far is Bergen?"),
    ("sunday", "How far is Oslo?"),
)
_TELLS_OF_THE_PAST = re.compile(r"- \d{4}-\d\d-\d\d")


class ScriptedModel(ReplayChatCompletionClient):
    """A model that follows the notes and the latest message in its prompt. The later of two statements wins."""

    def __init__(self) -> None:
        super().__init__([], model_info=INFO)

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the next answer."""
        prompt = "\n".join(str(message.content) for message in messages)
        self.chat_completions.append(_answer(prompt, place=prompt.rsplit(" is ", 1)[-1].strip("?")))
        return await super().create(messages, **options)


def _answer(prompt: str, *, place: str) -> str:
    holds_now = "\n".join(line for line in prompt.splitlines() if not _TELLS_OF_THE_PAST.match(line))
    is_metric = holds_now.rfind("metric") > holds_now.rfind("imperial")
    distance = "200 km" if is_metric else "124 miles"
    if "German" not in prompt:
        return f"It is {distance} to {place}."
    hint = " (Luftlinie heißt: auf dem kürzesten Weg.)" if "beginner" in prompt else ""
    return f"Bis {place} sind es {distance.replace('miles', 'Meilen')} Luftlinie.{hint}"


class PersonalAssistant(AssistantAgent):
    """An assistant that remembers when it was last active."""

    def __init__(self, memory: FactMemory, *, clock: Callable[[], datetime]) -> None:
        super().__init__("assistant", ScriptedModel(), memory=[memory])
        self._clock = clock
        self.last_active: datetime | None = None

    async def save_state(self) -> Mapping[str, Any]:
        """Return the state of the agent with the present time."""
        return {**await super().save_state(), "last_active": self._clock().isoformat()}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Load a saved state of this agent, or of an agent without `last_active`."""
        agent_state = dict(state)
        last_active = agent_state.pop("last_active", None)
        self.last_active = datetime.fromisoformat(last_active) if last_active else None
        await super().load_state(agent_state)

    def welcome(self) -> str:
        """Return a greeting that says how long the assistant was away."""
        if self.last_active is None:
            return "Nice to meet you."
        days = (self._clock() - self.last_active).days
        return f"Welcome back: I was away for {days} day{'' if days == 1 else 's'}."


async def visit(
    memory: ScopeMemory, session_id: str, said: str, *, before: str | None, clock: Callable[[], datetime]
) -> tuple[str, str]:
    """Have one conversation, extract its facts, and return the greeting and the answer.

    `before` is the session before this one. Its state says when that was; its messages are removed.
    """
    agent = PersonalAssistant(memory.memory(), clock=clock)
    if before and await memory.resume(agent, session_id=before, missing_ok=True):
        await agent.on_reset(CancellationToken())
    async with memory.record(agent, session_id=session_id):
        result = await agent.run(task=said)
    await memory.process(session_id)
    return agent.welcome(), result.messages[-1].to_text()


async def main(folder: Path) -> None:
    """Have the four conversations. Only the store connects them."""
    today, before = datetime(2026, 3, 2, 9, tzinfo=UTC), None
    for days, (session_id, said) in zip((0, 1, 4, 6), VISITS, strict=True):
        moment = today + timedelta(days=days)
        async with afterword.open(f"sqlite:///{folder}/assistant.db") as app:
            mira = app.user("mira")
            welcome, answer = await visit(mira, session_id, said, before=before, clock=lambda: moment)  # noqa: B023
        print(f"{session_id}\n  {welcome}\n  mira: {said}\n  assistant: {answer}")  # noqa: T201 - an example prints its result
        before = session_id


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(Path(folder)))
