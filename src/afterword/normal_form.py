"""The Unicode normal form of text: the same letter can be one character or several. Stored text is NFC."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

# Characters that NFC may join with the character before them, although they are not combining marks.
_JOINING = frozenset(
    chr(code) for first, last in ((0x1161, 0x1175), (0x11A8, 0x11C2)) for code in range(first, last + 1)
) | frozenset("\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0cc2\u0cd5\u0cd6\u0d3e\u0d57\u0dcf\u0ddf\u102e\u1b35")


def composed(text: str) -> str:
    """Return the text in NFC: a letter with its accents is one character, if Unicode has one."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def decomposed(text: str) -> str:
    """Return the text in NFD: accents are separate characters after their letters."""
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def text_forms(text: str) -> tuple[str, ...]:
    """Return the text in NFC and, where that differs, in NFD."""
    return tuple(dict.fromkeys((composed(text), decomposed(text))))


def composed_value(value: Any) -> Any:
    """Return a JSON value with each of its strings in NFC."""
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, dict):
        return {composed_value(name): composed_value(inner) for name, inner in value.items()}
    return [composed_value(inner) for inner in value] if isinstance(value, list) else value


def composed_characters(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield each character of the text in NFC, with the start and the end of the characters that it replaces."""
    if text.isascii():
        yield from zip(text, range(len(text)), range(1, len(text) + 1), strict=True)
        return
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and not text[end].isascii() and (unicodedata.combining(text[end]) or text[end] in _JOINING):
            continue
        for character in composed(text[start:end]):
            yield character, start, end
        start = end
