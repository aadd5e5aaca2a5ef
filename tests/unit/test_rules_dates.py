"""English dates, resolved against the day on which they were said."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.rules.dates import Validity, validity

THURSDAY = date(2025, 11, 6)


@pytest.mark.parametrize(
    ("text", "valid_from", "valid_to"),
    [
        ("until 12 November", None, date(2025, 11, 12)),
        ("till January 25", None, date(2026, 1, 25)),
        ("until the end of February", None, date(2026, 2, 28)),
        ("until 2 January 2027", None, date(2027, 1, 2)),
        ("until 2026-03-31", None, date(2026, 3, 31)),
        ("from 1 May", date(2026, 5, 1), None),
        ("from the 1st of December", date(2025, 12, 1), None),
        ("since 1 October", date(2025, 10, 1), None),
        ("since January", date(2025, 1, 1), None),
        ("since Saturday", date(2025, 11, 1), None),
        ("from next Monday", date(2025, 11, 10), None),
        ("from Saturday", date(2025, 11, 8), None),
        ("from this month on", date(2025, 11, 1), None),
        ("16 to 20 October 2026", date(2026, 10, 16), date(2026, 10, 20)),
        ("from 13 January to 10 February", date(2026, 1, 13), date(2026, 2, 10)),
        ("Friday 13 March to Monday 16 March", date(2026, 3, 13), date(2026, 3, 16)),
        ("closed Thursday and Friday next week", date(2025, 11, 13), date(2025, 11, 14)),
        ("I moved in 2019", None, None),
        ("we met on 3 May", None, None),
        ("until 31 February", None, None),
    ],
)
def test_the_bounds_of_validity_are_read(text: str, valid_from: date | None, valid_to: date | None) -> None:
    found = validity(text, THURSDAY)
    assert (found.valid_from, found.valid_to) == (valid_from, valid_to)


def test_an_event_takes_place_on_the_coming_day_it_names() -> None:
    found = validity("on 19 April 2026", THURSDAY, is_event=True)
    assert (found.valid_from, found.valid_to) == (date(2026, 4, 19), date(2026, 4, 19))


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("tomorrow", date(2025, 11, 7)),
        ("a week from Friday", date(2025, 11, 14)),
        ("next Tuesday", date(2025, 11, 11)),
        ("Wednesday next week", date(2025, 11, 12)),
    ],
)
def test_relative_days_are_resolved(text: str, day: date) -> None:
    [found] = validity(text, THURSDAY).relative
    assert found.first == found.last == day


def test_next_friday_said_on_a_thursday_is_ambiguous_and_left_alone() -> None:
    """Half of all readers take it for tomorrow, half for the week after."""
    assert validity("next Friday", THURSDAY) == Validity()


@given(text=st.text(alphabet="0123456789 -may.octnextfridayuntilfrom", max_size=60), said_on=st.dates())
def test_no_text_and_no_day_breaks_it(text: str, said_on: date) -> None:
    found = validity(text, said_on)
    assert not (found.valid_from and found.valid_to) or found.valid_from <= found.valid_to
