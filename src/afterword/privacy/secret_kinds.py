"""The kinds of secret, and the two forms of pattern that recognise them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

Span = tuple[int, int]


class SecretKind(StrEnum):
    """The kinds of secret. Each is masked as `[redacted: kind]`."""

    API_KEY = "api key"
    TOKEN = "token"
    PRIVATE_KEY = "private key"
    PASSWORD = "password"
    CODE = "code"
    WEBHOOK = "webhook"
    CARD = "card number"
    IBAN = "iban"
    SSN = "social security number"
    IDENTITY = "identity number"
    SEED = "seed phrase"


Check = Callable[[re.Match[str]], Span | None]

_SENTENCE = re.compile(r"[^\n.!?;]++(?:(?:[.!?;](?=[^\s])|!(?= [^\W\dA-Z]))[^\n.!?;]*+)*+")
_LONGEST_SENTENCE = 400
_WORD_END = re.compile(r"\S{0,400}+")
_REGION_BEFORE, _REGION_AFTER = 300, 700


def any_value_span(match: re.Match[str]) -> Span | None:
    """Return the span of the value: any value that the pattern matches is a secret."""
    return match.span("value")


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """A pattern of a secret that stands just beside a word such as "password", or that is recognised by its form.

    The pattern is tried only on texts that contain one of the lower-case `hints`, or on all texts if there are none. The
    group `value` of the expression is the possible secret. `check` returns the span to mask, or None if the match is no secret.
    """

    name: str
    kind: SecretKind
    expression: str
    hints: tuple[str, ...] = ()
    check: Check = any_value_span
    flags: int = re.IGNORECASE

    def spans(self, text: str, regions: Sequence[Span] | None = None) -> Iterator[Span]:
        """Yield the spans of the secrets in these regions of a text, in order and without overlap."""
        expression = compiled_expression(self.expression, self.flags)
        for position, end in [(0, len(text))] if regions is None else regions:
            while (match := expression.search(text, position, end)) is not None:
                span = self.check(match)
                if span is not None:
                    yield span
                # A value that is no secret may contain the word that announces one, so the search goes on inside it.
                position = max(span[1] if span else match.start("value"), match.start() + 1)


@dataclass(frozen=True, slots=True)
class SecretSentencePattern:
    """A pattern of a secret anywhere in a sentence that matches each expression in `topics`, but not `unless`.

    The group `value` of the expression `value` is the possible secret. With `is_far_reaching`, the sentence before may
    match `topics` instead. Sentences longer than 400 characters are read in parts, so that the time is linear in the
    text.
    """

    name: str
    kind: SecretKind
    topics: tuple[str, ...]
    value: str
    hints: tuple[str, ...]
    check: Check = any_value_span
    unless: str = r"(?!)"
    is_far_reaching: bool = False

    def spans(self, text: str, regions: Sequence[Span] | None = None) -> Iterator[Span]:
        """Yield the spans of the secrets in these regions of a text, in order and without overlap."""
        value = compiled_expression(self.value, re.IGNORECASE)
        previous, previous_end = False, -1
        for start, end in _sentences(text, [(0, len(text))] if regions is None else regions):
            sentence = text[start:end]
            # Most sentences hold no possible value, which is quick to see.
            if not self.is_far_reaching and not value.search(sentence):
                continue
            names_topics = all(compiled_expression(each, re.IGNORECASE).search(sentence) for each in self.topics)
            follows = previous and not text[previous_end:start].strip(" .!?;:\n")
            previous, previous_end = names_topics and self.is_far_reaching, end
            if (names_topics or follows) and not compiled_expression(self.unless, re.IGNORECASE).search(sentence):
                spans = filter(None, map(self.check, value.finditer(sentence)))
                yield from ((start + first, start + last) for first, last in spans)


def _sentences(text: str, regions: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of the sentences in regions of a text. A full stop inside a word or number ends none."""
    for first, last in regions:
        for match in _SENTENCE.finditer(text, first, last):
            for start in range(match.start(), match.end(), _LONGEST_SENTENCE):
                yield start, min(match.end(), start + _LONGEST_SENTENCE)


class HintedText:
    """A text that is searched with many patterns, each of them only near its hints."""

    def __init__(self, text: str, hints: Iterable[str]) -> None:
        self.text = text
        lowered = text.lower()
        self.hints: frozenset[str] = frozenset(hint for hint in hints if hint in lowered)
        # A few letters are longer in lower case, which would shift the regions.
        self._lowered = lowered if len(lowered) == len(text) else None
        self._places: dict[str, list[int]] = {}

    def regions(self, hints: tuple[str, ...]) -> list[Span]:
        """Return the regions in which a pattern with these hints may match, in order and without overlap."""
        if not hints or self._lowered is None or len(self.text) <= _REGION_AFTER:
            return [(0, len(self.text))]
        places = sorted(place for hint in self.hints.intersection(hints) for place in self._places_of(hint))
        regions: list[Span] = []
        for place in places:
            start = max(0, place - _REGION_BEFORE)
            if regions and start <= regions[-1][1]:
                start = regions.pop()[0]
            regions.append((start, min(len(self.text), place + _REGION_AFTER)))
        # Each region is extended to the end of its last word, so that it does not cut a secret. `_WORD_END` always matches.
        return [(start, next(_WORD_END.finditer(self.text, end)).end()) for start, end in regions]

    def _places_of(self, hint: str) -> list[int]:
        if hint not in self._places:
            lowered = self._lowered or ""
            places, place = [], lowered.find(hint)
            while place >= 0:  # an expression takes five times as long
                places.append(place)
                place = lowered.find(hint, place + 1)
            self._places[hint] = places
        return self._places[hint]


@cache
def compiled_expression(expression: str, flags: int) -> re.Pattern[str]:
    """Return a compiled expression. It is compiled at its first use: a live agent loads all patterns and needs few."""
    return re.compile(expression, flags)
