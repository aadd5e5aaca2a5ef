"""Find the clauses of a text that ask for something not to be stored. Pure.

Such a clause is called a wish. It consists of words from `words.toml`, which lists them by language and by their role.
Among them are a negation, a word for storing or for a memory, and a reference to what was said. "Don't save this" is a
wish. "Don't save this file as PDF", "I don't remember this" and "it is not in my notes" are none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from afterword.privacy.normalisation import Span
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
"""The word lists of each language, and what they contain. Each language has three more entries. `saying` is an
expression for "what I say", which counts as a word for what was said. `known` is an expression for "what you know about
me", which counts as a memory. `splits` lists conjunctions that begin a new clause."""
_ENDINGS = {"*": r"\w{0,12}", "~": r"(?!(?:o|a|an|ó|é|ei|ou|ai)\Z|\w{0,9}(?:mos|amo)\Z)\w{0,12}"}
_LONGEST = 24
"""The most words of a wish. This also bounds the time that a text takes."""
_FEWEST_AROUND = 5
_LONGEST_CLAUSE = 200
_MOST_JOINED = 3
_SEGMENT = re.compile(r"[^.!?;:\n()\[\]–—…]+")
_SIGN = re.compile(r",|\s-\s|\b[^\W\d_]{1,8}\b")
_DENIED = re.compile(r"\s(?:not(?! to\b)|never)\b")
_FILE = re.compile(r"\b(?:this|that|these) (?:files?|logs?|records?|notes?|document|database|profile)\b")
_WORD = re.compile(r"[^\W_]+")
_CLOSING = re.compile(r"\s*(?:[:)\]–—]|-\s)")
_TAG = re.compile(
    r"\b(?:right|no|non|vero|nicht|ok(?:ay)?|please|pls|yeah|yes|bitte|ja|gut|oder|vale|s[ií]|por favor|d'accord|hein"
    r"|stp|svp|va bene|per favore|tá|né|certo|hè|toch|goed|alsjeblieft)\W*\Z"
)
"""The end of a question that only asks whether the wish was heard: "this won't go in your notes, right?"."""
_TO_YOURSELF = re.compile(
    r"\bfür (?:dich|sich|euch) (?:zu )?behalt|\bto yourself\b|\bpara ti\b|\bpour (?:toi|vous)\b|\bper te\b|\bvoor je\b"
)
"""Words for keeping a secret, which is no request to store something."""
_CONTRACTIONS = re.compile(r"\b(do|does|did|is|are|was|were|has|should|would|could|must|need|have|wo|ca|can)n['’]?t\b")
_NEEDLESS = re.compile(r"\bdoes(?: not|n['’]?t) need\b")
_SHARED = re.compile(r"\b(?:(?:can|could|may|shall) we|let us|let['’]s)\b")
_PERSON = re.compile(
    r"\bsie (?:kann|konnte|will|wollte|möchte|mochte|wird|würde|muss|musste|soll|hat|hatte)\b"
    r"|\b(?:kann|konnte|will|wollte|möchte|mochte|wird|würde|muss|musste|soll|hat|hatte) sie\b"
    r"|\bil ne? (?!(?:faut|fallait|faudrait|vaut|vaudrait|est|était|serait|suffit|reste|y)\b)"
    r"(?!\w+ (?:(?:rien|pas) )?(?:rester|y|avoir)\b)"
)
"""A third person in words that otherwise address the assistant or nobody: "sie" with a verb in the singular, "il"."""
_POINTING, _MEMORY = "this", "memory"
_REQUESTING = frozenset("do leave make please bitte kindly just never treat surtout que che".split())
_YOURS = frozenset(
    "your dein deine deinen deiner deinem ihre ihren ihrem tu tus su sus ta ton tes votre vos tuo tuoi tue tua tuas "
    "teu teus suas sua seu seus jouw je uw".split()
)
_MOST_UNKNOWN = 3
_ONLY = re.compile(r"\b(?:only|unless|nur|solo|seulement|uniquement|soltanto|só|somente|alleen|enkel)\b")
_IFS = frozenset("if wenn falls si se als".split())
_FOR_ME = re.compile(
    r"\b(?:für mich|halt(?:e|en)? mir|para m[ií]m?|(?:no|não|ne) me (?:guard|gard)\w+|pour moi|per me|tenermi"
    r"|voor m(?:ij|e))\b"
)
"""Words for keeping a thing for the speaker: "no me guardes sitio"."""


