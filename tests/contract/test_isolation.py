"""Another scope, no answer: over every public read, for tenants and users with look-alike names."""

from __future__ import annotations

import unicodedata
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
from afterword.extractors.judge import RulesJudge
from afterword.extractors.rules import RulesExtractor
from afterword.pipeline.batch import queued
from afterword.pipeline.consolidation import coverage
from afterword.store import ledger, lookup, reviews, runs, sessions
from afterword.store.engine import Store
from afterword.store.errors import NotFound
from afterword.store.recall import recall, search
from afterword.store.scopes import Scope, ScopeKind
from conversing import replying

AT = datetime(2100, 1, 1, tzinfo=UTC)
LOOK_ALIKES: Sequence[tuple[str, str]] = [
    ("lena", "Lena"),
    ("lena", "LENA"),
    ("lena", "lena "),
    ("lena", "len"),
    ("lena", "lena/user"),
    ("lena", "l%"),
    ("lena", "len_"),
    ("lena", "%"),
    ("lena", "lena' OR '1'='1"),
    ("lena", "lena'; DROP TABLE facts; --"),
    ("lena", 'lena" OR name:*'),
    ("lena", "lena*"),
    ("lena", "lena\\"),
    ("lena", "lеna"),  # a Cyrillic letter
    ("lena", "ｌｅｎａ"),
    ("lena", "le\u00adna"),
    ("lena", "lena\u200b"),
    (unicodedata.normalize("NFC", "zoë"), unicodedata.normalize("NFD", "zoë")),
    ("straße", "strasse"),
    ("ıstanbul", "istanbul"),
    ("σας", "σασ"),
    ("1", "01"),
    ("1", "1.0"),
    ("null", "None"),
    ("user", "default/user/user"),
]
SIGNS = st.sampled_from([*"lLeEna%_*'\"\\;:- .()ëéаßſıİ٠١ẞσς", "\u0308", "\u200b", "default", "user"])
NAMES = st.lists(SIGNS, min_size=1, max_size=6).map("".join).filter(lambda name: bool(name.strip()))
SAID = "I live in Quuxville."


def places(mine: str, others: str) -> list[tuple[Scope, Scope]]:
    """A scope and its look-alike: as users, as tenants, and of another kind."""
    pairs = [(Scope.user(mine), Scope.user(others))]
    if "/" not in mine + others:
        pairs.append((Scope.user("u", tenant=mine), Scope.user("u", tenant=others)))
        pairs.append((Scope.user("u", tenant=mine), Scope(mine, ScopeKind.PROJECT, "u")))
    return pairs


async def fill(store: Store, scope: Scope, session: str) -> None:
    """Everything that can be kept of a scope: a recorded session, facts, a contest's worth of runs, held requests."""
    memory = FactMemory(scope=scope, store=store)
    agent = AssistantAgent("helper", replying("fine"), memory=[memory])
    async with record_session(agent, scope=scope, session_id=session, store=store):
        await agent.run(task=SAID)
    for waiting in await queued(store):
        await process_session(store, waiting, extractor=RulesExtractor())
    await memory.add(MemoryContent(content="Quuxville is nice.", mime_type=MemoryMimeType.TEXT))
    tool = RememberTool(memory)
    await tool.run_json({"statement": "The mayor of Quuxville is a friend.", "quote": "mayor"}, CancellationToken())


