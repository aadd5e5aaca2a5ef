"""Normalise words and texts so that they can be compared: letter case, accents, stop words, English stems. Pure."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator

import snowballstemmer

from afterword.normal_form import composed
from afterword.text_caches import text_cache

STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    a about after again all also am an and any are as at be because been before being but by can could d did do does
    doing don down each for from further get got had has have having he her here hers him his how i if in into is it
    its just ll let m may me might more most must my no nor not now of off on once one only or other our out over own
    please re s same shall she should so some such t than that the their them then there these they this those through
    to too under until up us user ve very was we were what when where which while who whom whose why will with would
    you your yours
    """,
    )
)

_WORD = re.compile(r"[^\W_]+")
# Scripts that are written without spaces between words.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+)"
)


def words_as_written(text: str) -> list[str]:
    """Return the words of a text as they are written: runs of letters and digits."""
    return _WORD.findall(text)


def folded_words(text: str) -> list[str]:
    """Return the words of a text in folded form."""
    return words_as_written(folded(text))


def terms(text: str) -> list[str]:
    """Return the stems of the words of a text (English stems, without case, accents and stop words)."""
    plain = lower_without_accents(text)
    words = words_as_written(plain)
    parts = words if plain.isascii() else [part for word in words for part in _split_unspaced(word)]
    return list(filter(None, map(_stem_of_word, parts)))


def lower_without_stop_words(text: str) -> str:
    """Return the words of a text without case and accents, not stemmed, stop words left out."""
    return " ".join(word for word in words_as_written(lower_without_accents(text)) if word not in STOP_WORDS)


@text_cache(10_000)
def folded(text: str) -> str:
    """Return the folded form of a text, in which texts are compared: case-folded, with single spaces, in NFC."""
    return " ".join(composed(text).casefold().split())


def snake_case(text: str) -> str:
    """Return the words of a text in lower case, joined by underscores."""
    return re.sub(r"[\W_]+", "_", composed(text).casefold()).strip("_")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


def phrase_pattern(*phrases: str) -> re.Pattern[str]:
    """Return a pattern that finds any of these phrases (regular expressions) as whole words, in any letter case."""
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b", re.IGNORECASE)


def lower_without_accents(text: str) -> str:
    """Return a text in lower case without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return unicodedata.normalize("NFC", letters)


def _split_unspaced(word: str) -> Iterator[str]:
    """Yield the parts of a word. In scripts without spaces each pair of neighbouring characters is a part."""
    for index, part in enumerate(_UNSPACED.split(word)):
        if index % 2:
            yield from [part[start : start + 2] for start in range(len(part) - 1)] or [part]
        elif part:
            yield part


class _Stemmer(threading.local):
    """An English stemmer for each thread, since a stemmer keeps the current word in its state."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord


_stemmer = _Stemmer()


@text_cache(50_000)
def _stem_of_word(word: str) -> str:
    return "" if word in STOP_WORDS else _stemmer.stem(word) or word


MONTHS = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec januar februar märz marz maerz mai juni juli oktober dezember enero febrero marzo abril
    mayo junio julio agosto septiembre octubre noviembre diciembre janvier février fevrier mars avril juin juillet août
    aout septembre octobre novembre décembre decembre gennaio febbraio aprile maggio giugno luglio settembre
    ottobre dicembre janeiro fevereiro março marco maio junho julho setembro outubro novembro dezembro januari februari
    maart mei augustus spring summer autumn winter fall"""
)
WEEKDAYS = word_set(
    """monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays weekday weekdays weekend weekends montag dienstag mittwoch donnerstag freitag samstag sonntag montags
    dienstags mittwochs donnerstags freitags samstags sonntags lunes martes miércoles miercoles jueves viernes sábado
    sabado domingo lundi mardi mercredi jeudi vendredi samedi dimanche lunedì lunedi martedì martedi mercoledì mercoledi
    giovedì giovedi venerdì venerdi sabato domenica segunda terça terca quarta quinta sexta maandag dinsdag woensdag
    donderdag vrijdag zaterdag zondag"""
)
_DAY = re.compile(
    r"\b(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\s?\d{1,2}[./]|(?:19|20)\d\d|(?:\d{1,2}(?:\.|st|nd|rd|th)? (?:of |de )?)?"
    rf"(?:{'|'.join(sorted(MONTHS | WEEKDAYS, key=len, reverse=True))})\b(?: \d{{1,2}}\b)?)",
    re.IGNORECASE,
)


_MAY_BE_NO_DAY = word_set("may march fall spring mar mars segunda terça quarta quinta sexta sabato marco juli")
_BEFORE_DAY = re.compile(
    r"\b(?:in|until|till|since|by|from|on|of|this|next|last|every|bis|seit|ab|im|am|en|desde|hasta|em|até|na|à|de|depuis|"
    r"dal|fino)\s+\Z",
    re.IGNORECASE,
)


def date_words(text: str) -> frozenset[str]:
    """Return the days, weekdays, months and years in a text, in the words of the text.

    Ambiguous words such as "may" count only after a word such as "in" or "until".
    """
    return frozenset(
        match.group().casefold()
        for match in _DAY.finditer(text)
        if match.group().casefold() not in _MAY_BE_NO_DAY or _BEFORE_DAY.search(text[: match.start()])
    )
