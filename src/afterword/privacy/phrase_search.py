"""Finding many phrases in a text at once, in time that grows with the text alone. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from afterword.normal_form import composed
from afterword.privacy.blanking import Span, spans_of_flags

_WORD = re.compile(r"\w+")
_KEY_WORDS = 3
"""Phrases are looked up by so many words at their start."""
_FIRST_UNSPACED = "\u0e00"

Words = tuple[str, ...]


class PhraseSearch:
    """Finds whole words of phrases in their order, whatever stands between the words.

    In languages that are written without spaces a phrase is found inside of a longer run of letters too.
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
        """Yield the start and the end of each phrase in a text."""
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
        """Return the spans of the text that hold phrases, and those of other `places`, in the form of tombstones."""
        normal = composed(text)
        if normal != text:
            places = [(len(composed(text[:start])), len(composed(text[:end]))) for start, end in places]
            text = normal
        flags = bytearray(len(text))
        for start, end in (*self.places(text), *places):
            flags[start:end] = b"\x01" * (end - start)
        return spans_of_flags(text, flags) if any(flags) else []
