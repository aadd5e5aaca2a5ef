"""Tombstones: keyed hashes, each with a time, that keep forgotten content from being stored again. Pure.

Content said at or before a tombstone's `until` stays forgotten. The same content said later is new.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Any

from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.facts.words import folded
from afterword.normal_form import composed, text_forms
from afterword.privacy.blanking import (
    FORGOTTEN,
    Span,
    blank_decomposed,
    blank_spans,
    decomposed_letters,
    has_blanked_words,
    letters_and_digits,
)
from afterword.privacy.state_keys import blank_strings

_DIGITS = 32
_SHORTEST_INSIDE = 4
LEFT_OUT = "forgotten"
"""The key of `Transcript.skipped` that counts turns that were left out because their words were forgotten."""


BlankSpans = Callable[[str, Iterable[Span]], str]
HashText = Callable[["TombstoneKey", Scope, str, str], str]


class TombstoneKind(StrEnum):
    """What was forgotten: words in a text of a session, a session, a whole scope, or one value of an attribute."""

    TEXT = "text"
    SESSION = "session"
    SCOPE = "scope"
    SLOT = "slot"


@dataclass(frozen=True, slots=True)
class TombstoneKey:
    """A random key for hashing, and its id."""

    id: str
    secret: bytes

    def hash_of(self, *parts: str) -> str:
        """Return the keyed hash of these parts."""
        text = json.dumps(parts, ensure_ascii=True, separators=(",", ":"))
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()[:_DIGITS]

    def session_hash(self, scope: Scope, session_id: str) -> str:
        """Return the hash of a session."""
        return self.hash_of(TombstoneKind.SESSION, str(scope), session_id)

    def text_hash(self, scope: Scope, session_id: str, text: str) -> str:
        """Return the hash of a text of a session. Spacing and punctuation do not change it."""
        return self.hash_of(TombstoneKind.TEXT, str(scope), session_id, letters_and_digits(text))

    def decomposed_text_hash(self, scope: Scope, session_id: str, text: str) -> str:
        """Return the hash that older versions made of a text, of which they compared the NFD form."""
        return self.hash_of(TombstoneKind.TEXT, str(scope), session_id, decomposed_letters(text))

    def slot_hash(self, scope: Scope, subject: str, attribute: str, value: str) -> str:
        """Return the hash of one value of a subject's attribute."""
        return self.hash_of(TombstoneKind.SLOT, str(scope), folded(subject), folded(attribute), folded(value))

    def slot_hashes(self, scope: Scope, subject: str, attribute: str, value: str) -> list[str]:
        """Return the hash of one value of an attribute, and the hashes that older versions made of its NFD forms."""
        forms = product(*(dict.fromkeys(map(_folded, text_forms(part))) for part in (subject, attribute, value)))
        return [self.hash_of(TombstoneKind.SLOT, str(scope), *parts) for parts in forms]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A record of something forgotten.

    `mark` is its hash, and `place` the hash of its session, which is empty for slots and scopes. `spans` are the
    positions of the forgotten words in a text. `times` is the number of turns that the tombstone covers. It serves to
    distinguish turns without a time from later turns with the same words. A tombstone of a session covers turns by
    their time only, and each of the session's texts has a tombstone of its own. One that an earlier version made covers
    that many turns from the beginning, too.
    """

    kind: TombstoneKind
    key_id: str
    place: str
    mark: str
    until: datetime
    spans: tuple[Span, ...] = ()
    times: int = 0


class Forgotten:
    """Checks new content against the tombstones of one scope and of one of its sessions.

    `former` are the scopes and ids that the session had before a merge moved it to this scope.
    """

    def __init__(
        self,
        scope: Scope,
        session_id: str | None,
        keys: Iterable[TombstoneKey],
        tombstones: Iterable[Tombstone],
        former: Sequence[tuple[Scope, str]] = (),
    ) -> None:
        self._session_id = session_id
        # The tombstones of a session from another scope bear the names that it had there.
        self._scopes = (scope, *(former_scope for former_scope, _ in former))
        self._sessions = ((scope, session_id or ""), *former)
        self._keys = tuple(keys)
        self._by_mark: dict[tuple[str, str], list[Tombstone]] = defaultdict(list)
        self._of_session_or_scope: list[Tombstone] = []
        for tombstone in tombstones:
            if tombstone.kind in (TombstoneKind.SESSION, TombstoneKind.SCOPE):
                self._of_session_or_scope.append(tombstone)
            else:
                self._by_mark[tombstone.key_id, tombstone.mark].append(tombstone)

    @property
    def size(self) -> int:
        """Return the number of tombstones, which never decreases."""
        return len(self._of_session_or_scope) + sum(map(len, self._by_mark.values()))

    @property
    def _number_of_turns(self) -> int:
        of_texts = (tombstone for tombstones in self._by_mark.values() for tombstone in tombstones)
        return sum(tombstone.times for tombstone in (*self._of_session_or_scope, *of_texts))

    @property
    def until(self) -> datetime:
        """Return the time up to which a whole session or scope is forgotten. Raises ValueError if none is."""
        return max(tombstone.until for tombstone in self._of_session_or_scope)

    @property
    def forgets_whole(self) -> bool:
        """Return whether a whole session or scope is forgotten, not only some texts."""
        return bool(self._of_session_or_scope)

    @property
    def is_empty(self) -> bool:
        """Return whether there are no tombstones."""
        return not self._by_mark and not self._of_session_or_scope

    @property
    def touches_session(self) -> bool:
        """Return whether words of this session, or all of it, were forgotten."""
        return bool(self._of_session_or_scope) or any(
            tombstone.kind is TombstoneKind.TEXT for tombstones in self._by_mark.values() for tombstone in tombstones
        )

    def transcript(self, fresh: Transcript, timed: Transcript, before: Sequence[Turn] = ()) -> Transcript:
        """Return a transcript without its forgotten words. The turns keep their numbers.

        `fresh` is the transcript as it was read, `timed` the same transcript with dates. `before` are the stored turns
        of the session. The result has no turns if all of them were forgotten. `skipped` says how many were.
        """
        if not self.touches_session:
            return timed
        old_turns = _OldTurns(fresh.turns, before, self._number_of_turns)
        pairs = zip(fresh.turns, timed.turns, strict=True)
        turns = tuple(self._blanked_turn(index, turn, dated, old_turns) for index, (turn, dated) in enumerate(pairs))
        number = sum(turn.is_said and turn.text == FORGOTTEN for turn in turns)
        skipped = {**timed.skipped, LEFT_OUT: number} if number else timed.skipped
        remains = any(turn.text != FORGOTTEN for turn in turns)
        return replace(timed, turns=turns if remains else (), skipped=skipped)

    def turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return stored turns without their forgotten words, including turns of which no word remains."""
        old_turns = _OldTurns(turns, (), self._number_of_turns)
        return tuple(self._blanked_turn(index, turn, turn, old_turns) for index, turn in enumerate(turns))

    def assertions(self, assertions: Iterable[Assertion]) -> tuple[Assertion, ...]:
        """Return the assertions that were not forgotten."""
        return tuple(assertion for assertion in assertions if not self.covers(assertion))

    def covers(self, assertion: Assertion) -> bool:
        """Return whether an assertion was forgotten, or its value contains `[forgotten]`."""
        if has_blanked_words(assertion.value) or self.is_scope_forgotten(assertion.said_at):
            return True
        return self.is_slot_forgotten(assertion.subject, assertion.attribute, assertion.value, assertion.said_at)

    def is_scope_forgotten(self, said_at: datetime) -> bool:
        """Return whether the whole scope was forgotten at or after this time."""
        return any(
            tombstone.kind is TombstoneKind.SCOPE and said_at <= tombstone.until
            for tombstone in self._of_session_or_scope
        )

    def is_slot_forgotten(self, subject: str, attribute: str, value: str, said_at: datetime | None) -> bool:
        """Return whether this value of an attribute was forgotten at or after `said_at`, or ever if that is None."""
        if not self._by_mark:
            return False
        marks = (
            (key.id, mark)
            for key in self._keys
            for scope in self._scopes
            for mark in key.slot_hashes(scope, subject, attribute, value)
        )
        tombstones = (tombstone for mark in marks for tombstone in self._by_mark.get(mark, ()))
        return any(said_at is None or said_at <= tombstone.until for tombstone in tombstones)

    def text(self, text: str) -> str:
        """Return a text of the session without its forgotten words, no matter when they were said."""
        while forms := self._tombstones_of(text):
            tombstone, blank = forms[0]
            text = blank(text, tombstone.spans)
        return text

    def state(self, state: Mapping[str, Any], fresh: Transcript, shown: Transcript) -> dict[str, Any]:
        """Return a saved state without its forgotten words.

        `fresh` is the transcript that was read from the state, `shown` the same without forgotten words.
        """
        if not self.touches_session:
            return dict(state)
        remaining = shown.turns or tuple(replace(turn, text=FORGOTTEN) for turn in fresh.turns)
        pairs = list(zip(fresh.turns, remaining, strict=True))
        emptied = [old.text for old, new in pairs if new.text == FORGOTTEN] if self._of_session_or_scope else []
        blanking = _StateBlanking(self, [(old.text, new.text) for old, new in pairs], map(letters_and_digits, emptied))
        blanked: dict[str, Any] = blank_strings(state, blanking.blank)
        return blanked

    def _blanked_turn(self, index: int, fresh: Turn, timed: Turn, old_turns: _OldTurns) -> Turn:
        is_covered = any(_covers_turn(tombstone, fresh, timed, index) for tombstone in self._of_session_or_scope)
        tombstones = [tombstone for tombstone, _ in self._tombstones_of(fresh.text)]
        remaining = FORGOTTEN if is_covered else self.text(fresh.text)
        is_old = old_turns.includes_next(fresh, remaining, tombstones) and fresh.said_at is None
        is_old |= any(timed.said_at is not None and timed.said_at <= tombstone.until for tombstone in tombstones)
        return replace(timed, text=remaining) if is_covered or is_old else timed

    def _tombstones_of(self, text: str) -> list[tuple[Tombstone, BlankSpans]]:
        """Return the tombstones for words of this text, each with the function that blanks its spans."""
        if self._session_id is None or not self.touches_session:
            return []
        forms: list[tuple[HashText, BlankSpans]] = [(TombstoneKey.text_hash, blank_spans)]
        if len(text_forms(text)) > 1:
            forms.append((TombstoneKey.decomposed_text_hash, blank_decomposed))
        return [
            (tombstone, blank)
            for hash_text, blank in forms
            for key in self._keys
            for scope, session_id in self._sessions
            for tombstone in self._by_mark.get((key.id, hash_text(key, scope, session_id, text)), ())
            if blank(text, tombstone.spans) not in (text, composed(text))
        ]


