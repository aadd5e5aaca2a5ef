"""Merge several saved copies of a conversation, so that each utterance becomes one turn.

A team saves an utterance in its manager's thread, in the contexts of its agents, in the buffers of agents that have
not read it yet, and again in each inner team. Each such list is a view. Two views are merged at a time. If an utterance
is repeated, the result has it as often as the view that repeats it most.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress

from afterword.extractors.readers.utterances import Utterance, compact_json
from afterword.facts.transcripts import Role

_Key = tuple[str, str]
_Named = tuple[str, _Key]


def merge_views(
    main: Sequence[Utterance], view: Iterable[Utterance], *, unrelated_goes_first: bool = False
) -> list[Utterance]:
    """Merge two lists of the same conversation: return `main`, with the utterances added that only `view` has.

    Each added utterance follows the nearest earlier one that both lists have.

    A view that shares no utterance with `main` goes before it if `unrelated_goes_first` is set, else after it.
    """
    places = _MainPlaces(main)
    gaps: dict[int, list[Utterance]] = defaultdict(list)
    cursor, has_match = -1, False
    for utterance in view:
        place = places.take(utterance, cursor)
        if place is None:
            gaps[cursor].append(utterance)
        else:
            cursor, has_match = max(cursor, place), has_match or place >= 0
    if not (has_match or unrelated_goes_first):
        return [*main, *gaps[-1]]
    utterances = gaps[-1]
    for place, utterance in enumerate(main):
        utterances += (utterance, *gaps[place])
    return utterances


class _MainPlaces:
    """Finds the place of a view's utterance in the main sequence. Each place is used once."""

    def __init__(self, main: Sequence[Utterance]) -> None:
        self._all: dict[_Key, list[int]] = {}
        self._nameless: dict[_Key, list[int]] = {}
        self._named: dict[_Named, int] = {}
        self._used: set[int] = set()
        self._fronts: dict[_Key, int] = defaultdict(int)
        self._seen: set[_Named] = set()
        for place, utterance in enumerate(main):
            key = _key(utterance)
            self._all.setdefault(key, []).append(place)
            if utterance.message_id:
                self._named[utterance.message_id, key] = place
            else:
                self._nameless.setdefault(key, []).append(place)

    def take(self, utterance: Utterance, cursor: int) -> int | None:
        """Return the utterance's place in the main sequence, -1 for a second copy in the view, or None if it is new."""
        key = _key(utterance)
        if not utterance.message_id:
            return self._next_place(key, self._all.get(key), cursor)
        named = (utterance.message_id, key)
        if named in self._seen:
            return -1
        self._seen.add(named)
        place = self._named.get(named)
        if place is None:
            # Two utterances with ids are the same only if the ids are equal. So only those without an id are left.
            return self._next_place(key, self._nameless.get(key), cursor)
        self._used.add(place)
        return place

    def _next_place(self, key: _Key, candidates: list[int] | None, cursor: int) -> int | None:
        """Return the next candidate after the cursor, else the first unused one before it, else None."""
        if not candidates:
            return None
        ahead = bisect_right(candidates, cursor)
        place = candidates[ahead] if ahead < len(candidates) else self._first_free_place(key, candidates)
        if place is not None:
            self._used.add(place)
        return place

    def _first_free_place(self, key: _Key, candidates: list[int]) -> int | None:
        front = self._fronts[key]
        while front < len(candidates) and candidates[front] in self._used:
            front += 1
        self._fronts[key] = front
        return candidates[front] if front < len(candidates) else None


def _key(utterance: Utterance) -> _Key:
    text = utterance.text
    if text.startswith("{") and utterance.role in (None, Role.AGENT):
        # An answer in JSON is saved as an object in the thread, but as the model's own text in the contexts.
        with suppress(ValueError, RecursionError):
            text = compact_json(json.loads(text))
    return utterance.mark or utterance.source, text
