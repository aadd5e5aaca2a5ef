"""The prompts, which are versioned text files, and the rendering of a window.

A released prompt file is never edited, because its name is stored with every run. Every change gets a new file.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from afterword.extractors.model.prompts.rendering import render_window

__all__ = ["load_prompt", "render_window"]


@cache
def load_prompt(name: str) -> str:
    """Return the text of the prompt with this name and version, for example `load_prompt("extract-1")`.

    Raises `LookupError` if the package has no such prompt.
    """
    kind, _, version = name.rpartition("-")
    file = resources.files(__name__) / f"{name}.txt"
    if not (kind.isidentifier() and version.isdecimal() and file.is_file()):
        raise LookupError(f"no prompt {name!r} in {__name__}; names look like extract-1")
    return file.read_text(encoding="utf-8").strip()
