"""English days at the end of a clause, resolved against the day on which they were said."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.rules.dates import ALWAYS, past_day, split_days

THURSDAY = date(2025, 11, 6)


@pytest.mark.parametrize(
    ("days", "valid_from", "valid_to"),
    [
        ("until 12 November", None, date(2025, 11, 12)),
        ("till January 25", None, date(2026, 1, 25)),
        ("until the end of February", None, date(2026, 2, 28)),
        ("until 2 January 2027", None, date(2027, 1, 2)),
        ("until 2026-03-31", None, date(2026, 3, 31)),
        ("from 1 May", date(2026, 5, 1), None),
        ("from June", date(2026, 6, 1), None),
        ("from the 1st of December", date(2025, 12, 1), None),
        ("since 1 October", date(2025, 10, 1), None),
        ("since January", date(2025, 1, 1), None),
        ("since Saturday", date(2025, 11, 1), None),
        ("from next Monday", date(2025, 11, 10), None),
        ("from Saturday", date(2025, 11, 8), None),
        ("tomorrow", date(2025, 11, 7), date(2025, 11, 7)),
        ("from tomorrow", date(2025, 11, 7), None),
        ("until tomorrow", None, date(2025, 11, 7)),
        ("until October", None, date(2026, 10, 31)),
        ("until 1 October 2025", None, date(2025, 10, 1)),
        ("in May", date(2026, 5, 1), date(2026, 5, 31)),
        ("in October", date(2026, 10, 1), date(2026, 10, 31)),
        ("on Saturday", date(2025, 11, 8), date(2025, 11, 8)),
        ("from December to February", date(2025, 12, 1), date(2026, 2, 28)),
        ("from 13 January to 10 February", date(2026, 1, 13), date(2026, 2, 10)),
        ("since 2019", date(2019, 1, 1), None),
        ("since May 1998", date(1998, 5, 1), None),
        ("until 2027", None, date(2027, 12, 31)),
        ("next week", date(2025, 11, 10), date(2025, 11, 16)),
        ("from next week", date(2025, 11, 10), None),
        ("starting next week", date(2025, 11, 10), None),
        ("as of next month", date(2025, 12, 1), None),
        ("from next year", date(2026, 1, 1), None),
        ("until next week", None, date(2025, 11, 16)),
    ],
)
def test_the_days_are_split_off_and_resolved(days: str, valid_from: date | None, valid_to: date | None) -> None:
    assert split_days(f"live in Graz {days}", THURSDAY) == ("live in Graz", (valid_from, valid_to))


@pytest.mark.parametrize("days", ["in 2019", "until 31 February", "until whenever", "from next Friday", "in the sun"])
def test_days_that_are_not_understood_stay_in_the_clause(days: str) -> None:
    """On a Thursday half of all readers take "next Friday" for tomorrow, half for the week after."""
    assert split_days(f"live in Graz {days}", THURSDAY) == (f"live in Graz {days}", ALWAYS)


def test_a_month_in_which_something_happened_is_the_last_one() -> None:
    assert split_days("moved to Graz in December", THURSDAY, is_past=True)[1].valid_from == date(2024, 12, 1)


@pytest.mark.parametrize(
    ("clause", "day"),
    [
        ("I moved to Graz yesterday", date(2025, 11, 5)),
        ("I moved to Graz last month for work", date(2025, 10, 7)),
        ("I moved to Graz a week ago", date(2025, 10, 30)),
        ("I moved to Graz two years ago", date(2023, 11, 7)),
        ("I moved to Graz 99 years ago", date(1926, 11, 6)),
        ("I moved to Graz recently", None),
        ("I moved to Graz last spring", None),
    ],
)
def test_the_day_of_what_happened_is_counted_back(clause: str, day: date | None) -> None:
    assert past_day(clause, THURSDAY) == day


def test_no_day_before_the_calendar_is_counted() -> None:
    assert past_day("I moved to Graz two years ago", date(1, 5, 4)) == date(1, 1, 1)


def test_what_begins_in_a_month_has_no_end() -> None:
    assert split_days("move to Graz in May", THURSDAY)[1] == (date(2026, 5, 1), None)


@given(text=st.text(alphabet="0123456789 -may.octnextfridayuntilfrom", max_size=60), said_on=st.dates())
def test_no_text_and_no_day_breaks_it(text: str, said_on: date) -> None:
    _, found = split_days(text, said_on)
    assert not (found.valid_from and found.valid_to) or found.valid_from <= found.valid_to


@pytest.mark.parametrize("clause", ["am going to Rome", "am flying to Rome", "am in Rome"])
def test_a_trip_ends_with_the_days_that_it_names(clause: str) -> None:
    assert split_days(f"{clause} next week", THURSDAY)[1] == (date(2025, 11, 10), date(2025, 11, 16))
    assert split_days(f"{clause} tomorrow", THURSDAY)[1] == (date(2025, 11, 7), date(2025, 11, 7))
    assert split_days(f"{clause} on Saturday", THURSDAY)[1] == (date(2025, 11, 8), date(2025, 11, 8))


def test_who_starts_in_a_month_does_not_stop_with_it() -> None:
    for clause in (
        "will work at Siemens",
        "am going to work at Siemens",
        "am starting at Siemens",
        "will live in Graz",
    ):
        assert split_days(f"{clause} in May", THURSDAY) == (clause, (date(2026, 5, 1), None)), clause
    for clause in ("will stay in Graz", "live in Graz", "am in Graz"):
        assert split_days(f"{clause} in May", THURSDAY)[1].valid_to == date(2026, 5, 31), clause
