"""Flagged facts: recognised by their words, set and taken away by a person, and kept through what is said again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

import afterword
from afterword.store.database.engine import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALLERGY = "Lena is allergic to peanuts."
TEA = "Lena likes tea."


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


async def flags(lena: afterword.ScopeMemory) -> dict[str, bool]:
    return {fact.statement: fact.is_flagged for fact in (await lena.facts()).facts}


async def test_words_flag_a_fact_and_a_person_decides(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        [allergy] = (await lena.remember(ALLERGY)).facts
        [tea] = (await lena.remember(TEA)).facts
        assert await flags(lena) == {ALLERGY: True, TEA: False}
        await lena.flag(allergy.id, flagged=False)
        run = (await lena.flag(tea.id)).run
        assert await flags(lena) == {ALLERGY: False, TEA: True}
        await lena.confirm(allergy.id)
        await lena.confirm(tea.id)
        assert await flags(lena) == {ALLERGY: False, TEA: True}
        await lena.edit(tea.id, statement="Lena likes green tea.")
        assert await flags(lena) == {ALLERGY: False, "Lena likes green tea.": True}
        assert run.purpose == "review"


async def test_a_flag_can_be_undone(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        [tea] = (await lena.remember(TEA)).facts
        effect = await lena.flag(tea.id)
        assert await flags(lena) == {TEA: True}
        await lena.undo(effect.run.id)
        assert await flags(lena) == {TEA: False}


async def homes(lena: afterword.ScopeMemory) -> dict[str, tuple[str, bool]]:
    return {fact.value: (str(fact.status), fact.is_flagged) for fact in (await lena.facts(status="all")).facts}


async def hear(lena: afterword.ScopeMemory, session_id: str, on: str, *words: str) -> None:
    messages = [{"content": each, "source": "user", "type": "UserMessage"} for each in words]
    state = {"type": "AssistantAgentState", "llm_context": {"messages": messages}}
    await lena.process(state, session_id=session_id, started_at=on)


@pytest.mark.parametrize("how", ["said", "edited", "changed"])
async def test_a_flag_of_a_former_fact_does_not_make_it_hold_again(store: Store, how: str) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "a", "2026-01-05", "I live in Graz.")
        [graz] = (await lena.facts()).facts
        if how == "said":
            await hear(lena, "b", "2026-02-05", "I live in Linz.")
        else:
            await lena.edit(graz.id, value="Linz", changed=how == "changed")
        for flagged in (True, False, True):
            effect = await lena.flag(graz.id, flagged=flagged)
            assert await homes(lena) == {"Graz": ("superseded", flagged), "Linz": ("current", False)}
        await lena.undo(effect.run.id)
        assert await homes(lena) == {"Graz": ("superseded", False), "Linz": ("current", False)}
        await lena.redo(effect.run.id)
        assert await homes(lena) == {"Graz": ("superseded", True), "Linz": ("current", False)}


async def test_a_flag_does_not_decide_a_contest(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "a", "2026-01-05", "I live in Graz.")
        await lena.remember("The user lives in Wels.", attribute="home", value="Wels")
        await lena.consolidate()
        [graz, _] = (await lena.facts()).facts
        await lena.flag(graz.id)
        assert await homes(lena) == {"Graz": ("contested", True), "Wels": ("contested", False)}


async def test_a_flag_of_a_confirmed_fact_does_not_decide_a_contest(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "a", "2026-01-05", "I live in Graz.")
        await hear(lena, "b", "2026-02-05", "I live in Linz.")
        [graz] = (await lena.facts(status="superseded")).facts
        await lena.confirm(graz.id)
        for flagged in (True, False):
            await lena.flag(graz.id, flagged=flagged)
            assert await homes(lena) == {"Graz": ("contested", flagged), "Linz": ("contested", False)}


async def test_statements_from_before_there_were_flags_are_recognised_by_their_words(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await lena.remember(ALLERGY)
        with store.connecting(writing=True) as connection:
            connection.execute(text("UPDATE assertions SET is_flagged = NULL"))
        assert await flags(lena) == {ALLERGY: True}
