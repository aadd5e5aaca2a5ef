"""Parts of a sentence that end, statements that are continued, and exceptions: what is told on which day."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from afterword.facts.assertions import Assertion, Authority, Extent, Relation, SpeechAct, Verdict
from afterword.facts.fact import Fact
from afterword.facts.validity.timeline import timeline
from afterword.facts.validity.wording import remainder_fault
from histories import statement

Day = tuple[int, int]
CHANGES, CORRECTS, RETRACTS = Relation.CHANGES, Relation.CORRECTS, Relation.RETRACTS
CONTINUES, EXCEPTS = Relation.CONTINUES, Relation.EXCEPTS


def midnight(day: Day) -> datetime:
    return datetime(2026, *day, tzinfo=UTC)


def said(
    name: str,
    on: Day,
    sentence: str,
    *,
    value: str = "",
    since: Day | None = None,
    until: Day | None = None,
    act: SpeechAct = SpeechAct.STATE,
    attribute: str = "work",
    authority: Authority = Authority.STATED,
) -> Assertion:
    return replace(
        statement(0, f"s-{name}", 1, 0),
        id=name,
        act=act,
        subject="Ada",
        attribute=attribute,
        value=value or name,
        statement=sentence,
        authority=authority,
        said_at=midnight(on) + timedelta(hours=12),
        valid_from=midnight(since) if since else None,
        valid_to=midnight(until) + timedelta(days=1, microseconds=-1) if until else None,
    )


def judged(
    earlier: str, later: str, relation: Relation, remainder: str | None = None, extent: Extent | None = None
) -> Verdict:
    return Verdict(earlier, later, relation, "because", "test", remainder=remainder, extent=extent)


def told(fact: Fact) -> str:
    return " / ".join([fact.statement, *(exception.statement for exception in fact.exceptions)])


def continued(later: Assertion) -> str:
    """What is told once a later statement continues the trial: its sentence, with the terms that it lacks."""
    return f"{later.statement} ({TRIAL.statement})"


@dataclass(frozen=True)
class Case:
    """What was said and judged, and what is told on a day: the sentences, each with its exceptions."""

    name: str
    statements: Sequence[Assertion]
    verdicts: Sequence[Verdict]
    told: Mapping[Day, set[str]]


POTTER = said("potter", (1, 1), "Ada is a potter with a workshop in Freiburg.", value="potter, workshop in Freiburg")
WORKSHOP = said("Emmendingen", (3, 1), "Ada's workshop is in Emmendingen.", attribute="workshop")
SHOP = "Ada is a potter with a workshop."
PAINTER = said("painter", (5, 1), "Ada is a painter.")
MOVED = judged("potter", "Emmendingen", CHANGES, SHOP)
PAINTS = judged("potter", "painter", CHANGES, "Ada with a workshop in Freiburg.")
HOURS = said("9 to 6", (1, 1), "Ada's shop is open Monday to Friday 9 to 6.", attribute="hours")
LATE = said("until 8", (2, 1), "On Wednesdays Ada's shop is open until 8.", attribute="hours", until=(8, 31))
TO_SEVEN = said("10 to 7", (4, 1), "Ada's shop is open Monday to Friday 10 to 7.", attribute="hours")
OFF = said("no late", (4, 1), "The late Wednesdays are over.", act=SpeechAct.RETRACT, attribute="hours")
TRIAL = said("trial", (1, 1), "On Wednesdays Ada teaches until 8.", until=(3, 31))
FOR_GOOD = said("for good", (3, 10), "The Wednesday evenings stay for good.")
TO_JUNE = said("June", (3, 10), "The trial is extended until June.", since=(4, 1), until=(6, 30))
TRIP = said("trip", (1, 1), "Ada skis in Jaca at Whitsun, half board.", since=(5, 27), until=(5, 31))
TRIP_MOVED = said("moved", (2, 10), "The trip moves to June.", since=(6, 3), until=(6, 8))
JACA = "Ada skis in Jaca, half board."

WEDDING = said("wedding", (5, 1), "Ada marries Bo on 12 September in town.", since=(9, 12), until=(9, 12))
MOVED_WEDDING = said("later", (7, 5), "Ada marries on 19 September.", since=(9, 19), until=(9, 19))
MOVED_AGAIN = said("again", (7, 9), "Ada marries on 26 September.", since=(9, 26), until=(9, 26))
MARRIES = "Ada marries Bo in town."
AU_PAIR = said(
    "September", (5, 18), "Itziar is Ada's au pair from 1 September until 10 December.", since=(9, 1), until=(12, 10)
)
CHAPTER = said("goes", (1, 22), "Chapter 3 goes to Lee on 16 February.", until=(2, 16))

CASES = [
    Case(
        "one part of a sentence changes",
        (POTTER, WORKSHOP),
        (MOVED,),
        {(2, 1): {POTTER.statement}, (4, 1): {SHOP, WORKSHOP.statement}},
    ),
    Case(
        "two parts change one after the other",
        (POTTER, WORKSHOP, PAINTER),
        (MOVED, PAINTS),
        {
            (4, 1): {SHOP, WORKSHOP.statement},
            (6, 1): {"Ada with a workshop.", WORKSHOP.statement, PAINTER.statement},
        },
    ),
    Case(
        "what is left of a sentence is said again",
        (POTTER, WORKSHOP, replace(PAINTER, value="potter", statement="Ada works as a potter.")),
        (MOVED, judged("potter", "painter", Relation.SAME)),
        {(4, 1): {SHOP, WORKSHOP.statement}, (6, 1): {SHOP, WORKSHOP.statement}},
    ),
    Case(
        "the whole sentence is said again",
        (POTTER, WORKSHOP, replace(PAINTER, value="potter", statement=POTTER.statement)),
        (MOVED, judged("potter", "painter", Relation.SAME)),
        {(4, 1): {SHOP, WORKSHOP.statement}, (6, 1): {POTTER.statement}},
    ),
    Case(
        "all parts change",
        (POTTER, WORKSHOP, PAINTER),
        (judged("potter", "Emmendingen", CHANGES, "Ada is a potter."), PAINTS),
        {(4, 1): {"Ada is a potter.", WORKSHOP.statement}, (6, 1): {WORKSHOP.statement, PAINTER.statement}},
    ),
    Case(
        "a part was wrong from the start",
        (POTTER, WORKSHOP),
        (judged("potter", "Emmendingen", CORRECTS, SHOP),),
        {(2, 1): {SHOP}, (4, 1): {SHOP, WORKSHOP.statement}},
    ),
    Case(
        "a part is out for some days",
        (POTTER, replace(WORKSHOP, valid_from=midnight((8, 1)), valid_to=midnight((9, 1)))),
        (judged("potter", "Emmendingen", CHANGES, SHOP, extent=Extent.DAYS),),
        {
            (7, 1): {POTTER.statement, WORKSHOP.statement},
            (8, 5): {SHOP, WORKSHOP.statement},
            (9, 5): {POTTER.statement},
        },
    ),
    Case(
        "the days of a plan change",
        (WEDDING, MOVED_WEDDING),
        (judged("wedding", "later", CHANGES, MARRIES, Extent.WHOLE),),
        {(9, 19): {MARRIES, MOVED_WEDDING.statement}, (9, 20): set()},
    ),
    Case(
        "the days of a plan were wrong",
        (WEDDING, MOVED_WEDDING),
        (judged("wedding", "later", CORRECTS, MARRIES),),
        {(9, 19): {MARRIES, MOVED_WEDDING.statement}, (9, 20): set()},
    ),
    Case(
        "the days of a plan change twice",
        (WEDDING, MOVED_WEDDING, MOVED_AGAIN),
        (
            judged("wedding", "later", CHANGES, MARRIES, Extent.WHOLE),
            judged("wedding", "again", CHANGES, MARRIES, Extent.WHOLE),
            judged("later", "again", CHANGES, None, Extent.WHOLE),
        ),
        {(9, 26): {MARRIES, MOVED_AGAIN.statement}, (9, 27): set()},
    ),
    Case(
        "the last day of what has begun changes",
        (said("January", (1, 2), "Prof. Lee expects chapter 3 by 31 January.", until=(1, 31)), CHAPTER),
        (judged("January", "goes", CHANGES, "Prof. Lee expects chapter 3.", Extent.WHOLE),),
        {
            (1, 10): {"Prof. Lee expects chapter 3 by 31 January."},
            (2, 10): {"Prof. Lee expects chapter 3.", CHAPTER.statement},
            (2, 20): set(),
        },
    ),
    Case(
        "a part changes that is not the days",
        (said("both", (1, 2), "Ada tries Zot and Cit until 31 January.", until=(1, 31)), CHAPTER),
        (judged("both", "goes", CHANGES, "Ada tries Zot until 31 January.", Extent.WHOLE),),
        {(1, 25): {"Ada tries Zot until 31 January.", CHAPTER.statement}, (2, 10): {CHAPTER.statement}},
    ),
    Case(
        "a plan moves to other days, and what is left of its sentence moves with it",
        (TRIP, TRIP_MOVED),
        (judged("trip", "moved", CHANGES, JACA, Extent.WHOLE),),
        {
            (3, 1): {JACA, TRIP_MOVED.statement},
            (5, 28): {JACA, TRIP_MOVED.statement},
            (6, 5): {JACA, TRIP_MOVED.statement},
            (6, 9): set(),
        },
    ),
    Case(
        "the change of a part is taken back as never so",
        (POTTER, WORKSHOP, replace(PAINTER, act=SpeechAct.RETRACT)),
        (MOVED, judged("Emmendingen", "painter", CORRECTS)),
        {(6, 1): {POTTER.statement}},
    ),
    Case(
        "a trial is made permanent",
        (TRIAL, FOR_GOOD),
        (judged("trial", "for good", CONTINUES),),
        {(2, 1): {TRIAL.statement}, (3, 20): {continued(FOR_GOOD)}, (9, 1): {continued(FOR_GOOD)}},
    ),
    Case(
        "a trial is extended from the day after its end, and then made permanent",
        (TRIAL, TO_JUNE, replace(FOR_GOOD, said_at=midnight((6, 1)))),
        (judged("trial", "June", CONTINUES), judged("June", "for good", CONTINUES)),
        {(3, 20): {continued(TO_JUNE)}, (5, 1): {continued(TO_JUNE)}, (9, 1): {continued(FOR_GOOD)}},
    ),
    Case(
        "something without an end gets one",
        (replace(TRIAL, valid_to=None), TO_JUNE),
        (judged("trial", "June", CONTINUES),),
        {(5, 1): {continued(TO_JUNE)}, (7, 2): set()},
    ),
    Case(
        "a lower authority continues nothing",
        (TRIAL, replace(FOR_GOOD, authority=Authority.AGENT)),
        (judged("trial", "for good", CONTINUES),),
        {(3, 20): {TRIAL.statement, FOR_GOOD.statement}, (9, 1): {FOR_GOOD.statement}},
    ),
    Case(
        "an exception holds beside the rule until it ends",
        (HOURS, LATE),
        (judged("9 to 6", "until 8", EXCEPTS),),
        {
            (1, 5): {HOURS.statement},
            (3, 1): {f"{HOURS.statement} / {LATE.statement}", LATE.statement},
            (9, 5): {HOURS.statement},
        },
    ),
    Case(
        "an exception is withdrawn",
        (HOURS, LATE, OFF),
        (judged("9 to 6", "until 8", EXCEPTS), judged("until 8", "no late", RETRACTS)),
        {(3, 1): {f"{HOURS.statement} / {LATE.statement}", LATE.statement}, (5, 1): {HOURS.statement}},
    ),
    Case(
        "the rule is replaced, its exception goes on by itself",
        (HOURS, LATE, TO_SEVEN),
        (judged("9 to 6", "until 8", EXCEPTS), judged("9 to 6", "10 to 7", CHANGES)),
        {
            (3, 1): {f"{HOURS.statement} / {LATE.statement}", LATE.statement},
            (5, 1): {TO_SEVEN.statement, LATE.statement},
        },
    ),
    Case(
        "an exception of a rule that had been replaced before is told by itself",
        (HOURS, replace(LATE, said_at=midnight((4, 2))), TO_SEVEN),
        (judged("9 to 6", "until 8", EXCEPTS), judged("9 to 6", "10 to 7", CHANGES)),
        {(5, 1): {TO_SEVEN.statement, LATE.statement}},
    ),
    Case(
        "an exception of a rule that replaced another one is told with it",
        (HOURS, replace(LATE, said_at=midnight((4, 2))), TO_SEVEN),
        (
            judged("9 to 6", "until 8", EXCEPTS),
            judged("9 to 6", "10 to 7", CHANGES),
            judged("10 to 7", "until 8", EXCEPTS),
        ),
        {(5, 1): {f"{TO_SEVEN.statement} / {LATE.statement}", LATE.statement}},
    ),
    Case(
        "the rule is withdrawn, its exception is not",
        (HOURS, LATE, OFF),
        (judged("9 to 6", "until 8", EXCEPTS), judged("9 to 6", "no late", RETRACTS)),
        {(5, 1): {LATE.statement}},
    ),
]


def test_a_plan_whose_first_day_changes_begins_on_the_new_one() -> None:
    sooner = said("24 August", (7, 6), "Itziar comes on 24 August 2026.", since=(8, 24))
    verdict = judged("September", "24 August", CHANGES, "Itziar is Ada's au pair until 10 December.", Extent.WHOLE)
    facts = timeline((AU_PAIR, sooner), (verdict,), midnight((8, 1)))
    assert {fact.valid_from for fact in facts} == {midnight((8, 24))}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_told_on_a_day_in_whatever_order_it_is_handed_over(case: Case) -> None:
    for statements in itertools.permutations(case.statements):
        for verdicts in (case.verdicts, case.verdicts[::-1]):
            for day, expected in case.told.items():
                facts = timeline(statements, verdicts, midnight(day) + timedelta(hours=23))
                assert {told(fact) for fact in facts if fact.is_served} == expected, day


def test_what_is_left_of_a_moved_plan_is_told_with_its_new_days() -> None:
    verdict = judged("trip", "moved", CHANGES, JACA, Extent.WHOLE)
    trip = next(each for each in timeline((TRIP, TRIP_MOVED), [verdict], midnight((3, 1))) if each.id == "trip")
    assert (trip.statement, trip.valid_from, trip.valid_to) == (JACA, TRIP_MOVED.valid_from, TRIP_MOVED.valid_to)


def test_a_continued_statement_is_told_with_its_new_end() -> None:
    (fact,) = timeline((TRIAL, TO_JUNE), [judged("trial", "June", CONTINUES)], midnight((5, 1)))
    assert fact.valid_to == TO_JUNE.valid_to
    assert fact.valid_from == TRIAL.said_at
    assert fact.assertion_ids == ("trial", "June")


def test_the_value_of_a_reworded_fact_has_nothing_that_is_out() -> None:
    fact = next(each for each in timeline((POTTER, WORKSHOP), [MOVED], midnight((4, 1))) if each.id == "potter")
    assert "Freiburg" not in f"{fact.value} {fact.statement}"


@pytest.mark.parametrize(
    ("sentence", "remainder", "fault"),
    [
        (POTTER.statement, "Ada is a potter.", None),
        ("Ada sells cups, bowls and plates.", "Ada sells cups and bowls.", None),
        (POTTER.statement, "Ada is a thief.", "it has other words, or another order"),
        (
            "Ada prefers tea over coffee in the morning.",
            "Ada prefers coffee over tea.",
            "it has other words, or another order",
        ),
        (POTTER.statement, POTTER.statement, "it is not shorter"),
        ("Ada does not eat fish or meat.", "Ada does eat meat.", "it drops a negation"),
        ("Ada doesn't eat fish or meat.", "Ada eat meat.", "it drops a negation"),
        ("Ada is a potter and has no dog.", "Ada is a potter.", None),
        ("Ada, a potter, works in Freiburg.", "Ada is a potter.", None),
        ("The studio costs 950 kroner an hour, minimum 2 hours.", "The studio has a minimum of 2 hours.", None),
        ("Ada has one fair a month, with whatever is ready.", "Ada has fairs with whatever is ready.", None),
        ("Ada, not a potter, works in Freiburg.", "Ada is a potter.", "it drops a negation"),
        ("Ada has no dog and works in Freiburg.", "Ada has a dog.", "it drops a negation"),
        ("Ada no longer lives in Bern, but paints in Freiburg.", "Ada lives in Bern.", "it drops a negation"),
        ("Ada, a potter, works in Freiburg.", "Ada was a potter.", "it has other words, or another order"),
        (POTTER.statement, "Ada is.", "it leaves out nothing, or everything"),
        (
            "Ada is a potter in Emmendingen with a dog.",
            "Ada is a potter in Emmendingen.",
            "it has the value that changed",
        ),
    ],
)
def test_a_judge_may_only_leave_words_out_and_link_the_others(sentence: str, remainder: str, fault: str | None) -> None:
    assert remainder_fault(remainder, replace(POTTER, statement=sentence), WORKSHOP) == fault


def test_what_holds_for_all_stays_where_it_comes_to_hold_for_the_exception_too() -> None:
    general = replace(POTTER, statement="Everyone except Ben pays Ada in cash.", attribute="payment", value="in cash")
    no_exception = replace(WORKSHOP, statement="Ben pays Ada in cash too.", attribute="payment", value="in cash")
    left = "Everyone pays Ada in cash."
    assert remainder_fault(left, general, no_exception) is None
    assert remainder_fault(left, general, replace(no_exception, value="by card")) == "it has the value that changed"


@pytest.mark.parametrize("says_less", [True, False], ids=["a repetition", "another workshop"])
def test_who_says_a_change_again_takes_no_more_than_the_change_did(says_less: bool) -> None:
    again = replace(WORKSHOP, id="again", session_id="s-again", said_at=WORKSHOP.said_at + timedelta(days=3))
    whole = judged("potter", "again", CHANGES)
    repeated = [judged("Emmendingen", "again", Relation.SAME)] if says_less else []
    facts = timeline((POTTER, WORKSHOP, again), [MOVED, whole, *repeated], midnight((4, 1)))
    assert ("Ada is a potter with a workshop." in {fact.statement for fact in facts if fact.is_served}) == says_less


def test_a_remainder_that_says_something_else_is_ignored() -> None:
    lie = judged("potter", "Emmendingen", CHANGES, "Ada is a rich potter.")
    served = [fact for fact in timeline((POTTER, WORKSHOP), [lie], midnight((4, 1))) if fact.is_served]
    assert [fact.id for fact in served] == ["Emmendingen"]
