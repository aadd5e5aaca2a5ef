"""Edits and entries that are undone and redone, and what is said after them. Nothing but their own effect changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import afterword
from afterword.errors import StateConflict
from afterword.store.database.engine import Store


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


async def hear(lena: afterword.ScopeMemory, on: str, words: str) -> int:
    message = {"content": words, "source": "user", "type": "UserMessage"}
    state = {"type": "AssistantAgentState", "llm_context": {"messages": [message]}}
    outcome = (await lena.process(state, session_id=on, started_at=on)).sessions[0].result
    assert isinstance(outcome, afterword.SessionOutcome)
    assert outcome.run_id is not None
    return outcome.run_id


async def homes(lena: afterword.ScopeMemory) -> dict[str, str]:
    return {fact.value: str(fact.status) for fact in (await lena.facts(status="all")).facts}


async def id_of(lena: afterword.ScopeMemory, home: str) -> str:
    return next(fact.id for fact in (await lena.facts(status="all")).facts if fact.value == home)


async def enter_wels(lena: afterword.ScopeMemory) -> int:
    return (await lena.remember("The user lives in Wels.", attribute="home", value="Wels")).run.id


@pytest.mark.parametrize("changed", [False, True])
async def test_an_undone_edit_of_a_former_fact_is_redone_as_it_was(store: Store, changed: bool) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await hear(lena, "2026-02-05", "I live in Linz.")
        before = await homes(lena)
        edited = await lena.edit(await id_of(lena, "Graz"), value="Wels", changed=changed)
        after = await homes(lena)
        await lena.undo(edited.run.id)
        assert await homes(lena) == before
        await lena.redo(edited.run.id)
        assert await homes(lena) == after


async def test_an_entry_is_compared_by_no_undo_and_no_redo(store: Store) -> None:
    """What an application enters is compared with what was known before by a consolidation only."""
    both = {"Graz": "current", "Wels": "current"}
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        entered = await enter_wels(lena)
        flagged = (await lena.flag(await id_of(lena, "Graz"))).run.id
        for run_id in (entered, flagged):
            await lena.undo(run_id)
            await lena.redo(run_id)
            assert await homes(lena) == both
        await lena.undo(flagged)
        assert await homes(lena) == both


async def test_a_consolidation_that_compared_an_entry_can_be_undone(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await enter_wels(lena)
        before = await homes(lena)
        run_id = (await lena.consolidate()).run_id
        after = await homes(lena)
        assert run_id is not None
        assert after == {"Graz": "contested", "Wels": "contested"} != before
        await lena.undo(run_id)
        assert await homes(lena) == before
        await lena.redo(run_id)
        assert await homes(lena) == after


async def test_an_entry_is_compared_with_what_was_said_while_it_was_undone(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        entered = await enter_wels(lena)
        await lena.undo(entered)
        await hear(lena, "2026-03-01", "I live in Graz.")
        await lena.redo(entered)
        assert await homes(lena) == {"Graz": "contested", "Wels": "contested"}


async def test_an_entry_stays_compared_when_its_repetition_is_undone(store: Store) -> None:
    """The next home was compared with the repetition only, which is nearer."""
    clock = Clock()
    async with afterword.open(store=store, clock=clock) as app:
        lena = app.user("lena")
        await enter_wels(lena)
        clock.now += timedelta(days=9)
        repeated = await hear(lena, "2026-03-04", "I live in Wels.")
        await hear(lena, "2026-03-06", "I live in Graz.")
        assert await homes(lena) == {"Graz": "current", "Wels": "superseded"}
        await lena.undo(repeated)
        assert await homes(lena) == {"Graz": "current", "Wels": "superseded"}


async def test_an_entry_that_was_consolidated_stays_compared(store: Store) -> None:
    clock = Clock()
    async with afterword.open(store=store, clock=clock) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        repeated = await hear(lena, "2026-01-06", "I live in Graz.")
        await enter_wels(lena)
        await lena.consolidate()
        contested = {"Graz": "contested", "Wels": "contested"}
        assert await homes(lena) == contested
        await lena.undo(repeated)
        assert await homes(lena) == contested


async def test_a_change_of_a_former_fact_replaces_what_holds_now(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        rome = [await hear(lena, f"2026-02-0{day}", f"I live in {home}.") for day, home in ((5, "Oslo"), (6, "Rome"))]
        edited = await lena.edit(await id_of(lena, "Graz"), value="Wels", changed=True)
        after = {"Graz": "superseded", "Oslo": "superseded", "Rome": "superseded", "Wels": "current"}
        assert await homes(lena) == after
        await lena.undo(edited.run.id)
        assert await homes(lena) == {"Graz": "superseded", "Oslo": "superseded", "Rome": "current"}
        await lena.redo(edited.run.id)
        assert await homes(lena) == after
        await lena.undo(rome[-1])
        assert await homes(lena) == {"Graz": "superseded", "Oslo": "superseded", "Wels": "current"}


async def test_a_change_of_what_was_edited_twice_replaces_the_last_edit(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        for old, new in (("Graz", "Oslo"), ("Oslo", "Rome"), ("Graz", "Wels")):
            await lena.edit(await id_of(lena, old), value=new, changed=True)
        assert await homes(lena) == {
            "Graz": "superseded",
            "Oslo": "superseded",
            "Rome": "superseded",
            "Wels": "current",
        }


@pytest.mark.parametrize("changed", [False, True])
async def test_an_edit_of_a_withdrawn_fact_replaces_what_was_said_since(store: Store, changed: bool) -> None:
    clock = Clock()
    async with afterword.open(store=store, clock=clock) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await lena.withdraw(await id_of(lena, "Graz"))
        clock.now += timedelta(days=9)
        await hear(lena, "2026-03-04", "I live in Linz.")
        await lena.edit(await id_of(lena, "Graz"), value="Wels", changed=changed)
        values = [fact.value for fact in (await lena.facts()).facts]
        assert values == ["Wels"]


async def test_a_fact_that_is_corrected_twice_has_the_last_correction(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        graz = await id_of(lena, "Graz")
        for home in ("Oslo", "Rome"):
            await lena.edit(graz, value=home)
        assert await homes(lena) == {"Graz": "superseded", "Oslo": "superseded", "Rome": "current"}


async def test_a_confirmation_of_a_former_fact_contradicts_the_correction_of_what_replaced_it(store: Store) -> None:
    """A confirmation has a lower authority than an edit, so neither ends the other."""
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await hear(lena, "2026-02-05", "I live in Linz.")
        await lena.edit(await id_of(lena, "Linz"), value="Oslo")
        await lena.confirm(await id_of(lena, "Graz"))
        assert await homes(lena) == {"Graz": "contested", "Linz": "superseded", "Oslo": "contested"}


async def test_a_change_of_a_former_fact_into_the_present_one_adds_to_it(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await hear(lena, "2026-02-05", "I live in Linz.")
        await lena.edit(await id_of(lena, "Graz"), value="Linz", changed=True)
        assert await homes(lena) == {"Graz": "superseded", "Linz": "current"}


@pytest.mark.parametrize("changed", [False, True])
async def test_what_is_said_again_after_an_edit_holds_again(store: Store, changed: bool) -> None:
    """The judge's verdict between the two homes, between which a person has decided, does not count."""
    clock = Clock()
    async with afterword.open(store=store, clock=clock) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        await lena.edit(await id_of(lena, "Graz"), value="Linz", changed=changed)
        clock.now += timedelta(days=5)
        await hear(lena, "2026-03-04", "I live in Graz.")
        assert await homes(lena) == {"Graz": "current", "Linz": "superseded"}


