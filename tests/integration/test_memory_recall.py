"""What FactMemory finds: by words, within a budget, and as the store has it now."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage

from afterword.agents.memory import FactMemory
from afterword.agents.memory_content import RecallOutcome
from afterword.facts.assertions import Kind
from afterword.recall.tokens import estimated_token_count
from afterword.store import ledger, scope_rows
from afterword.store.database.engine import Store
from afterword.store.reading import snapshots
from afterword.store.reading.recall import recall, search
from afterword.store.reading.view_cache import view_cache_of
from kept import LENA, SAID_AT, keep, run_ids, stated, text, texts


async def test_nothing_stored_and_nothing_relevant_are_told_apart(store: Store) -> None:
    now = datetime.now(UTC)
    assert (await search(store, LENA, "tea", at=now)).stored == 0
    await keep(store, stated("Lena plays chess."))
    found = await search(store, LENA, "tea", at=now)
    assert (found.facts, found.stored) == ((), 1)


async def test_query_takes_limits_kinds_and_contents(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await keep(
        store,
        *(stated(f"Lena tried tea number {number}.", number) for number in range(1, 15)),
        stated("Lena prefers green tea.", 15, kind=Kind.PREFERENCE),
    )
    assert len((await memory.recall("tea")).matches) == 10
    # What fits the budget is returned whole, the best first.
    assert len((await memory.query("tea")).results) == 15
    silent = await memory.query("submarine")
    assert (silent.outcome, len(silent.results)) == (RecallOutcome.NOTHING_RELEVANT, 15)
    small = FactMemory(user="lena", store=store, budget_tokens=150)
    assert len((await small.query("tea")).results) == 10
    assert (await small.query("submarine")).results == []
    assert len((await memory.query("tea", limit=3)).results) == 3
    assert len((await memory.query("")).results) == 15
    assert [one.content for one in (await memory.query("tea", kinds=["preference"])).results] == [
        "Lena prefers green tea."
    ]
    assert len((await small.query(text("green"), unknown_option=1)).results) == 1
    with pytest.raises(ValueError, match="rumour"):
        await memory.query("tea", kinds=["rumour"])


async def test_a_small_memory_is_served_whole_whatever_is_asked(store: Store) -> None:
    await keep(store, *(stated(f"Lena knows thing {number}.", number) for number in range(1, 6)))
    now = datetime.now(UTC)
    first = await recall(store, LENA, "thing 3", at=now, budget_tokens=600)
    second = await recall(store, LENA, "something else", at=now, budget_tokens=600)
    assert first.has_all_facts
    assert first.facts == second.facts


@pytest.mark.parametrize("budget", [0, 40, 120, 200, 400])
async def test_a_large_memory_keeps_to_its_budget(store: Store, budget: int) -> None:
    kinds = list(Kind)
    many = [stated(f"Lena has item {n} of set {n % 7}.", n, kind=kinds[n % 3]) for n in range(1, 60)]
    needle = stated("The quasar telescope is broken.", 60, said_at=SAID_AT)
    await keep(store, needle, *many)
    found = await recall(store, LENA, "what about the quasar", at=datetime.now(UTC), budget_tokens=budget)
    assert not found.has_all_facts
    assert found.stored == 60
    assert found.layers is not None
    assert estimated_token_count(found.layers.text) <= budget
    if budget >= 120:
        assert needle.id in {fact.id for fact in found.facts}


async def test_above_the_budget_the_latest_is_kept_where_the_query_says_nothing(store: Store) -> None:
    await keep(store, *(stated(f"Lena has item {n}.", n) for n in range(1, 60)))
    found = await recall(store, LENA, "", at=datetime.now(UTC), budget_tokens=120)
    numbers = [int(fact.id) for fact in found.facts]
    assert numbers == list(range(60 - len(numbers), 60))


async def test_what_came_too_late_serves_the_next_turn(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large memory may take longer than a turn waits, once: else it would be too late in every turn."""
    await keep(store, *(stated(f"Lena knows thing {number}.", number) for number in range(1, 1500)))
    free, read = threading.Event(), snapshots.read

    def slow(*arguments: Any) -> snapshots.Snapshot:
        free.wait(60)
        return read(*arguments)

    monkeypatch.setattr(snapshots, "read", slow)
    memory = FactMemory(user="lena", store=store, timeout_s=0.001)
    assert await texts(memory) == []
    free.set()
    for _ in range(600):
        await asyncio.sleep(0.1)
        if view_cache_of(store).cached_revision(LENA) is not None:
            break
    with store.reading() as db:
        revision = scope_rows.revision_of(db, LENA)
    assert view_cache_of(store).cached_revision(LENA) == revision
    assert len(await texts(FactMemory(user="lena", store=store))) == 1499


async def test_what_is_remembered_is_never_older_than_the_store(store: Store) -> None:
    memory, writer = FactMemory(user="lena", store=store), FactMemory(user="lena", store=store)
    assert await texts(memory) == []
    await writer.add(text("Lena likes tea."))
    assert await texts(memory) == ["Lena likes tea."]
    await writer.clear()
    assert await texts(memory) == []
    [run_id] = await run_ids(store, "clear")
    with store.writing() as db:
        ledger.revert_run(db, LENA, run_id, datetime.now(UTC))
    assert await texts(memory) == ["Lena likes tea."]


async def test_what_is_remembered_still_expires(store: Store) -> None:
    now = SAID_AT
    memory = FactMemory(user="lena", store=store, clock=lambda: now)
    await memory.add(text("Lena is in Oslo.", valid_to="2026-03-05"))
    assert await texts(memory) == ["Lena is in Oslo."]
    now += timedelta(days=10)
    assert await texts(memory) == []


async def test_a_block_is_a_system_message_at_the_start(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena likes tea."))
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content="hello", source="user"))
    put = await memory.update_context(context)
    first, second = await context.get_messages()
    assert isinstance(first, SystemMessage)
    assert second.content == "hello"
    assert [one.content for one in put.memories.results] == ["Lena likes tea."]
