"""What people decide: proposals, policies, contests, edits, confirmations, undo. On every database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from afterword.errors import NotFound, StateConflict
from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.extractor import Window
from afterword.extractors.rules import RulesJudge
from afterword.extractors.testing import OracleExtractor
from afterword.facts.assertions import Kind, SpeechAct
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.facts.validity.fact_history import facts_at
from afterword.facts.validity.timeline import fact_histories
from afterword.pipeline.errors import ProposalOutdated
from afterword.pipeline.intake import Saved
from afterword.pipeline.proposals import apply_proposal
from afterword.pipeline.reversible_runs import redo_run, undo_run
from afterword.pipeline.session import process_session
from afterword.pipeline.session_outcome import SessionOutcome
from afterword.store import entries, ledger, lookup, reviews, scope_rows, sessions
from afterword.store.database.engine import Store
from afterword.store.entered_statements import Entry, FactEdit
from afterword.store.ledger import RunStatus
from afterword.store.proposals import Proposal, WindowReading
from afterword.store.reviews import Decision
from afterword.store.scope_rows import ApprovalPolicy

LENA = Scope.user("lena")
Canonical = Callable[[Store, Scope], Awaitable[list[tuple[object, ...]]]]


def day(number: int) -> datetime:
    return datetime(2026, 3, number, tzinfo=UTC)


def find(window: Window) -> list[Candidate]:
    """Understand `home: Graz` and `forget home: Graz`."""
    found = []
    for turn in window.turns:
        act, _, rest = turn.text.rpartition("forget ")
        attribute, _, value = rest.partition(": ")
        if value:
            found.append(
                Candidate(
                    kind=Kind.ENTITY,
                    subject="user",
                    attribute=attribute,
                    value=value,
                    statement=f"The user's {attribute} is {value}.",
                    evidence=[Citation(turn=turn.number, quote=turn.text)],
                    act=SpeechAct.ERASE if act or turn.text.startswith("forget") else SpeechAct.STATE,
                )
            )
    return found


async def process(store: Store, session_id: str, on: int, text: str, **more: Any) -> SessionOutcome:
    state = {"llm_context": {"messages": [{"content": text, "source": "user", "type": "UserMessage"}]}}
    saved = Saved(LENA, session_id, state={"type": "AssistantAgentState", **state})
    if more.pop("guessed", False):
        saved = replace(saved, file_time=day(on))
    else:
        saved = replace(saved, started_at=day(on), ended_at=day(on))
    return await process_session(store, saved, extractor=OracleExtractor(find), **more)


async def held(store: Store, at: datetime = datetime(2026, 4, 1, tzinfo=UTC)) -> dict[str, Fact]:
    with store.reading() as transaction:
        return {fact.value: fact for fact in lookup.read_facts(transaction, LENA, at=at)}


async def statuses(store: Store) -> dict[str, str]:
    return {value: str(fact.status) for value, fact in (await held(store)).items()}


async def set_policy(store: Store, policy: ApprovalPolicy) -> None:
    await store.write(lambda transaction: scope_rows.set_approval_policy(transaction, LENA, policy))


async def test_a_policy_holds_retirements_for_a_person_and_lets_the_rest_through(store: Store) -> None:
    await set_policy(store, ApprovalPolicy.HOLD_RETIREMENTS)
    assert (await process(store, "a", 1, "home: Graz")).applied
    outcome = await process(store, "b", 5, "home: Linz")
    assert (outcome.applied, outcome.held) == (False, True)
    assert await statuses(store) == {"Graz": "current"}
    again = await process(store, "b", 5, "home: Linz")
    assert again.run_id is None, "what is held is not proposed a second time"
    assert outcome.run_id is not None
    applied = await apply_proposal(store, outcome.run_id, judge=RulesJudge())
    assert (applied.run.id, applied.run.status) == (outcome.run_id, RunStatus.APPLIED)
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}


async def test_what_a_proposal_takes_away_is_compared_anew_where_the_memory_has_moved_on(store: Store) -> None:
    """The first home was compared with the last one only by its repetition, which the proposal replaces."""
    for session_id, on, text in (("a", 1, "home: Graz"), ("b", 2, "home: Graz"), ("c", 5, "home: Linz")):
        await process(store, session_id, on, text)
    with store.reading() as transaction:
        known = lookup.read_knowledge(transaction, LENA)
    tea = replace(known.said_in("b")[0], id="tea", attribute="drink", value="tea", statement="The user drinks tea.")
    reading = WindowReading("read otherwise", 1, 1, (tea,))
    proposal = Proposal(LENA, "session:b", "session", "test", "test", day(6), known.revision, (reading,))
    run_id = await store.write(lambda transaction: ledger.propose_run(transaction, proposal, is_held=True))
    await process(store, "d", 7, "colour: blue")
    await apply_proposal(store, run_id, judge=RulesJudge())
    with pytest.raises(StateConflict, match="is satisfied: another run says the same"):
        await apply_proposal(store, run_id, judge=RulesJudge())
    assert await statuses(store) == {"Graz": "superseded", "tea": "current", "Linz": "current", "blue": "current"}


async def test_a_rejected_proposal_never_counts(store: Store) -> None:
    await set_policy(store, ApprovalPolicy.HOLD_ALL)
    outcome = await process(store, "a", 1, "home: Graz")
    assert outcome.run_id is not None
    run_id = outcome.run_id
    await store.write(lambda transaction: ledger.reject_run(transaction, LENA, run_id))
    with pytest.raises(StateConflict):
        await apply_proposal(store, run_id, judge=RulesJudge())
    assert await statuses(store) == {}
    assert (await process(store, "a", 1, "home: Graz")).run_id is None


async def test_a_proposal_is_judged_again_where_the_memory_has_moved_on(store: Store) -> None:
    """Two held sessions: approving the first must not lose the second."""
    await set_policy(store, ApprovalPolicy.HOLD_ALL)
    first = await process(store, "a", 1, "home: Graz")
    second = await process(store, "b", 5, "home: Linz")
    assert first.run_id is not None
    assert second.run_id is not None
    await apply_proposal(store, second.run_id, judge=RulesJudge())
    applied = await apply_proposal(store, first.run_id, judge=RulesJudge())
    assert applied.run.id != first.run_id
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}
    await store.write(lambda transaction: ledger.revert_run(transaction, LENA, applied.run.id, day(20)))
    assert await statuses(store) == {"Linz": "current"}


DECIDED = {
    Decision.APPROVE: {"Graz": "superseded", "Linz": "current"},
    Decision.KEEP_BOTH: {"Graz": "current", "Linz": "current"},
    Decision.REJECT: {"Graz": "current", "Linz": "retracted"},
}


async def contest(store: Store) -> reviews.Contest:
    """A contest between two homes: the later one's time is a guess."""
    await process(store, "a", 1, "home: Graz")
    await process(store, "b", 5, "home: Linz", guessed=True)
    assert await statuses(store) == {"Graz": "contested", "Linz": "contested"}
    with store.reading() as transaction:
        (one,) = reviews.read_contests(transaction, LENA, at=day(20))
    assert "file" in one.refused_because
    return one


