"""Flagged facts: recognised by their words, set and taken away by a person, and kept through what is said again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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


async def test_statements_from_before_there_were_flags_are_recognised_by_their_words(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await lena.remember(ALLERGY)
        with store.connecting(writing=True) as connection:
            connection.execute(text("UPDATE assertions SET is_flagged = NULL"))
        assert await flags(lena) == {ALLERGY: True}
