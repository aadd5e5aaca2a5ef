"""Recognises the turns of a session when its state is saved again, by keyed hashes of their words. Pure.

Most states have no times. So afterword remembers when it first saw each turn: what was forgotten by then stays
forgotten, and the same words in a new turn are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from afterword.facts.stretches import common_stretches
from afterword.facts.transcripts import Transcript, Turn

UNKNOWN_WORDS = ""
"""The mark of a turn that contains `[forgotten]`. It can be any turn at the same place."""


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A turn that was in a state. `mark` is the keyed hash of its words.

    `seen_at` is when it was said, or the first time that was known for it. It `is_left_out` if it was said during a
    pause or off the record. Turns for which not `is_said` are those of a program, such as the block of a memory.
    """

    mark: str
    seen_at: datetime
    is_left_out: bool = False
    is_said: bool = True


@dataclass(frozen=True, slots=True)
class SeenTurns:
    """The turns of a session that were seen, in order.

    `place` is the hash of the session, and `key_id` names the key with which the marks were made.
    """

    place: str
    key_id: str
    turns: tuple[SeenTurn, ...]


@dataclass(frozen=True, slots=True)
class StateReading:
    """The transcript of a state as it was read (`fresh`), the same with dates, and the turns stored `before`."""

    fresh: Transcript
    dated: Transcript
    before: Sequence[Turn] = ()


Places = list[int | None]
"""For each turn of a state its place among the turns that were seen before, None for a new turn."""


@dataclass(frozen=True, slots=True)
class RecognisedTurns:
    """The turns of a state, each as it was first seen, and their places among the turns that were `seen` before."""

    seen: tuple[SeenTurn, ...]
    turns: tuple[SeenTurn, ...]
    places: Places

    def joined(self) -> list[SeenTurn]:
        """Return the turns seen before and the new ones in order.

        A new turn stands before the next turn that was seen before, or at the end.
        """
        new_before: dict[int, list[SeenTurn]] = defaultdict(list)
        following = len(self.seen)
        for turn, place in zip(reversed(self.turns), reversed(self.places), strict=True):
            if place is None:
                new_before[following].append(turn)
            elif place < following:
                following = place
        joined = [turn for place, old in enumerate(self.seen) for turn in (*reversed(new_before[place]), old)]
        return [*joined, *reversed(new_before[len(self.seen)])]


def recognised_places(seen: Sequence[SeenTurn], marks: Sequence[str], said: Sequence[bool]) -> Places:
    """Return where the turns of a state, given by their marks, stand among the turns seen before.

    `said` tells for each turn whether somebody said it. Programs may move the other turns, so these are recognised in
    any order. The rest keeps its order in a state: what stands between two recognised turns in the same number is
    recognised too, even if its words have changed, but not at the end, where it may be new. A turn that stands out of
    order is recognised unless it follows a turn that was first seen later.
    """
    places: Places = [None] * len(marks)
    seen_said = [place for place, turn in enumerate(seen) if turn.is_said]
    fresh_said = [place for place, is_said in enumerate(said) if is_said]
    pairs = _pairs_in_order([seen[place].mark for place in seen_said], [marks[place] for place in fresh_said])
    for old, new in pairs:
        places[fresh_said[new]] = seen_said[old]
    others: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place in sorted(set(range(len(seen))) - set(places), reverse=True):
        others[seen[place].mark, seen[place].is_said].append(place)
    newest = datetime.min.replace(tzinfo=UTC)
    for new, mark in enumerate(marks):
        known = places[new]
        rest = others[mark, said[new]]
        if known is None and rest and (not said[new] or seen[rest[-1]].seen_at >= newest):
            places[new] = rest.pop() if said[new] else rest[-1]
        elif known is not None and said[new]:
            newest = max(newest, seen[known].seen_at)
    return places


def _pairs_in_order(seen: Sequence[str], marks: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of places of the same turn in both lists, in order."""
    head = 0
    for old, new in zip(seen, marks, strict=False):
        if old != new and UNKNOWN_WORDS not in (old, new):
            break
        head += 1
    pairs = [(place, place) for place in range(head)]
    for is_equal, start, end, new_start, new_end in common_stretches(seen[head:], marks[head:]):
        old_places, new_places = range(head + start, head + end), range(head + new_start, head + new_end)
        is_within = head + end < len(seen) and head + new_end < len(marks)
        if is_equal or (is_within and len(old_places) == len(new_places)):
            pairs += zip(old_places, new_places, strict=True)
        else:
            blanked = [place for place in new_places if marks[place] == UNKNOWN_WORDS]
            pairs += zip(old_places, blanked, strict=False)
    return pairs
