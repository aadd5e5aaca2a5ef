"""Runs are proposed, applied and undone; facts follow, on every database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from afterword.errors import NotFound, Overtaken, ScopeMoved, StateConflict
from afterword.facts.assertions import Assertion, Authority, Evidence, EvidenceKind, Kind, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.store import ledger, lookup, scope_rows
from afterword.store.database.engine import Store
from afterword.store.proposals import KnowledgeChange, Proposal, WindowReading

LENA = Scope.user("lena")


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def said(name: str, number: int, value: str, scope: Scope = LENA) -> Assertion:
    return Assertion(
        id=name,
        scope=scope,
        session_id=f"s{number}",
        act=SpeechAct.STATE,
        kind=Kind.PREFERENCE,
        subject="user",
        attribute="seat",
        value=value,
        statement=f"The user wants {value}.",
        speaker="user",
        authority=Authority.STATED,
        said_at=day(number),
        evidence=(Evidence(EvidenceKind.TURN, value, f"s{number}", 1, "user"),),
    )


async def propose(store: Store, source: str, *readings: WindowReading, verdicts: tuple[Verdict, ...] = ()) -> int:
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, LENA)
        return ledger.propose_run(
            transaction, Proposal(LENA, source, "session", "rules-1", "rules-1", day(20), revision, readings, verdicts)
        )


async def apply(store: Store, run_id: int, on: int = 20) -> None:
    with store.writing() as transaction:
        ledger.apply_run(transaction, LENA, run_id, day(on))


async def undo(store: Store, run_id: int, on: int = 21) -> None:
    with store.writing() as transaction:
        ledger.revert_run(transaction, LENA, run_id, day(on))


async def held(store: Store, scope: Scope = LENA, known_at: datetime | None = None) -> dict[str, Fact]:
    with store.reading() as transaction:
        return {fact.id: fact for fact in lookup.read_facts(transaction, scope, at=day(28), known_at=known_at)}


WINDOW, AISLE = said("window", 1, "window"), said("aisle", 5, "aisle")
CHANGE = Verdict("window", "aisle", Relation.CHANGES, "one seat at a time", "rules-1")


async def test_a_proposal_counts_for_nothing_before_it_is_applied(store: Store) -> None:
    run_id = await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,)))
    assert await held(store) == {}
    await apply(store, run_id)
    assert (await held(store))["window"].status is Status.CURRENT


async def test_what_a_run_changed_does_not_name_a_fact_that_had_ended_before(store: Store) -> None:
    await apply(store, await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,))))
    change = WindowReading("k5", 1, 3, (AISLE,))
    await apply(store, await propose(store, "session:s5", change, verdicts=(CHANGE,)))
    middle = said("middle", 7, "middle")
    judged = Verdict("window", "middle", Relation.CHANGES, "one seat at a time", "rules-1")
    with store.writing() as transaction:
        revision = scope_rows.revision_of(transaction, LENA)
        reading = WindowReading("k7", 1, 3, (middle,))
        proposal = Proposal(LENA, "entry:1", "remember", "none", "rules-1", day(20), revision, (reading,), (judged,))
        effect = ledger.propose_and_apply_with_effect(transaction, proposal)
    assert [(changed.before, changed.after and changed.after.id) for changed in effect.changes] == [(None, "middle")]


async def test_a_change_retires_the_earlier_value_and_undo_brings_it_back(store: Store) -> None:
    await apply(store, await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,))))
    before = await held(store)
    change = await propose(store, "session:s5", WindowReading("k5", 1, 3, (AISLE,)), verdicts=(CHANGE,))
    await apply(store, change)
    after = await held(store)
    assert (after["window"].status, after["window"].valid_to) == (Status.SUPERSEDED, day(5))
    assert after["window"].retired_by == "aisle"
    await undo(store, change)
    assert await held(store) == before


async def test_what_was_believed_then_can_still_be_asked(store: Store) -> None:
    await apply(store, await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,))), 10)
    change = await propose(store, "session:s5", WindowReading("k5", 1, 3, (AISLE,)), verdicts=(CHANGE,))
    await apply(store, change, 12)
    await undo(store, change, 14)
    assert set(await held(store, known_at=day(9))) == set()
    assert (await held(store, known_at=day(11)))["window"].status is Status.CURRENT
    assert (await held(store, known_at=day(13)))["window"].status is Status.SUPERSEDED
    assert (await held(store, known_at=day(15)))["window"].status is Status.CURRENT


async def test_reading_a_session_anew_swaps_its_assertions(store: Store) -> None:
    await apply(store, await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,))))
    await apply(store, await propose(store, "session:s1", WindowReading("k1-grown", 1, 6, (said("tall", 1, "tall"),))))
    assert set(await held(store)) == {"tall"}


async def test_undoing_the_first_of_two_readings_leaves_the_second_whole(store: Store) -> None:
    """The second reading reuses the first window; had the first run never been, it would have read it itself."""
    first = await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,)))
    await apply(store, first)
    grown = (WindowReading("k1", 1, 3, (WINDOW,)), WindowReading("k2", 4, 6, (said("tall", 1, "tall"),)))
    await apply(store, await propose(store, "session:s1", *grown))
    await undo(store, first)
    assert set(await held(store)) == {"window", "tall"}


async def test_the_same_words_read_again_are_one_assertion(store: Store) -> None:
    for key in ("k1", "k1-again"):
        await apply(store, await propose(store, "session:s1", WindowReading(key, 1, 3, (WINDOW,))))
    facts = await held(store)
    assert facts["window"].support == 1
    assert len(facts["window"].evidence) == 1


async def test_a_proposal_judged_before_others_changed_the_scope_is_refused(store: Store) -> None:
    late = await propose(store, "session:s5", WindowReading("k5", 1, 3, (AISLE,)))
    await apply(store, await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,))))
    with pytest.raises(ScopeMoved):
        await apply(store, late)
    assert set(await held(store)) == {"window"}


async def test_a_run_is_applied_once_and_undone_once(store: Store) -> None:
    run_id = await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,)))
    with pytest.raises(StateConflict, match=f"run {run_id} of .* is proposed, not applied"):
        await undo(store, run_id)
    await apply(store, run_id)
    with pytest.raises(StateConflict, match="is applied, not proposed or held"):
        await apply(store, run_id)


async def test_another_scope_sees_and_undoes_nothing(store: Store) -> None:
    run_id = await propose(store, "session:s1", WindowReading("k1", 1, 3, (WINDOW,)))
    await apply(store, run_id)
    alike = (Scope.user("Lena"), Scope.user("lena "), Scope.parse("default/team/lena"), Scope.user("lena", "acme"))
    for other in alike:
        assert await held(store, other) == {}
        with store.reading() as transaction:
            assert lookup.assertions_by_id(transaction, other, ["window"]) == {}
        with pytest.raises(NotFound), store.writing() as transaction:
            ledger.revert_run(transaction, other, run_id, day(21))


@pytest.mark.parametrize("case", ["all is new", "stored before", "read before", "derived from another state"])
async def test_what_is_expected_is_taken_over_where_it_is_what_is_stored(store: Store, case: str) -> None:
    await apply(store, await propose(store, "session:1", WindowReading("w1", 1, 1, (WINDOW,))))
    if case == "stored before":
        earlier = replace(AISLE, statement="The user would like an aisle seat.")
        await propose(store, "session:5", WindowReading("w5", 1, 1, (earlier,)))
    if case == "read before":
        await apply(store, await propose(store, "session:2", WindowReading("w2", 1, 1, (said("exit", 2, "exit"),))))

    aisle = replace(AISLE, is_flagged=False)  # as it is stored
    with store.writing() as transaction:
        before = lookup.read_knowledge(transaction, LENA)
        after = before.revised(before.revision + 1, added=[aisle], added_verdicts=[CHANGE])
        known = before.revised(before.revision) if case == "derived from another state" else before
        source, readings = "session:2" if case == "read before" else "session:5", (WindowReading("w3", 1, 1, (aisle,)),)
        proposal = Proposal(LENA, source, "session", "r", "r", day(20), before.revision, readings, (CHANGE,))
        expected = KnowledgeChange(known, after, frozenset({"window", "aisle"}))
        run_id, change = ledger.propose_and_apply(transaction, proposal, expected=expected)
        assert (change.after.by_id["aisle"] is aisle) == (case == "all is new")
    with store.reading() as transaction:
        cached, stored = (lookup.read_knowledge(transaction, LENA, afresh=afresh) for afresh in (False, True))
        assert cached.revision == stored.revision == before.revision + 1
        assert set(cached.assertions) == set(stored.assertions)
        assert set(cached.verdicts) == set(stored.verdicts) == {CHANGE}
        assert ledger.derive_and_store_facts(transaction, LENA) == set()
    assert (await held(store))["window"].status is Status.SUPERSEDED
    await undo(store, run_id)
    assert (await held(store))["window"].status is Status.CURRENT


async def test_an_error_within_a_transaction_leaves_nothing_behind(store: Store) -> None:
    proposal = Proposal(LENA, "s", "session", "x", "x", day(1), 0, (WindowReading("k", 1, 1, (WINDOW,)),))

    async def interrupted() -> None:
        with store.writing() as transaction:
            ledger.apply_run(transaction, LENA, ledger.propose_run(transaction, proposal), day(1))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await interrupted()
    assert await held(store) == {}


async def test_writers_of_one_scope_lose_nothing(store: Store) -> None:
    """Each reads the revision, proposes and applies; whoever was too late tries again."""

    async def write(number: int) -> None:
        one = said(f"a{number}", number, f"seat {number}")
        for _ in range(60):
            try:
                with store.writing() as transaction:
                    revision = scope_rows.revision_of(transaction, LENA)
                    reading = WindowReading(f"k{number}", 1, 1, (one,))
                    proposal = Proposal(LENA, f"session:{number}", "session", "x", "x", day(1), revision, (reading,))
                    ledger.apply_run(transaction, LENA, ledger.propose_run(transaction, proposal), day(20))
                return
            except Overtaken:
                await asyncio.sleep(0.001 * number)
        raise AssertionError("never got its turn")

    await asyncio.gather(*(write(number) for number in range(1, 9)))
    assert len(await held(store)) == 8
    with store.reading() as transaction:
        assert scope_rows.revision_of(transaction, LENA) == 8