class _OldTurns:
    """Tells the forgotten turns of a state without times from later turns with the same words.

    While the state repeats the stored turns from the beginning, each of its turns is as it is stored, and what follows
    was said later. If all forgotten turns have passed then, the rest is new. Otherwise the first turns with the same
    words are old: as many as were forgotten, except those that are stored. Turns that nobody said are not counted.
    """

    def __init__(self, fresh: Sequence[Turn], before: Sequence[Turn], number: int) -> None:
        self._fresh = [turn for turn in fresh if turn.is_said]
        self._stored = [turn for turn in before if turn.is_said]
        dated = [(turn.said_at, turn.text) for turn in self._stored if turn.said_at and not turn.time_is_guess]
        self._said_at = {text: said_at for said_at, text in sorted(dated, reverse=True)}
        self._is_continued, self._place, self._remaining_number = True, 0, number
        self._newest = datetime.min.replace(tzinfo=UTC)
        self._passed: Counter[str] = Counter()

    @cached_property
    def _most(self) -> Counter[str]:
        """How many turns of the state, by their letters and digits, may be old."""
        most = Counter(letters_and_digits(turn.text) for turn in self._fresh)
        most.subtract(letters_and_digits(turn.text) for turn in self._stored)
        return most

    def includes_next(self, turn: Turn, remaining: str, tombstones: Sequence[Tombstone]) -> bool:
        """Return whether the next turn is old. `remaining` is its text without the forgotten words."""
        if not turn.is_said:
            return True
        letters = letters_and_digits(turn.text) if tombstones else ""
        later = sorted((each for each in tombstones if each.until >= self._newest), key=lambda each: each.times)
        stored = self._stored[self._place].text if self._place < len(self._stored) else None
        if self._is_continued and stored is not None:
            is_old = stored != turn.text
            self._is_continued = not is_old or (stored == remaining and bool(later or not tombstones))
            if self._is_continued:
                self._place += 1
                if not has_blanked_words(stored):
                    self._newest = max(self._newest, self._said_at.get(stored, self._newest))
                return self._count(letters, is_old, is_blanked=has_blanked_words(stored))
        times = sum({tombstone.until: tombstone.times for tombstone in later}.values())
        is_old = times > 0 and self._passed[letters] < min(times, self._most[letters])
        is_old &= self._remaining_number > 0 or not self._is_continued
        return self._count(letters, is_old, is_blanked=is_old)

    def _count(self, letters: str, is_old: bool, *, is_blanked: bool) -> bool:
        self._passed[letters] += is_old
        self._remaining_number -= is_blanked
        return is_old


