"""Hashes in what a store holds."""

from __future__ import annotations

import re


def without_hashes(text: str) -> str:
    """The text without long hexadecimal numbers: a random one may hold the digits of a short secret."""
    return re.sub("[0-9a-f]{16,}", "", text)
