"""Find texts that name a value that agents must no longer be told. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set

FEW_WORDS = 4
"""A value of more words counts as named where most of them are."""
MOST_OF = 0.7

Words = frozenset[str]


class NamedValues:
    """Values, by their words. Forms of a word, letter case and accents make no difference."""

    def __init__(self, values: Iterable[Words], except_for: Set[Words] = frozenset()) -> None:
        """Take the words of the values, but not those that are all of the words of one of `except_for`."""
        words = set(values) - except_for - {frozenset()}
        self._by_word: dict[str, list[Words]] = defaultdict(list)
        for value in words:
            if len(value) <= FEW_WORDS:
                self._by_word[min(value, key=lambda word: (-len(word), word))].append(value)
            else:
                for word in value:
                    self._by_word[word].append(value)

    def __bool__(self) -> bool:
        return bool(self._by_word)

    def are_named_in(self, words: Words) -> bool:
        """Return whether a text with these words names one of the values."""
        return any(
            len(value & words) >= (len(value) if len(value) <= FEW_WORDS else MOST_OF * len(value))
            for word in words & self._by_word.keys()
            for value in self._by_word[word]
        )
