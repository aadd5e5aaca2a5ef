"""The prompts, as versioned text files, and the rendering of a window.

A released prompt file is never edited, because its name is stored with every run. A change is a new file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from afterword.extractors.model.prompts.rendering import render

__all__ = ["Prompt", "load_prompt", "render"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text of one version of one prompt. `id` is name and version as one word, for example `extract-1`."""

    id: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt with this name and version, for example `load_prompt("extract-1")`.

    Raises `LookupError` if the package has no such prompt.
    """
    kind, _, version = name.rpartition("-")
    file = resources.files(__name__) / f"{name}.txt"
    if not (kind.isidentifier() and version.isdecimal() and file.is_file()):
        raise LookupError(f"no prompt {name!r} in {__name__}; names look like extract-1")
    return Prompt(name, file.read_text(encoding="utf-8").strip())
