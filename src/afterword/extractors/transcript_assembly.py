"""Date the turns of a transcript, and merge it with an earlier reading of the same session. Reads no files.

The most exact known source of times is used: the turns' own times, then the time of the recorder's save, then a
manifest, then the file's time. A saved state may lack turns of an older one, so the turns of both readings are kept.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from afterword.facts.local_time import at_speaker_offset
from afterword.facts.sequence_diff import LARGEST_COMPARED, diff_runs
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn

MOST_EXACT_FIRST = (TimeBasis.TURNS, TimeBasis.RECORDER, TimeBasis.MANIFEST, TimeBasis.FILE)
"""The sources of times, the most exact first."""
MOST_AHEAD = timedelta(days=1)
"""How far a turn's time may lie in the future. A clock may be wrong, or a time zone may be mistaken."""
IN_THE_FUTURE = "time in the future"
"""The key of `Transcript.skipped` that counts turns whose time was dropped because it lies in the future."""


def no_earlier_than_clock(now: datetime | None) -> datetime:
    """Return the later of `now` and this machine's time. A `now` in the past must not put real times in the future."""
    present = datetime.now(UTC)
    return present if now is None else max(now, present)


def without_future_times(transcript: Transcript, now: datetime) -> Transcript:
    """Return the transcript without times that are more than a day later than `now`, and count these in `skipped`.

    A statement is only shown from the time at which it was said. So a statement from the future would be in no list.
    """
    latest = now + MOST_AHEAD
    # A time without an offset is wrong by at most a day.
    turns = [
        replace(turn, said_at=None) if turn.said_at and _aware_or_utc(turn.said_at) > latest else turn
        for turn in transcript.turns
    ]
    count = sum(turn.said_at != dated.said_at for turn, dated in zip(transcript.turns, turns, strict=True))
    if not count:
        return transcript
    return replace(transcript, turns=tuple(turns), skipped={**transcript.skipped, IN_THE_FUTURE: count})


