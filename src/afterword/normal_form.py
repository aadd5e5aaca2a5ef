"""The Unicode normal form of text: the same letter can be one character or several. Stored text is NFC."""

from __future__ import annotations

import unicodedata
from typing import Any


def composed(text: str) -> str:
    """Return the text in NFC: a letter with its accents is one character, if Unicode has one."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def decomposed(text: str) -> str:
    """Return the text in NFD: accents are separate characters after their letters."""
    return text if text.isascii() else unicodedata.normalize("NFD", text)


def composed_and_decomposed(text: str) -> tuple[str, ...]:
    """Return the text in NFC and, where that differs, in NFD."""
    return tuple(dict.fromkeys((composed(text), decomposed(text))))


def composed_value(value: Any) -> Any:
    """Return a JSON value with each of its strings in NFC."""
    if isinstance(value, str):
        return composed(value)
    if isinstance(value, dict):
        return {composed_value(name): composed_value(inner) for name, inner in value.items()}
    return [composed_value(inner) for inner in value] if isinstance(value, list) else value
