"""The texts of the pages in every language, from one catalogue file for each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT_LANGUAGE = "en"


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return the texts of a language by their dotted keys."""
    content = (files(__package__) / "texts" / f"{language}.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(content)))


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    entries: list[tuple[str, str]] = []
    for key, content in table.items():
        entries += _flat(content, f"{prefix}{key}.") if isinstance(content, dict) else [(f"{prefix}{key}", content)]
    return entries


def preferred_language(accepted: str) -> str:
    """Return the first known language of an Accept-Language header."""
    weighted = []
    for place, part in enumerate(accepted[:500].split(",")):
        name, _, weight = part.strip().partition(";q=")
        try:
            weighted.append((-float(weight or 1), place, name.split("-")[0].lower()))
        except ValueError:
            continue
    return next((name for _, _, name in sorted(weighted) if name in LANGUAGES), DEFAULT_LANGUAGE)
