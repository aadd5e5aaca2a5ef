"""The store for LangGraph, in real graphs without a model: what a node is served, and what it cannot do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, InvalidNamespaceError

import afterword
from afterword import Afterword, ProcessingOptions
from afterword.errors import ArgumentInvalid, ScopeInvalid
from afterword.facts.scopes import Scope
from afterword.langgraph import FactStore
from afterword.store.database.engine import Store
from batches import state


class Turn(TypedDict):
    """The state of the graph: who asks what, and what is known."""

    user: str
    question: str
    known: list[str]


async def recall(state: Turn, runtime: Runtime[None]) -> dict[str, Any]:
    assert runtime.store is not None
    items = await runtime.store.asearch(("facts", state["user"]), query=state["question"], limit=3)
    return {"known": [item.value["text"] for item in items]}


def recall_in_a_thread(state: Turn, runtime: Runtime[None]) -> dict[str, Any]:
    assert runtime.store is not None
    items = runtime.store.search(("facts", state["user"]), query=state["question"], limit=3)
    return {"known": [item.value["text"] for item in items]}


def graph(node: Any, store: BaseStore) -> Any:
    builder = StateGraph(Turn)
    builder.add_node("recall", node)
    builder.add_edge(START, "recall")
    builder.add_edge("recall", END)
    return builder.compile(store=store)


@pytest.fixture
async def app(store: Store) -> AsyncIterator[Afterword]:
    async with afterword.open(store=store) as opened:
        await opened.user("mira").remember("I like tea.")
        await opened.user("otto").remember("I live in Rome.")
        yield opened


async def test_a_node_is_served_the_facts_of_its_person(app: Afterword) -> None:
    await app.user("mira").remember("I live in Bergen.")
    asked: Turn = {"user": "mira", "question": "Who lives in Bergen?", "known": []}
    told = (await graph(recall, FactStore(app)).ainvoke(asked))["known"]
    assert "Bergen" in told[0]
    assert "Rome" not in str(told)


def test_a_node_without_await_is_served_as_well(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/facts.db"

    async def remember() -> None:
        async with afterword.open(url) as app:
            await app.user("mira").remember("I live in Bergen.")

    asyncio.run(remember())
    app = afterword.open(url)
    asked: Turn = {"user": "mira", "question": "Who lives in Bergen?", "known": []}
    store = FactStore(app)
    assert "Bergen" in graph(recall_in_a_thread, store).invoke(asked)["known"][0]
    store.close()
    asyncio.run(app.close())


async def test_an_item_has_its_evidence_and_can_be_read_by_its_key(app: Afterword) -> None:
    await app.user("mira").remember("I live in Bergen.")
    store = FactStore(app)
    first, second = await store.asearch(("facts", "mira"), query="tea")
    assert "tea" in first.value["text"]
    assert (first.value["status"], first.value["layer"]) == ("current", "now")
    assert (first.score or 0.0) > (second.score or 0.0)
    item = await store.aget(("facts", "mira"), first.key)
    assert item is not None
    assert item.value == first.value
    assert await store.aget(("facts", "otto"), first.key) is None
    assert await store.asearch(("facts", "mira"), query="tea", limit=1, offset=1) == [second]
    assert await store.asearch(("facts", "nobody"), query="tea") == []


async def test_what_held_before_is_served_only_where_it_is_asked_for(app: Afterword) -> None:
    mira, store = app.user("mira"), FactStore(app)
    for day, place in enumerate(("Bergen", "Oslo"), start=1):
        said = state(f"I live in {place}.")
        options = ProcessingOptions(extractor="rules")
        await mira.process(said, session_id=place, started_at=f"2026-03-0{day}T10:00:00Z", options=options)
    assert "Bergen" not in str(await store.asearch(("facts", "mira"), query="Where do I live?"))
    before = await store.asearch(("facts", "mira"), query="Where do I live?", filter={"layer": "before"})
    assert ["Bergen" in item.value["text"] for item in before] == [True]


async def test_names_that_no_namespace_may_hold_come_from_a_function(app: Afterword) -> None:
    await app.user("mira@example.org").remember("I like tea.")
    store = FactStore(app, scope_of=lambda namespace: Scope.user(f"{namespace[-1]}@example.org"))
    assert len(await store.asearch(("people", "mira"), query="tea")) == 1
    with pytest.raises(InvalidNamespaceError):
        await FactStore(app).aget(("facts", "mira@example.org"), "any")


async def test_it_neither_writes_nor_reads_of_several_people(app: Afterword) -> None:
    store = FactStore(app)
    with pytest.raises(ArgumentInvalid, match="learned from sessions"):
        await store.aput(("facts", "mira"), "key", {"text": "I like wine."})
    with pytest.raises(ArgumentInvalid, match="learned from sessions"):
        await store.adelete(("facts", "mira"), "key")
    with pytest.raises(ArgumentInvalid, match="learned from sessions"):
        await store.alist_namespaces()
    for namespace in ((), ("facts",), ("mira",), ("facts", "default", "mira")):
        with pytest.raises(ArgumentInvalid, match="names nobody"):
            await store.asearch(namespace, query="tea")
    with pytest.raises(ScopeInvalid):
        await store.asearch(("facts", "default", "nonsense", "mira"))


async def test_a_graph_goes_on_while_the_store_is_away(tmp_path: Path) -> None:
    (tmp_path / "facts.db").write_bytes(b"not a database" * 1000)
    async with afterword.open(f"sqlite:///{tmp_path}/facts.db") as app:
        asked: Turn = {"user": "mira", "question": "Who lives in Bergen?", "known": []}
        assert (await graph(recall, FactStore(app)).ainvoke(asked))["known"] == []
