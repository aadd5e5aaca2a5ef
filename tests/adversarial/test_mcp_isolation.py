"""Clients of different users never see each other's facts, whatever ids and words they give."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.shared.exceptions import MCPError

import afterword
from afterword import Afterword, ScopeMemory
from afterword.setting_sections import EmbeddingOptions
from afterword.settings import Settings
from mcp_clients import Person, client_of, connected, server_of, serving_http

USERS = ("mira", "mira2", "Mira", "mi%72a", "mira.mira", "noor")
"""Look-alike ids of users. Their sessions have the same ids."""
MARKERS = dict(zip(USERS, ("Quito", "Lima", "Oslo", "Rome", "Bern", "Cairo"), strict=True))
SESSIONS = ("monday", "mira/monday", "default/user/noor")
QUIET = Settings(embedding=EmbeddingOptions(kind="none"))


@dataclass(frozen=True)
class Attempt:
    """A call by a user. `victim` is whose ids and words it gives."""

    caller: str
    victim: str
    tool: str
    number: int
    prefix: int


ATTEMPTS = st.builds(
    Attempt,
    st.sampled_from(USERS),
    st.sampled_from(USERS),
    st.sampled_from(
        (
            *("recall", "list_facts", "get_fact", "get_context", "list_sessions", "remember", "correct_fact"),
            *("withdraw_fact", "forget", "forget session", "read fact", "read session", "prompt"),
            *("list_findings", "save_finding"),
        )
    ),
    st.integers(0, 2),
    st.sampled_from((6, 8, 20)),
)


@asynccontextmanager
async def clients(app: Afterword, *, over_http: bool) -> AsyncIterator[Mapping[str, Client]]:
    """Yield a client of each user, whose person agrees to everything; over HTTP each has a key."""
    async with AsyncExitStack() as stack:
        if over_http:
            address = await stack.enter_async_context(serving_http(app))
            secrets = {name: (await app.keys.create(user=name)).secret for name in USERS}
            yield {
                name: await stack.enter_async_context(connected(address, secret, person=Person("accept")))
                for name, secret in secrets.items()
            }
            return
        yield {
            name: await stack.enter_async_context(client_of(server_of(app.user(name)), person=Person("accept")))
            for name in USERS
        }


async def remembered(memory: ScopeMemory) -> tuple[object, ...]:
    facts = await memory.facts(status="all")
    sessions = await memory.sessions()
    session_ids = [session.session_id for session in sessions.sessions]
    findings = (await memory.findings(status="all")).findings
    return facts.facts, session_ids, len((await memory.review()).held), findings


async def answer_to(client: Client, attempt: Attempt, fact_id: str, session_id: str) -> str:
    """Return everything that the caller reads, without the words of the call itself."""
    city = MARKERS[attempt.victim]
    arguments: dict[str, dict[str, Any]] = {
        "recall": {"query": f"{attempt.victim} {city}"},
        "list_facts": {"status": "all", "about": attempt.victim},
        "get_fact": {"fact_id": fact_id},
        "get_context": {"question": f"What does {attempt.victim} own in {city}?"},
        "list_sessions": {},
        "remember": {"statement": "The user likes tea.", "about": attempt.victim},
        "correct_fact": {"fact_id": fact_id, "statement": "The user likes tea."},
        "withdraw_fact": {"fact_id": fact_id},
        "forget": {"fact_id": fact_id},
        "list_findings": {"agent": f"scout of {attempt.victim}"},
        "save_finding": {"statement": f"Tea is cheap for {attempt.victim}.", "topic": attempt.victim},
    }
    try:
        if attempt.tool == "read fact":
            return (await client.read_resource(f"memory://facts/{fact_id}")).model_dump_json()
        if attempt.tool == "read session":
            return (await client.read_resource(f"memory://sessions/{quote(session_id, safe='')}")).model_dump_json()
        if attempt.tool == "prompt":
            return (await client.get_prompt("memory", {"question": city})).model_dump_json()
        if attempt.tool == "forget session":
            return (await client.call_tool("forget", {"session_id": session_id})).model_dump_json()
        return (await client.call_tool(attempt.tool, arguments[attempt.tool])).model_dump_json()
    except MCPError as error:
        return json.dumps(str(error))


async def fill(url: str) -> None:
    async with afterword.open(url, settings=QUIET) as app:
        for name in USERS:
            for number, session_id in enumerate(SESSIONS):
                words = f"I live in {MARKERS[name]}." if not number else f"I own boat {number} in {MARKERS[name]}."
                state = {"content": words, "source": "user", "type": "UserMessage"}
                saved = {"type": "AssistantAgentState", "llm_context": {"messages": [state]}}
                await app.user(name).process(saved, session_id=session_id, started_at="2026-03-02")
            await app.user(name).remember(f"The user keeps a lamp in {MARKERS[name]}.")
            await app.user(name).set_finding_policy("*", agents_with_tools="keep")
            finding = f"Boats are cheap in {MARKERS[name]}."
            await app.user(name).save_finding(finding, agent=f"scout of {name}", topic="boats")


@pytest.fixture(scope="module")
def filled_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the memories of all users, of which every attempt gets a copy."""
    path = tmp_path_factory.mktemp("filled") / "afterword.db"
    asyncio.run(fill(f"sqlite:///{path}"))
    return path