class _StateBlanking:
    """Blanks the strings of a saved state in the same way as the turns that were read from it."""

    def __init__(self, forgotten: Forgotten, pairs: Iterable[tuple[str, str]], forgotten_texts: Iterable[str]) -> None:
        self._forgotten = forgotten
        self._forgotten_texts = frozenset(filter(None, forgotten_texts))
        self._lengths = {len(turn) for turn in self._forgotten_texts}
        # A searched text has no line break, so a match lies within one turn.
        self._joined_texts = "\n".join(self._forgotten_texts)
        self._replacements: dict[str, list[str | None]] = defaultdict(list)
        self._seen: Counter[str] = Counter()
        for old, new in pairs:
            self._replacements[letters_and_digits(old)].append(None if old == new else new)

    def blank(self, text: str) -> str:
        """Return a string of the state without forgotten words."""
        plain = letters_and_digits(text)
        if plain in self._replacements:
            # Of several turns with the same words, only the earlier ones were forgotten. A state lists turns in order.
            replacements = self._replacements[plain]
            replacement = replacements[self._seen[plain] % len(replacements)]
            self._seen[plain] += 1
            return text if replacement is None else replacement
        if len(plain) >= _SHORTEST_INSIDE and (plain in self._joined_texts or self._holds_whole_turn(plain)):
            return keep_json_valid(text, FORGOTTEN)
        return keep_json_valid(text, self._forgotten.text(text))

    def _holds_whole_turn(self, plain: str) -> bool:
        """Return whether these letters and digits contain a turn that was forgotten completely."""
        if len(plain) * len(self._lengths) > len(self._forgotten_texts):
            return any(turn in plain for turn in self._forgotten_texts)
        return any(
            plain[start : start + length] in self._forgotten_texts
            for length in self._lengths
            for start in range(len(plain) - length + 1)
        )


