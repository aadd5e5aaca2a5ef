"""What stays of a sentence, and exceptions: stored, told, undone, exported and forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from sqlmodel import select

from afterword.facts.assertions import Relation, Verdict
from afterword.facts.validity.timeline import fact_histories
from afterword.store import ledger, lookup, reviews
from afterword.store.database.engine import Store
from afterword.store.entered_statements import FactEdit
from afterword.store.forgetting import erasure
from afterword.store.reading.recall import recall
from afterword.store.tables import FactRow, VerdictRow
from afterword.store.transfer import exports, imports
from kept import LENA, SAID_AT, facts_of, run, stated

POTTER = stated("Lena is a potter with a workshop in Freiburg.", 1)
WORKSHOP = stated("Lena's workshop is in Emmendingen.", 2)
HOURS = stated("The shop is open 9 to 6.", 3)
LATE = stated("On Wednesdays the shop is open until 8.", 4)
SHOP = "Lena is a potter with a workshop."
VERDICTS = (
    Verdict(POTTER.id, WORKSHOP.id, Relation.CHANGES, "moved", "test", remainder=SHOP),
    Verdict(HOURS.id, LATE.id, Relation.EXCEPTS, "one day", "test"),
)


async def block(store: Store, budget: int = 2000) -> str:
    recalled = await recall(store, LENA, "shop", at=datetime.now(UTC), budget_tokens=budget)
    return recalled.layers.text if recalled.layers else ""


async def told(store: Store) -> set[str]:
    return {fact.statement for fact in await facts_of(store) if fact.is_served}


async def test_the_rest_of_a_sentence_and_an_exception_are_told_and_an_undo_restores_both(store: Store) -> None:
    run(store, "session:a", (POTTER, HOURS))
    later = run(store, "session:b", (WORKSHOP, LATE), VERDICTS)
    assert await told(store) == {SHOP, WORKSHOP.statement, HOURS.statement, LATE.statement}
    text = await block(store)
    assert SHOP in text
    assert "Freiburg" not in text.split("Held before, and no longer:")[0]
    assert f"- {HOURS.statement} Except: {LATE.statement}" in text
    assert text.count(LATE.statement) == 1
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, later, SAID_AT)
    assert await told(store) == {POTTER.statement, HOURS.statement}
    assert "except" not in await block(store)
    with store.writing() as transaction:
        ledger.reinstate_run(transaction, LENA, later, SAID_AT)
    assert SHOP in await told(store)


@pytest.mark.parametrize("is_change", [False, True], ids=["wrong from the start", "held until now"])
async def test_an_edited_rule_keeps_its_exceptions_and_an_edited_exception_its_rule(
    store: Store, is_change: bool
) -> None:
    run(store, "session:a", (HOURS, LATE), VERDICTS[1:])
    ten, seven = "The shop is open 10 to 6.", "The shop is open 10 to 7."
    longer = "On Wednesdays the shop is open until 9."
    for old, new, rule, exception in (
        (HOURS.statement, ten, ten, LATE.statement),
        (ten, seven, seven, LATE.statement),
        (LATE.statement, longer, seven, longer),
    ):
        (old_id,) = [fact.id for fact in await facts_of(store) if fact.statement == old]
        meant = FactEdit(statement=new)
        edited = await reviews.edit_fact(store, LENA, old_id, meant, is_change=is_change, at=datetime.now(UTC))
        assert await rules(store) == {rule: [exception], exception: []}
        with store.reading() as transaction:
            known = lookup.read_knowledge(transaction, LENA)
        assert known.histories(known.by_id) == fact_histories(known.assertions, known.verdicts)
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, edited.run.id, datetime.now(UTC))
    assert await rules(store) == {seven: [LATE.statement], LATE.statement: []}


@pytest.mark.parametrize("is_change", [False, True], ids=["wrong from the start", "held until now"])
@pytest.mark.parametrize(
    ("words", "keeps_days"),
    [
        ("In the week of the fair the shop is open until 9.", True),
        ("In the fair week the shop is open until 8.", True),
        ("In the week from 12 May the shop is open until 8.", False),
        ("The shop is open until 8 for good.", False),
        ("Until next week the shop is open until 8.", False),
    ],
)
async def test_an_edited_exception_keeps_its_days_unless_the_words_name_others(
    store: Store, is_change: bool, words: str, keeps_days: bool
) -> None:
    fair = stated(
        "In the week of the fair the shop is open until 8.",
        4,
        valid_from=datetime(2098, 5, 4, tzinfo=UTC),
        valid_to=datetime(2098, 5, 10, 23, 59, 59, tzinfo=UTC),
    )
    run(store, "session:a", (HOURS, fair), (Verdict(HOURS.id, fair.id, Relation.EXCEPTS, "a week", "test"),))
    meant = FactEdit(statement=words)
    await reviews.edit_fact(store, LENA, fair.id, meant, is_change=is_change, at=SAID_AT + timedelta(days=1))
    assert await rules(store) == {HOURS.statement: [words], words: []}
    (edited,) = [fact for fact in await facts_of(store) if fact.statement == words]
    if keeps_days:
        assert (edited.valid_from, edited.valid_to) == (fair.valid_from, fair.valid_to)
    else:
        assert edited.valid_to is None


async def rules(store: Store) -> dict[str, list[str]]:
    """Return the facts that hold, each with its exceptions."""
    held = [fact for fact in await facts_of(store) if fact.is_served]
    return {fact.statement: [each.statement for each in fact.exceptions] for fact in held}


async def test_no_budget_takes_the_rule_without_its_exception(store: Store) -> None:
    run(store, "session:a", (HOURS, LATE), VERDICTS[1:])
    for budget in range(40, 200, 5):
        text = await block(store, budget)
        assert (HOURS.statement in text) <= (LATE.statement in text), budget


async def test_an_export_carries_both(store: Store, tmp_path: Path) -> None:
    run(store, "session:a", (POTTER, HOURS, WORKSHOP, LATE), VERDICTS)
    expected = await facts_of(store)
    await exports.export_scopes(store, tmp_path / "all.jsonl")
    async with Store(f"sqlite:///{tmp_path}/other.db") as other:
        await other.migrate()
        await imports.import_file(other, tmp_path / "all.jsonl")
        assert await facts_of(other) == expected
        assert await block(other) == await block(store)


async def test_the_words_that_stay_go_with_the_statement_that_is_forgotten(store: Store) -> None:
    run(store, "session:a", (POTTER, HOURS, WORKSHOP, LATE), VERDICTS)
    await erasure.erase_in_scope(
        store, LENA, lambda erasing: erasing.forget_statements([POTTER.id]), at=datetime.now(UTC)
    )
    with store.reading() as transaction:
        assert [row.remainder for row in transaction.exec(select(VerdictRow))] == [None]
        assert all(row.rewordings == [] for row in transaction.exec(select(FactRow)))
    assert await told(store) == {WORKSHOP.statement, HOURS.statement, LATE.statement}


@pytest.mark.parametrize("decide", [reviews.confirm_fact, partial(reviews.flag_fact, is_flagged=True)])
async def test_a_persons_decision_on_what_is_left_of_a_fact_brings_nothing_else_back(
    store: Store, decide: Callable[..., Awaitable[object]]
) -> None:
    run(store, "session:a", (POTTER,))
    run(store, "session:b", (WORKSHOP,), VERDICTS[:1])
    await decide(store, LENA, POTTER.id, at=SAID_AT + timedelta(days=1))
    assert await told(store) == {SHOP, WORKSHOP.statement}
