"""FactMemory by itself: what it takes, what it withdraws, and whose it is."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from PIL import Image as Picture

from afterword import open as open_afterword
from afterword.agents.memory import FactMemory
from afterword.errors import ArgumentInvalid, ScopeInvalid, StoreError
from afterword.facts.assertions import Kind
from afterword.facts.fact import Status
from afterword.store import ledger, lookup
from afterword.store.database.engine import Store
from afterword.store.reading.recall import recall, search
from kept import LENA, SAID_AT, TEXT, facts_of, keep, run_ids, stated, text, texts

# What is put in


async def test_what_the_application_adds_is_found(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena has a peanut allergy.", kind="entity", attribute="allergy", value="peanuts"))
    found = (await memory.query("peanuts?")).results[0]
    assert found.content == "Lena has a peanut allergy."
    assert found.metadata is not None
    assert found.metadata["attribute"] == "allergy"
    assert found.metadata["evidence"][0]["kind"] == "application"
    assert found.metadata["score"] > 0
    json.dumps(found.metadata)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (MemoryContent(content="# Plan\n\n- tea", mime_type=MemoryMimeType.MARKDOWN), "# Plan - tea"),
        (MemoryContent(content="plain", mime_type="text/plain"), "plain"),
        (MemoryContent(content={"b": 1, "a": "tea"}, mime_type=MemoryMimeType.JSON), '{"a": "tea", "b": 1}'),
    ],
)
async def test_text_markdown_and_json_are_kept(store: Store, content: MemoryContent, expected: str) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(content)
    assert await texts(memory) == [expected]


@pytest.mark.parametrize(
    "content",
    [
        MemoryContent(content=b"tea", mime_type=MemoryMimeType.BINARY),
        MemoryContent(content=Image(Picture.new("RGB", (2, 2))), mime_type=MemoryMimeType.IMAGE),
        MemoryContent(content="  \n", mime_type=TEXT),
        MemoryContent(content="tea", mime_type=TEXT, metadata={"kind": "rumour"}),
        MemoryContent(content="tea", mime_type=TEXT, metadata={"valid_to": "soon"}),
        MemoryContent(
            content="tea", mime_type=TEXT, metadata={"valid_from": "2026-05-01", "valid_to": "2026-04-30T23:59:59"}
        ),
    ],
)
async def test_what_is_no_fact_is_refused_with_a_reason(store: Store, content: MemoryContent) -> None:
    memory = FactMemory(user="lena", store=store)
    with pytest.raises(ValueError, match=r".{10}"):
        await memory.add(content)
    assert await texts(memory) == []


async def test_a_text_alone_is_refused_with_what_to_give(store: Store) -> None:
    memory: Any = FactMemory(user="lena", store=store)
    with pytest.raises(ArgumentInvalid, match=r"content='I like tea.' is not possible; give MemoryContent\("):
        await memory.add("I like tea.")


@pytest.mark.parametrize("argument", ["budget_tokens", "timeout_s"])
@pytest.mark.parametrize("value", [0, -1, "x", float("nan")])
async def test_a_setting_that_would_tell_an_agent_nothing_is_refused(store: Store, argument: str, value: Any) -> None:
    with pytest.raises(ArgumentInvalid, match=argument):
        FactMemory(user="lena", store=store, **{argument: value})
    with pytest.raises(ArgumentInvalid, match=argument):
        open_afterword(store=store).user("lena").memory(**{argument: value})


async def test_saying_it_again_supports_the_same_fact(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    for said in ("Lena likes tea.", "lena  likes TEA.", "Lena likes coffee."):
        await memory.add(text(said))
    assert [(fact.statement, fact.support) for fact in await facts_of(store)] == [
        ("Lena likes tea.", 2),
        ("Lena likes coffee.", 1),
    ]


async def test_its_own_results_can_be_handed_back(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena is in Oslo.", kind="decision", subject="trip", valid_from="2026-01-05"))
    [found] = (await memory.query("")).results
    assert len((await memory.query(found)).results) == 1
    await memory.add(found)
    [fact] = await facts_of(store)
    assert (fact.support, fact.kind, fact.subject) == (2, Kind.DECISION, "trip")


async def test_the_same_instant_twice_keeps_the_order_of_saying(store: Store) -> None:
    """A clock that stands still must not put a later act before an earlier one."""
    memory = FactMemory(user="lena", store=store, clock=lambda: SAID_AT)
    for _ in range(5):
        await memory.add(text("Lena likes tea."))
    with store.reading() as db:
        found = lookup.read_facts(db, LENA, at=SAID_AT)
    assert [fact.support for fact in found] == [5]


async def test_dates_in_metadata_bound_the_fact(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena is in Oslo.", valid_from="2020-01-01", valid_to="2020-02-01"))
    await memory.add(text("Lena moves to Rome.", valid_from="2999-05-01"))
    assert await texts(memory) == ["Lena moves to Rome."]
    [old, _] = await facts_of(store)
    assert old.status is Status.EXPIRED
    assert old.valid_to == datetime(2020, 2, 1, 23, 59, 59, tzinfo=UTC)


async def test_many_writers_at_once_lose_nothing(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await asyncio.gather(*(memory.add(text(f"Fact number {number}.")) for number in range(12)))
    assert len(await texts(memory)) == 12


# What is taken out


async def everything(store: Store) -> FactMemory:
    contested = stated("Mara likes jazz.", 4, kind=Kind.PREFERENCE, subject="Mara", speaker="Mara")
    await keep(
        store,
        stated("Lena likes tea."),
        stated("Lena prefers trains.", 2, kind=Kind.PREFERENCE),
        stated(
            "Apollo ships in May.",
            3,
            subject="Apollo",
            limited_to="Apollo",
            valid_from=datetime(2999, 5, 1, tzinfo=UTC),
        ),
        contested,
        stated("Lena guessed a date.", 5, time_is_guess=True),
    )
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena has a bicycle."))
    return memory


async def test_clear_withdraws_everything_and_erases_nothing(store: Store) -> None:
    """Also what people said themselves, of whatever subject and time: the application clears for the owner."""
    memory = await everything(store)
    assert len(await texts(memory)) == 6
    await memory.clear()
    assert await texts(memory) == []
    found = await facts_of(store)
    assert len(found) == 6
    assert {fact.status for fact in found} == {Status.RETRACTED}


async def test_clear_is_one_run_and_undone_as_one(store: Store) -> None:
    memory = await everything(store)
    before = await facts_of(store)
    await memory.clear()
    [run_id] = await run_ids(store, "clear")
    with store.writing() as db:
        ledger.revert_run(db, LENA, run_id, datetime.now(UTC))
    assert await facts_of(store) == before


async def test_what_is_said_after_clear_counts(store: Store) -> None:
    memory = await everything(store)
    await memory.clear()
    await memory.add(text("Lena likes tea."))
    assert await texts(memory) == ["Lena likes tea."]


async def test_clearing_nothing_or_twice_is_no_run(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.clear()
    await memory.add(text("Lena likes tea."))
    await memory.clear()
    await memory.clear()
    assert len(await run_ids(store, "clear")) == 1


async def test_clear_reaches_a_fact_said_ahead_of_the_clock(store: Store) -> None:
    ahead = datetime.now(UTC) + timedelta(minutes=5)
    await keep(store, stated("Lena likes tea.", said_at=ahead, valid_from=SAID_AT))
    memory = FactMemory(user="lena", store=store)
    assert await texts(memory) == ["Lena likes tea."]
    await memory.clear()
    assert await texts(memory) == []


async def test_undoing_an_addition_takes_back_its_support(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena likes tea."))
    await memory.add(text("Lena likes tea."))
    first, second = await run_ids(store, "application")
    for run_id, left in ((first, 1), (second, 0)):
        with store.writing() as db:
            ledger.revert_run(db, LENA, run_id, datetime.now(UTC))
        assert sum(fact.support for fact in await facts_of(store)) == left


async def test_close_deletes_nothing_is_harmless_twice_and_the_memory_opens_again(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    await memory.close()
    await memory.add(text("Lena likes tea."))
    await memory.close()
    await memory.close()
    assert await texts(memory) == ["Lena likes tea."]
    await memory.close()


async def test_close_leaves_a_store_of_the_caller_open(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena likes tea."))
    await memory.close()
    assert len(await facts_of(store)) == 1


# Whose memory


@pytest.mark.parametrize("whose", [{}, {"user": "lena", "scope": "default/user/lena"}, {"user": ""}, {"scope": "lena"}])
def test_without_exactly_one_scope_there_is_no_memory(whose: dict[str, Any]) -> None:
    with pytest.raises(ScopeInvalid):
        FactMemory(**whose)


def test_a_store_that_is_no_database_is_told_at_once() -> None:
    with pytest.raises(StoreError, match="mysql"):
        FactMemory(user="lena", store="mysql://db/facts")


async def test_nobody_reads_another_ones_facts(store: Store) -> None:
    lena, mara = FactMemory(user="lena", store=store), FactMemory(user="mara", store=store)
    other_tenant = FactMemory(scope="acme/user/lena", store=store)
    await lena.add(text("Lena likes tea."))
    context = UnboundedChatCompletionContext()
    for other in (mara, other_tenant):
        assert await texts(other) == []
        assert await texts(other, "tea") == []
        assert (await other.update_context(context)).memories.results == []
        await other.clear()
    assert await context.get_messages() == []
    assert await texts(lena) == ["Lena likes tea."]


async def test_recall_without_a_scope_is_a_type_error(store: Store) -> None:
    scopes: tuple[Any, ...] = (None, "default/user/lena")
    for wrong in scopes:
        with pytest.raises(TypeError, match="whose facts"):
            await search(store, wrong, "tea", at=SAID_AT)
        with pytest.raises(TypeError, match="whose facts"):
            await recall(store, wrong, "tea", at=SAID_AT, budget_tokens=10)


def test_one_memory_serves_several_event_loops(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    asyncio.run(memory.add(text("Lena likes tea.")))
    assert asyncio.run(texts(memory)) == ["Lena likes tea."]
    assert asyncio.run(texts(memory, "tea")) == ["Lena likes tea."]
    asyncio.run(memory.close())
