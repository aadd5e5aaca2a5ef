"""What each figure of the scorecard counts, on a handful of facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.evaluation.scorer import Score, score_facts, score_json, total_score
from afterword.facts.assertions import Kind
from afterword.facts.fact import Fact, Status
from scenarios import fact, gold, moved, scenario

GRAZ, LINZ = fact("The user lives in Graz.", Status.SUPERSEDED), fact("The user lives in Linz.")
MOSER = fact("The user's dentist is Dr Moser.")


def shares(*facts: Fact) -> dict[str, tuple[int, int]]:
    return {name: (share.n, share.of) for name, share in score_facts(scenario(), facts).shares.items()}


def test_a_store_that_got_it_right_scores_full() -> None:
    figures = shares(GRAZ, LINZ, MOSER)
    assert figures["fact_recall"] == (3, 3)
    assert figures["current_recall"] == (2, 2)
    assert figures["precision"] == (3, 3)
    assert figures["update_correct"] == figures["update_of_all"] == (1, 1)
    assert figures["unmatched"] == (0, 2)
    assert figures["not_facts_stored"] == (0, 1)


def test_an_empty_store_earns_nothing_and_every_gold_fact_still_counts() -> None:
    figures = shares()
    assert figures["fact_recall"] == (0, 3)
    assert figures["current_recall"] == (0, 2)
    assert figures["update_of_all"] == (0, 1)
    assert figures["update_correct"] == (0, 0)
    assert [miss["gold"] for miss in score_facts(scenario(), []).misses["missed"]] == ["home-old", "home", "dentist"]


def test_an_old_value_that_stays_current_is_no_update() -> None:
    score = score_facts(scenario(), [replace(GRAZ, status=Status.CURRENT), LINZ])
    assert score.shares["update_correct"] == (0, 1)
    assert [miss["gold"] for miss in score.misses["stale"]] == ["home-old"]


def test_a_contested_fact_is_not_current() -> None:
    assert shares(replace(LINZ, status=Status.CONTESTED))["current_recall"] == (0, 2)


def test_what_is_still_true_but_retired_is_wrongly_retired() -> None:
    score = score_facts(scenario(), [replace(LINZ, status=Status.SUPERSEDED)])
    assert score.shares["wrongly_retired"] == (1, 2)
    assert score.misses["wrongly_retired"][0]["stored"] == [["superseded", LINZ.statement]]


def test_a_not_fact_counts_while_it_is_current_and_is_never_precise() -> None:
    rome = fact("Ana, the sister who knows Moser, lives in Rome.")
    assert shares(rome)["not_facts_stored"] == (1, 1)
    assert shares(rome)["precision"] == (0, 1)
    assert shares(replace(rome, status=Status.RETRACTED))["not_facts_stored"] == (0, 1)


def test_what_says_the_same_twice_is_a_repetition_and_what_says_more_is_kept() -> None:
    both = fact("The user lives in Linz and has Dr Moser as a dentist.")
    score = score_facts(scenario(), [LINZ, MOSER, both])
    assert score.duplicates == 2
    assert [miss["statement"] for miss in score.misses["duplicates"]] == [LINZ.statement, MOSER.statement]


@pytest.mark.parametrize(
    ("quote", "session_id", "verbatim", "by_a_person"),
    [
        ("I live  in\nGraz.", "one", 1, 1),
        ("Noted.", "one", 1, 0),
        ("I live in Wels.", "one", 0, 0),
        ("I live in Graz.", "two", 0, 0),
        ("", "one", 0, 0),
    ],
)
def test_evidence_is_looked_up_where_it_says(quote: str, session_id: str, verbatim: int, by_a_person: int) -> None:
    figures = shares(fact("x", quote=quote, session_id=session_id))
    assert (figures["evidence_ok"][0], figures["grounded_in_user"][0]) == (verbatim, by_a_person)


def test_a_fact_without_evidence_is_not_grounded() -> None:
    assert shares(replace(MOSER, evidence=()))["evidence_ok"] == (0, 1)


def test_kind_and_last_day_count_for_what_was_stored() -> None:
    scenario_json = moved()
    scenario_json["gold"]["facts"] = [
        gold("pass", "A pass until May.", "pass", status="expired", valid_to="2026-05-31")
    ]
    ends = datetime(2026, 5, 31, 23, 59, 59, tzinfo=UTC)
    right = score_facts(scenario(scenario_json), [fact("A pass.", Status.EXPIRED, valid_to=ends)])
    wrong = score_facts(scenario(scenario_json), [fact("A pass.", Status.EXPIRED, kind=Kind.DECISION)])
    assert [right.shares[name] for name in ("kind_correct", "valid_to_correct")] == [(1, 1), (1, 1)]
    assert [wrong.shares[name] for name in ("kind_correct", "valid_to_correct")] == [(0, 1), (0, 1)]


def test_what_was_to_be_forgotten_must_be_gone_and_is_no_recall() -> None:
    scenario_json = moved()
    scenario_json["gold"]["facts"] = [gold("secret", "The user plans a party.", "party", status="retracted")]
    stored, gone = score_facts(scenario(scenario_json), [fact("A party.")]), score_facts(scenario(scenario_json), [])
    assert (stored.shares["retracted_gone"], gone.shares["retracted_gone"]) == ((0, 1), (1, 1))
    assert stored.shares["fact_recall"] == gone.shares["fact_recall"] == (0, 0)


FACTS = st.lists(st.builds(replace, st.sampled_from([GRAZ, LINZ, MOSER]), status=st.sampled_from(Status)), max_size=6)


@given(st.lists(FACTS, max_size=4))
def test_a_total_is_the_sum_of_its_scenarios(stores: list[list[Fact]]) -> None:
    scores = [score_facts(scenario(), facts) for facts in stores]
    whole = total_score(scores)
    assert whole.facts == sum(map(len, stores))
    for name, share in whole.shares.items():
        assert share == tuple(sum(score.shares[name][side] for score in scores) for side in (0, 1))


@given(FACTS)
def test_no_share_leaves_its_bounds_and_every_share_is_told_to_machines(facts: list[Fact]) -> None:
    score: Score = score_facts(scenario(), facts)
    assert all(0 <= share.n <= share.of for share in score.shares.values())
    score_as_json = score_json(score)
    assert all(score_as_json[name]["of"] == share.of for name, share in score.shares.items())
