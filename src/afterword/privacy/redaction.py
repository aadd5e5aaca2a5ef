"""Masking secrets before anything is stored or sent to a model. Pure.

`redacted` masks a text, `redacted_state` a saved state, in which AutoGen still finds everything where it was.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from afterword.privacy.secret_patterns import PATTERNS, Secret, named_secret
from afterword.privacy.secret_values import is_distinct

ALL = frozenset(Secret)
"""Every kind of secret."""

MASK = re.compile(r"\[redacted: [a-z ]{1,40}\]")

_HINTS = tuple(dict.fromkeys(hint for pattern in PATTERNS for hint in pattern.hints))
_SWEEPS = 4
_MOST_KNOWN = 100
_DEEPEST_JSON = 3
_NEVER = frozenset(
    {
        "id",
        "call_id",
        "tool_call_id",
        "message_id",
        "thread_id",
        "type",
        "version",
        "source",
        "name",
        "role",
        "mime_type",
    }
)
_DATA = re.compile(r"[A-Za-z0-9+/\s]{64,}={0,2}\s?|data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=_-]*")


def redacted(text: str, kinds: Collection[str] = ALL) -> tuple[str, Counter[str]]:
    """Return the text with each secret of these kinds as `[redacted: kind]`, and how many there are of each.

    A text without a secret is returned as it is, and masking twice is masking once. The time is linear in the text.
    """
    masking = Masking(kinds)
    return masking.text(text), masking.counts


def redacted_state(state: Mapping[str, Any], kinds: Collection[str] = ALL) -> tuple[dict[str, Any], Counter[str]]:
    """Return a copy of a saved state with its secrets masked, and how many places were masked of each kind.

    Masked are the strings of messages and arguments, also where a string is JSON in itself, what a secret's name
    ("password", "api_key") holds, and a secret's repetitions. Keys, ids, names of speakers and types stay, so do
    images, and a number stays a number: AutoGen loads what it wrote.
    """
    masking = Masking(kinds)
    return masking.state(state), masking.counts


def mask(kind: str) -> str:
    """Return what stands in the place of a secret."""
    return f"[redacted: {kind}]"


def masks(texts: Iterable[str]) -> int:
    """Return how many masks stand in the texts."""
    return sum(len(MASK.findall(text)) for text in texts if "[redacted: " in text)


def is_masked(text: str) -> bool:
    """Return whether a text is a secret and nothing else."""
    return "[redacted: " in text and not any(sign.isalnum() for sign in MASK.sub("", text))


class Masking:
    """The masking of texts that belong together: a secret that was recognised in one is masked in those after it, too.

    `counts` tells how many were masked of each kind. With `thorough`, plain words and short numbers that were a secret
    once are one everywhere: for the fields of one statement, not for a conversation.
    """

    def __init__(self, kinds: Collection[str] = ALL, *, thorough: bool = False) -> None:
        self.kinds = frozenset(kinds)
        self.counts: Counter[str] = Counter()
        self._thorough = thorough
        self._known: dict[str, Secret] = {}
        self._repeated: re.Pattern[str] | None = None

    def text(self, text: str) -> str:
        """Return the text without its secrets."""
        # What was masked may lay bare what another pattern knows, so the text is swept until nothing is found.
        for _ in range(_SWEEPS):
            swept = self._swept(text)
            if swept == text:
                break
            text = swept
        return text

    def named(self, name: str, value: str) -> str:
        """Return the value of a field of this name: masked as a whole where the name says that it is a secret."""
        kind = named_secret(name, value)
        if kind is None or kind not in self.kinds:
            return self.text(value)
        self._learn(value, kind)
        self.counts[kind] += 1
        return mask(kind)

    def state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of a saved state without its secrets; what is learned of them later masks what came before."""
        before = self.counts.copy()
        learned = self._inside(state)
        if self._known:
            self.counts = before
            learned = self._inside(state)
        return {str(key): value for key, value in learned.items()}

    def _swept(self, text: str) -> str:
        lowered = text.lower()
        hints = {hint for hint in _HINTS if hint in lowered}
        for pattern in PATTERNS:
            if pattern.kind not in self.kinds or (pattern.hints and hints.isdisjoint(pattern.hints)):
                continue
            spans = _unmasked(text, pattern.spans(text))
            if spans:
                for start, end in spans:
                    self._learn(text[start:end], pattern.kind)
                text = self._covered(text, spans, pattern.kind)
        return self._without_known(text)

    def _covered(self, text: str, spans: Sequence[tuple[int, int]], kind: Secret) -> str:
        self.counts[kind] += len(spans)
        parts, end = [], 0
        for start, stop in spans:
            parts += [text[end:start], mask(kind)]
            end = stop
        return "".join([*parts, text[end:]])

    def _learn(self, secret: str, kind: Secret) -> None:
        is_new = secret not in self._known and len(self._known) < _MOST_KNOWN
        if is_new and (self._thorough or is_distinct(secret)):
            self._known[secret] = kind
            self._repeated = None

    def _without_known(self, text: str) -> str:
        if not self._known:
            return text
        if self._repeated is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._repeated = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")
        for kind in dict.fromkeys(self._known.values()):
            of_kind = (one.span() for one in self._repeated.finditer(text) if self._known[one.group()] is kind)
            spans = _unmasked(text, of_kind)
            text = self._covered(text, spans, kind) if spans else text
        return text

    def _inside(self, value: Any, key: str = "", depth: int = 0) -> Any:
        """Return a value of a state, which stands under `key`, masked; `depth` counts the JSON strings around it."""
        if isinstance(value, str):
            return (
                value if key in _NEVER or (key == "data" and _DATA.fullmatch(value)) else self._leaf(value, key, depth)
            )
        if isinstance(value, Mapping):
            return {name: self._inside(inner, str(name), depth) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._inside(inner, key, depth) for inner in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._number(value, key)
        return value

    def _number(self, value: int, key: str) -> int:
        kind = named_secret(key, str(value))
        if kind is None or kind not in self.kinds or value == 0:
            return value
        self.counts[kind] += 1
        return 0

    def _leaf(self, text: str, key: str, depth: int) -> str:
        """Return a string of a state masked; where it is JSON, it still is."""
        if text[:1] in ("{", "[") and depth < _DEEPEST_JSON:
            try:
                parsed = json.loads(text)
            except (ValueError, RecursionError):
                return self.named(key, text)
            walked = self._inside(parsed, "", depth + 1)
            return text if walked == parsed else json.dumps(walked, ensure_ascii=False)
        return text if text.startswith("data:") and _DATA.fullmatch(text) else self.named(key, text)


def _unmasked(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans that touch no mask."""
    found = list(spans)
    if not found or "[redacted: " not in text:
        return found
    masked = [place.span() for place in MASK.finditer(text)]
    kept, at = [], 0
    for start, end in found:
        while at < len(masked) and masked[at][1] <= start:
            at += 1
        if at == len(masked) or end <= masked[at][0]:
            kept.append((start, end))
    return kept