@pytest.mark.parametrize("decision", list(Decision))
async def test_a_contest_is_settled_by_a_person_and_the_decision_can_be_undone(
    store: Store, canonical: Canonical, decision: Decision
) -> None:
    one = await contest(store)
    before = await canonical(store, LENA)
    effect = await reviews.decide_contest(store, LENA, one.earlier.id, one.later.id, decision, at=day(20))
    assert {change.after.value for change in effect.changes if change.after} == {"Graz", "Linz"}
    run_id = effect.run.id
    assert await statuses(store) == DECIDED[decision]
    with store.reading() as transaction:
        assert reviews.read_contests(transaction, LENA, at=day(20)) == []
    await store.write(lambda transaction: ledger.revert_run(transaction, LENA, run_id, day(21)))
    assert await canonical(store, LENA) == before


async def test_a_contest_of_what_was_replaced_waits_for_nobody(store: Store) -> None:
    one = await contest(store)
    replaced = await process(store, "c", 9, "home: Wels")
    assert await statuses(store) == {"Graz": "superseded", "Linz": "superseded", "Wels": "current"}
    with store.reading() as transaction:
        assert reviews.read_contests(transaction, LENA, at=day(20)) == []
        (before,) = reviews.read_contests(transaction, LENA, at=day(8))
    assert before.id == one.id
    assert replaced.run_id is not None
    await undo_run(store, replaced.run_id, judge=RulesJudge(), clock=lambda: day(21))
    with store.reading() as transaction:
        assert [each.id for each in reviews.read_contests(transaction, LENA, at=day(20))] == [one.id]


