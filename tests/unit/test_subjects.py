"""Whom a name means: labels joined and parted by verdicts, and names that fit several people."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from afterword.facts.assertions import (
    PERSON,
    Assertion,
    Authority,
    Cue,
    Evidence,
    EvidenceKind,
    Kind,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.fact import Fact, Status
from afterword.facts.scopes import Scope, ScopeKind
from afterword.facts.validity.timeline import timeline
from afterword.recall.block import in_block_order, render_block_part

LENA = Scope.user("lena")
START = datetime(2026, 1, 1, tzinfo=UTC)


def about(subject: str, value: str, on: int, *, attribute: str = "work") -> Assertion:
    """A statement about someone, said on that day; its id is subject and value."""
    return Assertion(
        id=f"{subject} {value}",
        scope=LENA,
        session_id=f"s{on}",
        act=SpeechAct.STATE,
        kind=Kind.ENTITY,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=f"{subject}: {value}.",
        speaker="user",
        authority=Authority.STATED,
        said_at=START + timedelta(days=on),
        evidence=(Evidence(EvidenceKind.TURN, value, f"s{on}", 1, "user"),),
    )


def judged(
    earlier: Assertion, later: Assertion, relation: Relation, *, joins: bool = False, parts: bool = False
) -> Verdict:
    return Verdict(earlier.id, later.id, relation, "because", "model", joins, parts)


def facts(assertions: list[Assertion], *verdicts: Verdict) -> dict[str, Fact]:
    return {fact.id: fact for fact in timeline(assertions, verdicts, START + timedelta(days=60))}


PETRIK, ODUYA = about("Jan Petrik", "methane", 1), about("Jan Oduya", "nitrous oxide", 2)
JAN = about("Jan", "vegan", 3)


def test_a_first_name_that_fits_two_people_is_left_pending_and_told_to_nobody() -> None:
    fact = facts([PETRIK, ODUYA, JAN])[JAN.id]
    assert (fact.status, fact.is_served, fact.may_be) == (Status.PENDING, False, ("Jan Oduya", "Jan Petrik"))
    assert facts([PETRIK, JAN])[JAN.id].status is Status.CURRENT, "one Jan alone is no question"


def test_it_is_settled_by_a_verdict_that_joins_it_with_one_of_them() -> None:
    joined = judged(PETRIK, JAN, Relation.BESIDE, joins=True)
    assert facts([PETRIK, ODUYA, JAN], joined)[JAN.id].status is Status.CURRENT
    both = judged(ODUYA, JAN, Relation.BESIDE, joins=True)
    assert facts([PETRIK, ODUYA, JAN], joined, both)[JAN.id].status is Status.PENDING, "joined with both is a guess"


def test_a_join_of_an_open_name_holds_for_that_statement_alone() -> None:
    other = about("Jan", "moves to Graz", 4)
    held = facts([PETRIK, ODUYA, JAN, other], judged(PETRIK, JAN, Relation.BESIDE, joins=True))
    assert (held[JAN.id].status, held[other.id].status) == (Status.CURRENT, Status.PENDING)


def test_two_names_of_one_person_are_no_question() -> None:
    full = about("Jan P Petrik", "thesis", 5)
    spelled = about("Jan Petřik", "colloquium", 6)
    verdict = judged(PETRIK, spelled, Relation.SAME, joins=True)
    assert facts([PETRIK, spelled, JAN], verdict)[JAN.id].status is Status.CURRENT
    assert facts([PETRIK, full, JAN])[JAN.id].status is Status.CURRENT, "an initial makes no second full name"


@pytest.mark.parametrize("label", ["quillfmt", "Studio", "user"])
def test_what_is_no_name_of_a_person_is_never_pending(label: str) -> None:
    statements = [about(f"{label} 2.0", "wraps", 1), about(f"{label} A", "booked", 2), about(label, "open", 3)]
    assert {fact.status for fact in facts(statements).values()} == {Status.CURRENT}


def test_a_retirement_through_an_open_name_is_contested_until_it_is_known_who_is_meant() -> None:
    old, new = about("Jan Petrik", "lives in Brno", 3), about("Jan", "lives in Graz", 8)
    guess = judged(old, new, Relation.CHANGES)
    assert facts([PETRIK, ODUYA, old, new], guess)[old.id].status is Status.CONTESTED
    known = judged(old, new, Relation.CHANGES, joins=True)
    assert facts([PETRIK, ODUYA, old, new], known)[old.id].status is Status.SUPERSEDED


def test_a_join_spreads_to_every_statement_under_both_names() -> None:
    alias, later = about("Bear", "assistant", 2), about("Bear", "works Monday", 9)
    named = about("Bjørn Aasen", "works Tuesday", 1)
    joined = judged(named, alias, Relation.SAME, joins=True)
    held = facts([named, alias, later], joined, judged(named, later, Relation.CHANGES))
    assert held[named.id].status is Status.SUPERSEDED


def test_a_join_with_the_owner_never_spreads() -> None:
    """Much is filed under the owner's label: one sentence about a son, read as the user's, must not make them one."""
    son, driver = about("Oisín", "named driver", 1), about("user", "only driver, without Oisín", 5)
    age = about("Oisín", "is 21", 2)
    older = about("user", "is 50", 9)
    joined = judged(son, driver, Relation.CHANGES, joins=True)
    held = facts([son, age, driver, older], joined, judged(age, older, Relation.CHANGES))
    assert held[son.id].status is Status.SUPERSEDED
    assert held[age.id].status is Status.CONTESTED


def test_a_verdict_alone_gives_the_owner_no_other_name() -> None:
    bank, other = about("user", "Good Bank", 1), about("Evil Corp", "Evil Bank", 5)
    for relation in (Relation.CHANGES, Relation.CORRECTS, Relation.NARROWS):
        held = facts([bank, other], judged(bank, other, relation, joins=True))
        assert held[bank.id].status is Status.CONTESTED


def test_what_the_owner_looked_for_ends_the_search_under_another_name() -> None:
    sought = replace(about("user", "looking for a drummer", 1), statement="Hollow Pines are looking for a drummer.")
    found = replace(about("Mirembe", "drummer", 5), statement="Mirembe is the band's drummer; the search is over.")
    held = facts([sought, found], judged(sought, found, Relation.CHANGES, joins=True))
    assert (held[sought.id].status, held[found.id].status) == (Status.SUPERSEDED, Status.CURRENT)
    bassist = replace(found, value="bassist")
    held = facts([sought, bassist], judged(sought, bassist, Relation.CHANGES, joins=True))
    assert held[sought.id].status is Status.CONTESTED
    held = facts([sought, found], judged(sought, found, Relation.CHANGES))
    assert held[sought.id].status is Status.CONTESTED


def test_two_people_of_one_name_are_parted_and_neither_is_guessed() -> None:
    adult, child = about("Ines", "tech lead", 1), about("Ines", "seven years old", 5)
    assert {fact.status for fact in facts([adult, child]).values()} == {Status.CURRENT}
    parted = judged(adult, child, Relation.BESIDE, parts=True)
    assert {fact.status for fact in facts([adult, child], parted).values()} == {Status.PENDING}
    assert facts([adult, child], parted)[adult.id].may_be == ("Ines", "Ines")


def test_the_project_whose_memory_it_is_is_never_two() -> None:
    """A judge found two of one name in two facts beside each other: the project's code freeze was told to nobody."""
    project = Scope("default", ScopeKind.PROJECT, "Kestrel")
    freeze, beta = (
        replace(about("kestrel", value, on), scope=project) for value, on in (("code freeze", 1), ("beta", 5))
    )
    held = facts([freeze, beta], judged(freeze, beta, Relation.BESIDE, parts=True))
    assert {fact.status for fact in held.values()} == {Status.CURRENT}


