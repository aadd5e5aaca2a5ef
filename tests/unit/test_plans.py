"""Plans that are changed, exceptions, and parts of a period: what holds on which day."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from afterword.facts.assertions import (
    PERSON,
    Assertion,
    Cue,
    Evidence,
    EvidenceKind,
    Extent,
    Relation,
    SpeechAct,
    Verdict,
)
from afterword.facts.validity.fact_history import FactHistory
from afterword.facts.validity.timeline import fact_histories
from histories import statement

Day = tuple[int, int]
"""Month and day of one year."""

CHANGES, RETRACTS, CORRECTS, SAME = Relation.CHANGES, Relation.RETRACTS, Relation.CORRECTS, Relation.SAME
WHOLE, DAYS = Extent.WHOLE, Extent.DAYS


def midnight(day: Day) -> datetime:
    return datetime(2026, *day, tzinfo=UTC)


def said(
    value: str, on: Day, since: Day | None = None, until: Day | None = None, act: SpeechAct = SpeechAct.STATE
) -> Assertion:
    """Return the statement of a value, said at noon of a day, about the days from one to another."""
    return replace(
        statement(0, f"s-{value}", 1, 0),
        id=value,
        act=act,
        value=value,
        statement=f"It is {value}.",
        said_at=midnight(on) + timedelta(hours=12),
        valid_from=midnight(since) if since else None,
        valid_to=midnight(until) + timedelta(days=1, microseconds=-1) if until else None,
    )


Judged = tuple[str, str] | tuple[str, str, Relation | Extent]


@dataclass(frozen=True)
class Case:
    """What was said, which of it is judged (a change where nothing else is named), and what holds on a day."""

    name: str
    statements: Sequence[Assertion]
    judged: Sequence[Judged]
    holds: Mapping[Day, str] = field(default_factory=dict)

    def verdicts(self) -> list[Verdict]:
        verdicts = []
        edits = {each.id for each in self.statements if each.evidence[0].kind is EvidenceKind.PERSON}
        for earlier, later, *word in self.judged:
            relation = word[0] if word and isinstance(word[0], Relation) else CHANGES
            extent = word[0] if word and isinstance(word[0], Extent) else None
            judge = PERSON if later in edits else "test"
            verdicts.append(Verdict(earlier, later, relation, "because", judge, extent=extent))
        return verdicts


OAXACA, KYOTO = said("Oaxaca", (3, 1), (5, 11), (5, 25)), said("Kyoto", (4, 1), (5, 18), (6, 1))
P10, P12 = said("p10", (1, 1)), said("p12", (3, 1), (5, 1))
GRAZ, OSLO = said("Graz", (1, 1)), said("Oslo", (3, 1), (5, 1))
VALENCIA, GUADALAJARA = said("Valencia", (3, 1), (9, 1)), said("Guadalajara", (4, 1), (10, 1))
ROME = said("Rome", (4, 1), (7, 1))
ROME_IN_JULY = said("Rome", (4, 1), (7, 1), (7, 31))
OPEN, CLOSED = said("open", (1, 1)), said("closed", (6, 1), (8, 1), (8, 14))
SUMMER = said("summer", (4, 1), (6, 1), (8, 31))
OPEN_AGAIN = said("open again", (7, 1))
EDITED = replace(said("open longer", (7, 1)), evidence=(Evidence(EvidenceKind.PERSON, "open longer"),))
CALLED_OFF = said("no Rome", (5, 20), act=SpeechAct.RETRACT)

CASES = [
    Case("a trip is moved", (OAXACA, KYOTO), [("Oaxaca", "Kyoto")], {(5, 14): "-", (5, 20): "Kyoto", (6, 10): "-"}),
    Case(
        "a price for one month after an announced price",
        (P10, P12, said("p15", (4, 1), (8, 1), (8, 31))),
        [("p10", "p12"), ("p10", "p15"), ("p12", "p15")],
        {(4, 15): "p10", (6, 1): "p12", (8, 10): "p15", (9, 10): "p12"},
    ),
    Case(
        "a week elsewhere after an announced move",
        (GRAZ, OSLO, said("Rome", (4, 1), (6, 8), (6, 14))),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Oslo", "Rome")],
        {(4, 15): "Graz", (5, 15): "Oslo", (6, 10): "Rome", (7, 1): "Oslo"},
    ),
    Case(
        "one meeting of an announced series on another day",
        (said("Mon", (6, 1), (9, 1)), said("Tue15", (7, 1), (9, 15), (9, 15))),
        [("Mon", "Tue15")],
        {(9, 7): "Mon", (9, 15): "Tue15", (9, 21): "Mon"},
    ),
    Case(
        "one meeting of a running series on another day, by the judge's word",
        (said("Mon", (1, 1)), said("Tue15", (9, 7), (9, 15), (9, 15))),
        [("Mon", "Tue15", DAYS)],
        {(9, 8): "Mon", (9, 15): "Tue15", (9, 21): "Mon"},
    ),
    Case(
        "an exception within a trip",
        (said("Crete", (6, 1), (8, 1), (8, 31)), said("Berlin", (7, 1), (8, 10), (8, 14))),
        [("Crete", "Berlin")],
        {(8, 5): "Crete", (8, 12): "Berlin", (8, 20): "Crete"},
    ),
    Case(
        "a plan in place of a plan",
        (GRAZ, VALENCIA, GUADALAJARA),
        [("Graz", "Valencia"), ("Graz", "Guadalajara"), ("Valencia", "Guadalajara")],
        {(8, 1): "Graz", (9, 15): "Graz", (10, 15): "Guadalajara"},
    ),
    Case(
        "a plan in place of a plan, not judged against what holds",
        (GRAZ, VALENCIA, GUADALAJARA),
        [("Graz", "Valencia"), ("Valencia", "Guadalajara")],
        {(8, 1): "Graz", (9, 15): "Graz"},
    ),
    Case(
        "steps of a price, by the judge's word",
        (P10, P12, said("p15", (4, 1), (7, 1))),
        [("p10", "p12"), ("p10", "p15"), ("p12", "p15", DAYS)],
        {(4, 15): "p10", (6, 1): "p12", (8, 10): "p15"},
    ),
    Case(
        "a plan without a date is replaced, by the judge's word",
        (said("Oaxaca", (3, 1)), KYOTO),
        [("Oaxaca", "Kyoto", WHOLE)],
        {(4, 15): "-", (5, 20): "Kyoto", (6, 10): "-"},
    ),
    Case(
        "an end brought forward",
        (said("till31", (3, 1), until=(3, 31)), said("till20", (3, 10), until=(3, 20))),
        [("till31", "till20")],
        {(3, 15): "till20", (3, 25): "-"},
    ),
    Case(
        "home earlier from a trip under way",
        (said("to31", (6, 1), (8, 1), (8, 31)), said("to20", (8, 10), (8, 1), (8, 20))),
        [("to31", "to20")],
        {(8, 15): "to20", (8, 25): "-"},
    ),
    Case(
        "a deadline brought forward",
        (said("may15", (1, 1), until=(5, 15)), said("mar31", (2, 1), until=(3, 31))),
        [("may15", "mar31")],
        {(3, 1): "mar31", (4, 15): "-"},
    ),
    Case(
        "a trip changed on the morning of its first day",
        (OAXACA, said("Kyoto", (5, 11), (5, 18), (6, 1))),
        [("Oaxaca", "Kyoto")],
        {(5, 11): "-", (5, 14): "-", (5, 20): "Kyoto"},
    ),
    Case(
        "the replacement of a plan is called off",
        (GRAZ, OSLO, ROME, CALLED_OFF),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Oslo", "Rome"), ("Rome", "no Rome", RETRACTS)],
        {(4, 15): "Graz", (6, 1): "Graz", (8, 1): "Graz"},
    ),
    Case(
        "a deadline without a date is moved",
        (said("march", (1, 1)), said("may15", (2, 1), (5, 15), (5, 15))),
        [("march", "may15")],
        {(3, 1): "-", (5, 15): "may15", (5, 20): "-"},
    ),
    Case(
        "the rest of a trial on other terms, by the judge's word",
        (said("till8", (6, 1), (9, 1), (12, 31)), said("till7", (7, 1), (11, 1))),
        [("till8", "till7", DAYS)],
        {(9, 15): "till8", (11, 15): "till7"},
    ),
    Case(
        "moved to earlier days",
        (said("Kyoto", (3, 1), (5, 18), (6, 1)), said("Oaxaca", (4, 1), (5, 11), (5, 25))),
        [("Kyoto", "Oaxaca")],
        {(5, 20): "Oaxaca", (5, 28): "-"},
    ),
    Case(
        "an exception is called off",
        (GRAZ, OSLO, ROME_IN_JULY, CALLED_OFF),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Oslo", "Rome", DAYS), ("Rome", "no Rome", RETRACTS)],
        {(4, 15): "Graz", (6, 1): "Oslo", (7, 15): "Oslo", (8, 15): "Oslo"},
    ),
    Case(
        "the replacement of a plan was never so",
        (GRAZ, OSLO, ROME, CALLED_OFF),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Oslo", "Rome"), ("Rome", "no Rome", CORRECTS)],
        {(4, 15): "Graz", (6, 1): "Oslo", (8, 1): "Oslo"},
    ),
    Case(
        "another plan was meant than the replacement",
        (GRAZ, OSLO, ROME, said("Milan", (4, 2), (7, 1))),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Oslo", "Rome"), ("Rome", "Milan", CORRECTS)],
        {(4, 15): "Graz", (6, 1): "Graz", (8, 1): "Milan"},
    ),
    Case(
        "some days elsewhere, in a place without an end",
        (said("Graz", (1, 1), (1, 1)), said("Rome", (4, 1), until=(4, 10))),
        [("Graz", "Rome")],
        {(3, 1): "Graz", (4, 5): "Rome", (5, 1): "Graz"},
    ),
    Case(
        "a general statement is repeated before its exception",
        (OPEN, CLOSED, OPEN_AGAIN),
        [("open", "closed"), ("open", "open again", SAME)],
        {(7, 20): "open", (8, 10): "closed", (8, 20): "open"},
    ),
    Case(
        "a general statement is repeated on the days of its exception",
        (OPEN, CLOSED, said("open again", (8, 5))),
        [("open", "closed", DAYS), ("open", "open again", SAME)],
        {(8, 2): "closed", (8, 10): "closed", (8, 20): "open"},
    ),
    Case(
        "a general statement is repeated before its exception is called off",
        (OPEN, CLOSED, OPEN_AGAIN, said("no holidays", (7, 5), act=SpeechAct.RETRACT)),
        [("open", "closed"), ("open", "open again", SAME), ("closed", "no holidays", RETRACTS)],
        {(7, 20): "open", (8, 10): "open", (8, 20): "open"},
    ),
    Case(
        "the exception to a repeated general statement is moved",
        (OPEN, CLOSED, OPEN_AGAIN, said("closed later", (7, 5), (8, 10), (8, 20))),
        [("open", "closed"), ("open", "open again", SAME), ("closed", "closed later"), ("open again", "closed later")],
        {(8, 5): "open", (8, 12): "closed later", (8, 25): "open"},
    ),
    Case(
        "a general statement is repeated and judged to change its exception",
        (OPEN, CLOSED, OPEN_AGAIN),
        [("open", "closed"), ("open", "open again", SAME), ("closed", "open again", WHOLE)],
        {(7, 20): "open", (8, 10): "closed", (8, 20): "open"},
    ),
    Case(
        "a general statement is repeated from which a case was set apart",
        (OPEN, CLOSED, OPEN_AGAIN),
        [("open", "closed", Relation.EXCEPTS), ("open", "open again", SAME), ("closed", "open again")],
        {(7, 20): "open", (8, 10): "closed, open", (8, 20): "open"},
    ),
    Case(
        "some days that were set apart are denied",
        (OPEN, CLOSED, replace(OPEN_AGAIN, cue=Cue.CHANGE)),
        [("open", "closed"), ("open", "open again", SAME), ("closed", "open again")],
        {(7, 20): "open", (8, 10): "open", (8, 20): "open"},
    ),
    Case(
        "a person edits a general statement after some days were set apart from it",
        (OPEN, CLOSED, EDITED),
        [("open", "closed"), ("open", "open longer", CORRECTS)],
        {(7, 20): "open longer", (8, 10): "closed", (8, 20): "open longer"},
    ),
    Case(
        "a general statement is repeated with the days of its exception",
        (OPEN, CLOSED, said("open again", (7, 1), (8, 1), (8, 31))),
        [("open", "closed"), ("open", "open again", SAME)],
        {(7, 20): "open", (8, 10): "open", (8, 20): "open"},
    ),
    Case(
        "a general statement with days of its own is repeated with them",
        (SUMMER, CLOSED, replace(SUMMER, id="again", value="again", said_at=midnight((7, 1)))),
        [("summer", "closed", DAYS), ("summer", "again", SAME)],
        {(7, 20): "summer", (8, 10): "closed", (8, 20): "summer"},
    ),
    Case(
        "a general statement is repeated with its last day, and judged to change its exception",
        (SUMMER, CLOSED, said("again", (7, 1), until=(8, 31))),
        [("summer", "closed", DAYS), ("summer", "again", SAME), ("closed", "again", WHOLE)],
        {(7, 20): "summer", (8, 10): "closed", (8, 20): "summer"},
    ),
    Case(
        "a general statement is repeated with its days from which a case was set apart",
        (SUMMER, CLOSED, said("again", (7, 1), (6, 1), (8, 31))),
        [("summer", "closed", Relation.EXCEPTS), ("summer", "again", SAME), ("closed", "again")],
        {(7, 20): "summer", (8, 10): "closed, summer", (8, 20): "summer"},
    ),
    Case(
        "a general statement is repeated with another last day",
        (SUMMER, CLOSED, said("again", (7, 1), (6, 1), (8, 10))),
        [("summer", "closed", DAYS), ("summer", "again", SAME)],
        {(7, 20): "summer", (8, 5): "summer", (8, 20): "summer"},
    ),
    Case(
        "a plan is replaced twice",
        (GRAZ, OSLO, ROME, said("Turin", (4, 10), (8, 1))),
        [("Graz", "Oslo"), ("Graz", "Rome"), ("Graz", "Turin"), ("Oslo", "Rome"), ("Rome", "Turin")],
        {(6, 1): "Graz", (7, 15): "Graz", (8, 15): "Turin"},
    ),
]


def held(histories: Sequence[FactHistory], day: Day) -> str:
    """Return the values that hold at the end of a day, `-` for none."""
    at = midnight(day) + timedelta(hours=23)
    holding = [history.lead.value for history in histories if any(span.holds_at(at) for span in history.spans)]
    return ", ".join(sorted(holding)) or "-"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_plan_holds_on_its_days_in_whatever_order_it_is_handed_over(case: Case) -> None:
    for statements in itertools.permutations(case.statements):
        for verdicts in (case.verdicts(), case.verdicts()[::-1]):
            histories = fact_histories(statements, verdicts)
            assert {day: held(histories, day) for day in case.holds} == case.holds
