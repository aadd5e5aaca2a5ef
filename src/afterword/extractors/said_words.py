"""Compare the words, names, numbers and dates of a text with what was said in a conversation. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from afterword.facts.words import MONTHS, STOP_WORDS, WEEKDAYS, phrase_pattern, terms, word_set, words_as_written
from afterword.privacy.normalisation import searchable_text, undisguised_text
from afterword.text_caches import text_cache

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|[。！？]|[\r\n]+")
_LONGEST_SENTENCE = 600
_SHORTEST_STEM, _SHORTEST_PART = 4, 6
"""The fewest letters of a word that matches words with the same beginning, and of one that matches longer words."""

_TIME_WORDS = phrase_pattern(
    *sorted(MONTHS | WEEKDAYS),
    r"today|tonight|tomorrow|yesterday|now|next|last|ago|since|until|till|every|daily|weekly|monthly|yearly|annually",
    r"(?:this|that|the whole|all|in a|per|the same|each) (?:weeks?|days?|months?|years?|hours?|morning|evening)",
    r"o'clock|a\.?m|p\.?m|noon|midnight|half|quarter|midsummer|christmas|easter|new year",
    r"heute|morgen|gestern|nächste\w*|letzte\w*|diese[nrms]? \w+|seit|woche\w*|uhr|halb|viertel|hoy|mañana|ayer",
    r"próxim\w+|desde|hasta|aujourd'hui|demain|prochaine?|depuis|jusqu'\w+|oggi|domani|ieri|prossim\w+|hoje|amanhã",
    r"ontem|vandaag|gisteren|volgende|vorige|sinds|uur",
)
_NUMBER_WORDS = {
    **{
        word: number
        for words in (
            "one two three four five six seven eight nine ten eleven twelve",
            "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
            "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
            "un deux trois quatre cinq six sept huit neuf dix onze douze",
            "uno due tre quattro cinque sei sette otto nove dieci undici dodici",
            "um dois três quatro cinco seis sete oito nove dez onze doze",
            "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
        )
        for number, word in enumerate(words.split(), 1)
    },
    **dict.fromkeys(("once", "single", "ein", "eine", "einen", "una", "une", "uma", "first"), 1),
    **dict.fromkeys(("twice", "both", "couple", "pair", "second", "beide", "half"), 2),
    **{"third": 3, "fourth": 4, "quarter": 4, "dozen": 12, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50},
    **{"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "zwanzig": 20, "dreißig": 30},
}
_UNITS = word_set(
    """eur usd gbp chf euro euros dollar dollars pound pounds kg g km m cm mm k l ml h min ca approx kilo kilos percent
    prozent per cent degrees grad seconds minutes hours days weeks months years second minute hour day week month year
    night"""
)
_FRAME = word_set(
    """user person people assistant note nutzer nutzerin nutzers benutzer assistent assistenten person usuario
    usuaria utilisateur utilisatrice utente usuário gebruiker none nothing yes true false e g eg ie both only except
    without never always forbidden allowed every all nicht kein keine nie nur ohne immer nunca sin solo siempre jamais
    sans pas toujours mai senza sempre não sem só niet geen nooit zonder altijd"""
)
"""Words that a statement about a person may use although nobody said them."""

_FUNCTION_WORDS = word_set(
    """der die das den dem des ein eine einen einem einer eines und oder aber von vom zu zum zur im am an auf aus bei
    bis für fur mit nach seit über uber um unter vor als wie dass wenn weil ist sind war hat haben wird werden
    sich er sie es ihr ihre ihren ihrem sein seine seinen auch noch so el la los las lo un una unos unas y o de
    del al en con por para que se su sus son está están ha han fue como más pero porque desde hasta ya le les une
    et ou au aux dans avec pour par sur qui est sont a ont il elle ils elles sa ses leur leurs ne ce cette mais
    gli uno di da della dello dei delle nel nella per che è sono hanno e ed si uma uns umas os as do dos no na nos
    nas em com são foi seu sua het een van op aan bij met voor door uit dat is zijn heeft wordt maar ook te"""
)
"""Articles, pronouns, prepositions and the like in languages that many people write besides English."""


def _longest_first(words: frozenset[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_WITHOUT_CONTENT = STOP_WORDS | _UNITS | _FRAME | _FUNCTION_WORDS
_DATE = re.compile(
    r"\b\d{4}-\d{1,2}(?:-\d{1,2})?\b|\b\d{1,2}\.\s?\d{1,2}\.(?:\s?\d{2,4})?|\b\d{1,2}/\d{1,2}(?:/\d{2,4})?\b"
    r"|\b\d{1,2}[:.h]\d{2}\b(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]\.?m\b"
    rf"|\b(?:\d{{1,2}}(?:st|nd|rd|th|\.|º|er)?"
    rf"(?:,?\s?(?:to|until|till|-|–|bis|and|und|al?|au|y|e)\s?(?:(?:{_longest_first(WEEKDAYS)}),?\s)?"
    rf"\d{{1,2}}(?:st|nd|rd|th|\.)?)?\s"
    rf"(?:of\s|de\s)?)?(?:{_longest_first(MONTHS)})\b\.?(?:\s\d{{1,2}}(?:st|nd|rd|th)?\b)?"
    rf"(?:,?\s(?:de\s)?(?:19|20)\d\d\b)?|\b(?:{_longest_first(WEEKDAYS)})\b|\b(?:19|20)\d\d\b",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"\d+(?:[ ,.'\u202f]\d{3})*(?!\d)(?:[.,]\d+)?|\d+")
_CAPITALISED = r"[A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-Я][\w'-]+"
_PARTICLE = (
    "of |the |de |del |della |dei |di |da |do |du |des |la |le |les |el |van |von |der |den |zu |zum |zur |am |& "
)
_JOINED = rf"(?: (?:{_PARTICLE}){{0,2}}{_CAPITALISED})"
# The first word of a sentence has a capital letter whatever it is.
_NAME = re.compile(rf"(?<=[\w,;:\"'(&-] ){_CAPITALISED}{_JOINED}*|^{_CAPITALISED}{_JOINED}+", re.MULTILINE)
_GERMAN = re.compile(
    r"\b(?:der|die|das|den|dem|des|und|ist|nicht|mit|im|vom|zum|zur|von|für|bis|bei|auf|ein|eine)\b", re.IGNORECASE
)


@text_cache(1_000)  # the same value, sentence and quote are compared in many ways
def plain_text(text: str) -> str:
    """Return a text in the form in which texts are compared. Control characters become blanks, as in an assertion."""
    return searchable_text(undisguised_text(_CONTROL.sub(" ", text)))


def sentence_around(text: str, start: int, end: int) -> tuple[str, str, str]:
    """Return the words before `text[start:end]` in its sentence, that text itself, and the words after it."""
    first, last = max(0, start - _LONGEST_SENTENCE), min(len(text), end + _LONGEST_SENTENCE)
    ends = [match.end() for match in _SENTENCE_END.finditer(text, first, last)]
    begin = max((place for place in ends if place <= start), default=first)
    stop = min((place for place in ends if place >= end), default=last)
    return text[begin:start], text[start:end], text[end:stop]


@dataclass(frozen=True)
class SaidWords:
    """The words that were said in some sentences, prepared for comparison with those of a candidate."""

    text: str

    @cached_property
    def _plain(self) -> str:
        return plain_text(self.text).casefold()

    @cached_property
    def _stems(self) -> frozenset[str]:
        return frozenset(terms(plain_text(self.text)))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(words_as_written(self._plain))

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers as digits, without thousands separators. Number words are included."""
        spelled = (str(_NUMBER_WORDS[word]) for word in self._words if word in _NUMBER_WORDS)
        return frozenset([*_numbers_in(self._plain), *re.findall(r"\d+", self._plain), *spelled])

    def contains_text(self, words: str) -> bool:
        """Return whether this text was said, if only as a part of longer words."""
        plain = " ".join(plain_text(words).casefold().split())
        return bool(plain) and plain in " ".join(self._plain.split())

    def contains_name(self, name: str) -> bool:
        """Return whether exactly this name was said, and not only as a part of a longer word."""
        words = r"\s+".join(map(re.escape, plain_text(name).casefold().split()))
        return re.search(rf"(?<!\w){words}(?!\w)", self._plain) is not None

    @cached_property
    def capitalised_words(self) -> frozenset[str]:
        """The words that begin with a capital letter."""
        return frozenset(word for word in words_as_written(plain_text(self.text)) if word[0].isupper())

    @cached_property
    def has_time_or_number(self) -> bool:
        """Whether the sentences hold a word of time or a number, from which a date can be computed."""
        return bool(_TIME_WORDS.search(self._plain)) or any(number.isdigit() for number in self.numbers)

    def contains_form_of(self, word: str) -> bool:
        """Return whether a word was said, in any form: the same stem, the same beginning, or inside a longer word."""
        plain = plain_text(word).casefold()
        if plain in self._words or not self._stems.isdisjoint(terms(plain)):
            return True
        if len(plain) < _SHORTEST_STEM:
            return False
        beginning = plain[: max(_SHORTEST_STEM, len(plain) - 3)]
        return any(said.startswith(beginning) or _is_form_of(said, plain) for said in self._words)


