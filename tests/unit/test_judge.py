"""The judge that needs no model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from afterword.extractors.rules import RulesJudge
from afterword.extractors.slot_relation import relation_by_slot
from afterword.facts.assertions import Assertion, Authority, Cue, Kind, Relation, SpeechAct
from afterword.facts.scopes import Scope


def said(on: int, attribute: str, value: str, *, subject: str = "user", act: SpeechAct = SpeechAct.STATE) -> Assertion:
    return Assertion(
        id=f"{on}-{value}",
        scope=Scope.user("lena"),
        session_id=f"s{on}",
        act=act,
        kind=Kind.ENTITY,
        subject=subject,
        attribute=attribute,
        value=value,
        statement=f"The {attribute} of {subject} is {value}.",
        speaker="user",
        authority=Authority.STATED,
        said_at=datetime(2026, 1, on, tzinfo=UTC),
        evidence=(),
    )


GRAZ, LINZ = said(1, "home", "Graz"), said(2, "home", "Linz")


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (GRAZ, replace(LINZ, value="graz "), Relation.SAME),
        (GRAZ, LINZ, Relation.CHANGES),
        (GRAZ, replace(LINZ, session_id="s1", cue=Cue.CORRECTION), Relation.CORRECTS),
        (GRAZ, replace(LINZ, cue=Cue.CORRECTION), Relation.CHANGES),
        (said(1, "language", "Dutch"), said(2, "language", "Irish"), None),
        (GRAZ, replace(LINZ, subject="Ines"), None),
        (GRAZ, replace(LINZ, attribute="job"), None),
        (GRAZ, said(2, "home", "", act=SpeechAct.RETRACT), Relation.RETRACTS),
        (GRAZ, said(2, "other", "Graz", act=SpeechAct.ERASE), Relation.RETRACTS),
        (GRAZ, said(2, "other", "Linz", act=SpeechAct.RETRACT), None),
        (said(1, "pet", "a cat"), said(2, "other", "cat", act=SpeechAct.RETRACT), None),
        (said(1, "home", "Graz", act=SpeechAct.RETRACT), LINZ, None),
    ],
    ids=[
        *("the same value", "one value at a time", "put right at once", "put right later", "several values"),
        *("someone else", "another side", "taken back", "taken back by name", "another taken back", "too short a name"),
        "after a retraction",
    ],
)
def test_slot_and_value_decide(earlier: Assertion, later: Assertion, expected: Relation | None) -> None:
    decided = relation_by_slot(earlier, later)
    assert (decided[0] if decided else None) is expected


def flight(said_on: int, flies_on: int, at_hour: str = "") -> Assertion:
    """Return a statement that is made on one day of January, about a flight on another day."""
    stated = replace(said(said_on, "flight_date", "flight"), statement=f"The flight is on {flies_on} January{at_hour}.")
    return replace(stated, valid_from=datetime(2026, 1, flies_on, tzinfo=UTC))


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (flight(1, 12), flight(2, 12), Relation.SAME),
        (flight(1, 12), flight(2, 14), Relation.CORRECTS),
        (flight(1, 12), flight(18, 30), Relation.CHANGES),
        (flight(1, 12), flight(18, 18), Relation.CHANGES),
        (flight(1, 12), flight(18, 14), Relation.SAME),
        (flight(1, 12, " at 10:00"), flight(2, 12), Relation.SAME),
        (flight(1, 12), flight(2, 12, " at 10:00"), Relation.CORRECTS),
        (flight(1, 12, " at 10:00"), flight(2, 12, " at 12:00"), Relation.CORRECTS),
        (flight(1, 12, " at 10:00"), flight(12, 12, " at 12:00"), Relation.CHANGES),
        (flight(1, 12, " at 10:00"), flight(18, 12, " at 12:00"), Relation.SAME),
    ],
    ids=[
        *("the same day", "moved before it came", "another one after it", "another one on its day"),
        *("another day of what is over", "without the hour", "with an hour", "at another hour"),
        *("at another hour of the day", "another hour of what is over"),
    ],
)
def test_another_day_or_hour_of_an_event_is_no_repetition(
    earlier: Assertion, later: Assertion, expected: Relation
) -> None:
    assert (relation_by_slot(earlier, later) or (None,))[0] is expected


async def test_what_the_rules_cannot_tell_gets_no_verdict_and_nothing_costs() -> None:
    verdicts, usage = await RulesJudge().judge([(GRAZ, LINZ), (GRAZ, replace(LINZ, attribute="job"))])
    assert [(one.earlier_id, one.later_id, one.judge) for one in verdicts] == [("1-Graz", "2-Linz", "rules-1")]
    assert usage.calls == 0
