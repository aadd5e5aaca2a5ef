"""Replacing words of a text with `[forgotten]`, and recording their positions without repeating them. Pure.

Positions count only the case-folded letters and digits of a text, so they stay valid when its spacing changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from afterword.normal_form import composed, decomposed
from afterword.text_caches import text_cache

FORGOTTEN = "[forgotten]"
"""The placeholder for words that were forgotten."""

Span = tuple[int, int]

SHORTEST_VALUE = 3
"""The fewest letters of a value that is blanked: shorter values occur in too many other words."""

_FIRST_UNSPACED = "\u0e00"


def letters_and_digits(text: str) -> str:
    """Return the case-folded letters and digits of a text, whatever its normal form."""
    return _letters_with_positions(composed(text))[0]


def decomposed_letters(text: str) -> str:
    """Return the letters and digits of a text in NFD, as older versions counted them: accents are left out."""
    return _letters_with_positions(decomposed(text))[0]


def blank_decomposed(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in place of spans that count the letters of `decomposed_letters`."""
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

    A text of which something is blanked becomes NFC.
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
    """Return the spans of a text, in order, that hold words of `quotes` and `values`.

    Words that `quotes_to_keep` also match are excluded unless `values` match them. Words that `values_to_keep` match
    are always excluded.
    """
    text = composed(text)
    flags = bytearray(len(text))
    for flag, phrases in ((1, quotes), (0, quotes_to_keep), (1, values), (0, values_to_keep)):
        for pattern in filter(None, map(_pattern, phrases)):
            for match in pattern.finditer(text):
                flags[match.start() : match.end()] = bytes([flag]) * (match.end() - match.start())
    return spans_of_flags(text, flags) if any(flags) else []


def spans_of_flags(text: str, flags: Sequence[int]) -> list[Span]:
    """Return the spans of letters for which a flag is set, counted in letters and digits of the text in NFC.

    Spaces and punctuation between flagged letters do not split a span.
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
    """Return whether a text holds the words of a phrase in order."""
    pattern = _pattern(phrase)
    return pattern is not None and pattern.search(composed(text)) is not None