def test_a_person_who_says_who_is_meant_settles_it() -> None:
    named = about("Jan Petrik", "vegan", 9)
    meant = Verdict(JAN.id, named.id, Relation.CORRECTS, "edited by a person", PERSON)
    held = facts([PETRIK, ODUYA, JAN, named], meant)
    assert (held[named.id].status, held[JAN.id].status) == (Status.CURRENT, Status.SUPERSEDED)


def test_what_names_the_subject_of_an_earlier_statement_may_end_it() -> None:
    """A company's fact and a person's were judged with two subjects: the owner that was became contested."""
    owned = replace(about("Larkfield", "Ada Moss", 1, attribute="owner"), statement="Larkfield belongs to Ada Moss.")
    sold = replace(about("Ben Ito", "Larkfield", 2, attribute="owns"), statement="Ben Ito bought Larkfield.")
    ended = facts([owned, sold], judged(owned, sold, Relation.CHANGES))
    assert (ended[owned.id].status, ended[sold.id].status) == (Status.SUPERSEDED, Status.CURRENT)


def test_two_subjects_that_do_not_name_each_other_stay_contested_and_both_are_told() -> None:
    owned = replace(about("Larkfield", "Ada Moss", 1, attribute="owner"), statement="Larkfield belongs to Ada Moss.")
    other = replace(about("Ben Ito", "the firm", 2, attribute="owns"), statement="Ben Ito bought the firm.")
    both = facts([owned, other], judged(owned, other, Relation.CHANGES))
    assert {fact.status for fact in both.values()} == {Status.CONTESTED}
    block = render_block_part(in_block_order(both.values()), label="user-1")
    assert owned.statement in block
    assert other.statement in block
    assert block.count("contested") == 2


