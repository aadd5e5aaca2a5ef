"""What keeps something forgotten from coming back: keyed hashes of words, places and slots, each with a time. Pure.

What was said at or before a tombstone's `until` stays forgotten; the same said later is new.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.facts.words import folded
from afterword.privacy.blanking import FORGOTTEN, Span, blanked, is_forgotten, squeezed

_DIGITS = 32
_SHORTEST_INSIDE = 4
STRUCTURE = frozenset(
    {
        *("type", "source", "id", "created_at", "role", "name", "call_id", "tool_call_id", "version", "mime_type"),
        *("target", "finish_reason", "full_message_id", "thread_id", "agent_id", "component_type", "provider"),
    }
)
"""Keys of a saved state that hold names and ids, which AutoGen needs as they are."""


class Mark(StrEnum):
    """What a tombstone stands for: words in a text of a session, a session, a whole scope, a value of a slot."""

    TEXT = "text"
    SESSION = "session"
    SCOPE = "scope"
    SLOT = "slot"


@dataclass(frozen=True, slots=True)
class Key:
    """A random key, and its name."""

    id: str
    secret: bytes

    def of(self, *parts: str) -> str:
        """Return the keyed hash of these parts."""
        text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()[:_DIGITS]

    def place(self, scope: Scope, session_id: str) -> str:
        """Return the mark of a session."""
        return self.of(Mark.SESSION, str(scope), session_id)

    def text(self, scope: Scope, session_id: str, text: str) -> str:
        """Return the mark of a text of a session, however it is spaced."""
        return self.of(Mark.TEXT, str(scope), session_id, squeezed(text))

    def slot(self, scope: Scope, subject: str, attribute: str, value: str) -> str:
        """Return the mark of a value of a slot."""
        return self.of(Mark.SLOT, str(scope), folded(subject), folded(attribute), folded(value))


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One mark. `place` is the mark of its session, empty for slots and scopes.

    `spans` are the words of a text that were forgotten. `times` says how many turns it stood for, since a turn that
    carries no time cannot be told from a later one but by counting.
    """

    kind: Mark
    key_id: str
    place: str
    mark: str
    until: datetime
    spans: tuple[Span, ...] = ()
    times: int = 0


class Forgotten:
    """What was forgotten of one scope, and of one session of it: what is read anew is held against it."""

    def __init__(self, scope: Scope, session_id: str | None, keys: Iterable[Key], stones: Iterable[Tombstone]) -> None:
        self._scope, self._session_id = scope, session_id
        self._keys = tuple(keys)
        self._by_mark: dict[tuple[str, str], list[Tombstone]] = defaultdict(list)
        self._whole: list[Tombstone] = []
        for stone in stones:
            if stone.kind in (Mark.SESSION, Mark.SCOPE):
                self._whole.append(stone)
            else:
                self._by_mark[stone.key_id, stone.mark].append(stone)

    @property
    def size(self) -> int:
        """How many tombstones there are; they only ever grow more."""
        return len(self._whole) + sum(map(len, self._by_mark.values()))

    @property
    def until(self) -> datetime:
        """Until when what was said in a session or scope is forgotten as a whole. Raises ValueError where none is."""
        return max(stone.until for stone in self._whole)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was forgotten here."""
        return not self._by_mark and not self._whole

    @property
    def touches_session(self) -> bool:
        """Whether words of this session, or all of it, were forgotten."""
        return bool(self._whole) or any(one.kind is Mark.TEXT for found in self._by_mark.values() for one in found)

    def transcript(self, fresh: Transcript, timed: Transcript, before: Sequence[Turn] = ()) -> Transcript:
        """Return a reading without what was forgotten of it; the turns keep their numbers.

        `fresh` is as it was read, `timed` as it was dated since, `before` the turns that are kept of the session.
        Where nothing else is left it has no turns.
        """
        if self.is_empty:
            return timed
        tally = _Tally(before)
        pairs = zip(fresh.turns, timed.turns, strict=True)
        turns = tuple(self._shown(at, one, dated, tally) for at, (one, dated) in enumerate(pairs))
        return replace(timed, turns=turns if any(turn.text != FORGOTTEN for turn in turns) else ())

    def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return kept turns without what was forgotten of them, every one of them, blank or not."""
        tally = _Tally(())
        return tuple(self._shown(at, one, one, tally) for at, one in enumerate(turns))

    def assertions(self, said: Iterable[Assertion]) -> tuple[Assertion, ...]:
        """Return what was not forgotten."""
        return tuple(one for one in said if not self.holds_back(one))

    def holds_back(self, one: Assertion) -> bool:
        """Whether a statement says, with the word of then, what was forgotten; blanked words say nothing."""
        if is_forgotten(one.value) or self.is_scope_forgotten(one.said_at):
            return True
        return self.is_slot_forgotten(one.subject, one.attribute, one.value, one.said_at)

    def is_scope_forgotten(self, said_at: datetime) -> bool:
        """Whether all of the scope was forgotten after this moment."""
        return any(stone.kind is Mark.SCOPE and said_at <= stone.until for stone in self._whole)

    def is_slot_forgotten(self, subject: str, attribute: str, value: str, said_at: datetime | None) -> bool:
        """Whether this value of this slot was forgotten after it was said; without a time, whether it ever was."""
        if not self._by_mark:
            return False
        marks = ((key.id, key.slot(self._scope, subject, attribute, value)) for key in self._keys)
        stones = (stone for mark in marks for stone in self._by_mark.get(mark, ()))
        return any(said_at is None or said_at <= stone.until for stone in stones)

    def text(self, text: str) -> str:
        """Return a text of the session without the words of it that were forgotten, whenever they were said."""
        while stone := next((one for one in self._stones(text) if blanked(text, one.spans) != text), None):
            text = blanked(text, stone.spans)
        return text

    def state(self, state: Mapping[str, Any], fresh: Transcript, shown: Transcript) -> dict[str, Any]:
        """Return a saved state, of which `fresh` was read and `shown` is left, without what was forgotten of it."""
        if not self.touches_session:
            return dict(state)
        left = shown.turns or tuple(replace(one, text=FORGOTTEN) for one in fresh.turns)
        pairs = list(zip(fresh.turns, left, strict=True))
        whole = [squeezed(old.text) for old, new in pairs if new.text == FORGOTTEN] if self._whole else []
        covering = _Covering(self, [(old.text, new.text) for old, new in pairs], whole)
        return {str(key): covering.inside(value, str(key)) for key, value in state.items()}

    def _shown(self, at: int, fresh: Turn, timed: Turn, tally: _Tally) -> Turn:
        if any(_covers(stone, fresh, timed, at) for stone in self._whole):
            return replace(timed, text=FORGOTTEN)
        stones = [one for one in self._stones(fresh.text) if blanked(fresh.text, one.spans) != fresh.text]
        left = self.text(fresh.text)
        if not stones:
            tally.passes(left)
            return timed
        is_old = any(timed.said_at is not None and timed.said_at <= one.until for one in stones)
        if is_old or (fresh.said_at is None and tally.is_old(left, max(one.times for one in stones))):
            tally.passes(left)
            return replace(timed, text=left)
        return timed

    def _stones(self, text: str) -> list[Tombstone]:
        if self._session_id is None or not self.touches_session:
            return []
        marks = [(key.id, key.text(self._scope, self._session_id, text)) for key in self._keys]
        return [stone for mark in marks for stone in self._by_mark.get(mark, ())]


