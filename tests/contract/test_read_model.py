"""The views that reads are answered from: of the right store, loaded once, and stale rather than none."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
import weakref
from datetime import UTC, datetime
from pathlib import Path

import pytest
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from sqlalchemy import Connection

from afterword.agents.memory import FactMemory
from afterword.extractors.rules import RulesExtractor
from afterword.facts.scopes import Scope
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.store import lookup
from afterword.store.database.engine import Store, open_store
from afterword.store.entered_statements import Entry
from afterword.store.entries import add_entry
from afterword.store.reading import snapshots
from afterword.store.reading.recall import recall, search
from afterword.store.reading.view_cache import ViewCache, view_cache_of
from afterword.store.reading.views import View

LENA = Scope.user("lena")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 3, 2, tzinfo=UTC)


async def served(store: Store) -> list[str]:
    recalled = await search(store, LENA, "", at=LATER)
    return sorted(fact.statement for fact in recalled.facts)


async def say(store: Store, *sentences: str) -> None:
    for sentence in sentences:
        await add_entry(store, LENA, Entry(sentence), at=NOON)


@pytest.mark.parametrize("in_place", [False, True])
async def test_a_file_that_is_replaced_at_the_same_revision_is_another_store(tmp_path: Path, in_place: bool) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    async with await open_store(f"sqlite:///{second}") as other:
        await say(other, "Lena likes rain.", "Lena likes snow.")
    async with await open_store(f"sqlite:///{first}") as store:
        await say(store, "Lena likes tea.", "Lena likes jam.")
        assert await served(store) == ["Lena likes jam.", "Lena likes tea."]
        await store.close()
        if in_place:
            first.write_bytes(second.read_bytes())
        else:
            second.replace(first)
        assert await served(store) == ["Lena likes rain.", "Lena likes snow."]
        facts = await store.read(lambda transaction: lookup.read_facts(transaction, LENA, at=LATER))
        assert sorted(fact.statement for fact in facts) == await served(store)
        message = {"content": "I live in Graz.", "source": "user", "type": "UserMessage"}
        state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
        await process_session(store, Saved(LENA, "s", state=state, started_at=NOON), extractor=RulesExtractor())
        assert "The user lives in Graz." in await served(store)


async def test_a_file_that_is_replaced_while_it_is_open_is_another_store(tmp_path: Path) -> None:
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    async with await open_store(f"sqlite:///{second}") as other:
        await say(other, "Lena likes rain.")
    async with await open_store(f"sqlite:///{first}") as store:
        await say(store, "Lena likes tea.")
        assert await served(store) == ["Lena likes tea."]
        for suffix in ("-wal", "-shm"):
            first.with_name(first.name + suffix).unlink(missing_ok=True)
        shutil.move(second, first)
        assert await served(store) == ["Lena likes rain."]
        await say(store, "Lena likes snow.")
        assert await served(store) == ["Lena likes rain.", "Lena likes snow."]


async def test_however_many_ask_a_scope_is_loaded_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await say(store, "Lena likes tea.")
    full_loads, free = [], threading.Event()
    read = snapshots.read

    def slow(connection: Connection, scope: Scope, before: snapshots.Snapshot | None = None) -> snapshots.Snapshot:
        if before is None:
            full_loads.append(scope)
            free.wait(30)
        return read(connection, scope, before)

    monkeypatch.setattr(snapshots, "read", slow)
    asking = [asyncio.create_task(served(store)) for _ in range(20)]
    await asyncio.sleep(0.05)
    free.set()
    assert await asyncio.gather(*asking) == [["Lena likes tea."]] * 20
    assert full_loads == [LENA]


async def test_a_turn_that_cannot_wait_is_served_what_was_known_last(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a load of one second and a timeout of 0.3 s, twenty turns started twenty loads and served none."""
    memory = FactMemory(user="lena", store=store, timeout_s=1, clock=lambda: LATER)
    patient = FactMemory(user="lena", store=store, timeout_s=60, clock=lambda: LATER)
    await memory.add(MemoryContent(content="Lena likes tea.", mime_type=MemoryMimeType.TEXT))

    async def turn(of: FactMemory) -> list[str]:
        result = await of.update_context(UnboundedChatCompletionContext())
        return [str(content.content) for content in result.memories.results]

    await view_cache_of(store).view(store, LENA, LATER)
    assert await turn(patient) == ["Lena likes tea."]
    loads, free, read = [], threading.Event(), snapshots.read

    def slow(connection: Connection, scope: Scope, before: snapshots.Snapshot | None = None) -> snapshots.Snapshot:
        loads.append(scope)
        free.wait(30)
        return read(connection, scope, before)

    monkeypatch.setattr(snapshots, "read", slow)
    await say(store, "Lena likes jam.")
    for _ in range(3):
        assert await turn(memory) == ["Lena likes tea."]
    assert len(loads) == 1
    free.set()
    await view_cache_of(store).view(store, LENA, LATER)
    assert sorted(await turn(patient)) == ["Lena likes jam.", "Lena likes tea."]
    await other_tasks()
    await memory.close()
    await patient.close()