@dataclass(frozen=True, slots=True)
class WishWords:
    """The compiled vocabulary of a language."""

    by_part: dict[str, re.Pattern[str]]
    known: re.Pattern[str]
    saying: re.Pattern[str]
    memory: re.Pattern[str]
    splits: frozenset[str]

    def has(self, part: str, words: list[str]) -> bool:
        """Return whether one of the words is in the word list of this name (a key of `PARTS`)."""
        return any(map(self.by_part[part].fullmatch, words))


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
    by_part["memory"].append(_MEMORY)
    return WishWords(
        {part: _expression(words) for part, words in by_part.items()},
        _expression([word for words in by_part.values() for word in words]),
        re.compile(rf"\b(?:{lists['saying'].strip()})\b"),
        re.compile(rf"\b(?:{lists['known'].strip()})\b"),
        frozenset(lists["splits"].split()),
    )


def _expression(words: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(word.rstrip("*~") + _ENDINGS.get(word[-1], "") for word in dict.fromkeys(words)))


def wish_clauses(text: str) -> Iterator[Span]:
    """Yield the spans of the wishes in a text, which is in plain form and in lower case.

    A clause ends at punctuation or at a conjunction. Up to three neighbouring clauses are also read as one.
    """
    for segment in _SEGMENT.finditer(text):
        words = _WORD.findall(_CONTRACTIONS.sub(r"\1 not", _NEEDLESS.sub("need not", segment.group())))
        is_closed = bool(_CLOSING.match(text, segment.end()))
        is_question = text.startswith("?", segment.end())
        for language in wish_languages():
            # "Can you not save this?" asks for it, "don't you remember this?" does not.
            if (
                is_question
                and not _TAG.search(segment.group())
                and not (language.has("modal", words) or language.has("wanting", words))
            ):
                continue
            if language.has("negation", words) or language.has("outside", words):
                yield from _wishes(segment.group(), segment.start(), language, is_closed=is_closed)


def _wishes(segment: str, offset: int, language: WishWords, *, is_closed: bool) -> Iterator[Span]:
    clauses = list(_clauses(segment, language))
    for first in range(len(clauses)):
        for count in range(min(_MOST_JOINED, len(clauses) - first), 0, -1):
            last = first + count - 1
            start, end = clauses[first][0], clauses[last][1]
            first_clause = segment[slice(*clauses[first])]
            words = first_clause.split()
            asks_to_keep = language.has("keeping", words) and not language.has("negation", words)
            # A negation in the next clause is not about a request to keep something.
            if count > 1 and asks_to_keep and not _TO_YOURSELF.search(first_clause):
                continue
            is_last = last == len(clauses) - 1
            points = is_closed if is_last else language.has("negation", segment[start:end].split()[:2])
            is_wish = end - start <= _LONGEST_CLAUSE and _is_wish(
                segment[start:end],
                language,
                points=points,
                is_single=count == 1,
                is_condition=bool(_ONLY.search(segment)),
            )
            if is_wish:
                yield offset + start, offset + end


def _clauses(segment: str, language: WishWords) -> Iterator[tuple[int, int]]:
    start = 0
    for sign in _SIGN.finditer(segment):
        # "I'll pass it on and not keep it" denies what the speaker does.
        is_conjunction = sign.group() in language.splits and not _DENIED.match(segment, sign.end())
        if not sign.group().isalpha() or is_conjunction:
            yield start, sign.start()
            start = sign.end()
    yield start, len(segment)


