"""Find what could be read as the tag of a block, however it is spelt. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator

TAG_NAME = "afterwordmemory"
BRACKETS = "<＜﹤˂❮ᐸᚲ"
"""Signs that look like the one that opens a tag."""
HARMLESS = "‹"
_ANY_BRACKET = re.compile(f"[{BRACKETS}]")

# Digits, Cyrillic and Greek letters that look like the letters of the name, and do not decompose to them.
_LOOKALIKES = str.maketrans("0347аеотумԁԝгοαερτυωƒ", "oeataeotymdwroaertywf")


def defuse_tags(text: str) -> str:
    """Return the text with another sign for each bracket behind which the name of a block's tag can be read.

    Accents, forms of letters, signs between them and digits or foreign letters that look alike make no difference.
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
    """Yield the letters that a reader sees, without case, accents and signs, each with its place in the text."""
    for place, character in enumerate(text):
        if character not in BRACKETS:
            for letter in unicodedata.normalize("NFKD", character).casefold().translate(_LOOKALIKES):
                if letter.isalnum():
                    yield place, letter
