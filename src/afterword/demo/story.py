"""The demo, which runs offline: saved sessions become facts with their quotes, and a real agent recalls them."""

from __future__ import annotations

import asyncio
import tempfile
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
from afterword.cli.output import console, day, fact_json, fact_table, print_json
from afterword.cli.processing import outcome_json
from afterword.errors import AfterwordError
from afterword.extractors.rules import RulesExtractor
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Role, Turn
from afterword.pipeline.batch import Failure, run_batch
from afterword.pipeline.session import SessionOutcome
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
    """A bundled session could not be processed. The installation is damaged: install afterword again."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """The processed sessions, the facts after them, the block that the live agent's model was shown, and its reply."""

    outcomes: Sequence[SessionOutcome]
    facts: Sequence[Fact]
    block: str
    reply: str


def show_demo(out: Path | None, *, as_json: bool) -> None:
    """Run the demo in the folder `out`, or in a temporary folder, and print it.

    Raises `DemoFailed` if a bundled session fails.
    """
    if out is not None:
        demo = asyncio.run(_run(out / "afterword.db"))
    else:
        with tempfile.TemporaryDirectory(prefix="afterword-demo-") as folder:
            demo = asyncio.run(_run(Path(folder) / "afterword.db"))
    if as_json:
        sessions = [outcome_json(outcome) for outcome in demo.outcomes]
        facts = [fact_json(fact) for fact in demo.facts]
        print_json({"sessions": sessions, "facts": facts, "block": demo.block, "reply": demo.reply})
        return
    _print(demo)
    if out is not None:
        url = f"sqlite:///{out}/afterword.db"
        console().print(f"\nThe store is kept: AFTERWORD_STORE__URL={url} afterword facts --user mira")


async def _run(path: Path) -> DemoResult:
    async with await open_store(f"sqlite:///{path}") as store:
        outcomes = await _process(store)
        facts = await store.read(lambda db: lookup.read_facts(db, OWNER, at=datetime.now(UTC)))
        block, reply = await _recall(store)
    return DemoResult(outcomes, facts, block, reply)


async def _process(store: Store) -> list[SessionOutcome]:
    with as_file(files("afterword.demo") / "sessions") as folder:
        outcomes = await run_batch(store, find_sessions([folder]), extractor=RulesExtractor())
    for outcome in outcomes:
        if isinstance(outcome, Failure):
            raise DemoFailed(f"session {outcome.session_id}: {outcome.reason}; install afterword again")
    return [outcome for outcome in outcomes if isinstance(outcome, SessionOutcome)]


async def _recall(store: Store) -> tuple[str, str]:
    """Ask a real AssistantAgent with a replayed model. Return the block that its model was shown, and its reply."""
    client = ReplayChatCompletionClient([REPLY], model_info=CAPABILITIES)
    memory = FactMemory(scope=OWNER, store=store)
    agent = AssistantAgent("travel_assistant", client, memory=[memory], system_message="You plan trips by train.")
    result = await agent.run(task=QUESTION)
    state = await agent.save_state()
    block = state["llm_context"]["messages"][0]["content"]
    await memory.close()
    answer = result.messages[-1]
    return block, answer.to_text() if isinstance(answer, BaseChatMessage) else ""


def _print(demo: DemoResult) -> None:
    out = console()
    out.print("Offline rules read three saved sessions of Mira, an invented user; no model, no key, no network.\n")
    for outcome in demo.outcomes:
        _print_session(outcome)
    out.print(fact_table(demo.facts, title="What is known of Mira now, and what was"))
    out.print(f"\nA new session: a real AssistantAgent with FactMemory is asked: {QUESTION}")
    out.print(f"What its model is shown first:\n\n{demo.block}\n")
    out.print(f"Its answer (replayed): {demo.reply}")


def _print_session(outcome: SessionOutcome) -> None:
    out = console()
    turns = outcome.transcript.turns
    ignored = [turn for turn in turns if turn.role in (Role.TOOL, Role.MEMORY, Role.SYSTEM, Role.THOUGHT)]
    people = ", ".join(outcome.transcript.humans)
    out.print(f"{outcome.session_id} ({outcome.transcript.layout}, {day(outcome.transcript.started_at)})")
    out.print(f"  read      {len(turns)} turns; taken for a person: {people}; never evidence: {_roles(ignored)}")
    for fact in outcome.changes.learned:
        out.print(f"  kept      {fact.statement}  <- {fact.evidence[0].speaker}: “{fact.evidence[0].quote}”")
    for fact in outcome.changes.repeated:
        out.print(f"  again     {fact.statement}")
    for old, new in outcome.changes.retired:
        reason = f"now: {new.statement}" if new else "taken back"
        out.print(f"  replaced  {old.statement}  -> {reason}")
    if outcome.changes.hidden:
        out.print(
            f"  hidden    {outcome.changes.hidden} fact that she asked to be forgotten; no read shows its words again"
        )
    for reason, count in sorted(outcome.rejected.items()):
        out.print(f"  refused   {count} ({reason})")
    out.print("")


def _roles(turns: Sequence[Turn]) -> str:
    roles = [turn.role.value for turn in turns]
    return ", ".join(f"{roles.count(role)} of {role}" for role in sorted(set(roles))) or "none"
