"""The demo, which runs offline: saved sessions become facts with their quotes, and a real agent recalls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import BaseChatMessage
from autogen_core.models import ModelInfo
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.errors import AfterwordError
from afterword.extractors.rules import RulesExtractor
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.folders import find_sessions
from afterword.store import lookup
from afterword.store.database.engine import Store, open_store

OWNER = Scope.user("mira")
QUESTION = "I am planning a weekend by train. What should you know about me?"
REPLY = "Your notes are in front of me: I will plan with them, briefly."
CAPABILITIES = ModelInfo(
    vision=False,
    function_calling=False,
    json_output=False,
    family="unknown",
    structured_output=False,
    multiple_system_messages=False,
)


class DemoFailed(AfterwordError):
    """Raised if a bundled session cannot be processed, because the installation is damaged."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The processed sessions, the facts after them, the block that the live agent's model was shown, and its reply.

    `question` is what the agent was asked.
    """

    outcomes: Sequence[SessionOutcome]
    facts: Sequence[Fact]
    block: str
    reply: str
    question: str = QUESTION


async def run_demo(path: Path) -> DemoResult:
    """Run the demo in a new store at this path. Raises `DemoFailed` if a bundled session fails."""
    async with await open_store(f"sqlite:///{path}") as store:
        outcomes = await _process_sessions(store)
        facts = await store.read(lambda db: lookup.read_facts(db, OWNER, at=datetime.now(UTC)))
        block, reply = await _ask_agent(store)
    return DemoResult(outcomes, facts, block, reply)


async def _process_sessions(store: Store) -> list[SessionOutcome]:
    with as_file(files("afterword.demo") / "sessions") as folder:
        outcomes = await run_batch(store, find_sessions([folder]), extractor=RulesExtractor())
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise DemoFailed(f"session {outcome.session_id}: {outcome.reason}; install afterword again")
    return [outcome for outcome in outcomes if isinstance(outcome, SessionOutcome)]


async def _ask_agent(store: Store) -> tuple[str, str]:
    """Ask a real AssistantAgent with a replayed model. Return the block that its model was shown, and its reply."""
    client = ReplayChatCompletionClient([REPLY], model_info=CAPABILITIES)
    memory = FactMemory(scope=OWNER, store=store)
    agent = AssistantAgent("travel_assistant", client, memory=[memory], system_message="You plan trips by train.")
    result = await agent.run(task=QUESTION)
    block = (await agent.save_state())["llm_context"]["messages"][0]["content"]
    await memory.close()
    answer = result.messages[-1]
    return block, answer.to_text() if isinstance(answer, BaseChatMessage) else ""