async def everything_read(store: Store, scope: Scope, session: str, ids: Sequence[str]) -> list[Any]:
    """What each public read tells of a scope when it is asked for what another scope holds."""
    memory = FactMemory(scope=scope, store=store)
    context = UnboundedChatCompletionContext([UserMessage(content="What about Quuxville?", source="user")])
    put = await memory.update_context(context)
    tools: list[BaseTool[Any, Any]] = [RecallTool(memory), WithdrawTool(memory)]
    asked = [{"query": "Quuxville"}, {"note": ids[0], "quote": "Quuxville"}]
    answers = [await tool.run_json(given, CancellationToken()) for tool, given in zip(tools, asked, strict=True)]
    fresh = AssistantAgent("helper", replying("fine"))
    told: list[Any] = [
        put,
        [one for one in await context.get_messages() if one.content != "What about Quuxville?"],
        (await memory.query("Quuxville")).results,
        (await memory.query("Quuxville", as_of=AT, limit=100)).results,
        (await memory.query()).results,
        (await memory.recall("Quuxville")).found,
        answers,
        (await recall(store, scope, "Quuxville", at=AT, budget_tokens=1000)).facts,
        (await search(store, scope, "Quuxville", at=AT)).facts,
        await resume(fresh, scope=scope, session_id=session, store=store, missing_ok=True),
        await coverage(store, scope, RulesJudge()),
    ]
    async with store.read() as db:
        told += [
            await lookup.facts(db, scope, at=AT),
            await lookup.facts(db, scope, at=AT, known_at=AT),
            await lookup.known(db, scope),
            await lookup.kept_courses(db, scope),
            await lookup.assertions_by_id(db, scope, ids),
            await lookup.verdicts_on(db, scope, ids),
            await lookup.rejections(db, scope, session),
            await lookup.revision_of(db, scope),
            await ledger.last_keys(db, scope, ledger.source_of(session)),
            await reviews.contests(db, scope),
            await runs.runs(db, scope),
            await sessions.sessions(db, scope=scope),
            await sessions.find(db, scope, session),
            await sessions.turns(db, scope, session),
            await sessions.saved_at(db, scope, session),
        ]
        for fact_id in ids:
            try:
                told.append(await lookup.fact(db, scope, fact_id, at=AT))
            except NotFound:
                continue
    return told


async def check(store: Store, mine: Scope, others: Scope) -> None:
    """Fill one scope, and see that all reads of the other tell what they told before."""
    if mine == others:
        return
    session = f"s-{uuid4().hex}"
    empty = repr(await everything_read(store, others, session, ["0" * 20]))
    await fill(store, mine, session)
    async with store.read() as db:
        ids = [one for fact in await lookup.facts(db, mine, at=AT) for one in fact.assertion_ids]
    assert len(ids) >= 2
    assert "Quuxville" in repr(await everything_read(store, mine, session, ids))
    assert repr(await everything_read(store, others, session, ids)) == empty, (mine, others)


async def test_look_alikes_read_nothing_of_each_other(store: Store) -> None:
    for number, (one, other) in enumerate(LOOK_ALIKES):
        pairs = [pair for both in ((one, other), (other, one)) for pair in places(*both)]
        for mine, others in pairs[number % 2 :: 2]:
            # A tenant of its own for each pair, so that every look-alike is new.
            fresh = f"{mine.tenant}{number}"
            if mine.tenant == others.tenant:
                mine, others = (Scope(fresh, each.kind, each.id) for each in (mine, others))
            async with store.read() as db:
                if await lookup.scope_row(db, mine) or await lookup.scope_row(db, others):
                    continue
            await check(store, mine, others)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=NAMES, other=NAMES)
async def test_any_two_names_read_nothing_of_each_other(store: Store, one: str, other: str) -> None:
    tenant = uuid4().hex
    await check(store, Scope.user(one, tenant), Scope.user(other, tenant))
    if "/" not in one + other:
        await check(store, Scope.user(tenant, one), Scope.user(tenant, other))


async def test_one_memory_remembers_nothing_of_another_scope(store: Store) -> None:
    """Caches too: what one memory has read of several scopes never shows in the block of another."""
    for name, fact in (("lena", "Lena likes tea."), ("Lena", "LENA likes chess.")):
        await FactMemory(user=name, store=store).add(MemoryContent(content=fact, mime_type=MemoryMimeType.TEXT))
    lena, other = FactMemory(user="lena", store=store), FactMemory(user="Lena", store=store)
    for _ in range(3):
        assert [one.content for one in (await lena.query()).results] == ["Lena likes tea."]
        assert [one.content for one in (await other.query()).results] == ["LENA likes chess."]