async def test_a_memory_that_is_loaded_late_serves_the_turns_after(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(store, "Lena likes tea.")
    memory = FactMemory(user="lena", store=store, timeout_s=0.1, clock=lambda: LATER)
    loads, free, read = [], threading.Event(), snapshots.read

    def slow(connection: Connection, scope: Scope, before: snapshots.Snapshot | None = None) -> snapshots.Snapshot:
        loads.append(scope)
        free.wait(30)
        return read(connection, scope, before)

    monkeypatch.setattr(snapshots, "read", slow)
    for _ in range(3):
        context = UnboundedChatCompletionContext()
        assert (await memory.update_context(context)).memories.results == []
    assert len(loads) == 1
    free.set()
    await view_cache_of(store).view(store, LENA, LATER)
    await memory.close()
    patient = FactMemory(user="lena", store=store, timeout_s=60, clock=lambda: LATER)
    context = UnboundedChatCompletionContext()
    assert len((await patient.update_context(context)).memories.results) == 1
    await other_tasks()
    await patient.close()


async def test_a_store_that_was_closed_is_not_opened_again_for_a_turn_that_no_longer_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(store, "Lena likes tea.")
    loads, free, read = [], threading.Event(), snapshots.read

    def slow(connection: Connection, scope: Scope, before: snapshots.Snapshot | None = None) -> snapshots.Snapshot:
        loads.append(scope)
        free.wait(30)
        return read(connection, scope, before)

    monkeypatch.setattr(snapshots, "read", slow)
    hasty = FactMemory(user="lena", store=store, timeout_s=0.1, clock=lambda: LATER)
    for _ in range(2):
        assert (await hasty.update_context(UnboundedChatCompletionContext())).memories.results == []
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    free.set()
    await closing
    await other_tasks()
    assert len(loads) == 1


async def other_tasks() -> None:
    """Wait for the loads of turns that went on without them."""
    await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


async def test_a_dropped_view_takes_no_memory_until_a_garbage_collection(store: Store) -> None:
    await say(store, "Lena likes tea.", "Lena likes jam.")
    tight, views = ViewCache(most_bytes=1), list[weakref.ref[View]]()
    gc.collect()
    gc.disable()
    try:
        for scope in (LENA, Scope.user("bo")) * 10:
            view = await tight.view(store, scope, LATER)
            assert view.lists.counts.by_status
            assert view.lists.facts_to_check.pending == ()
            views.append(weakref.ref(view))
            del view
            await search(store, scope, "tea", at=LATER, turns=True, explain=True, views=tight)
            await recall(store, scope, "tea", at=LATER, budget_tokens=100, views=tight)
        assert sum(view() is not None for view in views) <= 1, "more than the one in the cache"
    finally:
        gc.enable()
