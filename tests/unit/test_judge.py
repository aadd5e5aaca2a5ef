"""The judge that needs no model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from afterword.extractors.rules import RulesJudge
from afterword.extractors.slot_relation import relation
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
    decided = relation(earlier, later)
    assert (decided[0] if decided else None) is expected


async def test_what_the_rules_cannot_tell_gets_no_verdict_and_nothing_costs() -> None:
    verdicts, usage = await RulesJudge().judge([(GRAZ, LINZ), (GRAZ, replace(LINZ, attribute="job"))])
    assert [(one.earlier_id, one.later_id, one.judge) for one in verdicts] == [("1-Graz", "2-Linz", "rules-1")]
    assert usage.calls == 0
