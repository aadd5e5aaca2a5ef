"""Which texts name a value that is not to be told any more. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from afterword.facts.words import terms

FEW_WORDS = 4
"""A value of more words counts as named where most of them are."""
MOST_OF = 0.7


class NamedValues:
    """Values, by their words. Forms of a word, letter case and accents make no difference."""

    def __init__(self, values: Iterable[str], except_for: Iterable[str] = ()) -> None:
        """Take the values that do not consist of the same words as one of `except_for`."""
        allowed = {frozenset(terms(value)) for value in except_for}
        words = {frozenset(terms(value)) for value in values} - allowed - {frozenset()}
        self._by_word: dict[str, list[frozenset[str]]] = defaultdict(list)
        for value in words:
            if len(value) <= FEW_WORDS:
                self._by_word[min(value, key=lambda word: (-len(word), word))].append(value)
            else:
                for word in value:
                    self._by_word[word].append(value)

    def __bool__(self) -> bool:
        return bool(self._by_word)

    def are_named_in(self, words: frozenset[str]) -> bool:
        """Return whether a text with these words names one of the values."""
        return any(
            len(value & words) >= (len(value) if len(value) <= FEW_WORDS else MOST_OF * len(value))
            for word in words
            for value in self._by_word.get(word, ())
        )
