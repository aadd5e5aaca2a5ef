"""What may no longer fit since another fact changed: it is pointed at, and nothing else is."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.facts.assertions import OWNER, Assertion, Relation, Verdict
from afterword.facts.dependents import dependents
from afterword.facts.validity.timeline import timeline
from dependent_cases import PREFERENCE, TODAY, WITH, WITHOUT, Case, Said, day, mine


@pytest.mark.parametrize("case", WITH, ids=lambda case: case.name)
def test_what_hangs_on_a_changed_fact_is_pointed_at(case: Case) -> None:
    listed = case.found()
    assert {dependent.fact.statement for dependent in listed} == {said.statement for said in case.flagged}
    assert {dependent.changed.statement for dependent in listed} == {case.old.statement}
    assert all(dependent.reason for dependent in listed)


@pytest.mark.parametrize("case", WITHOUT, ids=lambda case: case.name)
def test_what_does_not_hang_on_it_is_left_alone(case: Case) -> None:
    assert case.found() == []


GRAZ = mine("home", "Graz", "The user lives in Graz.")

LINZ = mine("home", "Linz", "The user lives in Linz.")

COMMUTE = mine("commute", "20 minutes", "The user's commute takes 20 minutes.")


def pointed_at(said: list[Assertion], *verdicts: tuple[str, str, Relation], at: datetime = TODAY) -> list[str]:
    facts = timeline(said, [Verdict(*pair, "", "rules-1") for pair in verdicts], at)
    return [dependent.fact.id for dependent in dependents(facts)]


MOVED = ("graz", "linz", Relation.CHANGES)

TWO_HOMES = [GRAZ.on(1, "graz"), LINZ.on(9, "linz")]


def test_what_was_said_again_since_the_change_fits() -> None:
    early, late = COMMUTE.on(2, "commute"), COMMUTE.on(20, "again")
    assert pointed_at([*TWO_HOMES, early], MOVED) == ["commute"]
    assert pointed_at([*TWO_HOMES, early, late], MOVED, ("commute", "again", Relation.SAME)) == []


def test_what_was_first_said_after_the_change_fits() -> None:
    assert pointed_at([*TWO_HOMES, COMMUTE.on(9, "commute")], MOVED) == []


def test_what_was_retired_itself_needs_no_review() -> None:
    other = mine("commute", "an hour", "The user's commute takes an hour.").on(20, "hour")
    said = [*TWO_HOMES, COMMUTE.on(2, "commute"), other]
    assert pointed_at(said, MOVED, ("commute", "hour", Relation.CHANGES)) == []


def test_an_announced_change_counts_from_its_day() -> None:
    """Until the day of the move the commute is what it was, also where it is told after the announcement."""
    said = [GRAZ.on(1, "graz"), LINZ.on(9, "linz", valid_from=day(30)), COMMUTE.on(12, "commute")]
    assert pointed_at(said, MOVED, at=day(20)) == []
    assert pointed_at(said, MOVED, at=day(40)) == ["commute"]


def test_what_was_told_for_the_new_value_fits() -> None:
    gym = mine("gym", "Donau", "The user has signed up for the gym Donau in Linz.").on(12, "gym")
    van = mine("van", "Saturday", "The user hired a van for the way from Graz to Linz.").on(12, "van")
    said = [GRAZ.on(1, "graz"), LINZ.on(9, "linz", valid_from=day(30)), gym, van]
    assert pointed_at(said, MOVED) == []


def test_what_held_when_it_was_said_and_holds_again_fits() -> None:
    back = (("graz", "linz", Relation.CHANGES), ("graz", "back", Relation.SAME), ("linz", "back", Relation.CHANGES))
    gym = mine("gym", "Donau", "The user's gym is Donau.").on(12, "gym")
    said = [*TWO_HOMES, GRAZ.on(20, "back"), COMMUTE.on(2, "commute"), gym]
    assert pointed_at(said, *back) == ["gym"]


def test_of_several_changes_of_one_slot_the_latest_is_named() -> None:
    wels = mine("home", "Wels", "The user lives in Wels.").on(20, "wels")
    verdicts = [Verdict(*MOVED, "", "rules-1"), Verdict("linz", "wels", Relation.CHANGES, "", "rules-1")]
    (dependent,) = dependents(timeline([*TWO_HOMES, wels, COMMUTE.on(2, "commute")], verdicts, TODAY))
    assert (dependent.changed.id, dependent.changed.valid_to) == ("linz", day(20))


def test_the_same_slot_is_the_business_of_the_judge() -> None:
    second = mine("home", "a hut near Graz", "The user also has a hut near Graz.").on(2, "hut")
    assert pointed_at([*TWO_HOMES, second], MOVED) == []


def test_a_value_that_is_denied_has_changed() -> None:
    """ "not vegetarian" holds every word of "vegetarian" and says the opposite."""
    diet = mine("diet", "vegetarian", "The user is vegetarian.").on(1, "yes")
    denied = mine("diet", "not vegetarian", "The user is not vegetarian.").on(9, "no")
    recipes = mine("recipes", "with tofu", "The user wants recipes with tofu.", PREFERENCE).on(2, "recipes")
    assert pointed_at([diet, denied, recipes], ("yes", "no", Relation.CHANGES)) == ["recipes"]


def test_an_adjective_is_no_name() -> None:
    minutes = Said(OWNER, "minutes_language", "Deutsch", "Die Nutzerin will Protokolle auf Deutsch.", PREFERENCE)
    english = Said(OWNER, "minutes_language", "Englisch", "Die Nutzerin will Protokolle auf Englisch.", PREFERENCE)
    formal = Said(OWNER, "salutation", "per Sie", "Die Nutzerin redet deutsche Kunden per Sie an.", PREFERENCE)
    said = [minutes.on(1, "old"), english.on(9, "new"), formal.on(2, "formal")]
    assert pointed_at(said, ("old", "new", Relation.CHANGES)) == []


def test_an_underscore_parts_words_as_a_blank_does() -> None:
    old = Said("user's_son", "school", "elm_house", "The user's_son goes to elm_house.")
    new = Said("user's son", "school", "oak_house", "The user's son goes to oak_house.")
    run = mine("school_run", "7:40", "The user does the school_run at 7:40.")
    letter = Said("user's son", "newsletter", "weekly", "The user's son brings the newsletter of elm_house home.")
    time = Said("user's son", "school ", "8:00", "The user's son has to be there at eight.")
    said = [old.on(1, "old"), run.on(2, "run"), letter.on(3, "letter"), time.on(4, "time"), new.on(9, "new")]
    assert pointed_at(said, ("old", "new", Relation.CHANGES)) == ["run", "letter"]
    spaced = Said("billing core", "data base", "MySQL", "billing core runs on MySQL.")
    other = Said("billing core", "data base", "Postgres", "billing core runs on Postgres.")
    same_slot = Said("billing_core", "data_base", "MySQL 8", "billing_core runs on MySQL 8.")
    said = [spaced.on(1, "old"), same_slot.on(2, "same slot"), other.on(9, "new")]
    assert pointed_at(said, ("old", "new", Relation.CHANGES)) == []


EVERYTHING_SAID = [said for case in WITH for said in (case.old, case.new, *case.flagged, *case.spared)]


@given(st.permutations(range(len(EVERYTHING_SAID))), st.data())
def test_only_what_is_served_is_pointed_at_and_the_order_given_changes_nothing(
    order: list[int], draws: st.DataObject
) -> None:
    said = [statement.on(number, str(number)) for number, statement in enumerate(EVERYTHING_SAID)]
    pairs = draws.draw(st.lists(st.tuples(*[st.integers(0, len(said) - 1)] * 2).filter(lambda pair: pair[0] < pair[1])))
    verdicts = [Verdict(str(earlier), str(later), Relation.CHANGES, "", "rules-1") for earlier, later in pairs]
    facts = timeline(said, verdicts, TODAY)
    listed = dependents(facts)
    assert all(dependent.fact.is_served and dependent.changed.valid_to for dependent in listed)
    assert all(dependent.fact.said_at < (dependent.changed.valid_to or TODAY) for dependent in listed)
    placed = {fact.id: fact for fact in facts}
    shuffled = [placed[str(number)] for number in order if str(number) in placed]
    assert {(dependent.fact.id, dependent.reason) for dependent in dependents(shuffled)} == {
        (dependent.fact.id, dependent.reason) for dependent in listed
    }
    if not pairs:
        assert listed == []
