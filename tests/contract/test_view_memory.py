"""The cache of views counts what views make of their rows, and the view of the facts of a scope that is not loaded."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, datetime

from afterword.facts.fact import FactFilter, FactOrder
from afterword.facts.scopes import Scope
from afterword.store.database.engine import Store
from afterword.store.reading.fact_rows import StoredFact
from afterword.store.reading.view_cache import ViewCache
from afterword.store.reading.views import View
from kept import LENA, keep, stated

LATER = datetime(2026, 4, 1, tzinfo=UTC)
EVERYTHING = FactFilter(None, None, None, frozenset())


async def fill(store: Store, *scopes: Scope) -> None:
    for scope in scopes:
        notes = (
            stated(f"Lena rode to village {number}.", number, id=f"{scope.id}{number}", scope=scope)
            for number in range(200)
        )
        await keep(store, *notes, scope=scope)


def list_everything(view: View) -> None:
    for order in FactOrder:
        assert view.lists.select_places(EVERYTHING, order)[0]
    assert view.lists.counts.by_status
    assert view.lists.facts_to_check.pending == ()


async def view_of_facts(store: Store, views: ViewCache, scope: Scope) -> View:
    with store.connecting(writing=False) as connection:
        return views.view_of_facts(connection, scope, LATER)


async def test_a_view_takes_about_the_memory_that_it_says_with_all_that_is_made_of_it(store: Store) -> None:
    await fill(store, LENA)
    list_everything(await ViewCache().view(store, LENA, LATER))  # what is loaded and compiled once is no part of a view
    tracemalloc.start()
    try:
        view = await ViewCache().view(store, LENA, LATER)
        list_everything(view)
        for unit in view.served_units():
            assert not isinstance(unit, StoredFact) or (unit.value_words and view.fact_with_replaced_value(unit))
        assert view.index.ranked_units("village")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 2 < view.memory_bytes < 2 * taken


async def test_a_view_of_facts_takes_about_the_memory_that_it_says(store: Store) -> None:
    await fill(store, LENA)
    await view_of_facts(store, ViewCache(), LENA)
    tracemalloc.start()
    try:
        of_facts = await view_of_facts(store, ViewCache(), LENA)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / 3 < of_facts.memory_bytes < 3 * taken


async def test_the_views_of_many_scopes_are_bounded(store: Store) -> None:
    scopes = [Scope.user(f"user{number}") for number in range(5)]
    await fill(store, *scopes)
    listed = await ViewCache().view(store, scopes[0], LATER)
    list_everything(listed)
    views = ViewCache(most_bytes=3 * listed.memory_bytes - 1)
    for scope in scopes:
        list_everything(await views.view(store, scope, LATER))
    await views.view(store, scopes[-1], LATER)
    assert [views.is_loaded(scope) for scope in scopes] == [False, False, False, True, True]
    views.close()


async def test_a_view_of_facts_and_the_other_views_share_one_limit(store: Store) -> None:
    tom = Scope.user("tom")
    await fill(store, LENA, tom)
    of_facts = await view_of_facts(store, ViewCache(), tom)
    view = await ViewCache().view(store, LENA, LATER)
    views = ViewCache(most_bytes=view.memory_bytes + of_facts.memory_bytes - 1)
    await views.view(store, LENA, LATER)
    of_facts = await view_of_facts(store, views, tom)
    assert not views.is_loaded(LENA)
    assert await view_of_facts(store, views, tom) is of_facts
    await views.view(store, LENA, LATER)
    assert await view_of_facts(store, views, tom) is not of_facts
    views.close()
