"""Escape text for a terminal, so that no file name or quoted text can move the cursor or reorder a line."""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def terminal_text(text: str) -> str:
    """Return a text with control characters and bidirectional marks written out, as in `\\x1b`. Line breaks stay."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def terminal_line(text: str) -> str:
    """Return a text on one line, with line breaks written out too."""
    return terminal_text(text).replace("\n", "\\n")


def terminal_json(text: str) -> str:
    """Return JSON in which the same characters are written as `\\u` escapes."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
