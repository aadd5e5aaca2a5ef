"""Blanking words out of texts, and saying where they stood without repeating them. Pure.

A span is counted in the letters and digits of a text, case folded, so that it fits however the text is spaced.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

FORGOTTEN = "[forgotten]"
"""What stands in the place of words that were forgotten."""

Span = tuple[int, int]

SHORTEST_VALUE = 3
"""A value of fewer letters occurs in too many words to be blanked wherever it stands."""

_FIRST_UNSPACED = "\u0e00"


def squeezed(text: str) -> str:
    """Return the letters and digits of a text, case folded."""
    return _squeezed(text)[0]


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Return the letters and digits of a text, case folded, and the place of each in the text."""
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        for folded in sign.casefold():
            if folded.isalnum():
                signs.append(folded)
                places.append(place)
    return "".join(signs), places


def blanked(text: str, spans: Iterable[Span]) -> str:
    """Return the text with `[forgotten]` in the place of each span; a text that is nothing else is that alone."""
    _, places = _squeezed(text)
    parts: list[str] = []
    end = 0
    for first, last in sorted(spans):
        if first >= last or last > len(places) or places[first] < end:
            continue
        parts += [text[end : places[first]], FORGOTTEN]
        end = places[last - 1] + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
    left = "".join([*parts, text[end:]])
    return left if _says_more(left) else FORGOTTEN


def is_forgotten(text: str) -> bool:
    """Whether a text holds words that were forgotten."""
    return FORGOTTEN in text


def _says_more(text: str) -> bool:
    return FORGOTTEN not in text or any(sign.isalnum() for sign in text.replace(FORGOTTEN, ""))


def spans_of(
    text: str,
    *,
    quotes: Iterable[str] = (),
    values: Iterable[str] = (),
    kept: Iterable[str] = (),
    spared: Iterable[str] = (),
) -> list[Span]:
    """Return where the words of `quotes` and `values` stand in a text, as spans in order.

    Of a quote, what also stands in one that is `kept` is left; a value is left only where what is `spared` holds it.
    """
    flags = bytearray(len(text))
    _mark(flags, text, quotes, 1)
    _mark(flags, text, kept, 0)
    _mark(flags, text, values, 1)
    _mark(flags, text, spared, 0)
    return _runs(text, flags) if any(flags) else []


def _mark(flags: bytearray, text: str, phrases: Iterable[str], value: int) -> None:
    for phrase in phrases:
        pattern = _pattern(phrase)
        for found in pattern.finditer(text) if pattern else ():
            flags[found.start() : found.end()] = bytes([value]) * (found.end() - found.start())


def _runs(text: str, flags: Sequence[int]) -> list[Span]:
    """Return the spans of the letters that are flagged; what lies between them but no letter joins them."""
    found: list[Span] = []
    start: int | None = None
    _, places = _squeezed(text)
    for at, place in enumerate(places):
        if flags[place] and start is None:
            start = at
        elif not flags[place] and start is not None:
            found.append((start, at))
            start = None
    return found if start is None else [*found, (start, len(places))]


@lru_cache(maxsize=1024)
def _pattern(phrase: str) -> re.Pattern[str] | None:
    """Return what finds a phrase as whole words, however they are spaced; None where it has no word."""
    words = re.findall(r"\w+", phrase)
    if not words:
        return None
    before = r"(?<!\w)" if words[0][0] < _FIRST_UNSPACED else ""
    after = r"(?!\w)" if words[-1][-1] < _FIRST_UNSPACED else ""
    return re.compile(before + r"\W+".join(map(re.escape, words)) + after, re.IGNORECASE)


def mentions(text: str, phrase: str) -> bool:
    """Whether a text holds the words of a phrase."""
    pattern = _pattern(phrase)
    return pattern is not None and pattern.search(text) is not None
