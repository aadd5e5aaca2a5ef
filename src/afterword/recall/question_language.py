"""Recognise the language of a question by common words, and find the words that say what it is about. Pure."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum

from afterword.facts.words import plain_words, terms, without_accents, word_set
from afterword.text_caches import text_cache


class Language(StrEnum):
    """A language whose common words are known."""

    ENGLISH = "english"
    GERMAN = "german"
    SPANISH = "spanish"
    FRENCH = "french"
    ITALIAN = "italian"
    PORTUGUESE = "portuguese"
    DUTCH = "dutch"


_COMMON_WORDS = {
    Language.ENGLISH: word_set(
        "the is are do does did what which where who how my our i we you he she they of to in and a an for with it "
        "when was were"
    ),
    Language.GERMAN: word_set(
        "der das den dem ein eine einen wir ich er sie es ist sind hat habe haben mein meine unser wo wer wie "
        "welche welchen wann und im am zu mit soll gibt mir mich dir du dich ihr ihn ihm uns sich nicht des auf "
        "von fur hast habt bin war was wem wen an bei oder auch als"
    ),
    Language.SPANISH: word_set(
        "el la los las que donde quien cual como cuando mi nuestro yo es son de en y un una con por me te se lo al "
        "del para tengo tiene quienes cuales esta este hay no si "
        "ha he han desde"
    ),
    Language.FRENCH: word_set(
        "le la les que quoi ou qui quel quelle quand combien je tu il elle nous vous mon ma notre est sont de des "
        "du en et un une avec au me te se lui leur ce cette ces pour par dans sur ai as suis y qu l d j n s c a"
    ),
    Language.ITALIAN: word_set(
        "il lo la gli le che dove chi quale come quando mio mia nostro io noi e di un una con per sono ho abbiamo "
        "mi ti si ci del della dei delle al alla nel nella i uno da c l ha hai sei"
    ),
    Language.PORTUGUESE: word_set(
        "o a os as que onde quem qual como quando meu minha nosso eu nos e de em um uma com por do da me te se lhe "
        "no na ao para tenho tem desde ha uns sou esta"
    ),
    Language.DUTCH: word_set(
        "de het een wat waar wie welke hoe wanneer mijn ons onze ik wij we hij zij is zijn van in en op met me mij "
        "je jij u zich niet te aan bij voor of ook ben heb heeft hebben dat die deze"
    ),
}

_LANGUAGES_OF_WORD = {
    word: [language for language, common in _COMMON_WORDS.items() if word in common]
    for word in frozenset[str]().union(*_COMMON_WORDS.values())
}


@text_cache(1_000)
def languages_of(question: str) -> tuple[Language, ...]:
    """Return the language with the most common words in a question, or several languages in case of a tie."""
    words = plain_words(without_accents(question))
    counts = Counter(language for word in words for language in _LANGUAGES_OF_WORD.get(word, ()))
    most = max(counts.values(), default=0)
    return tuple([language for language in _COMMON_WORDS if counts[language] == most])


@text_cache(1_000)
def question_terms(question: str) -> frozenset[str]:
    """Return the search terms of a question without the common words of its language, such as "ich".

    If the question may be in several languages, only words that are common in all of them are left out.
    """
    common = frozenset.intersection(*(_COMMON_WORDS[language] for language in languages_of(question)))
    return frozenset(terms(" ".join(word for word in plain_words(without_accents(question)) if word not in common)))
