"""One utterance is one turn, however many copies of it were saved.

A team saves what was said in its manager's thread, in the contexts of its agents, in the buffers of those who have not
read it yet, and once more in each team inside it. Two views of a conversation are laid side by side: what stands in
both is one utterance, as often as the view that has it most often says.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence

from afterword.extractors.readers.utterances import Utterance, compact
from afterword.facts.transcripts import Role

_Key = tuple[str, str]
_Named = tuple[str, _Key]


def merged(main: Sequence[Utterance], view: Iterable[Utterance], *, earlier: bool = False) -> list[Utterance]:
    """Return `main` with what only `view` has, each behind the neighbour that both have, else before everything.

    `earlier` tells where a view goes that shares nothing with `main`: before it, else behind it.
    """
    places = _Places(main)
    gaps: dict[int, list[Utterance]] = defaultdict(list)
    cursor, has_match = -1, False
    for utterance in view:
        place = places.take(utterance, cursor)
        if place is None:
            gaps[cursor].append(utterance)
        else:
            cursor, has_match = max(cursor, place), has_match or place >= 0
    return _woven(main, gaps) if has_match or earlier else [*main, *gaps[-1]]


def _woven(main: Sequence[Utterance], gaps: dict[int, list[Utterance]]) -> list[Utterance]:
    found = list(gaps.get(-1, ()))
    for place, utterance in enumerate(main):
        found.append(utterance)
        found.extend(gaps.get(place, ()))
    return found


class _Places:
    """Where in the main sequence an utterance stands that a view has too."""

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
        """Return the place of the utterance's copy, -1 for a second copy in the view itself, None where it is new."""
        key = _key(utterance)
        if not utterance.message_id:
            return self._alike(key, self._all.get(key), cursor)
        named = (utterance.message_id, key)
        if named in self._seen:
            return -1
        self._seen.add(named)
        place = self._named.get(named)
        if place is None:
            # Two utterances with an id each are one only if it is the same.
            return self._alike(key, self._nameless.get(key), cursor)
        self._used.add(place)
        return place

    def _alike(self, key: _Key, candidates: list[int] | None, cursor: int) -> int | None:
        """Return the next place behind the cursor, else the first free one; all that are used lie before it."""
        if not candidates:
            return None
        ahead = bisect_right(candidates, cursor)
        place = candidates[ahead] if ahead < len(candidates) else self._first_free(key, candidates)
        if place is not None:
            self._used.add(place)
        return place

    def _first_free(self, key: _Key, candidates: list[int]) -> int | None:
        front = self._fronts[key]
        while front < len(candidates) and candidates[front] in self._used:
            front += 1
        self._fronts[key] = front
        return candidates[front] if front < len(candidates) else None


def _key(utterance: Utterance) -> _Key:
    text = utterance.text
    if text.startswith("{") and utterance.role in (None, Role.AGENT):
        # The same object is saved as an object in the thread and as the model's own text in the contexts.
        text = _canonical(text)
    return utterance.mark or utterance.source, text


def _canonical(text: str) -> str:
    try:
        return compact(json.loads(text))
    except (ValueError, RecursionError):
        return text
