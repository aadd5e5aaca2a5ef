"""FactMemory by itself: what it takes, finds, dumps and withdraws, and what it does when the store does not."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken, Image
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage
from PIL import Image as Picture
from sqlmodel import select

from afterword.agents.addresses import FromEnvironment
from afterword.agents.memory import FactMemory
from afterword.store import ledger, lookup
from afterword.store.assertions import OWNER, Act, Assertion, Authority, Evidence, EvidenceKind, Kind
from afterword.store.engine import Store, open_store
from afterword.store.errors import ScopeInvalid, StoreError
from afterword.store.facts import Fact, Status
from afterword.store.ledger import Proposal, Reading
from afterword.store.recall import recall, search
from afterword.store.remembering import remembered
from afterword.store.rendering import block, label
from afterword.store.scopes import Scope
from afterword.store.tables import RunRow
from afterword.store.tokens import most_tokens

LENA = Scope.user("lena")
SAID_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
TEXT = MemoryMimeType.TEXT


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await open_store(f"sqlite:///{tmp_path / 'facts.db'}") as opened:
        yield opened


def text(content: str, **metadata: Any) -> MemoryContent:
    return MemoryContent(content=content, mime_type=TEXT, metadata=metadata)


async def texts(memory: Memory, query: str = "") -> list[Any]:
    return [one.content for one in (await memory.query(query)).results]


async def facts_of(store: Store, scope: Scope = LENA) -> list[Fact]:
    async with store.read() as db:
        return await lookup.facts(db, scope, at=datetime.now(UTC))


def stated(statement: str, number: int = 1, **changes: Any) -> Assertion:
    said = {
        "id": f"{number:020d}",
        "scope": LENA,
        "session_id": "s1",
        "act": Act.STATE,
        "kind": Kind.ENTITY,
        "subject": OWNER,
        "attribute": "note",
        "value": statement,
        "statement": statement,
        "speaker": "user",
        "authority": Authority.STATED,
        "said_at": SAID_AT + timedelta(minutes=number),
        "evidence": (Evidence(EvidenceKind.TURN, statement, "s1", number, "user"),),
    }
    return Assertion(**{**said, **changes})


async def keep(store: Store, *assertions: Assertion, scope: Scope = LENA) -> None:
    async with store.write() as db:
        revision = await lookup.revision_of(db, scope)
        reading = Reading(f"w{revision}", 1, 9, assertions)
        proposal = Proposal(scope, f"session:s{revision}", "session", "test", "test", SAID_AT, revision, (reading,))
        await ledger.apply(db, scope, await ledger.propose(db, proposal), SAID_AT)


async def run_ids(store: Store, purpose: str) -> list[int]:
    async with store.read() as db:
        rows = (await db.exec(select(RunRow).where(RunRow.purpose == purpose))).all()
    return [row.id for row in rows if row.id is not None]


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
    ],
)
async def test_what_is_no_fact_is_refused_with_a_reason(store: Store, content: MemoryContent) -> None:
    memory = FactMemory(user="lena", store=store)
    with pytest.raises(ValueError, match=r".{10}"):
        await memory.add(content)
    assert await texts(memory) == []


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
    async with store.read() as db:
        found = await lookup.facts(db, LENA, at=SAID_AT)
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
    async with store.write() as db:
        await ledger.undo(db, LENA, run_id, datetime.now(UTC))
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
        async with store.write() as db:
            await ledger.undo(db, LENA, run_id, datetime.now(UTC))
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
def test_without_exactly_one_scope_there_is_no_memory(whose: dict[str, str]) -> None:
    with pytest.raises(ScopeInvalid):
        FactMemory(**whose)  # type: ignore[arg-type]


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
    for wrong in (None, "default/user/lena"):
        with pytest.raises(TypeError, match="whose facts"):
            await search(store, wrong, "tea", at=SAID_AT)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="whose facts"):
            await recall(store, wrong, "tea", at=SAID_AT, budget_tokens=10)  # type: ignore[arg-type]


# What is found


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
    assert len((await memory.query("tea")).results) == 10
    assert len((await memory.query("tea", limit=3)).results) == 3
    assert len((await memory.query("")).results) == 15
    assert [one.content for one in (await memory.query("tea", kinds=["preference"])).results] == [
        "Lena prefers green tea."
    ]
    assert len((await memory.query(text("green"), unknown_option=1)).results) == 1
    with pytest.raises(ValueError, match="rumour"):
        await memory.query("tea", kinds=["rumour"])


async def test_a_small_memory_is_served_whole_whatever_is_asked(store: Store) -> None:
    await keep(store, *(stated(f"Lena knows thing {number}.", number) for number in range(1, 6)))
    now = datetime.now(UTC)
    first = await recall(store, LENA, "thing 3", at=now, budget_tokens=600)
    second = await recall(store, LENA, "something else", at=now, budget_tokens=600)
    assert first.whole
    assert first.facts == second.facts


@pytest.mark.parametrize("budget", [0, 40, 120, 200, 400])
async def test_a_large_memory_keeps_to_its_budget(store: Store, budget: int) -> None:
    kinds = list(Kind)
    many = [stated(f"Lena has item {n} of set {n % 7}.", n, kind=kinds[n % 3]) for n in range(1, 60)]
    needle = stated("The quasar telescope is broken.", 60, said_at=SAID_AT)
    await keep(store, needle, *many)
    found = await recall(store, LENA, "what about the quasar", at=datetime.now(UTC), budget_tokens=budget)
    assert not found.whole
    assert found.stored == 60
    assert most_tokens(block(found.facts, label=label(LENA), turns=found.turns)) <= budget
    if budget >= 120:
        assert needle.id in {fact.id for fact in found.facts}
        assert {fact.kind for fact in found.facts} >= {Kind.ENTITY}
    if budget >= 200:
        assert {fact.kind for fact in found.facts} == set(Kind)


async def test_above_the_budget_the_latest_is_kept_where_the_query_says_nothing(store: Store) -> None:
    await keep(store, *(stated(f"Lena has item {n}.", n) for n in range(1, 60)))
    found = await recall(store, LENA, "", at=datetime.now(UTC), budget_tokens=120)
    numbers = [int(fact.id) for fact in found.facts]
    assert numbers == list(range(60 - len(numbers), 60))


async def test_a_limit_bounds_the_number_of_facts(store: Store) -> None:
    await keep(store, *(stated(f"Lena has item {n}.", n) for n in range(1, 9)))
    found = await recall(store, LENA, "item 2", at=datetime.now(UTC), budget_tokens=600, limit=2)
    assert len(found.facts) == 2
    assert not found.whole


# A store that is slow or down


async def survives(memory: FactMemory, within_s: float) -> None:
    context = UnboundedChatCompletionContext()
    await context.add_message(UserMessage(content="hello", source="user"))
    started = time.monotonic()
    assert (await memory.update_context(context)).memories.results == []
    assert (await memory.query("hello")).results == []
    assert time.monotonic() - started < within_s
    assert len(await context.get_messages()) == 1


async def test_a_turn_survives_a_store_that_is_a_directory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    await survives(FactMemory(user="lena", store=f"sqlite:///{tmp_path}"), within_s=2)
    assert "was not read" in caplog.text
    assert "lena" not in caplog.text


async def test_a_turn_survives_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "facts.db").write_bytes(b"not a database" * 1000)
    await survives(FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}"), within_s=2)


async def test_a_turn_survives_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    await survives(FactMemory(user="lena", store=f"postgresql://me:pw@127.0.0.1:{port}/facts"), within_s=3)


async def test_a_turn_survives_a_server_that_never_answers() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"postgresql://me:pw@127.0.0.1:{silent.getsockname()[1]}/facts"
        await survives(FactMemory(user="lena", store=url, timeout_s=0.3), within_s=1.5)


async def test_a_turn_survives_a_table_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    memory = FactMemory(user="lena", store=f"sqlite:///{path}")
    await memory.add(text("Lena likes tea."))
    with sqlite3.connect(path) as broken:
        broken.execute("UPDATE facts SET spans = '[{}]'")
    await survives(memory, within_s=2)
    await memory.close()


async def test_a_turn_keeps_the_block_that_it_has_while_the_store_is_down(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    memory = FactMemory(user="lena", store=f"sqlite:///{path}")
    await memory.add(text("Lena likes tea."))
    context = UnboundedChatCompletionContext()
    await memory.update_context(context)
    with sqlite3.connect(path) as broken:
        broken.execute("ALTER TABLE scopes RENAME TO elsewhere")
    assert (await memory.update_context(context)).memories.results == []
    assert "Lena likes tea." in str((await context.get_messages())[0].content)
    await memory.close()


async def test_a_writer_at_work_does_not_stop_a_turn(store: Store) -> None:
    memory = FactMemory(user="lena", store=store)
    await memory.add(text("Lena likes tea."))
    async with store.write():
        assert await texts(memory) == ["Lena likes tea."]


async def test_what_came_too_late_serves_the_next_turn(store: Store) -> None:
    """A large memory may take longer than a turn waits, once: else it would be too late in every turn."""
    await keep(store, *(stated(f"Lena knows thing {number}.", number) for number in range(1, 1500)))
    memory = FactMemory(user="lena", store=store, timeout_s=0.02)
    assert await texts(memory) == []
    for _ in range(100):
        await asyncio.sleep(0.1)
        if remembered(store).revision_of(LENA) is not None:
            break
    async with store.read() as db:
        revision = await lookup.revision_of(db, LENA)
    assert remembered(store).revision_of(LENA) == revision
    assert len(await texts(FactMemory(user="lena", store=store))) == 1499


async def test_what_is_remembered_is_never_older_than_the_store(store: Store) -> None:
    memory, writer = FactMemory(user="lena", store=store), FactMemory(user="lena", store=store)
    assert await texts(memory) == []
    await writer.add(text("Lena likes tea."))
    assert await texts(memory) == ["Lena likes tea."]
    await writer.clear()
    assert await texts(memory) == []
    [run_id] = await run_ids(store, "clear")
    async with store.write() as db:
        await ledger.undo(db, LENA, run_id, datetime.now(UTC))
    assert await texts(memory) == ["Lena likes tea."]


async def test_what_is_remembered_still_expires(store: Store) -> None:
    now = SAID_AT
    memory = FactMemory(user="lena", store=store, clock=lambda: now)
    await memory.add(text("Lena is in Oslo.", valid_to="2026-03-05"))
    assert await texts(memory) == ["Lena is in Oslo."]
    now += timedelta(days=10)
    assert await texts(memory) == []


async def test_adding_to_a_store_that_is_down_is_an_error(tmp_path: Path) -> None:
    """A turn may go on without memory; an application that wants something kept must hear that it was not."""
    with pytest.raises(StoreError):
        await FactMemory(user="lena", store=f"sqlite:///{tmp_path}").add(text("Lena likes tea."))


async def test_cancellation_passes_through() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        memory = FactMemory(user="lena", store=f"postgresql://127.0.0.1:{silent.getsockname()[1]}/facts", timeout_s=30)
        turn = asyncio.ensure_future(memory.update_context(UnboundedChatCompletionContext()))
        await asyncio.sleep(0.1)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        token = CancellationToken()
        asyncio.get_running_loop().call_later(0.1, token.cancel)
        with pytest.raises(asyncio.CancelledError):
            await memory.query("tea", token)


def test_one_memory_serves_several_event_loops(tmp_path: Path) -> None:
    memory = FactMemory(user="lena", store=f"sqlite:///{tmp_path / 'facts.db'}")
    asyncio.run(memory.add(text("Lena likes tea.")))
    assert asyncio.run(texts(memory)) == ["Lena likes tea."]
    assert asyncio.run(texts(memory, "tea")) == ["Lena likes tea."]
    asyncio.run(memory.close())


# What a dump says


async def test_a_dump_loads_back_and_finds_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'facts.db'}"
    memory = FactMemory(scope="acme/project/apollo", store=url, budget_tokens=321, timeout_s=1.5)
    await memory.add(text("Apollo ships in May."))
    dumped = json.loads(memory.dump_component().model_dump_json())
    assert dumped["provider"] == "afterword.FactMemory"
    assert dumped["config"] == {"scope": "acme/project/apollo", "budget_tokens": 321, "timeout_s": 1.5, "store": url}
    loaded = Memory.load_component(dumped)
    assert isinstance(loaded, FactMemory)
    assert await texts(loaded) == ["Apollo ships in May."]
    await memory.close()
    await loaded.close()


def test_without_a_store_the_dump_names_none_and_the_environment_decides() -> None:
    assert "store" not in FactMemory(user="lena").dump_component().config


def test_a_named_variable_is_dumped_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTS_URL", "postgresql://me:hunter2@db/facts")
    memory = FactMemory(user="lena", store=FromEnvironment(env="FACTS_URL"))
    dumped = memory.dump_component()
    assert dumped.config["store"] == {"env": "FACTS_URL"}
    assert Memory.load_component(dumped).dump_component() == dumped


async def test_an_unset_variable_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FACTS_URL", raising=False)
    with pytest.raises(StoreError, match="FACTS_URL"):
        await FactMemory(user="lena", store=FromEnvironment(env="FACTS_URL")).add(text("tea"))


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@db/facts", "postgresql://db/facts?user=me&password=hunter2", "sqlite:///facts.db"]
)
@pytest.mark.parametrize("is_opened", [True, False])
def test_no_secret_is_ever_dumped(url: str, is_opened: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for environment in (None, url):
        if environment:
            monkeypatch.setenv("AFTERWORD_STORE__URL", environment)
        else:
            monkeypatch.delenv("AFTERWORD_STORE__URL", raising=False)
        memory = FactMemory(user="lena", store=Store(url) if is_opened else url)
        assert "hunter2" not in memory.dump_component().model_dump_json()
        assert "hunter2" not in repr(memory.dump_component())


@pytest.mark.parametrize("url", ["postgresql://me:hunter2@db/facts", "postgresql://db/facts?password=hunter2"])
def test_a_dump_without_its_password_says_what_to_set(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AFTERWORD_STORE__URL", raising=False)
    dumped = FactMemory(user="lena", store=url).dump_component()
    with pytest.raises(StoreError, match="AFTERWORD_STORE__URL"):
        Memory.load_component(dumped)
    monkeypatch.setenv("AFTERWORD_STORE__URL", url)
    loaded = Memory.load_component(dumped)
    assert loaded.dump_component().config["store"] == {"env": "AFTERWORD_STORE__URL"}


def test_a_url_without_secrets_is_dumped_as_it_is() -> None:
    dumped = FactMemory(user="lena", store="postgresql://db/facts").dump_component()
    assert dumped.config["store"] == "postgresql://db/facts"


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