async def test_a_later_dated_statement_settles_a_contest(store: Store) -> None:
    """The guess repeats what was said with a date: to reject it would withdraw the dated statement too."""
    one = await contest(store)
    await process(store, "c", 3, "home: Linz")
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}
    with store.reading() as transaction:
        assert reviews.read_contests(transaction, LENA, at=day(20)) == []
    for decision in Decision:
        with pytest.raises(NotFound):
            await reviews.decide_contest(store, LENA, one.earlier.id, one.later.id, decision, at=day(20))
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}


@pytest.mark.parametrize("first", list(Decision))
@pytest.mark.parametrize("second", list(Decision))
async def test_after_an_undo_a_person_may_decide_otherwise(store: Store, first: Decision, second: Decision) -> None:
    """The first decision can be redone once the second one is undone."""
    one = await contest(store)
    undone = await reviews.decide_contest(store, LENA, one.earlier.id, one.later.id, first, at=day(20))
    await store.write(lambda transaction: ledger.revert_run(transaction, LENA, undone.run.id, day(21)))
    assert await statuses(store) == {"Graz": "contested", "Linz": "contested"}
    decided = await reviews.decide_contest(store, LENA, one.earlier.id, one.later.id, second, at=day(22))
    assert await statuses(store) == DECIDED[second]
    with pytest.raises(
        StateConflict, match=f"run {decided.run.id} .* undo it first: `afterword undo {decided.run.id}`"
    ):
        await redo_run(store, undone.run.id, judge=RulesJudge(), clock=lambda: day(23))
    assert await statuses(store) == DECIDED[second]
    await undo_run(store, decided.run.id, judge=RulesJudge(), clock=lambda: day(24))
    await redo_run(store, undone.run.id, judge=RulesJudge(), clock=lambda: day(25))
    assert await statuses(store) == DECIDED[first]
    with store.reading() as transaction:
        afresh = lookup.read_knowledge(transaction, LENA, afresh=True)
        facts = facts_at(fact_histories(afresh.assertions, afresh.verdicts), day(26))
    assert {fact.value: str(fact.status) for fact in facts} == DECIDED[first]


async def test_an_approved_request_to_erase_is_rejected_once_the_approval_is_undone(store: Store) -> None:
    await process(store, "a", 1, "diet: carrots")
    await process(store, "b", 5, "forget diet: carrots", guessed=True)
    with store.reading() as transaction:
        (one,) = reviews.read_contests(transaction, LENA, at=day(20))
    approved = await reviews.decide_contest(store, LENA, one.earlier.id, one.later.id, Decision.APPROVE, at=day(20))
    assert await statuses(store) == {}
    with pytest.raises(StateConflict, match=f"afterword undo {approved.run.id}"):
        await reviews.reject_erase_request(store, LENA, one.later.id, at=day(21))
    await undo_run(store, approved.run.id, judge=RulesJudge(), clock=lambda: day(22))
    assert (await statuses(store)).keys() == {"carrots"}


