"""Decide by name who is taken for a person."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from afterword.facts.owners import is_generic
from afterword.normal_form import composed


@dataclass(frozen=True, slots=True)
class People:
    """The names of people: the generic ones, and `names` from a manifest, the recorder or the caller."""

    names: frozenset[str] = frozenset()

    @classmethod
    def named(cls, humans: Collection[str] = (), owner: str | None = None) -> People:
        """Return the people that the caller names. Letter case does not matter."""
        names = {composed(name).casefold() for name in humans}
        return cls(frozenset(names | ({composed(owner).casefold()} if owner and owner != "assistant" else set())))

    def has(self, name: str | None) -> bool:
        """Whether the name is a person's."""
        return name is not None and (self.is_listed(name) or is_generic(name))

    def is_listed(self, name: str) -> bool:
        """Whether the caller listed the name as a person's."""
        return composed(name).casefold() in self.names