def text_tombstones(
    key: TombstoneKey, scope: Scope, session_id: str, turns: Iterable[Turn], until: datetime
) -> list[Tombstone]:
    """Return tombstones for the whole texts of these turns of a session. Turns that nobody said are not counted."""
    times: Counter[str] = Counter()
    for turn in turns:
        times[letters_and_digits(turn.text)] += turn.is_said
    place = key.session_hash(scope, session_id)
    return [
        Tombstone(
            TombstoneKind.TEXT,
            key.id,
            place,
            key.text_hash(scope, session_id, letters),
            until,
            ((0, len(letters)),),
            count,
        )
        for letters, count in times.items()
        if letters and letters != letters_and_digits(FORGOTTEN)
    ]


def keep_json_valid(text: str, shown: str) -> str:
    """Return `shown`, or an empty JSON object or list if `text` is JSON and `shown` is not."""
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


def _folded(text: str) -> str:
    """Return a text as older versions compared it: case-folded with single spaces, but not in NFC."""
    return " ".join(text.casefold().split())


def _covers_turn(tombstone: Tombstone, fresh: Turn, timed: Turn, index: int) -> bool:
    """Return whether a tombstone of a session or scope covers the turn at this index."""
    if timed.said_at is not None and timed.said_at <= tombstone.until:
        return True
    return fresh.said_at is None and tombstone.kind is not TombstoneKind.SCOPE and index < tombstone.times
