"""Mask secrets before anything is stored or sent to a model. Pure.

`mask_secrets` masks a text, `Masking.mask_state` a saved state, which AutoGen can still load.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from secrets import token_bytes
from typing import Any

from afterword.privacy.normalisation import plain_forms
from afterword.privacy.secret_answers import SecretAnnouncement, announced_secrets, secret_announcement_in
from afterword.privacy.secret_kinds import HintedText, SecretKind, Span
from afterword.privacy.secret_patterns import PATTERNS
from afterword.privacy.secret_values import is_safe_to_mask_everywhere, kind_of_named_field
from afterword.privacy.state_keys import NEVER_MASKED, is_tool_call, is_tool_result

ALL_KINDS = frozenset(SecretKind)
"""Every kind of secret."""

MASK = re.compile(r"\[redacted: [a-z ]{1,40}\]")

_HINTS = tuple(dict.fromkeys(hint for pattern in PATTERNS for hint in pattern.hints))
_MOST_PASSES = 4
_CONTENT_KEYS = frozenset({"content", "contents"})
_MOST_REMEMBERED = 4_096
_without_secrets: set[tuple[bytes, frozenset[str]]] = set()
"""Texts without secrets of these kinds: a live session is stored after each turn, with all turns before it.

A text is remembered by its digest, so that words that are forgotten later do not stay in the process. The key of the
digests is random, so that nobody can check a guess with them later.
"""
_DIGEST_KEY = token_bytes(32)
_MOST_KNOWN = 100
_LONGEST_INTERJECTION = 80
_DEEPEST_JSON = 3
_IMAGE_DATA = re.compile(r"[A-Za-z0-9+/\s]{64,}={0,2}\s?|data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=_-]*")


def mask_secrets(text: str, kinds: Collection[str] = ALL_KINDS) -> tuple[str, Counter[str]]:
    """Return the text with each secret of these kinds as `[redacted: kind]`, and the number of masks of each kind.

    A text without a secret is returned unchanged, and so is a masked text. The time is linear in the text.
    """
    masking = Masking(kinds)
    return masking.mask_text(text), masking.counts


def mask_for(kind: str) -> str:
    """Return the text that replaces a secret of this kind."""
    return f"[redacted: {kind}]"


def count_masks(texts: Iterable[str]) -> int:
    """Return the number of masks in the texts."""
    return sum(len(MASK.findall(text)) for text in texts if "[redacted: " in text)


def is_only_masks(text: str) -> bool:
    """Return whether a text consists of masks only."""
    return "[redacted: " in text and not any(character.isalnum() for character in MASK.sub("", text))


class Masking:
    """Masks texts that belong together: a secret recognised in one text is also masked in later texts.

    `counts` holds the number of masks of each kind. With `thorough`, plain words and short numbers that were a secret
    once are masked everywhere, which suits the fields of one statement but not a conversation.
    """

    def __init__(self, kinds: Collection[str] = ALL_KINDS, *, thorough: bool = False) -> None:
        self.kinds: frozenset[str] = frozenset(kinds)
        self.counts: Counter[str] = Counter()
        self._thorough = thorough
        self._known: dict[str, SecretKind] = {}
        self._repeated: re.Pattern[str] | None = None
        self._announced: SecretAnnouncement | None = None
        self._speaker = ""
        self._is_in_tool_part = False

    def mask_text(self, text: str) -> str:
        """Return the text without its secrets."""
        # A mask may expose a match for another pattern, so the text is searched again until nothing changes.
        for _ in range(_MOST_PASSES if text else 0):
            masked = self._mask_once(text)
            if masked == text:
                break
            text = masked
        return text

    def mask_next_turn(self, text: str, speaker: str) -> str:
        """Return the next turn of a conversation without its secrets.

        A secret may stand alone in a turn after the question for it, or after the words that announce it.
        """
        masked = self.mask_text(text)
        pending, self._announced = self._announced, None
        if pending is not None:
            is_expected = pending.expects_secret_from(speaker)
            secrets = announced_secrets(masked, pending, is_expected=is_expected) if pending.kind in self.kinds else []
            spans = _spans_outside_masks(masked, secrets)
            masked = self._mask_new_secrets(masked, spans, pending.kind)
            # After a short remark such as "Go ahead." the announced secret is still expected.
            if not is_expected and not spans and len(masked) <= _LONGEST_INTERJECTION:
                self._announced = pending
        self._announced = secret_announcement_in(masked, speaker) or self._announced
        return masked

    def mask_field(self, name: str, value: str) -> str:
        """Return the value of a field, masked as a whole if the field's name says that it is a secret."""
        kind = kind_of_named_field(name, value)
        if kind is None or kind not in self.kinds:
            is_turn = name == "content" and not self._is_in_tool_part
            return self.mask_next_turn(value, self._speaker) if is_turn else self.mask_text(value)
        self._remember_secret(value, kind)
        self.counts[kind] += 1
        return mask_for(kind)

    def mask_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a saved state without its secrets.

        A secret is also masked where it occurs before the place at which it is first recognised.
        This covers strings of messages and arguments, JSON inside of strings, fields that are named like a secret
        ("password", "api_key"), and repetitions of a secret. Keys, ids, names of speakers, types and images stay, and a
        number stays a number, so that AutoGen can load the result.
        """
        counts_before = self.counts.copy()
        masked = self._mask_value(state)
        if self._known:
            self.counts = counts_before
            masked = self._mask_value(state)
        return {str(key): value for key, value in masked.items()}

    def _mask_once(self, text: str) -> str:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_DIGEST_KEY).digest(), self.kinds
        masked, number = text, None if key in _without_secrets else 0
        while number is not None:
            masked, number = self._mask_next_pattern(masked, number)
        if masked == text:
            if len(_without_secrets) >= _MOST_REMEMBERED:
                _without_secrets.clear()
            _without_secrets.add(key)
        return self._mask_known_secrets(masked)

    def _mask_next_pattern(self, text: str, first: int) -> tuple[str, int | None]:
        """Mask what the next matching pattern finds, starting with the pattern number `first`.

        Return the text and the number of the pattern to go on with, which is None if no pattern matches.
        """
        forms = [(form, HintedText(form.text, _HINTS)) for form in plain_forms(text)]
        for number in _possible_patterns(forms[0][1].hints):
            pattern = PATTERNS[number]
            if number < first or pattern.kind not in self.kinds:
                continue
            spans = _merged_spans(
                form.original_span(*span)
                # Quotation marks matter only for passwords.
                for form, hinted in (forms if pattern.kind is SecretKind.PASSWORD else forms[:1])
                for span in pattern.spans(hinted.text, hinted.regions(pattern.hints))
            )
            if unmasked := _spans_outside_masks(text, spans):
                return self._mask_new_secrets(text, unmasked, pattern.kind), number + 1
        return text, None

    def _mask_new_secrets(self, text: str, spans: Sequence[Span], kind: SecretKind) -> str:
        for start, end in spans:
            self._remember_secret(text[start:end], kind)
        return self._mask_spans(text, spans, kind)

    def _mask_spans(self, text: str, spans: Sequence[Span], kind: SecretKind) -> str:
        if not spans:
            return text
        self.counts[kind] += len(spans)
        parts, end = [], 0
        for start, stop in spans:
            parts += [text[end:start], mask_for(kind)]
            end = stop
        return "".join([*parts, text[end:]])

    def _remember_secret(self, secret: str, kind: SecretKind) -> None:
        is_new = secret not in self._known and len(self._known) < _MOST_KNOWN
        if is_new and (self._thorough or is_safe_to_mask_everywhere(secret)):
            self._known[secret] = kind
            self._repeated = None

    def _mask_known_secrets(self, text: str) -> str:
        if not self._known:
            return text
        if self._repeated is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._repeated = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
        for kind in dict.fromkeys(self._known.values()):
            matches = self._repeated.finditer(text)
            of_kind = (match.span() for match in matches if self._known[match.group()] is kind)
            text = self._mask_spans(text, _spans_outside_masks(text, of_kind), kind)
        return text

    def _mask_value(self, value: Any, key: str = "", depth: int = 0) -> Any:
        """Return the masked value of a key of a state. `depth` is the number of JSON strings that contain it."""
        if isinstance(value, str):
            is_image = key == "data" and _IMAGE_DATA.fullmatch(value)
            return value if is_image or key in NEVER_MASKED else self._mask_string(value, key, depth)
        if isinstance(value, Mapping):
            return self._mask_object(value, key, depth)
        if isinstance(value, list):
            if key not in _CONTENT_KEYS and not self._is_in_tool_part:
                self._announced = None
            return [self._mask_value(inner, key, depth) for inner in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._mask_number(value, key)
        return value

    def _mask_object(self, value: Mapping[Any, Any], key: str, depth: int) -> dict[Any, Any]:
        was_in_tool_part = self._is_in_tool_part
        # A call or a result of a tool may stand between a question and its answer. It is not the answer.
        self._is_in_tool_part = was_in_tool_part or is_tool_call(value) or is_tool_result(value)
        masked = self._mask_entries(value, key, depth)
        self._is_in_tool_part = was_in_tool_part
        return masked

    def _mask_entries(self, value: Mapping[Any, Any], key: str, depth: int) -> dict[Any, Any]:
        if self._is_in_tool_part:
            return {name: self._mask_value(inner, str(name), depth) for name, inner in value.items()}
        if not _CONTENT_KEYS.isdisjoint(value) and depth == 0:
            keys = ("source", "author_name", "name", "role", "type")
            self._speaker = str(next((value[name] for name in keys if value.get(name)), None))
        is_part = key in _CONTENT_KEYS and value.get("type") == "text"
        return {
            name: self._mask_value(inner, "content" if is_part and name == "text" else str(name), depth)
            for name, inner in value.items()
        }

    def _mask_number(self, value: int, key: str) -> int:
        kind = kind_of_named_field(key, str(value))
        if kind is None or kind not in self.kinds or value == 0:
            return value
        self.counts[kind] += 1
        return 0

    def _mask_string(self, text: str, key: str, depth: int) -> str:
        """Return a string of a state without its secrets. JSON stays valid JSON."""
        if text[:1] in ("{", "[") and depth < _DEEPEST_JSON:
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                return self.mask_field(key, text)
            masked = self._mask_value(parsed, "", depth + 1)
            return text if masked == parsed else json.dumps(masked, ensure_ascii=False)
        return text if text.startswith("data:") and _IMAGE_DATA.fullmatch(text) else self.mask_field(key, text)


@lru_cache(maxsize=1024)
def _possible_patterns(hints: frozenset[str]) -> tuple[int, ...]:
    """Return the numbers of the patterns that may match a text with these hints."""
    return tuple(
        number for number, pattern in enumerate(PATTERNS) if not pattern.hints or not hints.isdisjoint(pattern.hints)
    )


def _merged_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, with overlapping ones joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _spans_outside_masks(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that do not overlap a mask that the text already contains."""
    candidates = list(spans)
    if not candidates or "[redacted: " not in text:
        return candidates
    masks = [match.span() for match in MASK.finditer(text)]
    unmasked, index = [], 0
    for start, end in candidates:
        while index < len(masks) and masks[index][1] <= start:
            index += 1
        if index == len(masks) or end <= masks[index][0]:
            unmasked.append((start, end))
    return unmasked
