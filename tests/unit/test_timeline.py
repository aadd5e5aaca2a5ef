"""What holds, held or will hold."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.assertions import Assertion, Authority, Evidence, EvidenceKind, Kind, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope
from afterword.facts.validity.timeline import timeline

LENA = Scope.user("lena")
SAME, CHANGES, NARROWS, CORRECTS, RETRACTS, BESIDE = (
    *(Relation.SAME, Relation.CHANGES, Relation.NARROWS, Relation.CORRECTS, Relation.RETRACTS, Relation.BESIDE),
)


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number - 1)


def said(
    name: str, on: int, *, since: int | None = None, until: int | None = None, act: SpeechAct = SpeechAct.STATE
) -> Assertion:
    """A statement of this name, said on that day of January."""
    return Assertion(
        id=name,
        scope=LENA,
        session_id=f"s{on}",
        act=act,
        kind=Kind.PREFERENCE,
        subject="user",
        attribute="seat",
        value=name,
        statement=f"The user wants {name}.",
        speaker="user",
        authority=Authority.STATED,
        said_at=day(on),
        evidence=(Evidence(EvidenceKind.TURN, name, f"s{on}", 1, "user"),),
        valid_from=day(since) if since else None,
        valid_to=day(until) if until else None,
    )


def judged(earlier: str, later: str, relation: Relation) -> Verdict:
    return Verdict(earlier, later, relation, "because", "test")


def at(on: int, assertions: list[Assertion], *verdicts: Verdict) -> dict[str, Fact]:
    return {fact.id: fact for fact in timeline(assertions, verdicts, day(on))}


def statuses(on: int, assertions: list[Assertion], *verdicts: Verdict) -> dict[str, str]:
    return {name: str(fact.status) for name, fact in at(on, assertions, *verdicts).items()}


def test_values_stand_beside_each_other_unless_judged_otherwise() -> None:
    tea, coffee = said("tea", 1), said("coffee", 2)
    assert statuses(9, [tea, coffee]) == {"tea": "current", "coffee": "current"}
    assert statuses(9, [tea, coffee], judged("tea", "coffee", BESIDE)) == {"tea": "current", "coffee": "current"}


def test_a_day_that_was_moved_does_not_come_back_when_the_new_one_has_passed() -> None:
    """ "Hands in on 31 March", then "hands in on 15 May": on 16 May neither is ahead, and the first never again."""
    open_end, moved = said("march", 1), said("may", 5, since=20, until=20)
    for on in (6, 20, 25):
        facts = at(on, [open_end, moved], judged("march", "may", CHANGES))
        assert (facts["march"].status, facts["march"].valid_to) == (Status.SUPERSEDED, day(5))
    longer = said("trial", 5, since=10, until=20)
    facts = at(25, [open_end, longer], judged("march", "trial", CHANGES))
    assert facts["march"].status is Status.CURRENT, "what holds for some days only gives way to what held before"


def test_a_change_ends_the_earlier_value_when_it_was_said() -> None:
    facts = at(9, [said("window", 1), said("aisle", 5)], judged("window", "aisle", CHANGES))
    assert (facts["window"].status, facts["window"].valid_to) == (Status.SUPERSEDED, day(5))
    assert facts["window"].retired_by == "aisle"
    assert facts["aisle"].status is Status.CURRENT


def test_what_held_then_can_be_asked() -> None:
    pair = [said("window", 1), said("aisle", 5)]
    assert statuses(3, pair, judged("window", "aisle", CHANGES)) == {"window": "current"}


def test_a_value_that_comes_back_is_one_fact_with_a_gap() -> None:
    three = [said("a", 1), said("b", 3), said("a again", 5)]
    verdicts = (judged("a", "b", CHANGES), judged("a", "a again", SAME))
    assert statuses(4, three, *verdicts) == {"a": "superseded", "b": "current"}
    later = at(9, three, *verdicts)
    assert {name: str(fact.status) for name, fact in later.items()} == {"a": "current", "b": "superseded"}
    assert later["a"].support == 2
    assert later["b"].valid_to == day(5)


def test_a_restatement_adds_support_and_evidence_only() -> None:
    facts = at(9, [said("tea", 1), said("tea again", 4)], judged("tea", "tea again", SAME))
    assert list(facts) == ["tea"]
    assert (facts["tea"].support, len(facts["tea"].evidence)) == (2, 2)
    assert facts["tea"].assertion_ids == ("tea", "tea again")


def test_a_correction_takes_the_whole_interval_of_what_was_wrong() -> None:
    pair = [said("friday", 1), said("saturday", 4)]
    facts = at(9, pair, judged("friday", "saturday", CORRECTS))
    assert facts["friday"].status is Status.SUPERSEDED
    assert facts["saturday"].valid_from == day(1)
    assert statuses(2, pair, judged("friday", "saturday", CORRECTS)) == {
        "friday": "superseded",
        "saturday": "current",
    }


def test_a_correction_of_a_correction_brings_the_first_back() -> None:
    three = [said("tuesday", 1), said("wednesday", 2), said("tuesday after all", 3)]
    verdicts = (
        judged("tuesday", "wednesday", CORRECTS),
        judged("wednesday", "tuesday after all", CORRECTS),
        judged("tuesday", "tuesday after all", SAME),
    )
    assert statuses(9, three, *verdicts) == {"tuesday": "current", "wednesday": "superseded"}


def test_a_correction_takes_the_place_of_what_it_puts_right() -> None:
    """ "I moved to Linz" - "Wels, I meant": Graz is over all the same."""
    three = [said("graz", 1), said("linz", 3), said("wels", 5)]
    verdicts = (judged("graz", "linz", CHANGES), judged("linz", "wels", CORRECTS))
    facts = at(9, three, *verdicts)
    assert {name: str(fact.status) for name, fact in facts.items()} == {
        "graz": "superseded",
        "linz": "superseded",
        "wels": "current",
    }
    assert facts["graz"].valid_to == facts["wels"].valid_from == day(3)
    still = [*verdicts, judged("graz", "wels", BESIDE)]
    assert statuses(9, three, *still)["graz"] == "current"


def test_narrowing_retires_the_broader() -> None:
    facts = statuses(9, [said("quick", 1), said("25 minutes", 4)], judged("quick", "25 minutes", NARROWS))
    assert facts == {"quick": "superseded", "25 minutes": "current"}


@pytest.mark.parametrize("repeats", ["quick", "25 minutes"])
def test_restating_the_broader_never_retires_the_narrower(repeats: str) -> None:
    three = [said("quick", 1), said("25 minutes", 4), said("quick again", 6)]
    verdicts = (judged("quick", "25 minutes", NARROWS), judged(repeats, "quick again", SAME))
    assert statuses(9, three, *verdicts) == {"quick": "superseded", "25 minutes": "current"}


def test_the_broader_does_not_come_back_when_the_narrower_is_over() -> None:
    """ "I work at the mill", then "I work at the mill until the 8th": on the 9th nobody works there."""
    pair, verdict = [said("mill", 1), said("mill until 8", 4, until=8)], judged("mill", "mill until 8", NARROWS)
    assert statuses(6, pair, verdict) == {"mill": "superseded", "mill until 8": "current"}
    assert statuses(9, pair, verdict) == {"mill": "superseded", "mill until 8": "expired"}


@pytest.mark.parametrize("on", [3, 12, 16, 25])
def test_a_vague_plan_is_not_told_beside_its_exact_day(on: int) -> None:
    """ "We move in the second half", then "we move on the 15th": the other days are no days of a move."""
    pair = [said("some day", 1, since=10, until=20), said("the 15th", 2, since=15, until=15)]
    assert statuses(on, pair, judged("some day", "the 15th", NARROWS))["some day"] == "superseded"


def test_a_broader_statement_holds_until_the_narrower_begins() -> None:
    pair = [said("mill", 1), said("mill, mornings", 4, since=8)]
    facts = at(6, pair, judged("mill", "mill, mornings", NARROWS))
    assert (facts["mill"].status, facts["mill"].valid_to) == (Status.CURRENT, day(8))


def test_what_is_repeated_less_exactly_ends_with_the_narrower() -> None:
    three = [said("mill", 1), said("mill until 8", 4, until=8), said("mill again", 6)]
    verdicts = [judged("mill", "mill until 8", NARROWS), judged("mill", "mill again", SAME)]
    assert statuses(9, three, *verdicts) == {"mill": "superseded", "mill until 8": "expired"}
    later = [*three[:2], said("mill again", 9)]
    assert statuses(9, later, *verdicts)["mill"] == "current", "said after the end, it is new"


def test_a_retraction_ends_and_shows_nothing_of_its_own() -> None:
    pair = [said("diet", 1), said("no diet", 4, act=SpeechAct.RETRACT)]
    assert statuses(9, pair, judged("diet", "no diet", RETRACTS)) == {"diet": "retracted"}
    assert statuses(2, pair, judged("diet", "no diet", RETRACTS)) == {"diet": "current"}


def test_said_again_after_a_retraction_it_holds_again() -> None:
    three = [said("diet", 1), said("no diet", 4, act=SpeechAct.RETRACT), said("diet again", 6)]
    verdicts = (judged("diet", "no diet", RETRACTS), judged("diet", "diet again", SAME))
    assert statuses(5, three, *verdicts) == {"diet": "retracted"}
    assert statuses(9, three, *verdicts) == {"diet": "current"}


def test_withdrawing_the_new_value_does_not_bring_back_the_old() -> None:
    three = [said("graz", 1), said("linz", 3), said("not linz", 5, act=SpeechAct.RETRACT)]
    verdicts = (judged("graz", "linz", CHANGES), judged("linz", "not linz", RETRACTS))
    assert statuses(9, three, *verdicts) == {"graz": "superseded", "linz": "retracted"}


def test_a_fact_with_an_end_expires_without_anyone_saying_so() -> None:
    stairs = said("no stairs", 1, until=20)
    assert statuses(19, [stairs]) == {"no stairs": "current"}
    assert statuses(20, [stairs]) == {"no stairs": "current"}
    assert statuses(21, [stairs]) == {"no stairs": "expired"}


def test_what_holds_for_a_while_gives_the_time_after_back() -> None:
    pair = [said("aisle", 1), said("window on this trip", 5, since=10, until=15)]
    verdict = judged("aisle", "window on this trip", CHANGES)
    assert statuses(7, pair, verdict)["aisle"] == "current"
    assert statuses(12, pair, verdict) == {"aisle": "superseded", "window on this trip": "current"}
    assert statuses(20, pair, verdict) == {"aisle": "current", "window on this trip": "expired"}


def test_an_announced_change_is_current_and_the_old_value_holds_until_then() -> None:
    pair = [said("graz", 1), said("linz from 20 January", 5, since=20)]
    verdict = judged("graz", "linz from 20 January", CHANGES)
    facts = at(9, pair, verdict)
    assert {name: str(fact.status) for name, fact in facts.items()} == {
        "graz": "current",
        "linz from 20 January": "current",
    }
    assert facts["linz from 20 January"].valid_from == day(20)
    assert facts["graz"].valid_to == day(20)
    assert statuses(25, pair, verdict) == {"graz": "superseded", "linz from 20 January": "current"}


def test_an_announcement_taken_back_in_time_leaves_the_old_value() -> None:
    three = [said("graz", 1), said("linz from 20", 5, since=20), said("no move", 7, act=SpeechAct.RETRACT)]
    verdicts = (judged("graz", "linz from 20", CHANGES), judged("linz from 20", "no move", RETRACTS))
    assert statuses(30, three, *verdicts) == {"graz": "current", "linz from 20": "retracted"}


def test_an_announcement_can_be_corrected() -> None:
    three = [said("graz", 1), said("linz from 20", 5, since=20), said("linz from 25", 7, since=25)]
    verdicts = (
        judged("graz", "linz from 20", CHANGES),
        judged("graz", "linz from 25", CHANGES),
        judged("linz from 20", "linz from 25", CORRECTS),
    )
    assert statuses(22, three, *verdicts)["graz"] == "current"
    assert statuses(26, three, *verdicts) == {
        "graz": "superseded",
        "linz from 20": "superseded",
        "linz from 25": "current",
    }


def test_repeating_an_announcement_does_not_bring_it_forward() -> None:
    three = [said("graz", 1), said("linz from 20", 5, since=20), said("linz soon", 7)]
    verdicts = (judged("graz", "linz from 20", CHANGES), judged("linz from 20", "linz soon", SAME))
    assert at(9, three, *verdicts)["linz from 20"].valid_from == day(20)
    assert statuses(9, three, *verdicts)["graz"] == "current"


def test_repeating_what_has_an_end_does_not_make_it_endless() -> None:
    pair = [said("no stairs", 1, until=20), said("still no stairs", 10)]
    assert statuses(25, pair, judged("no stairs", "still no stairs", SAME)) == {"no stairs": "expired"}


def test_speaking_of_what_is_over_does_not_bring_it_back() -> None:
    pair = [said("porto from 10 to 14", 1, since=10, until=14), said("porto was lovely", 20)]
    verdict = judged("porto from 10 to 14", "porto was lovely", SAME)
    assert statuses(25, pair, verdict) == {"porto from 10 to 14": "expired"}


def test_the_past_retires_nothing() -> None:
    pair = [said("graz", 5), said("porto in december", 8, since=-30, until=-1)]
    assert statuses(9, pair, judged("graz", "porto in december", CHANGES)) == {
        "graz": "current",
        "porto in december": "expired",
    }


@pytest.mark.parametrize(("relation", "status"), [(CHANGES, "current"), (CORRECTS, "superseded")])
def test_what_is_limited_to_a_project_changes_nothing_general_but_may_correct_it(
    relation: Relation, status: str
) -> None:
    general, limited = said("tabs", 1), replace(said("spaces", 4), limited_to="the parser")
    shown = statuses(9, [general, limited], judged("tabs", "spaces", relation))
    assert shown == {"tabs": status, "spaces": "current"}


@pytest.mark.parametrize(
    "later",
    [
        replace(said("aisle", 5), time_is_guess=True),
        replace(said("aisle", 5), authority=Authority.APPLICATION),
        replace(said("aisle", 5), speaker="tom"),
        replace(said("aisle", 5), subject="tom"),
    ],
    ids=["guessed time", "lower authority", "another person's preference", "another subject"],
)
def test_a_refused_retirement_leaves_both_standing_and_contested(later: Assertion) -> None:
    facts = at(9, [said("window", 1), later], judged("window", "aisle", CHANGES))
    assert {name: str(fact.status) for name, fact in facts.items()} == {"window": "contested", "aisle": "contested"}
    assert facts["window"].contested_by == ("aisle",)


def test_verdicts_on_what_is_not_given_are_left_out() -> None:
    assert statuses(9, [said("window", 1)], judged("window", "gone", CHANGES)) == {"window": "current"}


def test_a_verdict_against_the_order_of_saying_is_an_error() -> None:
    with pytest.raises(ValueError, match="was not said before"):
        at(9, [said("window", 1), said("aisle", 5)], judged("aisle", "window", CHANGES))


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Assertion], list[Verdict]]:
    """Any statements and retractions, ties and validity included, with any verdicts between them."""
    count = draw(st.integers(1, 9))
    assertions = []
    for number in range(count):
        on = draw(st.integers(1, 12))
        since = draw(st.none() | st.integers(1, 20))
        until = draw(st.none() | st.integers(since or 1, 30))
        act = draw(st.sampled_from([SpeechAct.STATE, SpeechAct.STATE, SpeechAct.STATE, SpeechAct.RETRACT]))
        assertions.append(said(f"a{number}", on, since=since, until=until, act=act))
    assertions.sort(key=lambda assertion: assertion.order)
    verdicts = []
    for index, later in enumerate(assertions):
        for earlier in assertions[:index]:
            relation = draw(st.none() | st.sampled_from(list(Relation)))
            if relation is not None and earlier.act is SpeechAct.STATE:
                verdicts.append(judged(earlier.id, later.id, relation))
    return assertions, verdicts


@given(histories(), st.randoms(use_true_random=False), st.integers(1, 40))
def test_the_order_of_arrival_changes_nothing(
    history: tuple[list[Assertion], list[Verdict]], shuffle: random.Random, on: int
) -> None:
    """A backfill delivers old sessions after new ones; today's facts must not care."""
    assertions, verdicts = history
    expected = timeline(assertions, verdicts, day(on))
    shuffle.shuffle(assertions)
    shuffle.shuffle(verdicts)
    assert timeline(assertions, verdicts, day(on)) == expected


