"""A fact that a person corrects a second time, by the id that it had before. The later words win."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import afterword
from afterword.store.database.engine import Store

WAYS: list[tuple[str, dict[str, str], dict[str, str], str]] = [
    (
        "I own a wooden canoe.",
        {"statement": "The user owns a plastic canoe."},
        {"statement": "The user owns a steel canoe."},
        "The user owns a steel canoe.",
    ),
    ("I live in Graz.", {"value": "Wels"}, {"value": "Linz"}, "The user lives in Linz."),
    # The attribute of a taste is the value itself, so each of these corrections has another slot.
    ("I like tea.", {"value": "coffee"}, {"value": "juice"}, "The user likes juice."),
    ("I like tea.", {"value": "coffee"}, {"statement": "The user likes juice."}, "The user likes juice."),
    ("I like tea.", {"about": "Ben"}, {"about": "Zoe"}, "Zoe likes tea."),
    ("I like tea.", {"about": "Ben"}, {"value": "juice"}, "The user likes juice."),
]


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


async def learned(lena: afterword.ScopeMemory, words: str, on: str = "2026-02-05") -> str:
    """Let lena say these words in a session, and return the id of the fact."""
    message = {"content": words, "source": "user", "type": "UserMessage"}
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
    await lena.process(state, session_id=words, started_at=on)
    (fact,) = (await lena.facts()).facts
    return fact.id


async def held(lena: afterword.ScopeMemory) -> list[str]:
    return [fact.statement for fact in (await lena.facts()).facts]


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize(("said", "first", "second", "told"), WAYS)
async def test_a_second_correction_replaces_the_first(
    store: Store, said: str, first: dict[str, Any], second: dict[str, Any], told: str, changed: bool
) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, said)
        edited = await lena.edit(fact_id, changed=changed, **first)
        after_first = await held(lena)
        again = await lena.edit(fact_id, changed=changed, **second)
        assert await held(lena) == [told]
        await lena.undo(again.run.id)
        assert await held(lena) == after_first
        await lena.redo(again.run.id)
        await lena.undo(edited.run.id)
        assert await held(lena) == [told]
        await lena.redo(edited.run.id)
        assert await held(lena) == [told]


@pytest.mark.parametrize("changed", [False, True])
async def test_a_second_correction_replaces_one_that_was_confirmed_and_corrected(store: Store, changed: bool) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, "I like tea.")
        await lena.edit(fact_id, value="coffee", changed=changed)
        await lena.confirm((await lena.facts()).facts[0].id)
        await lena.edit((await lena.facts()).facts[0].id, value="cocoa", changed=changed)
        assert await held(lena) == ["The user likes cocoa."]
        await lena.edit(fact_id, value="juice", changed=changed)
        assert await held(lena) == ["The user likes juice."]


async def test_a_fact_that_is_confirmed_after_its_correction_holds_again(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, "I like tea.")
        for about, value in (("Ben", None), (None, "coffee")):
            await lena.edit(fact_id, about=about, value=value)
            await lena.confirm(fact_id)
            assert await held(lena) == ["The user likes tea."]
            assert (await lena.review()).contests == ()


async def test_a_correction_of_a_correction_leaves_nothing_of_what_was_wrong(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        tea = await learned(lena, "I like tea.")
        await lena.edit(tea, value="coffee")
        coffee = (await lena.facts()).facts[0].id
        await lena.edit(coffee, value="water", changed=True)
        await lena.edit(coffee, value="juice")
        assert await held(lena) == ["The user likes water."]
        former = {fact.value: fact.valid_to for fact in (await lena.facts(status="all")).facts}
        assert (former["tea"], former["coffee"]) == (None, None), "they never held"
        await lena.edit(tea, value="cocoa")
        assert await held(lena) == ["The user likes water."]


async def test_a_fact_that_repeats_a_former_one_is_corrected_without_its_end(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        tea = await learned(lena, "I like tea.")
        await lena.edit(tea, value="juice", changed=True)
        await lena.edit(tea, value="juice")
        assert await held(lena) == ["The user likes juice."]
        await lena.edit((await lena.facts()).facts[0].id, value="water")
        assert await held(lena) == ["The user likes water."]


@pytest.mark.parametrize("changed", [False, True])
async def test_of_corrections_to_and_fro_the_last_one_holds(store: Store, changed: bool) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        tea = (await lena.remember("The user likes tea.", attribute="tea", value="tea")).facts[0].id
        await lena.edit(tea, value="coffee", changed=changed)
        coffee = (await lena.facts()).facts[0].id
        for fact_id, drink in ((coffee, "tea"), (tea, "coffee"), (coffee, "tea"), (coffee, "juice"), (tea, "water")):
            await lena.edit(fact_id, value=drink, changed=changed)
            assert await held(lena) == [f"The user likes {drink}."]


@pytest.mark.parametrize("changed", [False, True])
async def test_corrections_with_an_end_replace_each_other(store: Store, changed: bool) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = (
            (await lena.remember("The user likes tea.", attribute="tea", value="tea", valid_to="2026-09-01"))
            .facts[0]
            .id
        )
        for drink in ("coffee", "juice"):
            await lena.edit(fact_id, value=drink, changed=changed)
        assert await held(lena) == ["The user likes juice."]


async def test_a_fact_that_another_session_replaced_is_still_corrected_in_the_past(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, "I live in Graz.")
        await learned(lena, "I live in Oslo.", on="2026-02-20")
        former = await lena.fact(fact_id)
        for home in ("Wels", "Linz"):
            await lena.edit(fact_id, value=home)
            assert await held(lena) == ["The user lives in Oslo."]
        facts = {fact.value: fact for fact in (await lena.facts(status="all")).facts}
        assert (facts["Linz"].valid_from, facts["Linz"].valid_to) == (former.valid_from, former.valid_to)
        assert facts["Wels"].valid_to is None, "it never held"
        for about in ("Ben", "Zoe"):
            await lena.edit(fact_id, about=about)
            assert await held(lena) == ["The user lives in Oslo."]


async def test_a_fact_that_changed_is_corrected_twice_in_the_past(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, "I like tea.")
        await lena.edit(fact_id, value="water", changed=True)
        for drink in ("coffee", "juice"):
            await lena.edit(fact_id, value=drink)
            assert await held(lena) == ["The user likes water."]


@pytest.mark.parametrize("changed", [False, True])
async def test_of_corrections_at_the_same_time_one_holds(store: Store, changed: bool) -> None:
    drinks = ("coffee", "juice", "cocoa", "water")
    async with afterword.open(store=store) as app:
        lena = app.user("lena")
        fact_id = await learned(lena, "I like tea.")
        await asyncio.gather(*(lena.edit(fact_id, value=drink, changed=changed) for drink in drinks))
        (statement,) = await held(lena)
        assert statement in {f"The user likes {drink}." for drink in drinks}
