"""Unite two readings of one session, because a saved state may lack turns that an older one had. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn

# The sources of times, most exact first.
NEAREST = (TimeBasis.TURNS, TimeBasis.RECORDER, TimeBasis.MANIFEST, TimeBasis.FILE)
LARGEST_COMPARED = 4_000_000


def unite_readings(
    before: Sequence[Turn], basis: TimeBasis | None, transcript: Transcript, *, assumed: Collection[str] = ()
) -> Transcript:
    """Return the transcript with every turn of both readings, in order, numbered anew.

    `before` are the turns of the earlier reading, `basis` is the source of their times, and `assumed` are those of
    their speakers who are only assumed to be people. A turn in both readings is taken from the new one, with the time
    of the more exact source; of two saves or two files, the earlier time.
    """
    if not before:
        return transcript
    keeps_times = _keeps_times(basis, transcript.time_basis)
    turns: list[Turn] = []
    for is_equal, start, end, new_start, new_end in common_stretches(before, transcript.turns):
        if is_equal:
            for old, new in zip(before[start:end], transcript.turns[new_start:new_end], strict=True):
                source = old if keeps_times and old.said_at else new
                turns.append(replace(new, said_at=source.said_at, time_is_guess=source.time_is_guess))
        else:
            turns += (*before[start:end], *transcript.turns[new_start:new_end])
    numbered = tuple(replace(turn, number=number) for number, turn in enumerate(turns, 1))
    humans = tuple(dict.fromkeys(turn.speaker for turn in numbered if turn.role is Role.HUMAN))
    known = {turn.speaker for turn in transcript.turns if turn.role is Role.HUMAN} - set(transcript.assumed)
    return replace(
        transcript,
        turns=numbered,
        humans=humans,
        time_basis=_basis(numbered, basis, transcript.time_basis),
        assumed=tuple(name for name in dict.fromkeys((*assumed, *transcript.assumed)) if name in set(humans) - known),
    )


def _keeps_times(basis: TimeBasis | None, new: TimeBasis | None) -> bool:
    if basis is None or new is None:
        return basis is not None
    again = basis is new and new in (TimeBasis.RECORDER, TimeBasis.FILE)
    return again or NEAREST.index(new) > NEAREST.index(basis)


def _basis(turns: Sequence[Turn], basis: TimeBasis | None, new: TimeBasis | None) -> TimeBasis | None:
    if any(turn.time_is_guess for turn in turns):
        return TimeBasis.FILE
    known = [source for source in (basis, new) if source is not None and source is not TimeBasis.FILE]
    return min(known, key=NEAREST.index, default=new)


def common_stretches(before: Sequence[Turn], after: Sequence[Turn]) -> list[tuple[bool, int, int, int, int]]:
    """Return the stretches of turns that both readings have, and those that only one of them has, in order.

    Each is whether both have it, and its start and end in `before` and in `after`.
    """
    old, new = [_said(turn) for turn in before], [_said(turn) for turn in after]
    head = _shared(old, new)
    left = (len(old) - head) * (len(new) - head)
    if left <= LARGEST_COMPARED:
        matcher = SequenceMatcher(None, old[head:], new[head:], autojunk=False)
        stretches = [(True, 0, head, 0, head)]
        for tag, start, end, new_start, new_end in matcher.get_opcodes():
            stretches.append((tag == "equal", head + start, head + end, head + new_start, head + new_end))
        return stretches
    # Comparing takes quadratic time. Turns between the common beginning and end are kept twice rather than lost.
    tail = _shared(old[head:][::-1], new[head:][::-1])
    old_end, new_end = len(old) - tail, len(new) - tail
    return [
        (True, 0, head, 0, head),
        (False, head, old_end, head, new_end),
        (True, old_end, len(old), new_end, len(new)),
    ]


def _shared(old: Sequence[tuple[str, str]], new: Sequence[tuple[str, str]]) -> int:
    """Return how many turns the two lists have in common at their beginning."""
    return next(
        (place for place, (left, right) in enumerate(zip(old, new, strict=False)) if left != right),
        min(len(old), len(new)),
    )


def _said(turn: Turn) -> tuple[str, str]:
    # The role is left out, because who is a person may be learned later.
    return turn.speaker, turn.text
