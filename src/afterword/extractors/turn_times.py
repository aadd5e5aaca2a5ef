"""Give a session's turns their times: said times never come from a clock, only from what was recorded.

Pure: no clock, no disk. The best source wins: the turns' own times, the recorder's saves, a manifest, the file's time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from afterword.facts.transcripts import TimeBasis, Transcript, Turn

Save = tuple[datetime, int]
"""When the recorder saved, and how many turns the transcript had then."""


def dated(
    transcript: Transcript,
    *,
    saves: Sequence[Save] = (),
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
    file_time: datetime | None = None,
) -> Transcript:
    """Return the transcript with a time on every turn, and where the times come from.

    Turns' own times come first; a turn without one gets the time before it (at the start, the first known). Else each
    turn was said not later than the first save that has it, else at the session's start (or its end, where only that is
    known), else at the file's time: a guess. Where nothing is known, times and basis stay None.
    Raises `ValueError` for a time without a zone.
    """
    started, ended, file_at = _utc(started_at), _utc(ended_at), _utc(file_time)
    known_saves = sorted(((_aware(at), count) for at, count in saves), key=lambda save: (save[1], save[0]))
    if any(turn.said_at for turn in transcript.turns):
        return replace(transcript, turns=_carried(transcript.turns), time_basis=TimeBasis.TURNS)
    if known_saves:
        return _at(transcript, TimeBasis.RECORDER, lambda turn: _saved_at(known_saves, turn.number))
    if session_at := started or ended:
        return _at(transcript, TimeBasis.MANIFEST, lambda _: session_at)
    if file_at:
        guessed = _at(transcript, TimeBasis.FILE, lambda _: file_at)
        return replace(guessed, turns=tuple(replace(turn, time_is_guess=True) for turn in guessed.turns))
    return replace(transcript, time_basis=None)


def _at(transcript: Transcript, basis: TimeBasis, said_at: Callable[[Turn], datetime]) -> Transcript:
    turns = tuple(replace(turn, said_at=said_at(turn)) for turn in transcript.turns)
    return replace(transcript, turns=turns, time_basis=basis)


def _carried(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Give turns without a time the one before them, those at the start the first known one."""
    found = list(turns)
    last = next(_aware(turn.said_at) for turn in found if turn.said_at)
    for index, turn in enumerate(found):
        last = _aware(turn.said_at) if turn.said_at else last
        found[index] = turn if turn.said_at == last else replace(turn, said_at=last)
    return tuple(found)


def _saved_at(saves: Sequence[Save], number: int) -> datetime:
    """Return the time of the first save that had the turn; turns behind the last save were said about then."""
    index = bisect_left(saves, number, key=lambda save: save[1])
    return saves[min(index, len(saves) - 1)][0]


def _utc(at: datetime | None) -> datetime | None:
    return None if at is None else _aware(at)


def _aware(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise ValueError(f"{at.isoformat()} has no time zone; give an aware datetime, for example in UTC")
    return at.astimezone(UTC)