def said_share(value: str, said: SaidWords, nearby: SaidWords | None = None) -> float:
    """Return the share (0 to 1) of the content words, numbers and dates of a value that were said.

    Dates count as said if the sentences mention any time, from which a date can be computed. What was only said
    `nearby` counts half.
    """
    plain = plain_text(value)
    dates, others = _DATE.findall(plain), _DATE.sub(" ", plain)
    words, numbers = _content_words(others), _numbers_in(others)
    if not (dates or words or numbers):
        return 0.0

    def said_in(source: SaidWords) -> int:
        # Look for words of time only if there are dates. The search takes longer than all other comparisons.
        computed = len(dates) if dates and source.has_time_or_number else 0
        return sum(map(source.contains_form_of, words)) + sum(map(source.numbers.__contains__, numbers)) + computed

    said_exactly = said_in(said)
    said_at_all = said_in(nearby) if nearby else said_exactly
    return (said_exactly + max(said_at_all, said_exactly)) / (2 * (len(dates) + len(words) + len(numbers)))


def count_content_words(text: str) -> int:
    """Return how many content words, numbers and dates a text has, which can be compared with what was said."""
    plain = plain_text(text)
    dates, others = _DATE.findall(plain), _DATE.sub(" ", plain)
    return len(dates) + len(_content_words(others)) + len(_numbers_in(others))