async def test_what_is_not_contested_cannot_be_settled(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    with pytest.raises(NotFound):
        await reviews.decide_contest(store, LENA, "x", "y", Decision.APPROVE, at=day(20))


@pytest.mark.parametrize(("is_change", "valid_from"), [(False, day(1)), (True, day(20))])
async def test_an_edit_outranks_extraction(store: Store, is_change: bool, valid_from: datetime) -> None:
    await process(store, "a", 1, "home: Graz")
    fact = (await held(store))["Graz"]
    await reviews.edit_fact(
        store, LENA, fact.id, FactEdit("Lena lives in Wels.", "Wels", "user"), is_change=is_change, at=day(20)
    )
    facts = await held(store)
    assert {value: one.status for value, one in facts.items()} == {"Graz": Status.SUPERSEDED, "Wels": Status.CURRENT}
    assert facts["Wels"].valid_from == valid_from
    assert facts["Wels"].evidence[0].kind == "person"
    await process(store, "late", 3, "home: Linz")
    assert (await statuses(store))["Wels"] == "current", "a session said before the edit, delivered after it"


@pytest.mark.parametrize(
    ("said", "old", "told"),
    [
        ("Lena flies to Oslo on 12 March.", "12 March", "Lena flies to Oslo on 14 March."),
        ("Lena flies on 13 March.", "3 March", "The flight of the user is 14 March."),
        ("Lena flies to Oslo on 12 March.", "to Oslo on 12 March", "The flight of the user is 14 March."),
    ],
)
async def test_an_edited_value_leaves_a_whole_sentence(store: Store, said: str, old: str, told: str) -> None:
    await entries.add_entry(store, LENA, Entry(said, attribute="flight", value=old), at=day(1))
    await reviews.edit_fact(
        store, LENA, (await held(store))[old].id, FactEdit(value="14 March"), is_change=False, at=day(2)
    )
    assert await current_statements(store) == [told]


async def test_a_correction_of_what_was_replaced_stays_in_the_past(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    await process(store, "b", 5, "home: Oslo")
    graz = (await held(store))["Graz"]
    await reviews.edit_fact(store, LENA, graz.id, FactEdit("Lena lives in Wels.", "Wels"), is_change=False, at=day(20))
    facts = await held(store)
    assert await current_statements(store) == [facts["Oslo"].statement]
    assert (facts["Wels"].valid_from, facts["Wels"].valid_to) == (graz.valid_from, graz.valid_to)


async def test_a_confirmed_fact_is_not_retired_by_the_application(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    fact = (await held(store))["Graz"]
    await reviews.confirm_fact(store, LENA, fact.id, at=day(20))
    confirmed = (await held(store))["Graz"]
    assert (confirmed.id, confirmed.support) == (fact.id, 2)
    for is_flagged in (True, False):
        await reviews.flag_fact(store, LENA, fact.id, is_flagged=is_flagged, at=day(22))
        flagged = (await held(store))[fact.value]
        assert (flagged.is_flagged, flagged.support) == (is_flagged, 2), "a flag is no repetition"


async def test_what_was_to_be_forgotten_is_hidden_from_every_read_at_once(store: Store) -> None:
    await process(store, "a", 1, "diet: carrots")
    outcome = await process(store, "b", 5, "forget diet: carrots")
    assert await statuses(store) == {}
    with store.reading() as transaction:
        for moment in (None, datetime(2030, 1, 1, tzinfo=UTC)):
            assert lookup.read_facts(transaction, LENA, at=day(2), known_at=moment) == []
    assert outcome.run_id is not None
    run_id = outcome.run_id
    await process(store, "c", 9, "diet: carrots")
    assert (await held(store))["carrots"].support == 1, "said again later, it is new"
    await store.write(lambda transaction: ledger.revert_run(transaction, LENA, run_id, day(20)))
    assert (await held(store))["carrots"].support == 2


async def test_what_was_erased_stays_hidden_from_what_was_known_before(store: Store) -> None:
    await process(store, "a", 1, "diet: carrots", clock=lambda: day(2))
    await process(store, "b", 5, "forget diet: carrots", clock=lambda: day(6))
    with store.reading() as transaction:
        assert lookup.read_facts(transaction, LENA, at=day(3), known_at=day(3)) == []


async def test_reading_again_swaps_what_the_session_says(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")

    def find_more(window: Window) -> list[Candidate]:
        return [one.model_copy(update={"value": "Graz-Eggenberg"}) for one in find(window)]

    better = OracleExtractor(find_more, version="better")
    shown = await process_session(store, Saved(LENA, "a", reread=True), extractor=better, apply=False)
    assert [fact.value for fact in shown.changes.learned] == ["Graz-Eggenberg"]
    assert await statuses(store) == {"Graz": "current"}
    await process_session(store, Saved(LENA, "a", reread=True), extractor=OracleExtractor(find, version="oracle:2"))
    assert await statuses(store) == {"Graz": "current"}


async def test_undoing_the_middle_leaves_the_ends_compared(store: Store, canonical: Canonical) -> None:
    """The first and the last were never compared while the middle stood between them."""
    await process(store, "a", 1, "home: Graz")
    middle = await process(store, "b", 3, "home: Graz")
    await process(store, "c", 5, "home: Linz")
    assert middle.run_id is not None
    await undo_run(store, middle.run_id, judge=RulesJudge())
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}
    assert (await held(store))["Graz"].support == 1


async def test_a_session_that_no_longer_says_it_leaves_the_ends_compared(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    await process(store, "b", 3, "home: Graz")
    await process(store, "c", 5, "home: Linz")
    nothing = OracleExtractor({}, version="finds nothing")
    await process_session(store, Saved(LENA, "b", reread=True), extractor=nothing)
    assert await statuses(store) == {"Graz": "superseded", "Linz": "current"}


async def test_a_cleared_memory_stays_clear_of_what_was_said_before(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    await entries.withdraw_everything(store, LENA, at=day(10))
    await process(store, "late", 3, "diet: vegan")
    assert await statuses(store) == {"Graz": "retracted", "vegan": "retracted"}
    await process(store, "new", 12, "diet: vegan")
    assert (await statuses(store))["vegan"] == "current"


async def test_a_dry_run_leaves_no_turns_behind_until_it_is_applied(store: Store) -> None:
    shown = await process(store, "a", 1, "home: Graz", apply=False)
    with store.reading() as transaction:
        assert sessions.read_turns(transaction, LENA, "a") == []
        assert sessions.read_sessions(transaction) == []
    assert shown.run_id is not None
    await apply_proposal(store, shown.run_id, judge=RulesJudge())
    with store.reading() as transaction:
        assert [turn.text for turn in sessions.read_turns(transaction, LENA, "a")] == ["home: Graz"]
    assert (await process(store, "a", 1, "home: Graz")).run_id is None


async def test_a_dry_run_is_applied_as_it_was_shown_or_not_at_all(store: Store) -> None:
    await process(store, "a", 1, "home: Graz")
    shown = await process(store, "b", 5, "home: Linz", apply=False)
    assert [(old.value, new and new.value) for old, new in shown.changes.retired] == [("Graz", "Linz")]
    assert shown.run_id is not None
    await process(store, "c", 3, "colour: blue")
    await process(store, "d", 8, "home: Wels")
    with pytest.raises(ProposalOutdated, match=f"changed since run {shown.run_id} was proposed.*make a new proposal"):
        await apply_proposal(store, shown.run_id, judge=RulesJudge())
    assert await statuses(store) == {"Graz": "superseded", "Wels": "current", "blue": "current"}
    again = await process(store, "b", 5, "home: Linz", apply=False)
    assert again.run_id is not None
    await process(store, "e", 9, "drink: tea")
    await apply_proposal(store, again.run_id, judge=RulesJudge())
    assert (await statuses(store))["Linz"] == "superseded"


async def test_a_dry_run_is_refused_if_what_it_would_end_is_gone(store: Store) -> None:
    first = await process(store, "a", 1, "home: Graz")
    shown = await process(store, "b", 5, "home: Linz", apply=False)
    assert (first.run_id, shown.run_id) != (None, None)
    await store.write(lambda transaction: ledger.revert_run(transaction, LENA, first.run_id or 0, day(20)))
    with pytest.raises(ProposalOutdated):
        await apply_proposal(store, shown.run_id or 0, judge=RulesJudge())
    assert await statuses(store) == {}


async def test_a_proposal_of_a_session_that_was_read_further_is_refused(store: Store) -> None:
    """Applying it would take back what the later reading has learned."""
    shown = await process(store, "a", 1, "home: Graz", apply=False)
    state = [{"content": text, "source": "user", "type": "UserMessage"} for text in ("home: Graz", "diet: vegan")]
    grown = Saved(LENA, "a", state={"type": "AssistantAgentState", "llm_context": {"messages": state}})
    grown = replace(grown, started_at=day(1), ended_at=day(1))
    await process_session(store, grown, extractor=OracleExtractor(find))
    assert shown.run_id is not None
    with pytest.raises(ProposalOutdated):
        await apply_proposal(store, shown.run_id, judge=RulesJudge())
    assert await statuses(store) == {"Graz": "current", "vegan": "current"}


async def current_statements(store: Store) -> list[str]:
    with store.reading() as transaction:
        facts = lookup.read_facts(transaction, LENA, at=day(28))
    return [fact.statement for fact in facts if fact.status is Status.CURRENT]


@pytest.mark.parametrize("is_change", [False, True])
async def test_an_edit_that_is_repeated_makes_no_second_fact(store: Store, is_change: bool) -> None:
    await process(store, "a", 1, "home: Graz")
    graz = (await held(store))["Graz"].id
    for on in (5, 6):
        wording = FactEdit("The user lives in Linz.")
        repeated = await reviews.edit_fact(store, LENA, graz, wording, is_change=is_change, at=day(on))
    assert await current_statements(store) == ["The user lives in Linz."]
    await undo_run(store, repeated.run.id, judge=RulesJudge())
    assert await current_statements(store) == ["The user lives in Linz."]


@pytest.mark.parametrize("is_change", [False, True])
async def test_an_edit_can_be_edited_back(store: Store, is_change: bool) -> None:
    await process(store, "a", 1, "home: Graz")
    for on, old, new in ((5, "Graz", "Linz"), (6, "Linz", "Graz"), (7, "Graz", "Linz")):
        with store.reading() as transaction:
            facts = lookup.read_facts(transaction, LENA, at=day(on))
        (fact,) = (fact for fact in facts if fact.status is Status.CURRENT)
        assert old in fact.statement
        wording = FactEdit(f"The user's home is {new}.", new)
        await reviews.edit_fact(store, LENA, fact.id, wording, is_change=is_change, at=day(on))
        assert await current_statements(store) == [f"The user's home is {new}."]


@pytest.mark.parametrize("is_change", [False, True])
@pytest.mark.parametrize("side", ["Graz", "Linz"])
async def test_an_edit_of_one_side_of_a_contest_settles_it(store: Store, side: str, is_change: bool) -> None:
    one = await contest(store)
    edited_id = (one.earlier if side == "Graz" else one.later).id
    wording = FactEdit("The user lives in Wels.", "Wels")
    edited = await reviews.edit_fact(store, LENA, edited_id, wording, is_change=is_change, at=day(20))
    assert await statuses(store) == {"Graz": "superseded", "Linz": "superseded", "Wels": "current"}
    await undo_run(store, edited.run.id, judge=RulesJudge())
    assert await statuses(store) == {"Graz": "contested", "Linz": "contested"}


async def test_an_edit_that_says_whom_it_is_about_leaves_the_other_side_alone(store: Store) -> None:
    one = await contest(store)
    await reviews.edit_fact(store, LENA, one.later.id, FactEdit(subject="Tom"), is_change=False, at=day(20))
    assert (await statuses(store))["Graz"] == "current"


@pytest.mark.parametrize(
    ("subject", "statement", "about", "told"),
    [
        ("user", "The user likes tea.", "Tom", "Tom likes tea."),
        ("user", "Ida visits the user and the user's dog.", "Tom", "Ida visits Tom and Tom's dog."),
        ("user", "Lena likes tea.", "Tom", "Tom likes tea."),
        ("Tom", "Tom likes tea.", "Tom Baker", "Tom Baker likes tea."),
        ("Tom", "Tom Baker likes tea.", "Tom Baker", "Tom Baker likes tea."),
        ("Tom Baker", "Tom Baker likes tea.", "Tom", "Tom likes tea."),
        ("Tom", "Tom's dog is old.", "user", "The user's dog is old."),
        ("Tom", "Tom likes tea.", "tom", "Tom likes tea."),
        ("user", "I like tea.", "Tom", "About Tom: I like tea."),
    ],
)
async def test_a_fact_that_is_about_another_names_this_other(
    store: Store, subject: str, statement: str, about: str, told: str
) -> None:
    entered = await entries.add_entry(store, LENA, Entry(statement, subject=subject), at=day(1))
    wording = FactEdit(subject=about)
    await reviews.edit_fact(store, LENA, entered.facts[0].id, wording, is_change=False, at=day(2))
    with store.reading() as transaction:
        (fact,) = (fact for fact in lookup.read_facts(transaction, LENA, at=day(3)) if fact.status is Status.CURRENT)
    assert (fact.statement, fact.subject, fact.value) == (told, about, told)
