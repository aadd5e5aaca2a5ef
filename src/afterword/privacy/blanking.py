"""Find phrases in a text, replace them with `[forgotten]`, and record their positions without the words. Pure.

A recorded span is a range of the case-folded letters and digits of a text, so it stays valid when the spacing changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from afterword.normal_form import composed, decomposed
from afterword.text_caches import text_cache

FORGOTTEN = "[forgotten]"
"""The placeholder for words that were forgotten."""

Span = tuple[int, int]

SHORTEST_VALUE = 3
"""The fewest letters and digits of a value that is blanked. Shorter values occur in too many other words."""

_FIRST_UNSPACED = "\u0e00"
_WORD = re.compile(r"\w+")
_KEY_WORDS = 3
"""The number of words at the start of a phrase by which it is looked up."""

Words = tuple[str, ...]


def letters_and_digits(text: str) -> str:
    """Return the case-folded letters and digits of a text in NFC."""
    return _letters_with_positions(composed(text))[0]


def decomposed_letters(text: str) -> str:
    """Return the case-folded letters and digits of a text in NFD, without accents, as older versions did."""
    return _letters_with_positions(decomposed(text))[0]


def blank_decomposed(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in place of each span. The spans are ranges of `decomposed_letters(text)`."""
    return composed(_with_spans_blanked(decomposed(text), spans))


def _letters_with_positions(text: str) -> tuple[str, list[int]]:
    """Return the case-folded letters and digits of a text, and the position of each in the text."""
    characters: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        for folded in character.casefold():
            if folded.isalnum():
                characters.append(folded)
                positions.append(position)
    return "".join(characters), positions


def blank_spans(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in place of each span, or only `[forgotten]` if no other word remains.

    The spans are ranges of `letters_and_digits(text)`. A text in which something is replaced is returned in NFC.
    """
    normal = composed(text)
    blanked = _with_spans_blanked(normal, spans)
    return text if blanked == normal else blanked


def _with_spans_blanked(text: str, spans: Iterable[Span]) -> str:
    _, positions = _letters_with_positions(text)
    parts: list[str] = []
    end = 0
    for first, last in sorted(spans):
        if first >= last or last > len(positions) or positions[first] < end:
            continue
        parts += [text[end : positions[first]], FORGOTTEN]
        end = positions[last - 1] + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
    remaining = "".join([*parts, text[end:]])
    has_words = FORGOTTEN not in remaining or any(map(str.isalnum, remaining.replace(FORGOTTEN, "")))
    return remaining if has_words else FORGOTTEN


def has_blanked_words(text: str) -> bool:
    """Return whether words of the text were replaced with `[forgotten]`."""
    return FORGOTTEN in text


def spans_to_blank(
    text: str,
    *,
    quotes: Iterable[str] = (),
    values: Iterable[str] = (),
    quotes_to_keep: Iterable[str] = (),
    values_to_keep: Iterable[str] = (),
) -> list[Span]:
    """Return the spans of a text where one of `quotes` or `values` occurs, in order.

    Words that also match `quotes_to_keep` are left out, unless one of `values` matches them. Words that match
    `values_to_keep` are always left out.
    """
    text = composed(text)
    flags = bytearray(len(text))
    for flag, phrases in ((1, quotes), (0, quotes_to_keep), (1, values), (0, values_to_keep)):
        for pattern in filter(None, map(_pattern, phrases)):
            for match in pattern.finditer(text):
                flags[match.start() : match.end()] = bytes([flag]) * (match.end() - match.start())
    return spans_of_flags(text, flags) if any(flags) else []


def spans_of_flags(text: str, flags: Sequence[int]) -> list[Span]:
    """Return the spans of a text whose characters are flagged. `flags` has one flag for each character.

    The text is in NFC, and the spans are ranges of its letters and digits. Spaces and punctuation between flagged
    letters do not split a span.
    """
    spans: list[Span] = []
    start: int | None = None
    _, positions = _letters_with_positions(text)
    for index, position in enumerate(positions):
        if flags[position] and start is None:
            start = index
        elif not flags[position] and start is not None:
            spans.append((start, index))
            start = None
    return spans if start is None else [*spans, (start, len(positions))]


@text_cache(1024)
def _pattern(phrase: str) -> re.Pattern[str] | None:
    """Return an expression that matches the whole words of a phrase in order, or None if it has no word."""
    words = re.findall(r"\w+", composed(phrase))
    if not words:
        return None
    before = r"(?<!\w)" if words[0][0] < _FIRST_UNSPACED else ""
    after = r"(?!\w)" if words[-1][-1] < _FIRST_UNSPACED else ""
    return re.compile(before + r"\W+".join(map(re.escape, words)) + after, re.IGNORECASE)


def mentions_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains the words of a phrase in order, with only spaces or punctuation between them."""
    pattern = _pattern(phrase)
    return pattern is not None and pattern.search(composed(text)) is not None


class PhraseSearch:
    """Finds phrases in a text by their words, whatever spaces or punctuation stand between the words.

    In languages that are written without spaces, a phrase is also found inside a longer run of letters.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_key: dict[Words, dict[int, set[Words]]] = defaultdict(lambda: defaultdict(set))
        self._unspaced: set[str] = set()
        for phrase in phrases:
            words = tuple(word.casefold() for word in _WORD.findall(composed(phrase)))
            if words and words[0][0] >= _FIRST_UNSPACED:
                self._unspaced.add("".join(words))
            elif words:
                self._by_key[words[:_KEY_WORDS]][len(words)].add(words)

    @property
    def is_empty(self) -> bool:
        """Whether there is no phrase."""
        return not self._by_key and not self._unspaced

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end position of each phrase in a text."""
        found_words = [(match.start(), match.end(), match.group().casefold()) for match in _WORD.finditer(text)]
        words = tuple(word for _, _, word in found_words)
        for first in range(len(words)):
            for length in range(1, _KEY_WORDS + 1):
                for count, phrases in self._by_key.get(words[first : first + length], {}).items():
                    if words[first : first + count] in phrases:
                        yield found_words[first][0], found_words[first + count - 1][1]
        for phrase in self._unspaced:
            yield from ((match.start(), match.end()) for match in re.finditer(re.escape(phrase), text))

    def spans(self, text: str, places: Iterable[tuple[int, int]] = ()) -> list[Span]:
        """Return the spans of the phrases in a text, and of other `places`, which are start and end positions.

        The spans are ranges of `letters_and_digits(text)`, as tombstones store them.
        """
        normal = composed(text)
        if normal != text:
            places = [(len(composed(text[:start])), len(composed(text[:end]))) for start, end in places]
            text = normal
        flags = bytearray(len(text))
        for start, end in (*self.places(text), *places):
            flags[start:end] = b"\x01" * (end - start)
        return spans_of_flags(text, flags) if any(flags) else []
