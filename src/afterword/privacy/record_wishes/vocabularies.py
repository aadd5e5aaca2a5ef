"""The words of a wish that something is not kept, by language and by their part in the wish. Pure.

The lists stand in `words.toml`. A wish consists of these words only. So "don't save this" is one, and "don't save this
file as PDF" is not.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from afterword.text_caches import text_cache

PARTS = {
    "negation": "words that deny",
    "outside": "words that leave out of a memory",
    "keeping": "verbs of storing, in the forms that address the assistant, and infinitives",
    "kept": "participles of these verbs",
    "weak": "verbs that mean storing only beside a word for anywhere or down",
    "memory": "names of what an assistant keeps",
    "place": 'words for anywhere or down, as in "write it down"',
    "pointing": "words for what was said",
    "own": "the speaker's pronouns, and verbs in the speaker's form",
    "wanting": "verbs of the speaker's own wish",
    "addressed": "pronouns of the assistant",
    "joining": "conjunctions after a verb of wishing",
    "modal": "words of duty, need and request",
    "copula": "forms of the verb to be, which state a fact if no duty stands beside them",
    "purpose": 'prepositions that make a wish of the verb to be: "this is not for your notes"',
    "neutral": "other words that may stand in a wish",
}
"""What each list of a language is for. Besides, `saying` is an expression for "what I say", which counts as a pointing
word, and `splits` are conjunctions that begin another clause."""
_ENDINGS = {"*": r"\w{0,12}", "~": r"(?!(?:o|a|an|ó|é|ei|ou|ai)\Z|\w{0,9}(?:mos|amo)\Z)\w{0,12}"}


@dataclass(frozen=True, slots=True)
class WishWords:
    """The compiled vocabulary of a language."""

    by_part: dict[str, re.Pattern[str]]
    known: re.Pattern[str]
    saying: re.Pattern[str]
    splits: frozenset[str]

    def has(self, part: str, words: list[str]) -> bool:
        """Return whether one of the words belongs to this part of a wish."""
        return any(map(self.by_part[part].fullmatch, words))

    def is_complete(self, words: list[str]) -> bool:
        """Return whether a clause is a request to keep something, which the next clause does not deny."""
        return self.has("keeping", words) and not self.has("negation", words)


@lru_cache(maxsize=1)
def wish_languages() -> tuple[WishWords, ...]:
    """Return the vocabularies of all languages. They are compiled once, when a text is first read."""
    lists = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))
    return tuple(map(_compiled, lists.values()))


@text_cache(4096)
def is_wish_word(word: str) -> bool:
    """Return whether a word in lower case can be part of a wish in one of the languages."""
    return any(language.known.fullmatch(word) for language in wish_languages())


def _compiled(lists: dict[str, str]) -> WishWords:
    by_part = {part: lists[part].split() for part in PARTS}
    return WishWords(
        {part: _expression(words) for part, words in by_part.items()},
        _expression([word for words in by_part.values() for word in words]),
        re.compile(rf"\b(?:{lists['saying'].strip()})\b"),
        frozenset(lists["splits"].split()),
    )


def _expression(words: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(word.rstrip("*~") + _ENDINGS.get(word[-1], "") for word in dict.fromkeys(words)))