@given(histories(), st.integers(1, 40))
def test_every_statement_said_by_then_is_in_exactly_one_fact(
    history: tuple[list[Assertion], list[Verdict]], on: int
) -> None:
    assertions, verdicts = history
    facts = timeline(assertions, verdicts, day(40))
    shown = [assertion_id for fact in facts for assertion_id in fact.assertion_ids]
    assert sorted(shown) == sorted(assertion.id for assertion in assertions if assertion.act is SpeechAct.STATE)
    assert {fact.id for fact in timeline(assertions, verdicts, day(on))} <= {fact.id for fact in facts}


@given(histories(), st.integers(1, 40))
def test_without_a_retiring_verdict_nothing_is_retired(history: tuple[list[Assertion], list[Verdict]], on: int) -> None:
    assertions, _ = history
    assert {fact.status for fact in timeline(assertions, [], day(on))} <= {Status.CURRENT, Status.EXPIRED}


@pytest.mark.parametrize(
    "doubtful", [{"time_is_guess": True}, {"authority": Authority.AGENT}, {"limited_to": "weekdays"}]
)
def test_what_may_not_narrow_absorbs_no_restatement_either(doubtful: dict[str, Any]) -> None:
    narrow = replace(said("25 minutes", 2), **doubtful)
    four = [said("quick", 1), narrow, said("not quick", 3, act=SpeechAct.RETRACT), said("quick again", 4)]
    verdicts = (
        judged("quick", "25 minutes", NARROWS),
        judged("quick", "not quick", RETRACTS),
        judged("quick", "quick again", SAME),
    )
    assert at(9, four, *verdicts)["quick"].is_served


