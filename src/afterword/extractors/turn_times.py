"""Give a session's turns their times, from recorded times only. Pure: no clock, no disk.

The best source wins: the turns' own times, then the recorder's saves, then a manifest, then the file's time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo

from afterword.facts.local_time import in_zone
from afterword.facts.transcripts import TimeBasis, Transcript, Turn

Save = tuple[datetime, int]
"""The time of a recorder's save, and how many turns the transcript had then."""


def date_turns(
    transcript: Transcript,
    *,
    saves: Sequence[Save] = (),
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
    file_time: datetime | None = None,
) -> Transcript:
    """Return the transcript with a time on every turn, and the source of the times as its `time_basis`.

    If any turn has a time, a turn without one gets the time before it, or at the start the first known one. Otherwise a
    turn gets the time of the first save that has it, else the session's start (or its end, if only that is known), else
    the file's time, which is a guess. If nothing is known, times and basis stay None.
    Raises `ValueError` for a time without a zone.
    """
    started, ended, file_at = (at and _aware(at) for at in (started_at, ended_at, file_time))
    known_saves = sorted(((_aware(at), count) for at, count in saves), key=lambda save: (save[1], save[0]))
    if any(turn.said_at for turn in transcript.turns):
        return replace(transcript, turns=_carried(transcript.turns), time_basis=TimeBasis.TURNS)
    if known_saves:
        return _at(transcript, TimeBasis.RECORDER, lambda turn: _saved_at(known_saves, turn.number))
    if session_at := started or ended:
        return _at(transcript, TimeBasis.MANIFEST, lambda _: session_at)
    if file_at:
        guessed = tuple([turn.dated(file_at, is_guess=True) for turn in transcript.turns])
        return replace(transcript, turns=guessed, time_basis=TimeBasis.FILE)
    return replace(transcript, time_basis=None)


def localise_turns(transcript: Transcript, zone: tzinfo) -> Transcript:
    """Return the transcript with the offset of `zone` on every turn whose own offset is not known."""
    turns = [turn.dated(in_zone(turn.said_at, zone)) if turn.said_at else turn for turn in transcript.turns]
    return replace(transcript, turns=tuple(turns))


def _at(transcript: Transcript, basis: TimeBasis, said_at: Callable[[Turn], datetime]) -> Transcript:
    turns = tuple([turn.dated(said_at(turn)) for turn in transcript.turns])
    return replace(transcript, turns=turns, time_basis=basis)


def _carried(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Give turns without a time the time before them, or at the start the first known time."""
    timed = list(turns)
    last = next(_aware(turn.said_at) for turn in timed if turn.said_at)
    for index, turn in enumerate(timed):
        last = _aware(turn.said_at) if turn.said_at else last
        timed[index] = turn if turn.said_at == last else turn.dated(last)
    return tuple(timed)


def _saved_at(saves: Sequence[Save], number: int) -> datetime:
    """Return the time of the first save that has the turn; turns after the last save get the last save's time."""
    index = bisect_left(saves, number, key=lambda save: save[1])
    return saves[min(index, len(saves) - 1)][0]


def _aware(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise ValueError(f"{at.isoformat()} has no time zone; give an aware datetime, for example in UTC")
    return at
