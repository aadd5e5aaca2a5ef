"""Times come from the best source that is known, and from no clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from afterword.extractors.transcript_assembly import date_turns
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn


def at(hour: int) -> datetime:
    return datetime(2026, 3, 1, hour, tzinfo=UTC)


def transcript(*times: datetime | None) -> Transcript:
    turns = tuple(Turn(number, "user", Role.HUMAN, "Hi", said_at) for number, said_at in enumerate(times, 1))
    return Transcript(turns, "message list", ("user",))


def times(found: Transcript) -> list[datetime | None]:
    return [turn.said_at for turn in found.turns]


ALL: dict[str, Any] = {"saved_at": at(20), "started_at": at(21), "ended_at": at(22), "file_time": at(23)}


def test_the_turns_own_times_win_and_fill_the_gaps() -> None:
    found = date_turns(transcript(None, at(1), None, at(3), None), **ALL)
    assert times(found) == [at(1), at(1), at(1), at(3), at(3)]
    assert found.time_basis is TimeBasis.TURNS


@pytest.mark.parametrize(
    ("known", "expected", "basis"),
    [
        (ALL, at(20), TimeBasis.RECORDER),
        ({"started_at": at(1), "ended_at": at(2), "file_time": at(3)}, at(1), TimeBasis.MANIFEST),
        ({"ended_at": at(2), "file_time": at(3)}, at(2), TimeBasis.MANIFEST),
        ({"file_time": at(3)}, at(3), TimeBasis.FILE),
        ({}, None, None),
    ],
)
def test_without_turn_times_the_next_best_source_is_taken(
    known: dict[str, Any], expected: datetime | None, basis: TimeBasis | None
) -> None:
    found = date_turns(transcript(None, None), **known)
    assert times(found) == [expected, expected]
    assert found.time_basis is basis


def test_times_keep_their_offset() -> None:
    berlin = datetime(2026, 3, 1, 13, tzinfo=timezone(timedelta(hours=1)))
    found = date_turns(transcript(None), file_time=berlin).turns[0].said_at
    assert found is not None
    assert found.isoformat() == "2026-03-01T13:00:00+01:00"


@pytest.mark.parametrize("name", ["started_at", "ended_at", "file_time", "saved_at", "turn"])
def test_a_time_without_a_zone_is_refused(name: str) -> None:
    naive = datetime(2026, 3, 1)
    known: dict[str, Any] = {} if name == "turn" else {name: naive}
    with pytest.raises(ValueError, match="no time zone"):
        date_turns(transcript(naive if name == "turn" else None), **known)


def test_a_transcript_without_turns_stays_empty() -> None:
    assert date_turns(transcript(), **ALL).turns == ()
