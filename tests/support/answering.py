"""A program that answers one message, says so, and processes its session in the background. It is killed meanwhile.

It is not with the other programs, since it loads Agent Framework.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from agent_framework import Agent

import afterword
from afterword import ProcessingOptions
from afterword.agents.agent_framework import FactMemoryProvider
from framework_agents import ScriptedClient


def run_answer(arguments: Sequence[str]) -> None:
    """Answer. The arguments are the address of the store, the id of the session and the message."""
    asyncio.run(_answer(*arguments))


async def _answer(url: str, session_id: str, text: str) -> None:
    async with afterword.open(url) as app:
        options = ProcessingOptions(extractor="rules")
        processor = app.processor(options)
        provider = FactMemoryProvider("mira", store=await app.store(), process=processor, idle_s=0.0, embedder=None)
        agent = Agent(ScriptedClient("Noted."), "Be brief.", name="helper", context_providers=[provider])
        await agent.run(text, session=agent.create_session(session_id=session_id))
        sys.stdout.write("answered\n")
        sys.stdout.flush()
        await provider.finish()
