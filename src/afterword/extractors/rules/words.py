"""A list of words, written as one text. Pure."""

from __future__ import annotations


def listed(text: str) -> tuple[str, ...]:
    """Return the words of a text, in order."""
    return tuple(text.split())
