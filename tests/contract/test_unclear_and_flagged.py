"""A flagged fact of which it is unclear whom it is about is told with its doubt, and never as the owner's own."""

from __future__ import annotations

from datetime import UTC, datetime

from autogen_core import CancellationToken

from afterword.agents.memory import FactMemory
from afterword.agents.tools import RecallTool, memory_tools
from afterword.facts.assertions import Assertion, Relation, SpeechAct, Verdict
from afterword.facts.fact import Status
from afterword.store import ledger
from afterword.store.database.engine import Store
from afterword.store.forgetting.erasure import erase_in_scope
from afterword.store.reading.recall import recall, search
from kept import LENA, SAID_AT, facts_of, run, stated

NOW = datetime(2026, 6, 1, tzinfo=UTC)
COOK = stated("Tomek Nowak cooks on Fridays.", 1, subject="Tomek Nowak")
BAKER = stated("Tomek Zielinski bakes.", 2, subject="Tomek Zielinski")
NUTS = stated("Tomek is allergic to nuts.", 3, subject="Tomek", attribute="allergy", value="nuts")
CHESS = stated("Tomek likes chess.", 4, subject="Tomek", value="chess")
EVERYTHING = (COOK, BAKER, NUTS, CHESS)
DOUBT = "- It is not clear whose: Tomek is allergic to nuts. (may be about Tomek Nowak or Tomek Zielinski)"


async def block(store: Store, query: str = "", budget: int = 2000) -> str:
    recalled = await recall(store, LENA, query, at=NOW, budget_tokens=budget)
    return recalled.layers.text if recalled.layers else ""


async def test_a_block_tells_a_flagged_fact_with_the_doubt_and_no_other_unclear_one(store: Store) -> None:
    run(store, "session:a", EVERYTHING)
    more = [stated(f"Lena keeps a list of {number} plants.", number) for number in range(10, 90)]
    for budget in (2000, 200):
        text = await block(store, "dinner on Friday", budget)
        assert DOUBT in text
        assert "chess" not in text
        run(store, f"session:{budget}", tuple(more) if budget == 2000 else ())


async def test_a_search_and_the_tool_of_an_agent_tell_the_doubt_too(store: Store) -> None:
    run(store, "session:a", EVERYTHING)
    found = await search(store, LENA, "is Tomek allergic to nuts?", at=NOW)
    assert {fact.statement: fact.status for fact in found.facts}[NUTS.statement] is Status.PENDING
    assert CHESS.statement not in {fact.statement for fact in found.facts}
    memory = FactMemory(user="lena", store=store, embedder=None, clock=lambda: NOW)
    tool = next(each for each in memory_tools(memory) if isinstance(each, RecallTool))
    answer = await tool.run_json({"query": "Tomek nuts"}, CancellationToken())
    assert "It is not clear whose: Tomek is allergic to nuts." in str(answer)


async def test_whose_it_is_once_said_it_is_told_plainly(store: Store) -> None:
    run(store, "session:a", EVERYTHING)
    joins = Verdict(COOK.id, NUTS.id, Relation.NARROWS, "he", "person", joins_subjects=True)
    run(store, "review:a", (), (joins,))
    text = await block(store)
    assert "- Tomek is allergic to nuts." in text
    assert "not clear" not in text


async def test_two_people_of_one_name_are_told_apart_by_the_doubt(store: Store) -> None:
    cats = stated("Nico is allergic to cats.", 1, subject="Nico")
    peanuts = stated("Nico is allergic to peanuts.", 2, subject="Nico")
    run(store, "session:a", (cats, peanuts), (two_people(cats, peanuts),))
    text = await block(store)
    assert "- It is not clear whose: Nico is allergic to cats.\n" in text
    assert "- It is not clear whose: Nico is allergic to peanuts.\n" in text


async def test_what_is_said_of_two_users_is_never_told_as_the_owners_own(store: Store) -> None:
    pollen = stated("The user is allergic to pollen.", 1)
    nuts = stated("The user is allergic to nuts.", 2)
    run(store, "session:a", (pollen, nuts), (two_people(pollen, nuts),))
    for line in (await block(store)).splitlines():
        assert "allergic" not in line or line.startswith("- It is not clear whose: ")


async def test_what_is_withdrawn_undone_or_forgotten_is_told_nowhere(store: Store) -> None:
    number = run(store, "session:a", EVERYTHING)
    no_more = stated("Tomek is not allergic to nuts.", 5, subject="Tomek", act=SpeechAct.RETRACT, value="nuts")
    withdrawal = run(store, "session:b", (no_more,), (Verdict(NUTS.id, no_more.id, Relation.RETRACTS, "no", "test"),))
    assert "nuts" not in await block(store, "what was Tomek allergic to?")
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, withdrawal, SAID_AT)
    assert DOUBT in await block(store)
    await erase_in_scope(store, LENA, lambda erasure: erasure.forget_statements([NUTS.id]), at=NOW)
    assert "nuts" not in await block(store)
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, number, SAID_AT)
    assert await facts_of(store) == []


async def test_without_its_flag_it_waits_for_a_person_as_others_do(store: Store) -> None:
    unflagged = stated("Tomek is allergic to nuts.", 3, subject="Tomek", is_flagged=False)
    run(store, "session:a", (COOK, BAKER, unflagged))
    assert "nuts" not in await block(store)


def two_people(earlier: Assertion, later: Assertion) -> Verdict:
    return Verdict(earlier.id, later.id, Relation.BESIDE, "unlike", "test", parts_subjects=True)
