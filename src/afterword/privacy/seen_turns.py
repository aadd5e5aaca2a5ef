"""Recognises the turns of a session when its state is saved again, by keyed hashes of their words. Pure.

`TombstoneKey.turn_mark` makes the hashes. Most states have no times. So afterword remembers when it first saw each
turn: what was forgotten by then stays forgotten, and the same words in a new turn are kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from afterword.facts.sequence_diff import LARGEST_COMPARED, diff_runs
from afterword.facts.transcripts import Transcript, Turn

UNKNOWN_WORDS = ""
"""The mark of a turn that contains `[forgotten]`. It can be any turn at the same place."""


_FEW_NEW = 100
"""How many turns a very long state may have more than was seen, to be compared completely."""


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """A turn that was in a state. `mark` is the keyed hash of its words, and of its own time if it has one.

    `seen_at` is when it was said, or when it was first seen if the time of saying is not known. A turn `is_left_out` if
    it was said during a pause or off the record. A turn without `is_said` comes from a program, for example the block
    of a memory. A turn `is_hidden` if a model called it off the record.
    """

    mark: str
    seen_at: datetime
    is_left_out: bool = False
    is_said: bool = True
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class SeenTurns:
    """The turns of a session that were seen, in order.

    `session_hash` identifies the session, and `key_id` names the key with which this hash and the marks were made.
    """

    session_hash: str = ""
    key_id: str = ""
    turns: tuple[SeenTurn, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnsToRecognise:
    """What was read of a state, and what was stored of its session.

    `fresh` is the transcript as it was read, and `dated` the same transcript with times. `before` are the turns that
    were stored before. `read_at` is when the state was saved or read. New turns without a time of their own were said
    then. `hidden` are the indexes of the turns that a model called off the record.
    """

    fresh: Transcript
    dated: Transcript
    before: Sequence[Turn] = ()
    read_at: datetime | None = None
    hidden: frozenset[int] = frozenset()


SeenPlaces = list[int | None]
"""For each turn of a state its place among the turns that were seen before, None for a new turn."""


@dataclass(frozen=True, slots=True)
class RecognisedTurns:
    """The turns of a state, each as it was first seen, and their places among the turns that were `seen` before."""

    seen: tuple[SeenTurn, ...]
    turns: tuple[SeenTurn, ...]
    places: SeenPlaces

    @property
    def hidden_indexes(self) -> set[int]:
        """Return the indexes of the turns of the state that a model called off the record."""
        return {index for index, turn in enumerate(self.turns) if turn.is_hidden}

    def with_hidden(self, indexes: Collection[int]) -> RecognisedTurns:
        """Return a copy in which the turns with these indexes are marked as off the record."""
        noted = tuple(replace(turn, is_hidden=True) if n in indexes else turn for n, turn in enumerate(self.turns))
        return replace(self, turns=noted)

    def seen_and_new_turns(self) -> list[SeenTurn]:
        """Return the turns seen before and the new turns of the state, in order.

        A new turn stands before the next turn that was seen before, or at the end.
        """
        new_before: dict[int, list[SeenTurn]] = defaultdict(list)
        following = len(self.seen)
        for turn, place in zip(reversed(self.turns), reversed(self.places), strict=True):
            if place is None:
                new_before[following].append(turn)
            elif place < following:
                following = place
        known = dict(zip(self.places, self.turns, strict=True))
        joined = [
            turn
            for place, old in enumerate(self.seen)
            for turn in (*reversed(new_before[place]), known.get(place, old))
        ]
        return [*joined, *reversed(new_before[len(self.seen)])]


def places_among_seen(seen: Sequence[SeenTurn], marks: Sequence[str], are_said: Sequence[bool]) -> SeenPlaces:
    """Return where the turns of a state, given by their marks, stand among the turns seen before.

    `are_said` tells for each turn whether somebody said it. Programs may move the other turns, so these turns are
    recognised in any order. Turns that somebody said mostly keep their order. Such a turn out of order is recognised if
    it does not follow a turn that was first seen later, or if the state is reordered (see `_places_in_order`).
    """
    places, is_reordered = _places_in_order(seen, marks, are_said)
    unused: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for place in sorted(set(range(len(seen))).difference(places), reverse=True):
        unused[seen[place].mark, seen[place].is_said].append(place)
    newest = datetime.min.replace(tzinfo=UTC)
    for new, mark in enumerate(marks):
        known, same = places[new], unused[mark, are_said[new]]
        if known is not None:
            newest = max(newest, seen[known].seen_at)
        elif same and not are_said[new]:
            places[new] = same[-1]
        elif same and (is_reordered or seen[same[-1]].seen_at >= newest):
            places[new] = same.pop()
    return places


def _places_in_order(
    seen: Sequence[SeenTurn], marks: Sequence[str], are_said: Sequence[bool]
) -> tuple[SeenPlaces, bool]:
    """Return the places of the turns that somebody said and that keep their order, and whether the state is reordered.

    It is reordered if it has all turns that were seen, but begins with none of the last ones.
    """
    places: SeenPlaces = [None] * len(marks)
    seen_said = [place for place, turn in enumerate(seen) if turn.is_said]
    fresh_said = [place for place, is_said in enumerate(are_said) if is_said]
    old_marks, new_marks = [seen[place].mark for place in seen_said], [marks[place] for place in fresh_said]
    for old, new in _pairs_in_order(old_marks, new_marks):
        places[fresh_said[new]] = seen_said[old]
    return places, not Counter(old_marks) - Counter(new_marks) and not _overlap_length(old_marks, new_marks)


def _pairs_in_order(seen: Sequence[str], marks: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of places of the same turn in both lists, in order.

    Mostly a state begins with the last turns that were seen, or with all of them, and goes on with new ones. That is
    preferred to a match of the same words elsewhere. Turns whose words are unknown prove no match.
    """
    number, is_known = _overlap_length(seen, marks), [mark != UNKNOWN_WORDS for mark in marks]
    pairs = [(len(seen) - number + place, place) for place in range(number)]
    if number == len(seen) or 2 * sum(is_known[:number]) >= max(1, sum(is_known)):
        return pairs
    equal = _equal_pairs(seen, marks)
    return equal if len(equal) > number else pairs


def _overlap_length(seen: Sequence[str], marks: Sequence[str]) -> int:
    """Return how many of the last turns that were seen are the first turns of the state."""
    most = min(len(seen), len(marks))
    fewest = 0 if most**2 <= LARGEST_COMPARED else most - _FEW_NEW
    for number in range(most, fewest, -1):
        start = len(seen) - number
        if all(_may_be_same(seen[start + place], marks[place]) for place in range(number)):
            return number
    return 0


def _may_be_same(old: str, new: str) -> bool:
    return old == new or UNKNOWN_WORDS in (old, new)


def _equal_pairs(seen: Sequence[str], marks: Sequence[str]) -> list[tuple[int, int]]:
    head = 0
    for old, new in zip(seen, marks, strict=False):
        if not _may_be_same(old, new):
            break
        head += 1
    pairs = [(place, place) for place in range(head)]
    for is_equal, start, end, new_start, new_end in diff_runs(seen[head:], marks[head:]):
        old_places, new_places = range(head + start, head + end), range(head + new_start, head + new_end)
        blanked = [place for place in new_places if marks[place] == UNKNOWN_WORDS]
        pairs += zip(old_places, new_places if is_equal else blanked, strict=False)
    return pairs
