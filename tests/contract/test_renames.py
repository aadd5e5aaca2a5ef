"""A subject that was renamed: its facts are told under the name that holds now, and both names find them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from afterword.extractors.extractor import Usage
from afterword.extractors.judge import OtherNames, Pair
from afterword.facts.assertions import OWNER, Assertion, Authority, Relation, SpeechAct, Verdict
from afterword.facts.fact import Status
from afterword.facts.knowledge import Knowledge
from afterword.facts.subjects import facts_under_current_names
from afterword.facts.validity.fact_history import facts_at
from afterword.facts.validity.timeline import fact_histories
from afterword.pipeline.consolidation import consolidate_scope
from afterword.store import ledger, lookup
from afterword.store.agent_requests import PersonQuote, RequestStatus, request_withdrawal
from afterword.store.database.engine import Store
from afterword.store.entries import withdraw_everything
from afterword.store.reading.recall import recall, search
from afterword.store.reading.view_cache import view_cache_of
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
MOVED_LARKFIELD = stated("Larkfield is in Granton.", 5, subject="Larkfield", attribute="office", value="Granton")
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


async def test_a_name_that_is_announced_is_told_from_its_day(store: Store) -> None:
    """ "From the 9th we are called Larkfield": until then the office is that of Harrow Street Holdings."""
    day = SAID_AT + timedelta(days=8)
    run(store, "session:a", (OFFICE, replace(RENAMED, valid_from=day)))
    for at, name in ((day - timedelta(days=1), "Harrow Street Holdings"), (day + timedelta(days=1), "Larkfield")):
        recalled = await recall(store, LENA, "office", at=at, budget_tokens=2000)
        assert recalled.layers is not None
        assert f"{name} has its office in Leith." in recalled.layers.text
        with store.reading() as transaction:
            listed = lookup.read_facts(transaction, LENA, at=at)
        assert listed[0].statement == f"{name} has its office in Leith."


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


class NameReading:
    """A judge that notes which other names of the subjects it is told."""

    pairs_a_call: int | None = 40
    pairs_a_statement: int | None = 8

    def __init__(self, version: str) -> None:
        self.version = version
        self.other_names: OtherNames = {}

    async def judge(self, pairs: Sequence[Pair], other_names: OtherNames | None = None) -> tuple[list[Verdict], Usage]:
        self.other_names = other_names or {}
        verdicts = [Verdict(first.id, second.id, Relation.BESIDE, "", self.version) for first, second in pairs]
        return verdicts, Usage(calls=1)


async def names_told(store: Store, version: str) -> OtherNames:
    judge = NameReading(version)
    result = await consolidate_scope(store, LENA, judge=judge, apply=False)
    assert result.judged
    return judge.other_names


async def test_a_judge_is_told_the_names_that_were_joined(store: Store) -> None:
    rent = stated("Larkfield pays the office rent.", 6, subject="Larkfield", attribute="office", value="rented")
    floor = stated("Larkfield has its office on two floors.", 7, subject="Larkfield", attribute="office", value="big")
    run(store, "session:a", (OFFICE, rent, floor))
    assert await names_told(store, "1") == {}
    run(store, "session:b", (RENAMED,))
    assert (await names_told(store, "2"))["larkfield"] == ["Harrow Street Holdings"]


async def test_a_name_that_only_an_erased_statement_has_is_in_no_prompt(store: Store) -> None:
    rent = stated("Bear pays the rent.", 6, subject="Bear", attribute="office", value="rented")
    floor = stated("Bear has an office on two floors.", 7, subject="Bear", attribute="office", value="big")
    secret = stated("Bjorn Aasen has an office.", 1, subject="Bjorn Aasen", attribute="office", value="any")
    erase = stated("The name of Bear.", 8, subject="Bjorn Aasen", attribute="name", value="", act=SpeechAct.ERASE)
    joins = Verdict(secret.id, rent.id, Relation.NARROWS, "one person", "test", joins_subjects=True)
    run(store, "session:a", (secret, rent, floor), (joins,))
    assert (await names_told(store, "1"))["bear"] == ["Bjorn Aasen"]
    run(store, "session:b", (erase,), (Verdict(secret.id, erase.id, Relation.RETRACTS, "erased", "test"),))
    assert "bear" not in await names_told(store, "2")


async def test_a_renaming_holds_where_code_refuses_to_take_it_back(store: Store) -> None:
    by_agent = stated(
        "Larkfield is not its name.",
        4,
        subject="Larkfield",
        value="",
        act=SpeechAct.RETRACT,
        authority=Authority.AGENT,
    )
    refused = Verdict(RENAMED.id, by_agent.id, Relation.RETRACTS, "taken back", "test")
    moves = Verdict(OFFICE.id, MOVED_LARKFIELD.id, Relation.CHANGES, "moved", "test")
    run(store, "session:a", (OFFICE, RENAMED, by_agent, MOVED_LARKFIELD), (refused, moves))
    assert not any("Leith" in statement for statement in await told(store)), "one subject under two names"


def test_a_renaming_that_was_taken_back_is_derived_alike_as_a_whole_and_in_part() -> None:
    withdrawn = stated("That was wrong.", 6, subject="Larkfield", value="", act=SpeechAct.RETRACT)
    verdicts = [
        Verdict(RENAMED.id, withdrawn.id, Relation.RETRACTS, "taken back", "test"),
        Verdict(OFFICE.id, MOVED_LARKFIELD.id, Relation.CHANGES, "moved", "test"),
    ]
    statements = (OFFICE, RENAMED, withdrawn, MOVED_LARKFIELD)
    known = Knowledge.of(1, statements, verdicts)
    assert fact_histories(statements, verdicts) == known.histories(known.by_id)


def test_the_limit_of_a_fact_and_how_it_turned_out_are_told_under_the_new_name_too() -> None:
    formal = stated(
        "Lena writes formally.", 1, limited_to="Harrow Street Holdings", outcome="Harrow Street Holdings likes it"
    )
    at = SAID_AT + timedelta(days=5)
    told_fact = facts_under_current_names(facts_at(fact_histories((formal, RENAMED), ()), at), at)[0]
    assert (told_fact.limited_to, told_fact.outcome) == ("Larkfield", "Larkfield likes it")


def test_a_name_is_not_replaced_where_it_is_a_common_word() -> None:
    project = stated("Mercury ships in May.", 1, subject="Mercury", value="May")
    metal = stated("Lena avoids fish with mercury.", 2, value="fish with mercury")
    agent = stated("Lena works on MERCURY.", 3, value="MERCURY")
    renamed = stated("Mercury is called Venus now.", 4, subject="Venus", former_name="Mercury")
    at = SAID_AT + timedelta(days=1)
    facts = facts_at(fact_histories((project, metal, agent, renamed), ()), at)
    assert [fact.statement for fact in facts_under_current_names(facts, at)] == [
        "Venus ships in May.",
        metal.statement,
        "Lena works on Venus.",
        "Mercury is called Venus now.",
    ]


def test_a_name_is_not_replaced_in_a_longer_one() -> None:
    texts = (
        "Lena buys bread at Harrow Street Bakery.",
        "Lena buys paint at Harrow Street & Sons.",
        "Lena parks in Old Harrow Street.",
        "Lena reads the harrow-street-news.",
        "Lena likes Harrow Street's trees.",
        "Lena lives in Harrow Street, in the attic.",
    )
    said = [stated(text, day, value=text) for day, text in enumerate(texts, 1)]
    renamed = stated("Harrow Street is called Elm Road now.", 9, subject="Elm Road", former_name="Harrow Street")
    at = SAID_AT + timedelta(days=1)
    facts = facts_at(fact_histories((*said, renamed), ()), at)
    assert [fact.statement for fact in facts_under_current_names(facts, at)] == [
        *texts[:4],
        "Lena likes Elm Road's trees.",
        "Lena lives in Elm Road, in the attic.",
        renamed.statement,
    ]


def test_a_sentence_that_has_both_names_keeps_both() -> None:
    texts = (
        "The Tideline repositories keep the old name Kelpie until June.",
        'Until 30 April it is written "Tideline (formerly Kelpie)".',
        "The mirror, formerly Kelpie, is read-only.",
        "The docs are at kelpie.example.org and on @kelpie.",
        "Kelpie has one database.",
    )
    said = [stated(text, day, value=text) for day, text in enumerate(texts, 1)]
    renamed = stated("The service is called Tideline.", 9, subject="Tideline", former_name="Kelpie")
    credits_ = stated("Older credits stay with Beck Rowley, new ones say Tanaka.", 10)
    married = stated("Beck Rowley is called Beck Tanaka.", 11, subject="Beck Tanaka", former_name="Beck Rowley")
    later = SAID_AT + timedelta(days=20)
    facts = facts_at(fact_histories((*said, renamed, credits_, married), ()), later)
    assert [fact.statement for fact in facts_under_current_names(facts, later)] == [
        *texts[:4],
        "Tideline has one database.",
        "The service is called Tideline (formerly Kelpie).",
        credits_.statement,
        married.statement,
    ]


async def test_a_withdrawal_stays_in_force_where_the_renaming_before_it_is_undone(store: Store) -> None:
    run(store, "session:a", (OFFICE,))
    renaming = run(store, "session:b", (RENAMED,))
    (office,) = [fact for fact in await facts_of(store) if OFFICE.id in fact.assertion_ids]
    word = PersonQuote("They have no office any more.", "user")
    outcome = await request_withdrawal(store, LENA, office, quote=word, at=SAID_AT + timedelta(days=1))
    assert outcome.answer is RequestStatus.DONE
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, renaming, SAID_AT)
    assert await told(store) == []


async def test_a_cleared_memory_stays_clear_where_a_renaming_is_undone(store: Store) -> None:
    run(store, "session:a", (OFFICE,))
    renaming = run(store, "session:b", (RENAMED,))
    await withdraw_everything(store, LENA, at=SAID_AT + timedelta(days=1))
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, renaming, SAID_AT)
    assert await told(store) == []


@pytest.mark.parametrize("is_cleared", [True, False], ids=["cleared", "withdrawn"])
async def test_what_was_withdrawn_stays_so_where_a_comparison_is_undone(store: Store, is_cleared: bool) -> None:
    again = stated("The office of Harrow Street Holdings is in Leith.", 2, subject=OFFICE.subject, value="Leith")
    run(store, "session:a", (OFFICE, again))
    compared = run(store, "consolidation:1", (), (Verdict(OFFICE.id, again.id, Relation.SAME, "the same", "test"),))
    (fact,) = await facts_of(store)
    at = SAID_AT + timedelta(days=1)
    if is_cleared:
        await withdraw_everything(store, LENA, at=at)
    else:
        await request_withdrawal(store, LENA, fact, quote=PersonQuote("They have no office any more.", "user"), at=at)
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, compared, SAID_AT)
    assert await told(store) == []


async def test_what_is_limited_to_a_renamed_project_can_be_withdrawn(store: Store) -> None:
    tea = stated("Lena drinks tea.", 1, value="tea", limited_to="Harrow Street Holdings")
    run(store, "session:a", (tea, RENAMED))
    (fact,) = [fact for fact in await facts_of(store) if tea.id in fact.assertion_ids]
    word = PersonQuote("I drink no tea any more.", "user")
    await request_withdrawal(store, LENA, fact, quote=word, at=SAID_AT + timedelta(days=1))
    assert tea.statement not in await told(store)


async def test_a_fact_that_may_be_about_several_people_is_reviewed_under_the_names_that_hold_now(store: Store) -> None:
    names = ("Max Weber", "Max Huber")
    people = [stated(f"{name} rows.", number, subject=name) for number, name in enumerate(names, 10)]
    unclear = stated("Max works for Harrow Street Holdings.", 12, subject="Max")
    married = stated("Max Weber is called Max Keller now.", 13, subject="Max Keller", former_name="Max Weber")
    run(store, "session:a", (*people, unclear, RENAMED, married))
    view = await view_cache_of(store).view(store, LENA, datetime.now(UTC))
    [pending] = view.lists.facts_to_check.pending
    assert pending.statement == "Max works for Larkfield."
    assert "Max Weber" not in pending.may_be
    assert [pending] == [fact for fact in await facts_of(store) if fact.status is Status.PENDING]