def _is_wish(clause: str, language: WishWords, *, points: bool, is_single: bool, is_condition: bool) -> bool:
    plain = " ".join(
        _WORD.findall(_CONTRACTIONS.sub(r"\1 not", _NEEDLESS.sub("need not", _SHARED.sub("please", clause))))
    )
    words = language.saying.sub(_POINTING, language.memory.sub(_MEMORY, plain)).split()
    if not 1 < len(words) <= _LONGEST:
        return False
    if _FILE.search(plain) or _PERSON.search(plain) or _FOR_ME.search(plain):
        return False
    if not (
        _are_wish_words(words, language, is_single=is_single) or (is_single and _is_about_your_memory(words, language))
    ):
        return False
    if not (points or _POINTING in words or language.has("pointing", words)):
        return False
    if not _denies_keeping(words, language):
        return False
    # "I only tell you if you don't keep it."
    is_condition = is_condition and not _IFS.isdisjoint(words)
    return is_condition or _is_about_assistant(words, language, announces=points)


def _are_wish_words(words: list[str], language: WishWords, *, is_single: bool) -> bool:
    """Return whether all words can be part of a wish. In a clear request one word in five may be unknown."""
    unknown = [place for place, word in enumerate(words) if word != _POINTING and not language.known.fullmatch(word)]
    if len(unknown) * _FEWEST_AROUND > max(len(words), _FEWEST_AROUND) or not unknown:
        return not unknown
    # An unknown word at the start names who does it. After "this", or at the end, it names a thing.
    if not any(language.has(part, words[: unknown[0]]) for part in ("negation", "modal", "wanting", "copula")):
        return False
    is_inside = unknown[0] > 0 and unknown[-1] < len(words) - 1
    names_thing = any(language.has("pointing", words[place - 1 : place]) for place in unknown)
    is_clear = any(language.has(part, words) for part in ("keeping", "kept", "wanting", "modal"))
    return is_single and is_inside and not names_thing and is_clear and len(words) >= _FEWEST_AROUND


def _is_about_your_memory(words: list[str], language: WishWords) -> bool:
    """Return whether a clause names the assistant's memory and what was said, with at most three unknown words."""
    unknown = sum(word != _POINTING and not language.known.fullmatch(word) for word in words)
    is_yours = any(
        word in _YOURS and language.has("memory", words[place + 1 : place + 3]) for place, word in enumerate(words)
    )
    points = _POINTING in words or language.has("pointing", words)
    return is_yours and points and unknown <= min(_MOST_UNKNOWN, len(words) // 3)


def _denies_keeping(words: list[str], language: WishWords) -> bool:
    names_memory = language.has("memory", words)
    if not (language.has("negation", words) or (language.has("outside", words) and names_memory)):
        return False
    is_weak = language.has("weak", words) and language.has("place", words)
    return names_memory or is_weak or language.has("keeping", words) or language.has("kept", words)


def _is_about_assistant(words: list[str], language: WishWords, *, announces: bool) -> bool:
    """Return whether the words are a request to the assistant, and no statement about somebody's memory or a file.

    `announces` says whether the thing that must not be stored comes after the words.
    """
    wants = language.has("wanting", words)
    if language.has("own", words):
        return wants and any(language.has(part, words) for part in ("kept", "memory", "addressed", "joining"))
    # "This stays out of the notes."
    if language.has("outside", words) and language.has("memory", words) and language.has("pointing", words[:1]):
        return True
    has_duty = wants or language.has("modal", words)
    if language.has("copula", words):
        return has_duty or language.has("purpose", words)
    if has_duty:
        return True
    # Without a word of duty, it is a request only if it begins like one: "not in your notes", "keep none of this".
    begins = words[0] in _REQUESTING or any(
        language.has(part, words[:1]) for part in ("negation", "keeping", "weak", "outside")
    )
    return (begins or announces or not _YOURS.isdisjoint(words)) and not language.has("addressed", words)