def test_what_is_absorbed_names_what_absorbed_it() -> None:
    three = [said("25 minutes", 1), said("quick", 3), said("25 minutes again", 9)]
    verdicts = (judged("quick", "25 minutes again", NARROWS), judged("25 minutes", "25 minutes again", SAME))
    assert at(12, three, *verdicts)["quick"].retired_by == "25 minutes"


def test_a_chain_of_narrowings_does_not_depend_on_the_order_of_its_verdicts() -> None:
    """broad < middle < narrow; the restatement of broad meets middle as it stood before it was absorbed itself."""
    five = [said("n", 1), said("b", 4), said("m", 5), said("b again", 7), said("n again", 8)]
    verdicts = [
        judged("b", "m", NARROWS),
        judged("b", "b again", SAME),
        judged("m", "n again", NARROWS),
        judged("n", "n again", SAME),
    ]
    assert timeline(five, verdicts, day(12)) == timeline(five, verdicts[::-1], day(12))


def test_a_rival_is_named_by_the_statement_that_is_left_of_it() -> None:
    four = [said("graz", 1), said("gone", 2, act=SpeechAct.ERASE), said("graz again", 3)]
    four.append(replace(said("linz", 4), time_is_guess=True))
    verdicts = (
        judged("graz", "gone", RETRACTS),
        judged("graz", "graz again", SAME),
        judged("graz again", "linz", CHANGES),
    )
    assert at(9, four, *verdicts)["linz"].contested_by == ("graz again",)