class _Tally:
    """Tells turns without a time that are kept, blanked, from those that say the same again: by counting."""

    def __init__(self, before: Sequence[Turn]) -> None:
        self._kept = Counter(turn.text for turn in before if is_forgotten(turn.text)) if before else None
        self._passed: Counter[str] = Counter()

    def passes(self, text: str) -> None:
        """Count a turn of which this is left."""
        if is_forgotten(text):
            self._passed[text] += 1

    def is_old(self, left: str, times: int) -> bool:
        """Whether the next turn of which this is left is one of those that were forgotten, `times` in all."""
        return self._passed[left] < (times if self._kept is None else self._kept[left])


class _Covering:
    """The strings of a state, each held against the turns that were read of it."""

    def __init__(self, forgotten: Forgotten, pairs: Iterable[tuple[str, str]], whole: Collection[str]) -> None:
        self._forgotten, self._whole = forgotten, whole
        self._left: dict[str, list[str | None]] = defaultdict(list)
        self._seen: Counter[str] = Counter()
        for old, new in pairs:
            self._left[squeezed(old)].append(None if old == new else new)

    def inside(self, value: Any, key: str) -> Any:
        """Return a value of the state without what was forgotten; names and ids stay."""
        if isinstance(value, str):
            return value if key in STRUCTURE else self._leaf(value)
        if isinstance(value, Mapping):
            return {name: self.inside(inner, str(name)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.inside(inner, key) for inner in value]
        return value

    def _leaf(self, text: str) -> str:
        plain = squeezed(text)
        if plain in self._left:
            # Of equal turns, only those said before were forgotten; a state lists them in their order.
            places = self._left[plain]
            left = places[self._seen[plain] % len(places)]
            self._seen[plain] += 1
            return text if left is None else left
        if len(plain) >= _SHORTEST_INSIDE and any(plain in one or (one and one in plain) for one in self._whole):
            return as_json(text, FORGOTTEN)
        return as_json(text, self._forgotten.text(text))


def as_json(text: str, shown: str) -> str:
    """Return what is shown of a text: where it was a JSON object, it still is one."""
    if shown == text or text[:1] not in ("{", "["):
        return shown
    try:
        json.loads(text)
    except ValueError:
        return shown
    try:
        json.loads(shown)
    except ValueError:
        return "{}" if text.startswith("{") else "[]"
    return shown


def _covers(stone: Tombstone, fresh: Turn, timed: Turn, before: int) -> bool:
    """Whether a turn was said when the tombstone was set; `before` counts those like it that came before."""
    if timed.said_at is not None and timed.said_at <= stone.until:
        return True
    return fresh.said_at is None and stone.kind is not Mark.SCOPE and before < stone.times
