"""A fact that other days interrupt is told with its own end, and with the days on which it does not hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from afterword.facts.assertions import Assertion, Extent, Relation, Verdict
from afterword.facts.fact import Fact
from afterword.facts.validity.timeline import timeline
from afterword.recall.block import entry_line
from kept import stated


def day(month: int, number: int, *, is_last: bool = False) -> datetime:
    hour, minute = (23, 59) if is_last else (0, 0)
    return datetime(2026, month, number, hour, minute, minute, tzinfo=UTC)


CRETE = stated("Lena is in Crete.", 1, said_at=day(6, 1), valid_from=day(8, 1), valid_to=day(8, 31, is_last=True))
BERLIN = stated("Lena is in Berlin.", 2, said_at=day(7, 1), valid_from=day(8, 10), valid_to=day(8, 14, is_last=True))
ROME = stated("Lena is in Rome.", 3, said_at=day(7, 2), valid_from=day(8, 20), valid_to=day(8, 20, is_last=True))
MONDAY = stated("The meeting is on Mondays.", 4, said_at=day(1, 1))
TUESDAY = stated("It is on Tuesday.", 5, said_at=day(7, 1), valid_from=day(9, 15), valid_to=day(9, 15, is_last=True))
PRICE = stated("The price is 10.", 6, said_at=day(1, 1))
DEARER = stated("The price is 12.", 7, said_at=day(3, 1), valid_from=day(5, 1))
SAID = (CRETE, BERLIN, ROME, MONDAY, TUESDAY, PRICE, DEARER)
VERDICTS = (
    Verdict(CRETE.id, BERLIN.id, Relation.CHANGES, "a part", "test", extent=Extent.DAYS),
    Verdict(CRETE.id, ROME.id, Relation.CHANGES, "a part", "test", extent=Extent.DAYS),
    Verdict(MONDAY.id, TUESDAY.id, Relation.CHANGES, "a day", "test", extent=Extent.DAYS),
    Verdict(PRICE.id, DEARER.id, Relation.CHANGES, "dearer", "test"),
)


def served(at: datetime) -> dict[str, Fact]:
    return {fact.statement: fact for fact in timeline(SAID, VERDICTS, at) if fact.is_served}


@pytest.mark.parametrize(
    ("at", "said", "notes"),
    [
        (day(7, 15), CRETE, "from 2026-08-01 until 2026-08-31, not 2026-08-10 to 2026-08-14, not 2026-08-20"),
        (day(8, 15), CRETE, "from 2026-08-15 until 2026-08-31, not 2026-08-20"),
        (day(8, 21), CRETE, "from 2026-08-21 until 2026-08-31"),
        (day(8, 5), MONDAY, "not 2026-09-15"),
        (day(9, 21), MONDAY, "from 2026-09-16"),
        (day(8, 12), BERLIN, "from 2026-08-10 until 2026-08-14"),
        (day(4, 15), PRICE, "until 2026-05-01"),
        (day(4, 15), DEARER, "from 2026-05-01"),
    ],
)
def test_the_line_tells_the_last_end_and_the_days_between(at: datetime, said: Assertion, notes: str) -> None:
    fact = served(at)[said.statement]
    line = entry_line(fact)
    assert line.removeprefix(f"- {fact.statement}").strip(" ()") == notes


def test_the_end_of_the_first_period_is_still_known() -> None:
    crete = served(day(8, 5))[CRETE.statement]
    assert (crete.valid_to, crete.ends_at) == (day(8, 10), day(8, 31, is_last=True))
    assert served(day(8, 5))[MONDAY.statement].ends_at is None
