"""Find text that an agent could read as the tag of a block, in any spelling. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

TAG_NAME = "afterwordmemory"
BRACKETS = "<＜﹤˂❮ᐸᚲ"
"""Characters that look like the bracket that opens a tag."""
HARMLESS = "‹"
_ANY_BRACKET = re.compile(f"[{BRACKETS}]")

# Digits, Cyrillic and Greek letters that look like the letters of the name, and do not decompose to them.
_LOOKALIKES = str.maketrans("0347аеотумԁԝгοαερτυωƒ", "oeataeotymdwroaertywf")


def defuse_tags(text: str) -> str:
    """Return the text with each bracket replaced that is followed by the name of a block's tag.

    The name is also found with accents, other letter forms, punctuation between the letters, and look-alike digits or
    letters.
    """
    if not _ANY_BRACKET.search(text):
        return text
    brackets = [place for place, character in enumerate(text) if character in BRACKETS]
    letters = list(_folded(text))
    places = [place for place, _ in letters]
    folded = "".join(letter for _, letter in letters)
    characters = list(text)
    for place in brackets:
        if folded.startswith(TAG_NAME, bisect_left(places, place)):
            characters[place] = HARMLESS
    return "".join(characters)


def _folded(text: str) -> Iterator[tuple[int, str]]:
    """Yield the letters and digits of a text without case and accents, each with its position in the text."""
    for place, character in enumerate(text):
        if character not in BRACKETS:
            for letter in unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES):
                if letter.isalnum():
                    yield place, letter
