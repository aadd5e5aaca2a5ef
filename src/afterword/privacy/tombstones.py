"""Tombstones: keyed hashes, each with a time, that keep forgotten content from being stored again. Pure.

Content said at or before a tombstone's `until` stays forgotten. The same content said later is new.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import product
from typing import Any

from afterword.facts.assertions import Assertion
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import Transcript, Turn
from afterword.facts.words import folded
from afterword.normal_form import composed, composed_and_decomposed
from afterword.privacy.blanking import (
    FORGOTTEN,
    Span,
    blank_decomposed_spans,
    blank_spans,
    decomposed_letters,
    has_blanked_words,
    letters_and_digits,
)
from afterword.privacy.seen_turns import (
    UNKNOWN_WORDS,
    RecognisedTurns,
    SeenTurn,
    SeenTurns,
    TurnsToRecognise,
    places_among_seen,
)
from afterword.privacy.state_blanking import StateBlanking, blank_saved_state

_DIGITS = 32
MARK_DIGITS = 16
"""The length of the mark of a turn."""
_BLANKED_CALL = "({})"
"""How a call of a tool ends whose arguments were blanked."""
LEFT_OUT = "forgotten"
"""The key of `Transcript.skipped` that counts turns that were left out because their words were forgotten."""


BlankSpans = Callable[[str, Sequence[Span]], str]
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
        return hmac.digest(self.secret, text.encode(), "sha256").hex()[:_DIGITS]

    def turn_mark(self, text: str, said_at: datetime | None = None) -> str:
        """Return the mark by which a turn is recognised in later states. Spacing and punctuation do not change it.

        `said_at` is the turn's own time, None if it has none.
        """
        if has_blanked_words(text) or text.endswith(_BLANKED_CALL):
            return UNKNOWN_WORDS
        time = said_at.astimezone(UTC).isoformat() if said_at else ""
        return self.hash_of("turn", letters_and_digits(text) or folded(text), time)[:MARK_DIGITS]

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

    def slot_hashes_of_all_versions(self, scope: Scope, subject: str, attribute: str, value: str) -> list[str]:
        """Return the hash of one value of an attribute, and the hashes that older versions made of its NFD forms."""
        forms = product(
            *(
                dict.fromkeys(map(_folded_by_older_versions, composed_and_decomposed(part)))
                for part in (subject, attribute, value)
            )
        )
        return [self.hash_of(TombstoneKind.SLOT, str(scope), *parts) for parts in forms]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A record of something forgotten.

    `mark` is its hash, and `place` the hash of its session, which is empty for slots and scopes. `spans` are the
    positions of the forgotten words in a text. `times` is the number of turns that the tombstone covers. It serves to
    distinguish turns without a time from later turns with the same words, in sessions of which it was not recorded when
    their turns were seen. A tombstone of a session covers turns by their time only, and each of the session's texts has
    a tombstone of its own. A tombstone of a session that an earlier version made also covers the first `times` turns.
    """

    kind: TombstoneKind
    key_id: str
    place: str
    mark: str
    until: datetime
    spans: tuple[Span, ...] = ()
    times: int = 0