def _aware_or_utc(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def date_turns(
    transcript: Transcript,
    *,
    saved_at: datetime | None = None,
    started_at: datetime | None = None,
    ended_at: datetime | None = None,
    file_time: datetime | None = None,
) -> Transcript:
    """Return the transcript with a time on every turn, and the source of the times as its `time_basis`.

    If any turn has a time, a turn without one gets the time before it, or at the start the first known one. Otherwise
    every turn gets the time at which the recorder has saved it, else the session's start (or its end, if only that is
    known), else the file's time, which is a guess. If no time is known, times and basis stay None.

    Raises `ValueError` for a time without a zone.
    """
    saved, started, ended, file_at = (at and _checked_aware(at) for at in (saved_at, started_at, ended_at, file_time))
    if any(turn.said_at for turn in transcript.turns):
        return replace(transcript, turns=_with_carried_times(transcript.turns), time_basis=TimeBasis.TURNS)
    if saved:
        return _with_all_turns_at(transcript, TimeBasis.RECORDER, saved)
    if session_at := started or ended:
        return _with_all_turns_at(transcript, TimeBasis.MANIFEST, session_at)
    return _with_all_turns_at(transcript, TimeBasis.FILE, file_at) if file_at else replace(transcript, time_basis=None)


def localise_turns(transcript: Transcript, zone: tzinfo) -> Transcript:
    """Return the transcript with the offset of `zone` in every time that has none."""
    turns = [turn.dated(at_speaker_offset(turn.said_at, zone)) if turn.said_at else turn for turn in transcript.turns]
    return replace(transcript, turns=tuple(turns))


def _with_all_turns_at(transcript: Transcript, basis: TimeBasis, said_at: datetime) -> Transcript:
    """Return the transcript with this time on every turn. The time of a file is a guess."""
    is_guess = True if basis is TimeBasis.FILE else None
    turns = tuple([turn.dated(said_at, is_guess=is_guess) for turn in transcript.turns])
    return replace(transcript, turns=turns, time_basis=basis)


def _with_carried_times(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Give turns without a time the time before them, or at the start the first known time."""
    timed = list(turns)
    last = next(_checked_aware(turn.said_at) for turn in timed if turn.said_at)
    for index, turn in enumerate(timed):
        last = _checked_aware(turn.said_at) if turn.said_at else last
        timed[index] = turn if turn.said_at == last else turn.dated(last)
    return tuple(timed)


def _checked_aware(at: datetime) -> datetime:
    if at.utcoffset() is None:
        raise ValueError(f"{at.isoformat()} has no time zone; give an aware datetime, for example in UTC")
    return at


def merge_earlier_turns(
    earlier_turns: Sequence[Turn],
    earlier_basis: TimeBasis | None,
    transcript: Transcript,
    *,
    assumed: Collection[str] = (),
) -> Transcript:
    """Return the transcript with every turn of both readings, in order, numbered anew.

    `earlier_basis` is the source of the times of the earlier reading's turns, and `assumed` are those of their speakers
    who are only assumed to be people. A turn in both readings is taken from the new one, with the time of the more
    exact source. If both times come from saves of the recorder or both from files, the earlier reading's time is kept.
    """
    if not earlier_turns:
        return transcript
    keeps_times = _keeps_earlier_times(earlier_basis, transcript.time_basis)
    merged = _merged_turns(earlier_turns, transcript.turns, keeps_times=keeps_times)
    turns = tuple(replace(turn, number=number) for number, turn in enumerate(merged, 1))
    humans = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
    known = {turn.speaker for turn in transcript.turns if turn.role is Role.HUMAN} - set(transcript.assumed)
    return replace(
        transcript,
        turns=turns,
        humans=humans,
        time_basis=_merged_basis(turns, earlier_basis, transcript.time_basis),
        assumed=tuple(name for name in dict.fromkeys((*assumed, *transcript.assumed)) if name in set(humans) - known),
    )


def _merged_turns(earlier_turns: Sequence[Turn], new_turns: Sequence[Turn], *, keeps_times: bool) -> list[Turn]:
    """Return every turn of both readings in order, with the numbers that it has in its reading.

    Quotes name turns by their numbers. So turns that a program has put in between known turns, such as the block of a
    memory, come before the next new words.
    """
    said = {_speaker_and_text(turn) for turn in (*earlier_turns, *new_turns) if turn.is_said}
    old, new = ([turn for turn in turns if _speaker_and_text(turn) in said] for turns in (earlier_turns, new_turns))
    old_inserts = _inserted_turns_after(earlier_turns, said)
    new_inserts = deque(_unknown_turns(new_turns, said.union(map(_speaker_and_text, earlier_turns))))
    turns = old_inserts[0]
    for is_equal, start, end, new_start, new_end in diff_turns(old, new):
        for place, earlier in enumerate(old[start:end]):
            later = new[new_start + place] if is_equal else earlier
            turns.append(_with_time_of(earlier, later) if keeps_times and earlier.said_at else later)
            turns += old_inserts[earlier.number]
        if not is_equal:
            for later in new[new_start:new_end]:
                turns += (*_pop_inserts_before(later.number, new_inserts), later)
    return [*turns, *new_inserts]


def _unknown_turns(turns: Sequence[Turn], known: Container[tuple[str, str]]) -> Iterator[Turn]:
    return (turn for turn in turns if _speaker_and_text(turn) not in known)


def _with_time_of(earlier: Turn, later: Turn) -> Turn:
    return replace(later, said_at=earlier.said_at, time_is_guess=earlier.time_is_guess)


def _pop_inserts_before(number: int, inserts: deque[Turn]) -> Iterator[Turn]:
    """Yield the inserted turns whose number is smaller than this one, and remove them from `inserts`."""
    while inserts and inserts[0].number < number:
        yield inserts.popleft()


def _inserted_turns_after(turns: Sequence[Turn], said: Container[tuple[str, str]]) -> defaultdict[int, list[Turn]]:
    """Return the turns that nobody said by the number of the turn that they come after, 0 for none."""
    inserts, last = defaultdict[int, list[Turn]](list), 0
    for turn in turns:
        if _speaker_and_text(turn) in said:
            last = turn.number
        else:
            inserts[last].append(turn)
    return inserts


def _keeps_earlier_times(basis: TimeBasis | None, new: TimeBasis | None) -> bool:
    if basis is None or new is None:
        return basis is not None
    again = basis is new and new in (TimeBasis.RECORDER, TimeBasis.FILE)
    return again or MOST_EXACT_FIRST.index(new) > MOST_EXACT_FIRST.index(basis)


def _merged_basis(turns: Sequence[Turn], basis: TimeBasis | None, new: TimeBasis | None) -> TimeBasis | None:
    if any(turn.time_is_guess for turn in turns):
        return TimeBasis.FILE
    known = [source for source in (basis, new) if source is not None and source is not TimeBasis.FILE]
    return min(known, key=MOST_EXACT_FIRST.index, default=new)


def diff_turns(earlier_turns: Sequence[Turn], later_turns: Sequence[Turn]) -> list[tuple[bool, int, int, int, int]]:
    """Compare two readings of a session turn by turn, and return their runs as `diff_runs` does.

    Mostly the later reading goes on from the last turns of the earlier one. That is preferred to a match of as many
    turns elsewhere: short answers and placeholders stand at many places.
    """
    old, new = [_speaker_and_text(turn) for turn in earlier_turns], [_speaker_and_text(turn) for turn in later_turns]
    runs = diff_runs(old, new)
    number_equal = sum(end - start for is_equal, start, end, _, _ in runs if is_equal)
    for number in range(min(len(old), len(new), LARGEST_COMPARED // (len(old) + 1)), max(number_equal, 1) - 1, -1):
        start = len(old) - number
        if old[start:] == new[:number]:
            return [
                (False, 0, start, 0, 0),
                (True, start, len(old), 0, number),
                (False, len(old), len(old), number, len(new)),
            ]
    return runs


def _speaker_and_text(turn: Turn) -> tuple[str, str]:
    # The role is left out, because who is a person may be learned later.
    return turn.speaker, turn.text