@pytest.mark.parametrize("changed", [False, True])
async def test_a_fact_that_holds_no_more_cannot_be_withdrawn(store: Store, changed: bool) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        await hear(lena, "2026-01-05", "I live in Graz.")
        graz = await id_of(lena, "Graz")
        await lena.edit(graz, value="Wels", changed=changed)
        await lena.edit(await id_of(lena, "Wels"), value="Linz", changed=changed)
        linz = await id_of(lena, "Linz")
        runs = (await lena.runs()).total
        with pytest.raises(StateConflict, match=f"^the fact {graz[:8]} was replaced by {linz[:8]}; withdraw that$"):
            await lena.withdraw(graz)
        assert (await lena.runs()).total == runs
        withdrawn = await lena.withdraw(linz)
        with pytest.raises(StateConflict, match=f"^the fact {linz[:8]} was withdrawn already$"):
            await lena.withdraw(linz)
        with pytest.raises(StateConflict, match=f"by {linz[:8]}, which does not hold any more either"):
            await lena.withdraw(graz)
        await lena.undo(withdrawn.run.id)
        await lena.withdraw(linz)


async def test_a_fact_whose_last_day_has_passed_cannot_be_withdrawn(store: Store) -> None:
    async with afterword.open(store=store, clock=Clock()) as app:
        lena = app.user("lena")
        past = await lena.remember("The user lives in Rome.", valid_from="2026-01-01", valid_to="2026-01-31")
        with pytest.raises(StateConflict, match="ended on 2026-01-31 already"):
            await lena.withdraw(past.facts[0].id)
        planned = await lena.remember("The user lives in Oslo.", valid_from="2034-01-01")
        await lena.withdraw(planned.facts[0].id)
        assert (await homes(lena)).popitem()[1] == "retracted"


async def test_a_fact_that_is_interrupted_can_be_withdrawn(store: Store) -> None:
    clock = Clock()
    async with afterword.open(store=store, clock=clock) as app:
        lena = app.user("lena")
        await hear(lena, "2026-02-01", "I live in Bergen.")
        await hear(lena, "2026-02-20", "I live in Split in March.")
        assert await homes(lena) == {"Bergen": "superseded", "Split": "current"}
        await lena.withdraw(await id_of(lena, "Bergen"))
        clock.now = datetime(2026, 4, 10, tzinfo=UTC)
        assert await homes(lena) == {"Bergen": "superseded", "Split": "expired"}