def test_the_owner_is_ended_by_no_statement_that_has_the_word_user() -> None:
    mine = replace(about("user", "Oslo", 1, attribute="home"), statement="The user lives in Oslo.")
    other = replace(about("Ben Ito", "Rome", 2, attribute="home"), statement="Ben Ito, a user, lives in Rome.")
    assert facts([mine, other], judged(mine, other, Relation.CHANGES))[mine.id].is_served


@pytest.mark.parametrize(
    ("cue", "attribute", "value", "status"),
    [
        (Cue.CHANGE, "role", "release manager", Status.SUPERSEDED),
        (None, "role", "release manager", Status.CONTESTED),
        (Cue.CHANGE, "title", "release manager", Status.CONTESTED),
        (Cue.CHANGE, "role", "editor", Status.CONTESTED),
    ],
)
def test_what_somebody_now_has_ends_that_another_has_it(
    cue: Cue | None, attribute: str, value: str, status: Status
) -> None:
    held = about("user", "release manager of quill", 1, attribute="role")
    taken = replace(about("Ben Ito", value, 2, attribute=attribute), cue=cue)
    assert facts([held, taken], judged(held, taken, Relation.CHANGES))[held.id].status is status


def test_an_exception_ends_where_its_subject_has_another_name_now() -> None:
    """Who was set apart by a former name is no longer an exception."""
    rule = replace(
        about("school", "by the 10th", 1, attribute="payment"), statement="All but Arapey Bank pay by the 10th."
    )
    renamed = replace(about("Cerros Bank", "Cerros Bank", 2, attribute="name"), former_name="Arapey Bank")
    joins_in = replace(
        about("Cerros Bank", "monthly", 3, attribute="payment"), statement="Cerros Bank pays by the 10th, as all do."
    )
    told = facts([rule, renamed, joins_in], judged(rule, joins_in, Relation.CHANGES))
    assert told[rule.id].status is Status.SUPERSEDED
    alone = facts([rule, joins_in], judged(rule, joins_in, Relation.CHANGES))
    assert alone[rule.id].status is Status.CONTESTED
