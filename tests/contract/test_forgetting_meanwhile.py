"""Forgetting while others work on the same memory, from other processes too: what they began brings nothing back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlmodel import Session, select

from afterword.errors import Overtaken
from afterword.extractors.extractor import Extraction, Window
from afterword.extractors.testing import OracleExtractor
from afterword.facts.fact import Fact
from afterword.facts.scopes import Scope
from afterword.pipeline import session
from afterword.pipeline.intake import Saved
from afterword.pipeline.session import process_session
from afterword.recall.vectors import Vector
from afterword.store import lookup, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.forgetting import erasure as forgetting
from afterword.store.reading.scope_vectors import refresh_vectors
from afterword.store.tables import AssertionRow, EvidenceRow, RejectionRow, VectorRow
from afterword.store.transfer import exports, imports
from batches import state, wait_until
from deciding_words import find
from nursery import Child
from programs import recall_for_ever

LENA = Scope.user("lena")
NOW, LATER = datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC)
WORD = "Gnarlsburg"


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def saved(session_id: str, on: int, *said: str) -> Saved:
    return Saved(LENA, session_id, state=state(*said), started_at=day(on), ended_at=day(on))


@pytest.fixture
async def store(shared_url: str) -> AsyncIterator[Store]:
    """A store that knows where Lena lives, and holds it in memory."""
    async with Store(shared_url) as opened:
        await process_session(opened, saved("a", 1, f"home: {WORD}", "drink: oolong"), extractor=OracleExtractor(find))
        yield opened


@pytest.fixture
async def other(shared_url: str) -> AsyncIterator[Store]:
    """The same store as another process opens it: with connections and a cache of its own."""
    async with Store(shared_url) as opened:
        yield opened


async def held(store: Store) -> dict[str, Fact]:
    with store.reading() as transaction:
        return {fact.value: fact for fact in lookup.read_facts(transaction, LENA, at=LATER)}


async def forget(store: Store) -> None:
    ids = (await held(store))[WORD].assertion_ids
    await forgetting.erase_in_scope(store, LENA, lambda erasure: erasure.forget_statements(ids), at=NOW)
    assert await store.compact()


async def everything(store: Store) -> str:
    """All bytes of the store's files; of PostgreSQL what a dump holds, and what the planner has noted."""
    if store.path is not None:
        return "".join(one.read_bytes().decode("latin-1") for one in store.path.parent.glob(f"{store.path.name}*"))
    with psycopg.connect(store.libpq_address) as connection:
        kept = [str(connection.execute("SELECT * FROM pg_stats WHERE schemaname = 'public'").fetchall())]
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        for (name,) in tables:
            with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as lines:
                kept += [bytes(line).decode() for line in lines]
    return "".join(kept)


class Interrupted(OracleExtractor):
    """An extractor during whose first call something else happens."""

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        super().__init__(find)
        self._acts = [act]

    async def extract(self, window: Window) -> Extraction:
        while self._acts:
            await self._acts.pop()()
        return await super().extract(window)


@pytest.mark.parametrize("apply", [True, False])
@pytest.mark.parametrize("patient_tries", [session.PATIENT_TRIES, 0])
async def test_a_session_that_is_being_read_does_not_bring_it_back(
    store: Store, other: Store, monkeypatch: pytest.MonkeyPatch, patient_tries: int, apply: bool
) -> None:
    monkeypatch.setattr(session, "PATIENT_TRIES", patient_tries)
    again = saved("b", 2, f"home: {WORD}", "seat: window")
    await process_session(store, again, extractor=Interrupted(lambda: forget(other)), apply=apply)
    assert set(await held(store)) == ({"oolong", "window"} if apply else {"oolong"})
    assert set(await held(other)) == set(await held(store))
    grown = saved("a", 1, f"home: {WORD}", "drink: oolong", "pet: cat")
    await process_session(store, grown, extractor=OracleExtractor(find))
    assert WORD not in await held(store), "its cache was warm"
    with store.reading() as transaction:
        said = [*transaction.exec(select(AssertionRow.statement)), *transaction.exec(select(EvidenceRow.quote))]
        refused = list(transaction.exec(select(RejectionRow.statement)))
    assert WORD not in str([said, refused])


async def test_no_writer_that_began_before_it_writes_after_it(store: Store, other: Store, tmp_path: Path) -> None:
    if store.path is not None:
        pytest.skip("SQLite has one writer at a time")
    await exports.export_scopes(store, tmp_path / "all.jsonl")

    async def begun_before(work: Callable[[Session], object]) -> None:
        with store.writing() as transaction:
            scope_rows.revision_of(transaction, LENA)
            await forgetting.erase_in_scope(other, LENA, lambda erasure: erasure.forget_before(day(1)), at=NOW)
            work(transaction)

    async def meanwhile(work: Callable[[Session], object]) -> None:
        with pytest.raises(Overtaken):
            await begun_before(work)

    await meanwhile(
        lambda transaction: sessions.save_state(transaction, LENA, "z", component="A", state={"x": WORD}, at=day(1))
    )
    await meanwhile(lambda transaction: sessions.mark_failed(transaction, LENA, "z", WORD, day(1)))
    running = imports._Import(store, Path("elsewhere.jsonl"), "elsewhere")
    running._scope = LENA
    await meanwhile(lambda transaction: running._write_sessions(transaction, []))
    await meanwhile(lambda transaction: running._write_assertions(transaction, []))


class Slow:
    """An embedder during whose first call something else happens."""

    model, dimension = "slow", 2

    def __init__(self, act: Callable[[], Awaitable[None]]) -> None:
        self._acts = [act]

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        while self._acts:
            await self._acts.pop()()
        return [(float(len(text)), 1.0) for text in texts]


async def test_vectors_that_are_being_made_leave_none_of_what_was_forgotten(store: Store, other: Store) -> None:
    made = await refresh_vectors(store, LENA, Slow(lambda: forget(other)), at=LATER)
    with store.reading() as transaction:
        assert len(list(transaction.exec(select(VectorRow.key)))) == made
    assert made == await refresh_vectors(store, LENA, Slow(_nothing), at=LATER) + made


async def _nothing() -> None:
    return None


@pytest.mark.begun_first
async def test_a_live_memory_of_another_process_serves_it_no_more_and_is_not_in_the_way(
    store: Store, shared_url: str, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.txt"
    questions.touch()
    live = Child([shared_url, str(questions)], os.environ, tmp_path / "live.txt", program=recall_for_ever)

    def ask(number: int) -> str:
        questions.write_text("ask\n" * number)
        wait_until(lambda: len(live.printed().splitlines()) == number)
        return live.printed().splitlines()[-1]

    try:
        assert WORD in await asyncio.to_thread(ask, 1)
        await forget(store)
        assert WORD not in await everything(store)
        assert await asyncio.to_thread(ask, 2) == "['oolong']"
    finally:
        live.kill()
        live.wait()