class ForgottenContent:
    """Checks new content against the tombstones of one scope and of one of its sessions.

    `former` are the scopes and ids that the session had before a merge moved it to this scope. `seen` are the turns of
    the session that were seen so far, None if none were recorded. The own key of the store is the first of `keys`.
    """

    def __init__(
        self,
        scope: Scope,
        session_id: str | None,
        keys: Iterable[TombstoneKey],
        tombstones: Iterable[Tombstone],
        former: Sequence[tuple[Scope, str]] = (),
        seen: SeenTurns | None = None,
    ) -> None:
        # The tombstones of a session from another scope bear the names that it had there.
        self._sessions = ((scope, session_id or ""), *former)
        self._keys = tuple(keys)
        self.seen: SeenTurns = seen or SeenTurns()
        by_kind: dict[TombstoneKind, list[Tombstone]] = defaultdict(list)
        for tombstone in tombstones:
            by_kind[tombstone.kind].append(tombstone)
        self._whole_tombstones = by_kind[TombstoneKind.SESSION] + by_kind[TombstoneKind.SCOPE]
        self._text_tombstones = _by_mark(by_kind[TombstoneKind.TEXT])
        self._slot_tombstones = _by_mark(by_kind[TombstoneKind.SLOT])

    @property
    def mark_key(self) -> TombstoneKey:
        """Return the key for the marks of the session's turns. Raises IndexError if the store has no key yet."""
        of_marks = [key for key in self._keys if key.id == self.seen.key_id]
        return (of_marks or self._keys)[0]

    @property
    def forgotten_item_count(self) -> int:
        """Return the number of tombstones and of turns that are left out.

        It never decreases, so it tells whether anything was forgotten since it was last asked.
        """
        of_words = (*self._text_tombstones.values(), *self._slot_tombstones.values())
        number_left_out = sum(turn.is_left_out for turn in self.seen.turns)
        return len(self._whole_tombstones) + sum(map(len, of_words)) + number_left_out

    @property
    def session_or_scope_forgotten_until(self) -> datetime:
        """Return the time up to which a whole session or scope is forgotten. Raises ValueError if none is."""
        return max(tombstone.until for tombstone in self._whole_tombstones)

    @property
    def is_session_or_scope_forgotten(self) -> bool:
        """Return whether a whole session or scope is forgotten, not only some texts."""
        return bool(self._whole_tombstones)

    @property
    def has_no_tombstones(self) -> bool:
        """Return whether there are no tombstones."""
        return not (self._whole_tombstones or self._text_tombstones or self._slot_tombstones)

    @property
    def touches_session(self) -> bool:
        """Return whether words of this session, or all of it, were forgotten, or turns of it are left out."""
        has_tombstones = bool(self._whole_tombstones or self._text_tombstones)
        return has_tombstones or any(turn.is_left_out for turn in self.seen.turns)

    def blank_in_transcript(self, reading: TurnsToRecognise, recognised: RecognisedTurns | None = None) -> Transcript:
        """Return the dated transcript of a state without its forgotten words. The turns keep their numbers.

        `recognised` is the result of `recognise_seen_turns`, if it is known. The returned transcript has no
        turns if all of them were forgotten. `skipped` says how many were.
        """
        fresh, dated = reading.fresh, reading.dated
        if not self.touches_session:
            return dated
        recognised = recognised or self.recognise_seen_turns(reading)
        rows = zip(fresh.turns, dated.turns, recognised.turns, strict=True)
        turns = tuple(self._blanked_turn(index, *row) for index, row in enumerate(rows))
        number = sum(turn.is_said and turn.text == FORGOTTEN for turn in turns)
        skipped = {**dated.skipped, LEFT_OUT: number} if number else dated.skipped
        remains = any(turn.text != FORGOTTEN for turn in turns)
        return replace(dated, turns=turns if remains else (), skipped=skipped)

    def blank_in_turns(self, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Return stored turns without their forgotten words, including turns of which no word remains."""
        return tuple(self._blanked_turn(index, turn, turn, None) for index, turn in enumerate(turns))

    def recognise_seen_turns(self, reading: TurnsToRecognise) -> RecognisedTurns:
        """Return what is known of the turns of a state: which of them were seen before, and when first.

        An older version has not recorded which turns it saw. In its sessions the turns stored before count as seen. If
        a text was forgotten in more turns than it was seen in, as many other turns with this text are old.
        """
        key, fresh = self.mark_key, reading.fresh.turns
        seen = self.seen.turns or _stored_as_seen(reading.before, key)
        marks = [key.turn_mark(turn.text, turn.said_at) for turn in fresh]
        places = places_among_seen(seen, marks, [turn.is_said for turn in fresh])
        times_seen, times_old = Counter(turn.mark for turn in seen), Counter[str]()
        turns: list[SeenTurn] = []
        for turn, dated, mark, place in zip(fresh, reading.dated.turns, marks, places, strict=True):
            if place is not None:
                turns.append(seen[place])
                continue
            times_forgotten = {} if turn.said_at else self._forgotten_counts_by_time(turn)
            said_at = dated.said_at
            if times_old[mark] < sum(times_forgotten.values()) - times_seen[mark]:
                times_old[mark] += 1
                said_at = max(times_forgotten)
            elif turn.said_at is None and self.seen.turns:
                said_at = reading.read_at or said_at
            turns.append(SeenTurn(mark, said_at or datetime.max.replace(tzinfo=UTC), is_said=turn.is_said))
        return RecognisedTurns(seen, tuple(turns), places).with_hidden(reading.hidden)

    def is_assertion_forgotten(self, assertion: Assertion) -> bool:
        """Return whether an assertion was forgotten, or its value contains `[forgotten]`."""
        if has_blanked_words(assertion.value) or self.is_scope_forgotten(assertion.said_at):
            return True
        return self.is_slot_forgotten(assertion.subject, assertion.attribute, assertion.value, assertion.said_at)

    def is_scope_forgotten(self, said_at: datetime) -> bool:
        """Return whether the whole scope was forgotten at or after this time."""
        return any(
            tombstone.kind is TombstoneKind.SCOPE and said_at <= tombstone.until for tombstone in self._whole_tombstones
        )

    def is_slot_forgotten(self, subject: str, attribute: str, value: str, said_at: datetime | None) -> bool:
        """Return whether this value of an attribute was forgotten at or after `said_at`, or at all if that is None."""
        if not self._slot_tombstones:
            return False
        return any(
            said_at is None or said_at <= tombstone.until
            for key in self._keys
            for scope, _ in self._sessions
            for mark in key.slot_hashes_of_all_versions(scope, subject, attribute, value)
            for tombstone in self._slot_tombstones.get((key.id, mark), ())
        )

    def blank_in_text(self, text: str) -> str:
        """Return a text of the session without its forgotten words, no matter when they were said."""
        while forms := self._tombstones_of(text):
            tombstone, blank = forms[0]
            text = blank(text, tombstone.spans)
        return text

    def blank_in_state(self, state: Mapping[str, Any], before: Sequence[Turn], after: Sequence[Turn]) -> dict[str, Any]:
        """Return a saved state without its forgotten words.

        `before` are the turns that were read from the state. `after` are the same turns without forgotten words. It is
        empty if all of them were forgotten.
        """
        if not self.touches_session:
            return dict(state)
        texts = [turn.text for turn in before]
        pairs = list(zip(texts, [turn.text for turn in after] or [FORGOTTEN] * len(texts), strict=True))
        # If only some words of a turn were forgotten, copies of the turn in other strings keep its other words.
        emptied = [
            old
            for old, new in pairs
            if new == FORGOTTEN and (self._whole_tombstones or self.blank_in_text(old) != FORGOTTEN)
        ]
        blanking = StateBlanking(self.blank_in_text, pairs, map(letters_and_digits, emptied))
        blanked: dict[str, Any] = blank_saved_state(state, blanking.blank, blanking.without_pictures_if_emptied)
        return blanked

    def _forgotten_counts_by_time(self, turn: Turn) -> dict[datetime, int]:
        """Return in how many turns this text was forgotten, by the time of forgetting."""
        tombstones = (tombstone for tombstone, _ in self._tombstones_of(turn.text))
        return {tombstone.until: tombstone.times for tombstone in tombstones if turn.is_said}

    def _blanked_turn(self, index: int, fresh: Turn, dated: Turn, seen: SeenTurn | None) -> Turn:
        """Return the turn `dated` without its forgotten words.

        `fresh` is the same turn as it was read. `seen` tells when it was first seen, and is None for a stored turn.
        """
        said_at = dated.said_at if fresh.said_at is not None or seen is None else seen.seen_at
        is_left_out = seen is not None and seen.is_left_out
        if is_left_out or any(_covers_turn(each, fresh, said_at, index) for each in self._whole_tombstones):
            return replace(dated, text=FORGOTTEN)
        untils = [tombstone.until for tombstone, _ in self._tombstones_of(fresh.text)]
        # A program makes its turns anew from what is stored, so forgotten words in such a turn are always old.
        is_old = any(not fresh.is_said or (said_at is not None and said_at <= until) for until in untils)
        return replace(dated, text=self.blank_in_text(fresh.text)) if is_old else dated

    def _tombstones_of(self, text: str) -> list[tuple[Tombstone, BlankSpans]]:
        """Return the tombstones for words of this text, each with the function that blanks its spans."""
        if not self._text_tombstones:
            return []
        forms: list[tuple[HashText, BlankSpans]] = [(TombstoneKey.text_hash, blank_spans)]
        if len(composed_and_decomposed(text)) > 1:
            forms.append((TombstoneKey.decomposed_text_hash, blank_decomposed_spans))
        return [
            (tombstone, blank)
            for hash_text, blank in forms
            for key in self._keys
            for scope, session_id in self._sessions
            for tombstone in self._text_tombstones.get((key.id, hash_text(key, scope, session_id, text)), ())
            if blank(text, tombstone.spans) not in (text, composed(text))
        ]


def text_tombstones(
    key: TombstoneKey, scope: Scope, session_id: str, turns: Iterable[Turn], until: datetime
) -> list[Tombstone]:
    """Return tombstones for the whole texts of these turns of a session. Turns that nobody said are not counted."""
    text_hash = partial(key.text_hash, scope, session_id)
    place = key.session_hash(scope, session_id)
    times: Counter[str] = Counter()
    for turn in turns:
        letters = letters_and_digits(turn.text)
        if letters and turn.text != FORGOTTEN:
            times[letters] += turn.is_said
    return [
        Tombstone(TombstoneKind.TEXT, key.id, place, text_hash(letters), until, ((0, len(letters)),), count)
        for letters, count in times.items()
    ]


def _by_mark(tombstones: Iterable[Tombstone]) -> dict[tuple[str, str], list[Tombstone]]:
    """Return the tombstones by the id of their key and their mark."""
    by_mark: dict[tuple[str, str], list[Tombstone]] = defaultdict(list)
    for tombstone in tombstones:
        by_mark[tombstone.key_id, tombstone.mark].append(tombstone)
    return by_mark


def _stored_as_seen(stored: Iterable[Turn], key: TombstoneKey) -> tuple[SeenTurn, ...]:
    """Return stored turns as turns that were seen, in a session of which an older version recorded none."""
    return tuple(
        SeenTurn(key.turn_mark(turn.text), turn.said_at, turn.text == FORGOTTEN, turn.is_said)
        for turn in stored
        if turn.said_at
    )


def _folded_by_older_versions(text: str) -> str:
    """Return a text as older versions compared it: case-folded with single spaces, but not in NFC."""
    return " ".join(text.casefold().split())


def _covers_turn(tombstone: Tombstone, fresh: Turn, said_at: datetime | None, index: int) -> bool:
    """Return whether a tombstone of a session or scope covers the turn at this index."""
    if said_at is not None and said_at <= tombstone.until:
        return True
    # An earlier version counted the turns of a forgotten session, and made no tombstones for their texts.
    return fresh.said_at is None and tombstone.kind is not TombstoneKind.SCOPE and index < tombstone.times
