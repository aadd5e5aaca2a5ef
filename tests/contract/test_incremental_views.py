"""The read model changes by what a run changed, and says the same as one that is read anew. Opening it tokenises
nothing."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import text
from sqlmodel import Session

import afterword
from afterword.facts import words
from afterword.facts.assertions import Kind
from afterword.facts.scopes import Scope
from afterword.recall.ranking import SearchIndex
from afterword.recall.search_terms import TOKENIZER
from afterword.store import ledger
from afterword.store.database.engine import Store, open_store
from afterword.store.reading import snapshots
from afterword.store.reading.view_cache import ViewCache
from afterword.store.reading.views import View
from asked_statements import asked_statements
from changing import DAY, INSTANTS, MIRA, change_something, process
from old_stores import MADE_BY, sqlite_at
from service import said

QUERIES = ["where do I live", "tea or coffee", "Mara in Lyon", "Graz Linz Oslo", "sister moved March"]


def shown(view: View) -> dict[str, Any]:
    """Return everything that a view says."""
    units = sorted((unit.id for unit in view.served_units()), key=str)
    past = sorted(str(view.unit_at(place).id) for place in view.is_past.nonzero()[0].tolist())
    served = list(view.facts_at(view.served_fact_places()))
    ranked = {
        query: [
            [(unit.id, score) for unit, score in index.ranked_units(query)]
            for index in (view.index, SearchIndex(view.snapshot.table, view.is_past))
        ]
        for query in QUERIES
    }
    parts = {query: view.index.score_parts(query, units) for query in QUERIES}
    kinds = [view.served_fact_places({kind}).size for kind in Kind]
    former = [view.replaced_value(fact) for fact in served]
    return {
        **{"units": units, "past": past, "served": served, "ranked": ranked, "parts": parts, "kinds": kinds},
        **{"former": former, "until": view.until, "unlinked": view.snapshot.unlinked_turns},
    }


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 6))])
async def test_a_view_that_was_carried_on_says_what_a_new_one_says(seed: int, tmp_path: Path) -> None:
    """Over random histories of sessions, undone and redone runs, forgetting and merges."""
    chance, carried = random.Random(seed), ViewCache()
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        store = await app.store()
        earlier: list[tuple[View, dict[str, Any]]] = []
        for _ in range(12):
            await change_something(app, chance)
            for at in chance.sample(INSTANTS, 2):
                view = await carried.view(store, Scope.parse(MIRA), at)
                new = await ViewCache().view(store, Scope.parse(MIRA), at)
                assert shown(view) == shown(new)
                earlier.append((view, shown(view)))
        # Whoever still holds an earlier view reads what it said then.
        assert [shown(view) for view, _ in earlier] == [what for _, what in earlier]


async def test_changed_facts_are_not_looked_for_among_all_facts_of_the_scope(tmp_path: Path) -> None:
    carried, scope = ViewCache(), Scope.parse(MIRA)
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        store = await app.store()
        await process(app, MIRA, "s1", random.Random(1))
        await carried.view(store, scope, INSTANTS[-1])
        await process(app, MIRA, "s2", random.Random(2))
        with asked_statements() as asked:
            await carried.view(store, scope, INSTANTS[-1])
        [statement] = [one for one in asked if "FROM facts JOIN" in one]
        with store.connecting(writing=False) as connection:
            values = (None,) * statement.count("?")
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert any("SEARCH facts" in step and "(id=?)" in step for *_, step in plan), plan


async def test_turns_of_a_session_that_waits_are_told_at_once(tmp_path: Path) -> None:
    """Also where the turns of the memory were read before, and where the session was processed and continues."""
    url, question = f"sqlite:///{tmp_path}/a.db", "Where do I live, and what do I drink?"

    async def told(app: afterword.Afterword) -> tuple[str, list[str]]:
        mira = app.scope(MIRA)
        found = await mira.search("live drink", limit=None, turns=True)
        return (await mira.context(question)).text, [hit.text for hit in found.hits]

    async with afterword.open(url=url) as app:
        mira = app.scope(MIRA)
        await mira.process(said("Tom likes jazz."), session_id="a", started_at=DAY)
        before = await told(app)
        for session_id, words in (("b", ["I live in Graz."]), ("a", ["Tom likes jazz.", "I drink mate."])):
            await mira.queue(said(*words), session_id=session_id, started_at=DAY)
            async with afterword.open(url=url) as fresh:
                assert await told(app) == await told(fresh) != before
            assert words[-1] in (await told(app))[0]
            before = await told(app)


async def test_the_runs_are_not_scanned_for_each_session(tmp_path: Path) -> None:
    """With 30,000 sessions that took a minute, at the first recall and after each write."""
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        await process(app, MIRA, "s1", random.Random(1))
        with asked_statements() as asked:
            await app.scope(MIRA).context("tea")
        [statement] = [one for one in asked if "FROM sessions" in one and "FROM runs" in one]
        with (await app.store()).connecting(writing=False) as connection:
            values = (None,) * statement.count("?")
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert not any("SCAN runs" in step or "CORRELATED" in step for *_, step in plan), plan


async def test_nothing_is_tokenised_when_a_scope_is_opened(tmp_path: Path) -> None:
    chance = random.Random(1)
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        for number in range(4):
            await process(app, MIRA, f"s{number}", chance)
    called = set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == words.__file__:
            called.add(frame.f_code.co_name)

    def open_scope(transaction: Session) -> View:
        sys.setprofile(note)
        try:
            snapshot = snapshots.read(transaction.connection(), Scope.parse(MIRA))
            view = View(snapshot, INSTANTS[0])
            assert view.index.score_parts("", ["nobody"]) == {}
            return view
        finally:
            sys.setprofile(None)

    async with Store(f"sqlite:///{tmp_path}/a.db") as store:
        view = await store.read(open_scope)
    assert called == {"terms", "lower_without_accents", "words_as_written"}  # of the empty query alone
    assert {isinstance(unit.id, str) for unit in view.served_units()} == {True, False}
    assert view.index.ranked_units("tea coffee mate Graz Linz Oslo sister diet")


@pytest.mark.parametrize("version", MADE_BY)
async def test_an_old_store_gets_its_words_when_it_is_upgraded(version: str, tmp_path: Path) -> None:
    async with await open_store(sqlite_at(version, tmp_path / "old.db")) as store:
        with store.connecting(writing=False) as connection:
            facts = connection.execute(text("SELECT search_terms FROM facts")).scalars().all()
            turns = connection.execute(text("SELECT search_terms FROM turns WHERE role = 'human'")).scalars().all()
            assert facts
            assert turns
            assert all(stored.startswith(TOKENIZER) for stored in [*facts, *turns])
            upgraded = connection.execute(text("SELECT id, search_terms FROM facts ORDER BY id")).all()
            scopes = connection.execute(text("SELECT tenant, kind, name FROM scopes")).all()
        with store.writing() as transaction:
            transaction.connection().execute(text("DELETE FROM fact_assertions"))
            transaction.connection().execute(text("DELETE FROM facts"))
            for tenant, kind, name in scopes:
                ledger.derive_and_store_facts(transaction, Scope.parse(f"{tenant}/{kind}/{name}"))
        with store.connecting(writing=False) as connection:
            assert connection.execute(text("SELECT id, search_terms FROM facts ORDER BY id")).all() == upgraded


async def test_words_of_another_tokenizer_are_made_again_where_they_are_read(tmp_path: Path) -> None:
    async with afterword.open(url=f"sqlite:///{tmp_path}/a.db") as app:
        await process(app, MIRA, "s", random.Random(2))
        store = await app.store()
        expected = shown(await ViewCache().view(store, Scope.parse(MIRA), INSTANTS[0]))
        with store.connecting(writing=True) as connection:
            connection.execute(text("UPDATE facts SET search_terms = '0:' || 'other'"))
            connection.execute(text("UPDATE turns SET search_terms = NULL"))
        assert shown(await ViewCache().view(store, Scope.parse(MIRA), INSTANTS[0])) == expected
