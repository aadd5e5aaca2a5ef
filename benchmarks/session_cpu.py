"""Processor time of one session, read by the offline rules into a SQLite file: `python benchmarks/session_cpu.py`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta

from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.batch import run_batch
from afterword.pipeline.intake import Saved
from afterword.store.database.engine import open_store

SESSIONS, SCOPES, AT_ONCE = 100, 30, 8
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def saved(number: int) -> Saved:
    """Return a session of one turn that says three things."""
    text = f"I live in City{number}. I like tea number {number}. My dog is called Rex{number}."
    message = {"content": text, "source": "user", "type": "UserMessage"}
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
    started_at = FIRST_DAY + timedelta(days=number)
    return Saved(Scope.user(f"u{number % SCOPES}"), f"s{number}", state=state, started_at=started_at)


async def main() -> None:
    """Print milliseconds of processor time a session; the first two sessions are not counted."""
    sessions = [saved(number) for number in range(SESSIONS)]
    with tempfile.TemporaryDirectory() as folder:
        async with await open_store(f"sqlite:///{folder}/afterword.db") as store:
            await run_batch(store, sessions[:2], extractor=RulesExtractor())
            begun = time.process_time()
            await run_batch(store, sessions[2:], extractor=RulesExtractor(), concurrency=AT_ONCE)
            spent_ms = (time.process_time() - begun) * 1000 / (SESSIONS - 2)
    sys.stdout.write(f"{spent_ms:.1f} ms of processor time a session\n")


asyncio.run(main())
