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
class WishVocabulary:
    """The compiled vocabulary of a language."""

    by_part: dict[str, re.Pattern[str]]
    known: re.Pattern[str]
    saying: re.Pattern[str]
    memory: re.Pattern[str]
    splits: frozenset[str]

    def lists_any(self, words: list[str], *parts: str) -> bool:
        """Return whether one of the words is in one of the word lists of these names (keys of `PARTS`)."""
        return any(any(map(self.by_part[part].fullmatch, words)) for part in parts)


@lru_cache(maxsize=1)
def wish_vocabularies() -> tuple[WishVocabulary, ...]:
    """Return the vocabularies of all languages. They are compiled once, when a text is first read."""
    lists = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))
    return tuple(map(_compiled_vocabulary, lists.values()))


@text_cache(4096)
def is_wish_word(word: str) -> bool:
    """Return whether a word in lower case can be part of a wish in one of the languages."""
    return any(vocabulary.known.fullmatch(word) for vocabulary in wish_vocabularies())


def _compiled_vocabulary(lists: dict[str, str]) -> WishVocabulary:
    by_part = {part: lists[part].split() for part in PARTS}
    by_part["memory"].append(_MEMORY)
    return WishVocabulary(
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
        words = _plain_words(segment.group())
        announces = bool(_CLOSING.match(text, segment.end()))
        is_question = text.startswith("?", segment.end()) and not _TAG.search(segment.group())
        for vocabulary in wish_vocabularies():
            # "Can you not save this?" asks for it, "don't you remember this?" does not.
            if is_question and not vocabulary.lists_any(words, "modal", "wanting"):
                continue
            if vocabulary.lists_any(words, "negation", "outside"):
                yield from _wishes_in_segment(segment.group(), segment.start(), vocabulary, announces=announces)


def _plain_words(text: str) -> list[str]:
    """Return the words of a text with contracted negations written out: "don't" becomes "do not"."""
    return _WORD.findall(_CONTRACTIONS.sub(r"\1 not", _NEEDLESS.sub("need not", text)))


def _wishes_in_segment(segment: str, offset: int, vocabulary: WishVocabulary, *, announces: bool) -> Iterator[Span]:
    """Yield the spans of the wishes in the part of a text between two signs. The part begins at `offset`.

    `announces` says whether the sign after it announces the thing that must not be stored.
    """
    clauses = list(_clauses(segment, vocabulary))
    says_only = bool(_ONLY.search(segment))
    for first, (start, first_end) in enumerate(clauses):
        # A negation in the next clause is not about a request to keep something.
        most_joined = 1 if _asks_to_keep(segment[start:first_end], vocabulary) else _MOST_JOINED
        for last in range(min(first + most_joined, len(clauses)) - 1, first - 1, -1):
            end = clauses[last][1]
            clause = segment[start:end]
            is_last = last == len(clauses) - 1
            is_announcing = announces if is_last else vocabulary.lists_any(clause.split()[:2], "negation")
            if len(clause) <= _LONGEST_CLAUSE and _is_wish(
                clause, vocabulary, announces=is_announcing, is_one_clause=first == last, says_only=says_only
            ):
                yield offset + start, offset + end


def _clauses(segment: str, vocabulary: WishVocabulary) -> Iterator[tuple[int, int]]:
    start = 0
    for sign in _SIGN.finditer(segment):
        # "I'll pass it on and not keep it" denies what the speaker does.
        is_conjunction = sign.group() in vocabulary.splits and not _DENIED.match(segment, sign.end())
        if not sign.group().isalpha() or is_conjunction:
            yield start, sign.start()
            start = sign.end()
    yield start, len(segment)


def _asks_to_keep(clause: str, vocabulary: WishVocabulary) -> bool:
    """Return whether a clause asks the assistant to store something."""
    words = clause.split()
    is_request = vocabulary.lists_any(words, "keeping") and not vocabulary.lists_any(words, "negation")
    return is_request and not _TO_YOURSELF.search(clause)


def _is_wish(clause: str, vocabulary: WishVocabulary, *, announces: bool, is_one_clause: bool, says_only: bool) -> bool:
    """Return whether a clause asks for something not to be stored.

    `announces` says whether the thing that must not be stored comes after the clause, and `says_only` whether the words
    around it contain "only" or "unless".
    """
    plain = " ".join(_plain_words(_SHARED.sub("please", clause)))
    words = vocabulary.saying.sub(_POINTING, vocabulary.memory.sub(_MEMORY, plain)).split()
    if not 1 < len(words) <= _LONGEST or any(other.search(plain) for other in (_FILE, _PERSON, _FOR_ME)):
        return False
    is_about_keeping = _is_about_keeping(words, vocabulary, announces=announces, is_one_clause=is_one_clause)
    if not is_about_keeping or not _denies_keeping(words, vocabulary):
        return False
    # "I only tell you if you don't keep it."
    is_condition = says_only and not _IFS.isdisjoint(words)
    return is_condition or _is_request_to_assistant(words, vocabulary, announces=announces)


def _is_about_keeping(words: list[str], vocabulary: WishVocabulary, *, announces: bool, is_one_clause: bool) -> bool:
    """Return whether a clause refers to what was said, and has the words of a wish or names the assistant's memory."""
    if not (announces or _refers_to_what_was_said(words, vocabulary)):
        return False
    has_wish_words = _are_wish_words(words, vocabulary, is_one_clause=is_one_clause)
    return has_wish_words or (is_one_clause and _is_about_your_memory(words, vocabulary))


def _refers_to_what_was_said(words: list[str], vocabulary: WishVocabulary) -> bool:
    """Return whether one of the words refers to what was said."""
    return _POINTING in words or vocabulary.lists_any(words, "pointing")


def _unknown_places(words: list[str], vocabulary: WishVocabulary) -> list[int]:
    """Return the places of the words that are in no word list."""
    return [place for place, word in enumerate(words) if word != _POINTING and not vocabulary.known.fullmatch(word)]


def _are_wish_words(words: list[str], vocabulary: WishVocabulary, *, is_one_clause: bool) -> bool:
    """Return whether all words can be part of a wish. In a clear request one word in five may be unknown."""
    unknown = _unknown_places(words, vocabulary)
    if len(unknown) * _FEWEST_AROUND > max(len(words), _FEWEST_AROUND) or not unknown:
        return not unknown
    # An unknown word at the start names who does it. After "this", or at the end, it names a thing.
    if not vocabulary.lists_any(words[: unknown[0]], "negation", "modal", "wanting", "copula"):
        return False
    is_inside = unknown[0] > 0 and unknown[-1] < len(words) - 1
    names_thing = any(vocabulary.lists_any(words[place - 1 : place], "pointing") for place in unknown)
    is_clear = vocabulary.lists_any(words, "keeping", "kept", "wanting", "modal")
    return is_one_clause and is_inside and not names_thing and is_clear and len(words) >= _FEWEST_AROUND


def _is_about_your_memory(words: list[str], vocabulary: WishVocabulary) -> bool:
    """Return whether a clause names the assistant's memory and what was said, with at most three unknown words."""
    unknown = _unknown_places(words, vocabulary)
    is_yours = any(
        word in _YOURS and vocabulary.lists_any(words[place + 1 : place + 3], "memory")
        for place, word in enumerate(words)
    )
    is_known = len(unknown) <= min(_MOST_UNKNOWN, len(words) // 3)
    return is_yours and is_known and _refers_to_what_was_said(words, vocabulary)


def _denies_keeping(words: list[str], vocabulary: WishVocabulary) -> bool:
    names_memory = vocabulary.lists_any(words, "memory")
    if not (vocabulary.lists_any(words, "negation") or (vocabulary.lists_any(words, "outside") and names_memory)):
        return False
    is_weak = vocabulary.lists_any(words, "weak") and vocabulary.lists_any(words, "place")
    return names_memory or is_weak or vocabulary.lists_any(words, "keeping", "kept")


def _is_request_to_assistant(words: list[str], vocabulary: WishVocabulary, *, announces: bool) -> bool:
    """Return whether the words are a request to the assistant, and no statement about somebody's memory or a file.

    `announces` says whether the thing that must not be stored comes after the words.
    """
    if vocabulary.lists_any(words, "own"):
        wants = vocabulary.lists_any(words, "wanting")
        return wants and vocabulary.lists_any(words, "kept", "memory", "addressed", "joining")
    if _says_it_stays_out(words, vocabulary):
        return True
    has_duty = vocabulary.lists_any(words, "wanting", "modal")
    if vocabulary.lists_any(words, "copula"):
        return has_duty or vocabulary.lists_any(words, "purpose")
    return has_duty or _is_request_without_duty(words, vocabulary, announces=announces)


def _says_it_stays_out(words: list[str], vocabulary: WishVocabulary) -> bool:
    """Return whether the words are a sentence such as "this stays out of the notes"."""
    names_both = vocabulary.lists_any(words, "outside") and vocabulary.lists_any(words, "memory")
    return names_both and vocabulary.lists_any(words[:1], "pointing")


def _is_request_without_duty(words: list[str], vocabulary: WishVocabulary, *, announces: bool) -> bool:
    """Return whether words without a word of duty begin like a request: "not in your notes", "keep none of this"."""
    begins = words[0] in _REQUESTING or vocabulary.lists_any(words[:1], "negation", "keeping", "weak", "outside")
    return (begins or announces or not _YOURS.isdisjoint(words)) and not vocabulary.lists_any(words, "addressed")
