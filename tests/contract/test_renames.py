"""A subject that was renamed: its facts are told under the name that holds now, and both names find them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import permutations

from afterword.facts.assertions import OWNER, Assertion, Authority, Relation, Verdict
from afterword.facts.validity.timeline import fact_histories
from afterword.store import ledger
from afterword.store.database.engine import Store
from afterword.store.reading.recall import recall, search
from kept import LENA, SAID_AT, facts_of, run, stated

OFFICE = stated(
    "Harrow Street Holdings has its office in Leith.",
    1,
    subject="Harrow Street Holdings",
    attribute="office",
    value="Leith",
)
JOB = stated("Lena works for Harrow Street Holdings.", 2, attribute="employer", value="Harrow Street Holdings")
RENAMED = stated(
    "Harrow Street Holdings is called Larkfield now.", 3, subject="Larkfield", former_name="Harrow Street Holdings"
)
AGAIN = stated("Larkfield was renamed Oakfield.", 4, subject="Oakfield", former_name="Larkfield")
MOVED = stated("Oakfield's office is in Granton.", 5, subject="Oakfield", attribute="office", value="Granton")
MOVES = Verdict(OFFICE.id, MOVED.id, Relation.CHANGES, "moved", "test")


async def told(store: Store) -> list[str]:
    return [fact.statement for fact in await facts_of(store) if fact.is_served]


async def text(store: Store, query: str, budget: int = 2000) -> str:
    recalled = await recall(store, LENA, query, at=datetime.now(UTC), budget_tokens=budget)
    return recalled.layers.text if recalled.layers else ""


async def test_facts_are_told_under_the_new_name_and_the_former_one_once(store: Store) -> None:
    run(store, "session:a", (OFFICE, JOB))
    renaming = run(store, "session:b", (RENAMED,))
    assert await told(store) == [
        "Larkfield has its office in Leith.",
        "Lena works for Larkfield.",
        RENAMED.statement,
    ]
    block = await text(store, "office")
    assert block.count("Harrow Street Holdings") == 1
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, renaming, SAID_AT)
    assert await told(store) == [OFFICE.statement, JOB.statement]
    assert "Larkfield" not in await text(store, "office")


async def test_both_names_find_what_is_known(store: Store) -> None:
    filler = tuple(stated(f"The note {number} is about gardens and weather.", number) for number in range(10, 60))
    run(store, "session:a", (OFFICE, RENAMED, *filler))
    for query in ("Larkfield?", "what of Harrow Street Holdings"):
        matches = await search(store, LENA, query, at=datetime.now(UTC))
        assert OFFICE.id in [fact.id for fact in matches.facts[:2]], query


async def test_a_renaming_of_a_renamed_subject(store: Store) -> None:
    run(store, "session:a", (OFFICE, JOB, RENAMED))
    run(store, "session:b", (AGAIN, MOVED), (MOVES,))
    statements = await told(store)
    assert "Lena works for Oakfield." in statements
    assert MOVED.statement in statements
    assert not any("Leith" in statement for statement in statements), "one subject under three names"
    assert "Lena works for Oakfield." in await text(store, "work")


def test_the_order_of_arrival_changes_nothing() -> None:
    expected = fact_histories((OFFICE, JOB, RENAMED, AGAIN, MOVED), (MOVES,))
    for statements in permutations((OFFICE, JOB, RENAMED, AGAIN, MOVED)):
        assert fact_histories(statements, (MOVES,)) == expected


async def test_neither_the_owner_nor_an_agent_renames(store: Store) -> None:
    owner: Assertion = stated("Lena was called Mira.", 1, subject=OWNER, former_name="Mira")
    agent = stated("Leith is Granton.", 2, subject="Granton", former_name="Leith", authority=Authority.AGENT)
    mira = stated("Mira lives in Leith.", 3, subject="Mira")
    run(store, "session:a", (owner, agent, mira))
    assert mira.statement in await told(store)