def unsaid_names_and_numbers(text: str, said: SaidWords, known_words: SaidWords | None = None) -> list[str]:
    """Return the names and numbers of a text that were not said.

    A name of several words counts as said if one of its words was said as a name and the others are among the
    `known_words`. In German every noun has a capital letter, so only numbers are checked.
    """
    plain = _DATE.sub(" ", plain_text(text))
    unsaid = [number for number in _numbers_in(plain) if number not in said.numbers]
    if _is_german(plain):
        return unsaid
    for name in _NAME.finditer(plain):
        words = [word for word in words_as_written(name.group()) if _is_name(word)]
        missing = [word for word in words if not said.contains_form_of(word)]
        unsaid += [] if known_words and _is_named_in_part(words, missing, said, known_words) else missing
    return unsaid


def _is_named_in_part(words: Iterable[str], missing: Iterable[str], said: SaidWords, known_words: SaidWords) -> bool:
    """Return whether a word of a name was said as a name, and the missing words of the name are known."""
    return any(word in said.capitalised_words for word in words) and all(map(known_words.contains_form_of, missing))


def _is_german(text: str) -> bool:
    return _GERMAN.search(text) is not None


_COMMON_SUBJECTS = word_set(
    """team project company household family wedding birthday office house home flat apartment car bike trip travel
    holiday meeting website app product server backend frontend database school class course garden kitchen dog cat
    baby child children parents partner wife husband business shop store club band event party conference launch
    release"""
)
"""Subjects that models write with a capital letter although they are no names."""


def unsaid_subject_names(subject: str, statement: str, said: SaidWords) -> list[str]:
    """Return the names in the subject of a statement that were not said. The first word may be a name, too.

    A subject without names, such as a relative, needs only one of its words to be said. If a German statement sums up
    words of another language, its subject is not checked, because nobody said the German nouns.
    """
    if _is_german(statement) and not _is_german(said.text):
        return []
    words = _content_words(plain_text(subject))
    if len(words) > 1 and not any(map(said.contains_form_of, words)):
        return words
    if len(words) == 1 and words[0] in _COMMON_SUBJECTS:
        return []
    return [] if _is_german(subject) else unsaid_names_and_numbers(f"- {subject}", said)


def _content_words(plain: str) -> list[str]:
    """Return the content words: no numbers, no units, and no words that any statement may use."""
    words = dict.fromkeys(word for word in words_as_written(plain.casefold()) if not word.isdigit())
    return [word for word in words if word not in _WITHOUT_CONTENT and terms(word)]


def _is_name(word: str) -> bool:
    is_capitalised = word[0].isupper() and len(word) > 1
    return (
        is_capitalised
        and not _FRAME.union(_UNITS).intersection(words_as_written(word.casefold()))
        and bool(terms(word))
    )


def _is_form_of(said: str, word: str) -> bool:
    """Return whether one of two words is part of the other, as in a compound or with another ending."""
    shorter, longer = sorted((said, word), key=len)
    return len(shorter) >= _SHORTEST_PART and shorter in longer


def _numbers_in(plain: str) -> list[str]:
    matches = (match.group() for match in _NUMBER.finditer(plain))
    return [re.sub(r"(?<=\d)[ ,.'\u202f](?=\d{3}(?!\d))", "", number) for number in matches]
