"""Another scope, no answer: over every public read, for tenants and users with look-alike names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage
from autogen_core.tools import BaseTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from afterword import FactMemory, process_session, record_session, resume
from afterword.agents.tools import RecallTool, RememberTool, WithdrawTool
from afterword.errors import NotFound
from afterword.extractors.rules import RulesExtractor, RulesJudge
from afterword.facts.scopes import Scope, ScopeKind
from afterword.normal_form import composed
from afterword.pipeline.consolidation import read_judging_coverage
from afterword.pipeline.intake import Saved
from afterword.store import fact_ids, ledger, lookup, reviews, runs, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.reading.recall import recall, search
from conversing import replying

AT = datetime(2100, 1, 1, tzinfo=UTC)
SESSION = "monday"
"""Every scope has a session of the same name."""
LOOK_ALIKES: Sequence[str] = [
    *("lena", "Lena", "lena ", "len", "lenaa", "lena/user", "default/user/lena"),
    *("l%", "len_", "%", "lena' OR '1'='1", "lena'; DROP TABLE facts; --", 'lena" OR name:*', "lena*", "lena\\"),
    *("lеna", "ｌｅｎａ", "le\u00adna", "lena\u200b"),  # a Cyrillic letter, wide letters, signs without width
    *("zoë", "zoe"),
    *("straße", "strasse", "1", "01"),
]
SIGNS = st.sampled_from([*"lLeE%_*'\"\\;:- .()ëéßſıİ١ẞσς", "\u0308", "\u200b", "default", "user"])
NAMES = st.lists(SIGNS, min_size=1, max_size=4).map("".join).filter(lambda name: bool(name.strip())).map(composed)


async def fill(store: Store, scope: Scope, city: str) -> None:
    """Keep of a scope all that can be kept: a recorded session, facts, and a request that is held."""
    memory = FactMemory(scope=scope, store=store)
    agent = AssistantAgent("helper", replying("fine"), memory=[memory])
    async with record_session(agent, scope=scope, session_id=SESSION, store=store):
        await agent.run(task=f"I live in {city}.")
    await process_session(store, Saved(scope, SESSION), extractor=RulesExtractor())
    await memory.add(MemoryContent(content=f"{city} is nice.", mime_type=MemoryMimeType.TEXT))
    tool = RememberTool(memory)
    await tool.run_json({"statement": f"The mayor of {city} is a friend.", "quote": "mayor"}, CancellationToken())


async def everything_read(store: Store, scope: Scope, ids: Sequence[str]) -> list[Any]:
    """What each public read tells of a scope, asked for what other scopes hold too."""
    memory = FactMemory(scope=scope, store=store)
    context = UnboundedChatCompletionContext([UserMessage(content="Where do I live? What is nice?", source="user")])
    put = await memory.update_context(context)
    tools: list[BaseTool[Any, Any]] = [RecallTool(memory), WithdrawTool(memory)]
    asked = [{"query": "nice"}, {"note": ids[-1], "quote": "x"}]
    answers = [await tool.run_json(given, CancellationToken()) for tool, given in zip(tools, asked, strict=True)]
    fresh = AssistantAgent("helper", replying("fine"))
    await resume(fresh, scope=scope, session_id=SESSION, store=store, missing_ok=True)
    told: list[Any] = [
        put,
        await context.get_messages(),
        (await memory.query("nice")).results,
        (await memory.query("live nice", as_of=AT, limit=100)).results,
        (await memory.query()).results,
        (await memory.recall("nice")).matches,
        answers,
        (await recall(store, scope, "nice", at=AT, budget_tokens=1000)).facts,
        (await search(store, scope, "nice", at=AT)).facts,
        await fresh.save_state(),
    ]
    with store.reading() as transaction:
        told += [
            read_judging_coverage(transaction, scope, RulesJudge()),
            lookup.read_facts(transaction, scope, at=AT),
            lookup.read_facts(transaction, scope, at=AT, known_at=AT),
            lookup.read_knowledge(transaction, scope),
            lookup.read_histories(transaction, scope),
            lookup.assertions_by_id(transaction, scope, ids),
            lookup.verdicts_on(transaction, scope, ids),
            lookup.read_rejected_candidates(transaction, scope, SESSION),
            scope_rows.revision_of(transaction, scope),
            ledger.last_window_keys(transaction, scope, ledger.session_run_source(SESSION)),
            reviews.read_contests(transaction, scope, at=AT),
            runs.read_runs(transaction, scope),
            sessions.read_sessions(transaction, scope=scope),
            sessions.find_session(transaction, scope, SESSION),
            sessions.read_turns(transaction, scope, SESSION),
            sessions.state_saved_at(transaction, scope, SESSION),
        ]
        for fact_id in ids[:: max(1, len(ids) // 6)]:
            try:
                told.append(fact_ids.read_fact(transaction, scope, fact_id, at=AT))
            except NotFound:
                continue
    return told


async def check(store: Store, scopes: Sequence[Scope]) -> None:
    """Fill every scope with a city of its own, and see that each read tells of that one alone."""
    cities = {scope: f"Quux{number:03}ville" for number, scope in enumerate(scopes)}
    ids: list[str] = []
    for scope, city in cities.items():
        await fill(store, scope, city)
        with store.reading() as transaction:
            ids += [one for fact in lookup.read_facts(transaction, scope, at=AT) for one in fact.assertion_ids]
    assert len(ids) >= 2 * len(scopes)
    for scope, city in cities.items():
        everything = await everything_read(store, scope, ids)
        for told in everything:
            assert set(re.findall(r"Quux\d+ville", repr(told))) <= {city}, (scope, told)
        assert city in repr(everything)


async def test_look_alikes_read_nothing_of_each_other(store: Store) -> None:
    as_users = [Scope.user(name) for name in LOOK_ALIKES]
    as_tenants = [Scope.user("lena", name) for name in LOOK_ALIKES if "/" not in name]
    await check(store, [*as_users, *as_tenants[::3], Scope("default", ScopeKind.PROJECT, "lena")])


@settings(
    max_examples=settings().max_examples // 25,  # two, and in the soak forty
    suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture],
)
@given(names=st.lists(NAMES, min_size=2, max_size=3, unique=True))
async def test_any_names_read_nothing_of_each_other(store: Store, names: list[str]) -> None:
    fresh = uuid4().hex
    await check(store, [*(Scope.user(name, fresh) for name in names), *(Scope.user(fresh, name) for name in names)])


async def test_one_memory_remembers_nothing_of_another_scope(store: Store) -> None:
    """Caches too: what one memory has read of several scopes never shows in the block of another."""
    for name, fact in (("lena", "Lena likes tea."), ("Lena", "LENA likes chess.")):
        await FactMemory(user=name, store=store).add(MemoryContent(content=fact, mime_type=MemoryMimeType.TEXT))
    lena, other = FactMemory(user="lena", store=store), FactMemory(user="Lena", store=store)
    for _ in range(3):
        assert [one.content for one in (await lena.query()).results] == ["Lena likes tea."]
        assert [one.content for one in (await other.query()).results] == ["LENA likes chess."]