async def check(filled_store: Path, attempts: list[Attempt], *, over_http: bool = False) -> None:
    copy = Path(shutil.copy(filled_store, filled_store.with_name("copy.db")))
    with closing(sqlite3.connect(copy)) as watching:
        await check_copy(copy, watching, attempts, over_http=over_http)


def commits(watching: sqlite3.Connection) -> int:
    """Return a number that changes whenever another connection commits. What nobody writes stays as it is."""
    (number,) = watching.execute("PRAGMA data_version").fetchone()
    return int(number)


async def check_copy(copy: Path, watching: sqlite3.Connection, attempts: list[Attempt], *, over_http: bool) -> None:
    async with afterword.open(f"sqlite:///{copy}", settings=QUIET) as app:
        fact_ids = {name: [fact.id for fact in (await app.user(name).facts()).facts] for name in USERS}
        before = {name: await remembered(app.user(name)) for name in USERS}
        async with clients(app, over_http=over_http) as opened:
            committed = commits(watching)
            for attempt in attempts:
                known = fact_ids[attempt.victim]
                fact_id = known[attempt.number % len(known)][: attempt.prefix]
                answer = await answer_to(opened[attempt.caller], attempt, fact_id, SESSIONS[attempt.number])
                if committed != commits(watching):
                    after = {name: await remembered(app.user(name)) for name in USERS}
                    before[attempt.caller] = after[attempt.caller]
                    assert after == before, attempt
                    committed = commits(watching)
                seen = {name for name, city in MARKERS.items() if city in answer}
                assert seen <= {attempt.caller}, attempt
        assert {name: await remembered(app.user(name)) for name in USERS} == before
        assert {scope.id for scope in (await app.scopes()).scopes} == set(USERS)


@settings(max_examples=4)
@given(st.lists(ATTEMPTS, min_size=15, max_size=15))
def test_users_never_see_each_other(filled_store: Path, attempts: list[Attempt]) -> None:
    asyncio.run(check(filled_store, attempts))


@settings(max_examples=2)
@given(st.lists(ATTEMPTS, min_size=15, max_size=15))
def test_keys_never_see_each_other(filled_store: Path, attempts: list[Attempt]) -> None:
    asyncio.run(check(filled_store, attempts, over_http=True))


@pytest.mark.soak
@settings(max_examples=200)
@given(st.lists(ATTEMPTS, min_size=30, max_size=60), st.booleans())
def test_users_never_see_each_other_for_long(filled_store: Path, attempts: list[Attempt], over_http: bool) -> None:
    asyncio.run(check(filled_store, attempts, over_http=over_http))


@pytest.mark.parametrize("over_http", [False, True])
def test_every_call_with_the_ids_of_other_users(filled_store: Path, over_http: bool) -> None:
    tools = ["get_fact", "withdraw_fact", "correct_fact", "forget", "read fact", "list_findings", "save_finding"]
    attempts = [Attempt("mira", victim, tool, 0, 20) for victim in ("mira2", "Mira") for tool in tools]
    asyncio.run(check(filled_store, attempts, over_http=over_http))
