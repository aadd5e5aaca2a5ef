"""Two readings of one session made one: sessions grow, and sometimes a saved state has lost what an older one had.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from afterword.store.transcripts import TimeBasis, Transcript, Turn


def union(before: Sequence[Turn], basis: TimeBasis | None, transcript: Transcript) -> Transcript:
    """Return the transcript with every turn of both readings, in order, numbered anew.

    `before` are the turns of the former reading and `basis` where their times came from. Of a turn in both, the new
    reading is kept; but where the new times are only a guess, the former time stands: it was nearer to the saying.
    """
    if not before:
        return transcript
    guessed = transcript.time_basis in (None, TimeBasis.FILE)
    turns: list[Turn] = []
    grown = False
    for tag, start, end, new_start, new_end in _opcodes(before, transcript.turns):
        if tag == "equal":
            for old, new in zip(before[start:end], transcript.turns[new_start:new_end], strict=True):
                turns.append(replace(new, said_at=old.said_at or new.said_at) if guessed else new)
            continue
        turns += before[start:end]
        turns += transcript.turns[new_start:new_end]
        grown = grown or new_end > new_start
    numbered = tuple(replace(turn, number=number) for number, turn in enumerate(turns, 1))
    humans = tuple(dict.fromkeys(turn.speaker for turn in numbered if turn.role == "human"))
    kept_basis = basis if guessed and not grown and basis is not None else transcript.time_basis
    return replace(transcript, turns=numbered, humans=humans, time_basis=kept_basis)


def _opcodes(before: Sequence[Turn], after: Sequence[Turn]) -> list[tuple[str, int, int, int, int]]:
    old, new = [_said(turn) for turn in before], [_said(turn) for turn in after]
    shared = min(len(old), len(new))
    if old[:shared] == new[:shared]:  # the usual case, in linear time: one is the beginning of the other
        rest = ("rest", shared, len(old), shared, len(new))
        return [("equal", 0, shared, 0, shared), rest]
    return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())


def _said(turn: Turn) -> tuple[str, str, str]:
    return turn.speaker, turn.role, turn.text
