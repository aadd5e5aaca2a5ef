"""A page of a list of facts comes from the read model. It is the same part of all facts as their rows give it."""

from __future__ import annotations

import random
from itertools import product
from typing import Any, cast

import pytest
from _pytest.mark import ParameterSet

import afterword
from afterword import ScopeMemory
from afterword.client.values import FactOrder
from afterword.errors import ArgumentInvalid
from afterword.settings import Settings
from afterword.store.reading.view_cache import view_cache_of
from changing import INSTANTS, MIRA, add_what_is_rare, change_something

STATUSES = (None, "all", "current", "contested", "pending", ("superseded", "retracted", "expired"))
FILTERS: tuple[dict[str, Any], ...] = (
    *({"status": status} for status in STATUSES),
    {"kind": "preference"},
    {"kind": ("entity", "decision"), "status": "all"},
    *({"about": name, "status": "all"} for name in ("user", "mira", "Ida", "Ana Ruiz", "Beta", "Alpha", "nobody")),
    {"tags": ["travel"]},
    {"tags": ["travel", "cheap"], "status": "all"},
)


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    return f"sqlite:///{tmp_path}/afterword.db"


def each_seed_on_a_database(count: int) -> list[ParameterSet]:
    """Return seeds with databases. Each seed is on one database, half of them on each; the rest belongs to the soak."""
    pairs = product(range(count), ["file", "postgres"])
    is_first = {(seed, "file" if seed < count / 2 else "postgres") for seed in range(count)}
    return [pytest.param(*pair, marks=() if pair in is_first else pytest.mark.soak) for pair in pairs]


def some_lists(number: int) -> list[tuple[dict[str, Any], FactOrder]]:
    """Return a fifth of all filters with their orders. With five numbers in a row each of them occurs."""
    lists = list(product(FILTERS, FactOrder))
    random.Random(0).shuffle(lists)
    return lists[number % 5 :: 5]


async def check_pages(memory: ScopeMemory, chance: random.Random, number: int) -> None:
    """Compare pages of lists with different orders and filters."""
    for chosen, order in some_lists(number):
        arguments = {**chosen, "order": order, "as_of": chance.choice([None, *INSTANTS])}
        whole = await memory.facts(**arguments)
        offset, limit = chance.randrange(4), chance.choice([1, 3, 500])
        page = await memory.facts(**arguments, limit=limit, offset=offset)
        assert page.facts == whole.facts[offset : offset + limit], arguments
        assert (page.total, page.other_statuses) == (whole.total, whole.other_statuses), arguments
        if order is FactOrder.SAID:
            listed = list(page.facts)
            while page.next is not None:
                page = await memory.facts(**arguments, limit=limit, after=page.next)
                listed += page.facts
            assert tuple(listed) == whole.facts[offset:], arguments
            gone = "2026-03-02T09:00:00.000000+00:00 0000"
            following = await memory.facts(**arguments, after=gone)
            assert (await memory.facts(**arguments, after=gone, limit=limit)).facts == following.facts[:limit]


@pytest.mark.parametrize(("seed", "url"), each_seed_on_a_database(4), indirect=["url"])
async def test_a_page_is_a_part_of_all_facts(seed: int, url: str) -> None:
    chance, is_renamed = random.Random(seed), seed % 2 == 0
    async with afterword.open(url, settings=Settings()) as app:
        mira = app.scope(MIRA)
        await add_what_is_rare(app, with_renaming=is_renamed)
        facts = (await mira.facts(status="all")).facts
        assert {str(fact.status) for fact in facts} >= {"current", "contested", "pending"}
        assert ({fact.subject for fact in facts} >= {"Beta"}) == is_renamed
        await check_pages(mira, chance, 4 * seed)
        for number in range(1, 4):
            for _ in range(3):
                await change_something(app, chance)
            await check_pages(mira, chance, 4 * seed + number)


@pytest.mark.parametrize(("seed", "url"), each_seed_on_a_database(3), indirect=["url"])
async def test_a_page_of_a_memory_that_is_not_loaded_is_the_same(seed: int, url: str) -> None:
    chance, pages = random.Random(seed), 0
    async with afterword.open(url, settings=Settings()) as app:
        mira, store = app.scope(MIRA), await app.store()
        await add_what_is_rare(app, with_renaming=seed == 0)
        for number in range(4):
            for _ in range(4):
                await change_something(app, chance)
            view_cache_of(store).close()
            wholes = []
            for chosen, order in some_lists(4 * seed + number):
                arguments = {**chosen, "order": order, "as_of": chance.choice([None, *INSTANTS])}
                wholes.append((arguments, await mira.facts(**arguments)))
            for arguments, whole in wholes:
                offset, limit = chance.randrange(4), chance.choice([1, 3, 500])
                page = await mira.facts(**arguments, limit=limit, offset=offset)
                assert view_cache_of(store).cached_revision(mira.scope) is None
                assert page.facts == whole.facts[offset : offset + limit], arguments
                assert (page.total, page.other_statuses) == (whole.total, whole.other_statuses), arguments
                pages += len(page.facts)
        assert pages > 25


async def test_an_unknown_memory_has_no_page(url: str) -> None:
    async with afterword.open(url, settings=Settings()) as app:
        for order in FactOrder:
            page = await app.user("nobody").facts(limit=5, order=order, status="all")
            assert (page.facts, page.total, page.other_statuses, page.next) == ((), 0, 0, None)
        assert (await app.scopes()).total == 0
        for wrong in ({"offset": -1}, {"order": "size"}, {"order": "subject", "after": "x"}, {"limit": 0}):
            with pytest.raises(ArgumentInvalid):
                await app.user("nobody").facts(**wrong)


async def test_a_page_beyond_the_end_is_empty(url: str) -> None:
    async with afterword.open(url, settings=Settings()) as app:
        mira = app.user("mira")
        await mira.remember("The user is allergic to quandongs.")
        for offset in (1, 2**31, 2**63, 10**40):
            assert (await mira.facts(limit=5, offset=offset)).facts == ()
            assert ((await mira.runs(offset=offset)).runs, (await mira.runs(offset=offset)).total) == ((), 1)
            assert (await mira.sessions(offset=offset)).sessions == ()


async def test_an_argument_that_is_not_a_text_is_named(url: str) -> None:
    async with afterword.open(url, settings=Settings()) as app:
        mira, none = app.user("mira"), cast(Any, None)
        for asked, name in (
            (mira.search(none), "query"),
            (mira.context(none), "query"),
            (mira.remember(none), "statement"),
            (mira.remember("x", subject=none), "subject"),
            (mira.remember_text(none), "text"),
            (mira.queue({}, session_id=none), "session_id"),
            (mira.save_finding("x", agent="y", topic=none), "topic"),
        ):
            with pytest.raises(ArgumentInvalid, match=f"^{name}=None is not possible; give str"):
                await asked
