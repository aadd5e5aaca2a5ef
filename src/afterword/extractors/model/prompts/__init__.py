"""The prompts, as versioned text files, and how a window is shown in them.

A prompt file is never edited once it has been released: its name is kept with every run, so a change is a new file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from afterword.extractors.model.prompts.rendering import render

__all__ = ["Prompt", "load_prompt", "render"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The text of one version of one prompt."""

    name: str
    version: str
    text: str

    @property
    def id(self) -> str:
        """Name and version as one word, for example `extract-1`."""
        return f"{self.name}-{self.version}"


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt that `name` and version name, for example `load_prompt("extract-1")`.

    Raises `LookupError` where the package holds no such prompt.
    """
    kind, _, version = name.rpartition("-")
    file = resources.files(__name__) / f"{name}.txt"
    if not (kind.isidentifier() and version.isdecimal() and file.is_file()):
        raise LookupError(f"no prompt {name!r} in {__name__}; names look like extract-1")
    return Prompt(kind, version, file.read_text(encoding="utf-8").strip())
