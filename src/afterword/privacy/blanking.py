"""Find phrases in a text, replace them with `[forgotten]`, and record their positions without the words. Pure.

A recorded span is a range of the case-folded letters and digits of a text, so it stays valid when the spacing changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from afterword.normal_form import composed, decomposed

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
    return "".join(filter(str.isalnum, composed(text).casefold()))


def decomposed_letters(text: str) -> str:
    """Return the case-folded letters and digits of a text in NFD, without accents, as older versions did."""
    return _letters_with_positions(decomposed(text))[0]


def blank_decomposed_spans(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in place of each span. The spans are ranges of `decomposed_letters(text)`."""
    return composed(_blank_spans_as_written(decomposed(text), spans))


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


def blank_spans(text: str, spans: Collection[Span]) -> str:
    """Return the text with `[forgotten]` in place of each span, or only `[forgotten]` if no other word remains.

    The spans are ranges of `letters_and_digits(text)`. A text in which something is replaced is returned in NFC.
    """
    if not spans:
        return text
    normal = composed(text)
    blanked = _blank_spans_as_written(normal, spans)
    return text if blanked == normal else blanked


def _blank_spans_as_written(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in place of each span. The text may be in NFC or in NFD."""
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


def spans_of_selected_characters(text: str, selected: Sequence[int]) -> list[Span]:
    """Return the spans of the selected characters of a text. `selected` is 1 for each of them and 0 for all others.

    The text is in NFC, and the spans are ranges of its letters and digits. Spaces and punctuation between selected
    letters do not split a span.
    """
    spans: list[Span] = []
    start: int | None = None
    _, positions = _letters_with_positions(text)
    for index, position in enumerate(positions):
        if selected[position] and start is None:
            start = index
        elif not selected[position] and start is not None:
            spans.append((start, index))
            start = None
    return spans if start is None else [*spans, (start, len(positions))]


class PhraseSearch:
    """Finds phrases in a text by their words, whatever letter case, spaces or punctuation the words have.

    In languages that are written without spaces, a phrase is also found inside a longer run of letters.
    """

    def __init__(self, phrases: Iterable[str] = ()) -> None:
        self._by_key: dict[Words, dict[int, set[Words]]] = defaultdict(lambda: defaultdict(set))
        self._unspaced: list[re.Pattern[str]] = []
        for phrase in dict.fromkeys(phrases):
            words = tuple(word.casefold() for word in _WORD.findall(composed(phrase)))
            if words and max(words[0][0], words[-1][-1]) >= _FIRST_UNSPACED:
                before = r"(?<!\w)" if words[0][0] < _FIRST_UNSPACED else ""
                after = r"(?!\w)" if words[-1][-1] < _FIRST_UNSPACED else ""
                expression = before + r"\W*".join(map(re.escape, words)) + after
                self._unspaced.append(re.compile(expression, re.IGNORECASE))
            elif words:
                self._by_key[words[:_KEY_WORDS]][len(words)].add(words)

    def find_positions(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and end position of each phrase in a text, which is in NFC."""
        found_words = [(match.start(), match.end(), match.group().casefold()) for match in _WORD.finditer(text)]
        words = tuple(word for _, _, word in found_words)
        for first in range(len(words)):
            for length in range(1, _KEY_WORDS + 1):
                for count, phrases in self._by_key.get(words[first : first + length], {}).items():
                    if words[first : first + count] in phrases:
                        yield found_words[first][0], found_words[first + count - 1][1]
        for pattern in self._unspaced:
            yield from (match.span() for match in pattern.finditer(text))

    def letter_spans(self, text: str, positions: Iterable[tuple[int, int]] = ()) -> list[Span]:
        """Return the spans of the phrases in a text, and of other `positions`, which are start and end positions.

        The spans are ranges of `letters_and_digits(text)`, as tombstones store them.
        """
        normal = composed(text)
        if normal != text:
            positions = [(len(composed(text[:start])), len(composed(text[:end]))) for start, end in positions]
        selected = bytearray(len(normal))
        for start, end in (*self.find_positions(normal), *positions):
            selected[start:end] = b"\x01" * (end - start)
        return spans_of_selected_characters(normal, selected) if any(selected) else []


def mentions_phrase(text: str, phrase: str) -> bool:
    """Return whether a text contains the words of a phrase in order, with only spaces or punctuation between them."""
    return next(PhraseSearch([phrase]).find_positions(composed(text)), None) is not None


@dataclass(frozen=True, slots=True)
class WordsToBlank:
    """The quotes and values to blank in texts, and the quotes and values to keep.

    Words that also match `quotes_to_keep` are kept, unless one of `values` matches them. Words that match
    `values_to_keep` are always kept.
    """

    quotes: PhraseSearch = field(default_factory=PhraseSearch)
    values: PhraseSearch = field(default_factory=PhraseSearch)
    quotes_to_keep: PhraseSearch = field(default_factory=PhraseSearch)
    values_to_keep: PhraseSearch = field(default_factory=PhraseSearch)

    def letter_spans(self, text: str) -> list[Span]:
        """Return the spans of the words to blank in a text, in order."""
        text = composed(text)
        selected = bytearray(len(text))
        steps = ((1, self.quotes), (0, self.quotes_to_keep), (1, self.values), (0, self.values_to_keep))
        for is_selected, phrases in steps:
            for start, end in phrases.find_positions(text):
                selected[start:end] = bytes([is_selected]) * (end - start)
        return spans_of_selected_characters(text, selected) if any(selected) else []
