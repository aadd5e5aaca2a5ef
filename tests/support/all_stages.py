"""A life of one memory that passes through every stage, with a marker word wherever a user's words can be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from sqlmodel import Session

from afterword import FactMemory, record_session
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.model.client import ModelClient, ModelSettings
from afterword.extractors.model.embeddings import EndpointEmbedder
from afterword.extractors.model.extractor import ModelExtractor
from afterword.extractors.model.judge import ModelJudge
from afterword.extractors.model.prices import Price
from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import Json, Reply, ScriptedEndpoint, facts_reply, shown_pairs
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.pipeline.background.due_times import Rhythm
from afterword.pipeline.background.periodic_jobs import PeriodicJobs
from afterword.pipeline.background.schedule import Schedule
from afterword.pipeline.batch import run_batch
from afterword.pipeline.budget import Budget, CostTracker
from afterword.pipeline.consolidation import consolidate_scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.memory_import import import_memories
from afterword.pipeline.reversible_runs import redo_run, undo_run
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.pipeline.sources.other_libraries import ExportedMemory, ExportingLibrary
from afterword.recall.vectors import EmbeddingUnavailable, Vector
from afterword.store import sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.limits import RetryPolicy
from afterword.store.reading.recall import search
from afterword.store.reading.scope_vectors import refresh_vectors
from afterword.store.transfer import exports, imports
from conversing import replying

MARKER = "Zanzibarquux"
LENA, ELSEWHERE = Scope.user("lena@example.com"), Scope.user("other")
CITIES = (f"North{MARKER}", f"South{MARKER}", f"East{MARKER}")
START = datetime(2026, 1, 1, tzinfo=UTC)
PRICES = {"scripted": Price(Decimal(1), Decimal(2))}


class Lengths:
    """An embedder whose vectors are lengths."""

    model, dimension = "lengths", 2

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [[float(len(one)), 1.0] for one in texts]


def obliging(request: Json) -> Reply:
    """Finds homes, one of them with a quote that nobody said, and takes every later home for a change."""
    shown = request["messages"][1]["content"]
    if "<statements>" in shown:
        found = [
            {"pair": one, "reason": MARKER, "relation": "changes", "same_subject": True, "remainder": MARKER}
            for one in shown_pairs(shown)
        ]
        return Reply(json.dumps({"findings": found}))
    if "breaks" in shown:
        return Reply(MARKER)
    return facts_reply(*(home(city) for city in CITIES if city in shown), home(f"No{MARKER}"))


def home(city: str) -> Candidate:
    quotes = [Citation(turn=1, quote=f"I live in {city}.")]
    told = f"The user lives in {city}."
    return Candidate(kind=Kind.ENTITY, subject="user", attribute="home", value=city, statement=told, evidence=quotes)


def saved(number: int, said: str) -> Saved:
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [_message(said)]}}
    at = START + timedelta(days=number)
    return Saved(LENA, f"s{number}", state=state, started_at=at, ended_at=at)


def _message(said: str) -> dict[str, Any]:
    return {"content": said, "source": "user", "type": "UserMessage"}


@asynccontextmanager
async def working(store: Store) -> AsyncIterator[PeriodicJobs]:
    """A store's chores, with a model at an endpoint."""
    with ScriptedEndpoint(obliging) as endpoint:
        settings = ModelSettings("scripted", endpoint.base_url, max_retries=0, mode="json_schema")
        async with ModelClient(settings) as client:
            extractor, judge = ModelExtractor(client), ModelJudge(client)
            yield PeriodicJobs(
                store, extractor, judge, lambda: CostTracker(Budget(prices=PRICES, tokens_per_run=10**7))
            )


async def live(store: Store, folder: Path) -> None:
    """Pass through every stage."""
    await store.migrate()
    async with working(store) as chores:
        await _process(store, chores)
        await _talk(store, chores)
    await _remember(store)
    await _move(store, folder)


async def _process(store: Store, chores: PeriodicJobs) -> None:
    """Five sessions: three homes, one that breaks the model and is set aside, one off the record; then the first again,
    an undo, and what that leaves to judge."""
    found = [saved(number, f"I live in {city}.") for number, city in enumerate(CITIES)]
    found += [saved(3, f"This breaks {MARKER}."), replace(saved(4, MARKER), off_the_record=True), found[0]]
    extractor, judge, tracker = chores.extractor, chores.judge, chores.new_tracker()
    ended = await run_batch(
        store, found, extractor=extractor, judge=judge, budget=tracker, retries=RetryPolicy(tries=1), clock=now
    )
    last = ended[2]
    assert isinstance(last, SessionOutcome)
    assert last.run_id is not None
    await undo_run(store, last.run_id, judge=judge)
    await redo_run(store, last.run_id, judge=judge)
    await undo_run(store, last.run_id, judge=judge)

    def fail_again(transaction: Session) -> None:
        sessions.retry_session(transaction, LENA, "s3")
        sessions.mark_failed(transaction, LENA, "s3", "again", START)

    await store.write(fail_again)
    await consolidate_scope(store, LENA, judge=RulesJudge(), budget=tracker)


async def _talk(store: Store, chores: PeriodicJobs) -> None:
    """A recorded conversation with a block of notes, processed by the schedule, like the one that waits for another
    try."""
    memory = FactMemory(scope=LENA, store=store)
    agent = AssistantAgent("helper", replying("noted"), memory=[memory])
    async with record_session(agent, scope=LENA, session_id="live", store=store):
        await agent.run(task=f"I live in {CITIES[0]}.")

    def fail(transaction: Session) -> None:
        state = {"llm_context": {"messages": [_message(f"I live in {MARKER}.")]}, "type": "AssistantAgentState"}
        sessions.save_state(transaction, LENA, "again", component="x", state=state, at=START)
        sessions.mark_failed(transaction, LENA, "again", "a reason", START)

    await store.write(fail)
    rhythms = {name: Rhythm(every_s=60) for name in ("pending", "retries", "consolidation")}
    await Schedule(store, chores.jobs(rhythms)).run_once()


async def _remember(store: Store) -> None:
    await search(store, LENA, MARKER, at=now())
    await search(store, LENA, "nothing alike", at=now())
    await search(store, ELSEWHERE, MARKER, at=now())
    with suppress(EmbeddingUnavailable):  # vectors need numpy, which is an extra
        await refresh_vectors(store, LENA, Lengths(), at=now())
    with ScriptedEndpoint([Reply(MARKER, status=500)]) as endpoint:
        settings = ModelSettings("vectors", endpoint.base_url, max_retries=0)
        async with EndpointEmbedder(settings, 2) as embedder:
            with suppress(EmbeddingUnavailable):
                await embedder.embed([MARKER])
    nowhere = FactMemory(user="nobody", store="postgresql://nobody@127.0.0.1:1/none")
    await nowhere.recall(MARKER)
    await nowhere.close()


async def _move(store: Store, folder: Path) -> None:
    await exports.export_scopes(store, folder / "all.jsonl")
    await imports.import_file(store, folder / "all.jsonl")
    memories = [ExportedMemory(f"Owns a boat called {MARKER}", "1", START)]
    await import_memories(store, LENA, ExportingLibrary.MEM0, memories, judge=RulesJudge(), at=now(), file_time=START)

    def everything(erasure: forgetting.Erasure) -> None:
        erasure.forget_everything()

    await forgetting.erase_in_scope(store, LENA, everything, at=now(), is_preview=True)
    await forgetting.erase_in_scope(store, LENA, everything, at=now())


def now() -> datetime:
    return datetime.now(UTC)
