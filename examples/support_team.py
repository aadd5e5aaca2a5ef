"""A support team with a person in it: two customers, several tickets, and a restart in the middle of one.

    python examples/support_team.py [FOLDER]

It runs offline: the models are scripted and follow the notes in their prompts, as real models would. The customer takes
part as a `UserProxyAgent`, so the customer's words count as a person's. What the clerk and the technician say does not.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import CreateResult, LLMMessage, ModelFamily, ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

import afterword
from afterword import ScopeMemory

INFO = ModelInfo(
    vision=False, function_calling=True, json_output=False, family=ModelFamily.UNKNOWN, structured_output=False
)
ADVICE = {"Speedport": "Hold the button at the back for ten seconds.", "Archer": "Update it to version 1.4."}


class ScriptedModel(ReplayChatCompletionClient):
    """Speaks as the clerk or as the technician of the team, by what its prompt says about the customer."""

    def __init__(self, role: str) -> None:
        super().__init__([], model_info=INFO)
        self._role = role

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the next answer."""
        prompt = "\n".join(str(message.content) for message in messages)
        router = next((name for name in ADVICE if name in prompt), None)
        if self._role == "technician":
            answer = ADVICE[router] if router else "I need to know the router first."
        else:
            language = "Guten Tag" if "German" in prompt else "Hello"
            answer = f"{language}. Is it about the {router}?" if router else f"{language}. Which router do you have?"
        self.chat_completions.append(answer)
        return await super().create(messages, **options)


def support_team(memory: ScopeMemory, said: str) -> RoundRobinGroupChat:
    """Return a team in which the customer speaks first, and both agents read the memory of the customer."""
    known = memory.memory()
    return RoundRobinGroupChat(
        [
            UserProxyAgent("customer", input_func=lambda _: said),
            AssistantAgent("clerk", ScriptedModel("clerk"), memory=[known]),
            AssistantAgent("technician", ScriptedModel("technician"), memory=[known]),
        ],
        max_turns=3,
    )


async def talk(memory: ScopeMemory, ticket: str, said: str) -> list[str]:
    """Let a customer say something about a ticket, new or not, and return what everybody said."""
    team = support_team(memory, said)
    await memory.resume(team, session_id=ticket, missing_ok=True)
    async with memory.record(team, session_id=ticket):
        result = await team.run()
    await memory.process(ticket)
    return [f"{message.source}: {message.content}" for message in result.messages if isinstance(message, TextMessage)]


async def work_day(folder: Path, *tickets: tuple[str, str, str]) -> None:
    """Open the store, work on tickets (customer, ticket, words), and close everything."""
    async with afterword.open(f"sqlite:///{folder}/support.db") as app:
        for customer, ticket, said in tickets:
            print(f"{customer}, {ticket}")  # noqa: T201 - an example prints its result
            for line in await talk(app.user(customer), ticket, said):
                print(f"  {line}")  # noqa: T201


async def main(folder: Path) -> None:
    """Work for two days. Between them the program ends: only the store is left."""
    await work_day(
        folder,
        ("mira", "ticket-1", "My router is a Speedport. Please always answer in German."),
        ("otto", "ticket-2", "My router is an Archer."),
    )
    await work_day(
        folder,
        ("mira", "ticket-1", "It still blinks."),
        ("otto", "ticket-3", "The internet is slow."),
        ("mira", "ticket-4", "I need help again."),
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(Path(folder)))
