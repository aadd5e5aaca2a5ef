"""Instants keep the offset of the place where something was said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.extractors.candidates import Candidate, Citation
from afterword.extractors.grounding import ground
from afterword.extractors.readers import read_state
from afterword.extractors.rules.dates import split_days
from afterword.facts.assertions import Kind
from afterword.facts.local_time import at_offset, at_speaker_offset, offset_seconds, read_zone
from afterword.facts.scopes import Scope
from afterword.store.rows import turn_of, turn_values
from afterword.store.tables import TurnRow

offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1))


@given(times, offsets)
def test_a_day_of_saying_is_the_speakers_own(wall_time: datetime, offset: timezone) -> None:
    """From the saved text to the assertion and the row: the day is that of the clock on the speaker's wall."""
    said = wall_time.replace(tzinfo=offset)
    message = {"type": "TextMessage", "source": "user", "content": "I live in Oslo from tomorrow."}
    transcript = read_state([{**message, "created_at": said.isoformat()}])
    (turn,) = transcript.turns
    assert turn.said_at == said
    assert turn.said_at is not None
    assert turn.said_at.date() == wall_time.date()
    _, validity = split_days("live in Oslo from tomorrow", turn.said_at.date())
    assert validity.valid_from == wall_time.date() + timedelta(days=1)
    cited = [Citation(turn=1, quote="I live in Oslo")]
    candidate = Candidate(
        kind=Kind.ENTITY, subject="user", attribute="home", value="Oslo", statement="The user lives in Oslo.",
        evidence=cited, valid_from=validity.valid_from,
    )  # fmt: skip
    grounding = ground([candidate], transcript, scope=Scope.user("mira"), session_id="a", owners=["user"])
    (assertion,) = grounding.assertions
    assert assertion.valid_from is not None
    assert assertion.valid_from.replace(tzinfo=None) == datetime.combine(validity.valid_from, datetime.min.time())
    stored = turn_of(TurnRow(**{**turn_values(turn, 1), "said_at": turn.said_at.astimezone(UTC)}))
    assert (stored, stored.said_at and stored.said_at.isoformat()) == (turn, turn.said_at.isoformat())


@given(times, offsets)
def test_an_offset_can_be_taken_from_an_instant_and_given_back(wall_time: datetime, offset: timezone) -> None:
    at = wall_time.replace(tzinfo=offset)
    assert at_offset(at.astimezone(UTC), offset_seconds(at)).isoformat() == at.isoformat()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-07-01T09:00:00", "2026-07-01T09:00:00+02:00"),
        ("2026-01-01T09:00:00", "2026-01-01T09:00:00+01:00"),
        ("2026-07-01T09:00:00+00:00", "2026-07-01T11:00:00+02:00"),
        ("2026-07-01T09:00:00-05:00", "2026-07-01T09:00:00-05:00"),
        ("9999-12-31T23:30:00+00:00", "9999-12-31T23:30:00+00:00"),
    ],
)
def test_a_zone_stands_in_for_an_offset_that_is_not_known(text: str, expected: str) -> None:
    assert at_speaker_offset(datetime.fromisoformat(text), read_zone("Europe/Vienna")).isoformat() == expected


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "+02:00"])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        read_zone(name)
