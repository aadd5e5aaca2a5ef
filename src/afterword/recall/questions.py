"""Recognise the language of a question, the words that say what it is about, and whether it is about the past. Pure."""

from __future__ import annotations

import re
from collections import Counter

from afterword.facts.words import lower_without_accents, terms, word_set, words_as_written
from afterword.text_caches import text_cache

# The languages whose common words are known, and whose questions about the past are recognised by patterns.
_COMMON_WORDS = {
    "english": word_set(
        "the is are do does did what which where who how my our i we you he she they of to in and a an for with it "
        "when was were"
    ),
    "german": word_set(
        "der das den dem ein eine einen wir ich er sie es ist sind hat habe haben mein meine unser wo wer wie "
        "welche welchen wann und im am zu mit soll gibt mir mich dir du dich ihr ihn ihm uns sich nicht des auf "
        "von fur hast habt bin war was wem wen an bei oder auch als"
    ),
    "spanish": word_set(
        "el la los las que donde quien cual como cuando mi nuestro yo es son de en y un una con por me te se lo al "
        "del para tengo tiene quienes cuales esta este hay no si "
        "ha he han desde"
    ),
    "french": word_set(
        "le la les que quoi ou qui quel quelle quand combien je tu il elle nous vous mon ma notre est sont de des "
        "du en et un une avec au me te se lui leur ce cette ces pour par dans sur ai as suis y qu l d j n s c a"
    ),
    "italian": word_set(
        "il lo la gli le che dove chi quale come quando mio mia nostro io noi e di un una con per sono ho abbiamo "
        "mi ti si ci del della dei delle al alla nel nella i uno da c l ha hai sei"
    ),
    "portuguese": word_set(
        "o a os as que onde quem qual como quando meu minha nosso eu nos e de em um uma com por do da me te se lhe "
        "no na ao para tenho tem desde ha uns sou esta"
    ),
    "dutch": word_set(
        "de het een wat waar wie welke hoe wanneer mijn ons onze ik wij we hij zij is zijn van in en op met me mij "
        "je jij u zich niet te aan bij voor of ook ben heb heeft hebben dat die deze"
    ),
}

_LANGUAGES_OF_WORD = {
    word: [language for language, common in _COMMON_WORDS.items() if word in common]
    for word in frozenset[str]().union(*_COMMON_WORDS.values())
}


@text_cache(1_000)
def languages_of(question: str) -> tuple[str, ...]:
    """Return the language with the most common words in a question, or several languages in case of a tie."""
    words = words_as_written(lower_without_accents(question))
    counts = Counter(language for word in words for language in _LANGUAGES_OF_WORD.get(word, ()))
    most = max(counts.values(), default=0)
    return tuple([language for language in _COMMON_WORDS if counts[language] == most])


@text_cache(1_000)
def question_terms(question: str) -> frozenset[str]:
    """Return the search terms of a question without the common words of its language, such as "ich".

    If the question may be in several languages, only words that are common in all of them are left out.
    """
    common = frozenset.intersection(*(_COMMON_WORDS[language] for language in languages_of(question)))
    return frozenset(
        terms(" ".join(word for word in words_as_written(lower_without_accents(question)) if word not in common))
    )


def _pattern(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(phrases)})\b")


# Only the patterns of the question's language count: "was" is a past tense in English, but asks "what" in German.
_PAST = {
    "english": _pattern(
        r"used to|previous(?:ly)?|former(?:ly)?|before(?= (?:that|then|this|it|i|we|my|our|the|he|she|they)\b|\W*$)"
        r"|originally|initially|earlier|back then|back in|in the past|at the time|at that time|no longer|any ?more"
        r"|still|not yet|did (?:i|we|he|she|they|you|the|my|our|it)|was|were|old(?:er)?|prior|at first|first|history"
        r"|until when|chang(?:e|es|ed|ing)|switch(?:ed)?|replac(?:e|ed|es)|instead of|in place of|moved|swapped"
        r"|dropped|gave up|stopped|in between|in the meantime|meanwhile|so far|since when"
        r"|when (?:is|are|was|were|did|do|does|will|has|have|had|should|must|can)|how (?:many times|often|long)"
        r"|which (?:day|date)|what (?:day|date)|last (?:year|month|week|winter|spring|summer|autumn|fall|time)"
        r"|(?:weeks?|months?|years?|days?) ago|planned|the plan|decided|agreed|evol(?:ve|ved|ution)|timeline",
        r"ever|happen(?:s|ed)|(?:have|has|had) (?:i|we|he|she|they|you|it)",
        r"(?:last|past) (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:spring|summer|autumn|fall|winter)",
    ),
    "german": _pattern(
        r"fruher\w*|vorher\w*|zuvor|davor|ehemals?|damals|ursprunglich\w*|zuerst|bisher\w*|nicht mehr|immer noch",
        r"noch immer|seit wann|wann|war|waren|hatte[nst]?|wie oft|wie viele male|wie lange|gewechselt|geandert",
        r"verandert|statt|letzte[nrms]?|vorige[nrms]?|zwischendurch|inzwischen|mittlerweile|geplant|wurden?|bis wann",
        r"gestern|vorgestern|ersetzt|jemals|vor (?:\w+ )?(?:tag|woche|monat|jahr)e?n?|im (?:fruhling|fruhjahr)",
        r"im (?:sommer|herbst|winter)",
        r"(?:gibt|gilt|gelten|bin|bist|ist|sind|hat|habe|haben|wohn\w*|arbeit\w*)\b.{0,200} noch",
        r"(?:habe?|hast|hat|haben|habt|bin|bist|ist|sind|seid)\b.{0,200} (?:\w{2,5})?ge\w{2,}(?:t|en)(?=\W*$)",
        r"(?:habe?|hast|hat|haben|habt)\b.{0,200} (?<! zu )(?:be|ent|er|ver)\w{3,}(?:t|en)(?=\W*$)",
    ),
    "spanish": _pattern(
        r"antes|anterior\w*|previ[oa]s?\w*|originalmente|al principio|entonces|ya no|todavia|aun|desde cuando|cuando",
        r"cuantas veces|cuanto tiempo|cambi[oa]\w*|solia\w*|era|eran|fue|fueron|habia\w*|pasad[oa]s?|mientras tanto",
        r"en lugar de|hasta cuando|entretanto|ayer|ultima vez|alguna vez|cada cuanto|con que frecuencia|sustituy\w*",
        r"reemplaz\w*|sig(?:o|ues?|uen)|seguimos|hace (?:\w+ )?(?:dias?|semanas?|mes(?:es)?|anos?)",
        r"\w{3,}aba(?:n|s|mos)?|(?:ten|viv|beb|com)ia(?:n|s|mos)?|vivi|tuv[eo]|tuvimos|paso",
    ),
    "french": _pattern(
        r"avant|auparavant|ancien\w*|precedent\w*|autrefois|jadis|a l['’]origine|d['’]abord|ne plus|plus maintenant",
        r"encore|toujours|depuis quand|quand|combien de (?:fois|temps)|chang[ea]\w*|etait|etaient|avait|avaient",
        r"dernier\w*|entre-temps|a la place|jusqu['’]a quand|hier|remplac\w*|a quelle frequence|au printemps",
        r"en (?:ete|automne|hiver)|il y a (?:\w+ )?(?:jours?|semaines?|mois|ans?)|n(?:e |['’])\w+(?:-\w+)* plus",
        r"(?:ai|as|a|avons|avez|ont|suis|es|est|sommes|etes|sont)-(?:t-)?(?:je|tu|ils?|elles?|nous|vous) (?:\w+ )?"
        r"(?:\w+(?:e|i|u|is|it)e?s?)",
        r"\w{2,}(?:ais|ait|ions|iez|aient)-(?:je|tu|ils?|elles?|on|nous|vous)",
    ),
    "italian": _pattern(
        r"prima|precedent[ei]\w*|in passato|originariamente|all['’]inizio|allora|non (?:\w+ )?piu|ancora|da quando",
        r"quando|quante volte|quanto tempo|cambiat\w*|era|erano|aveva\w*|scors[oaie]|nel frattempo|invece di",
        r"fino a quando|ieri|ultima volta|una volta|mai|ogni quanto|sostitui\w*|successo",
        r"(?:giorn[oi]|settiman[ae]|mes[ei]|ann[oi]) fa|\w{2,}(?:avamo|evamo|ivamo|avano|evano|ivano)|\w{3,}[ae]vo",
        r"(?:ho|hai|ha|abbiamo|avete|hanno) (?:\w+ )?\w{2,}(?:at|ut|it)[oaie]",
    ),
    "portuguese": _pattern(
        r"antes|anterior\w*|previ[oa]s?\w*|quando|era|eram|anteriormente|antigamente|no passado|no inicio|ja nao",
        r"ainda|desde quando|quantas vezes|quanto tempo|mudou|mudaram|mudamos|mudei|tinha\w*|foi|foram|passad[oa]s?",
        r"entretanto|em vez de|ate quando|ontem|ultima vez|com que frequencia|substitui\w*|continu(?:o|a|as|am|amos)",
        r"ha (?:\w+ )?(?:dias?|semanas?|mes(?:es)?|anos?)|ja (?:\w+[ei]|teve|foi)|\w{3,}ava(?:m|s|mos)?",
        r"(?:mor|trabalh|us|compr|com)ei|vivi|tive|teve|estive|fui",
    ),
    "dutch": _pattern(
        r"vroeger|voorheen|eerder|eerst|destijds|toen|oorspronkelijk\w*|niet meer|nog steeds|sinds wanneer|wanneer",
        r"hoe (?:vaak|lang)|hoeveel (?:keer|maal)|veranderd|gewijzigd|gewisseld|was|waren|had|hadden|vorige?|afgelopen",
        r"intussen|in plaats van|tot wanneer|gisteren|geleden|laatste (?:keer|maal)|tussendoor|ooit|vervangen|verhuisd",
        r"(?:woon|hoor|leef)de\w*|(?:werk|gebruik|kook)te\w*|dronk\w*|gebeurde\w*|zei(?:den)?",
        r"(?:heb|hebt|heeft|hebben|is|ben|bent|zijn|geldt|woon\w*|werk\w*)\b.{0,200} nog",
        r"(?:heb|hebt|heeft|hebben|is|ben|bent|zijn)\b.{0,200} (?:\w{2,5})?ge\w{2,}(?:d|t|en)(?=\W*$)",
    ),
}
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|marz|mai|juni"
    "|juli|oktober|dezember|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    "|janvier|fevrier|mars|avril|juin|juillet|aout|septembre|octobre|novembre|decembre|gennaio|febbraio|aprile|maggio"
    "|giugno|luglio|settembre|ottobre|dicembre|janeiro|fevereiro|marco|maio|junho|julho|setembro|outubro|novembro"
    "|dezembro|januari|februari|maart|mei|augustus"
)
# A question that names a year, a month or a day counts in every language.
_DATES = re.compile(
    r"\b(?:(?:19|20)\d\d|\d{1,2}[./-]\d{1,2}[./-](?:\d\d|\d{4})|yesterday"
    rf"|(?:in|im|en|em|a|nel|de|on|\d{{1,2}}(?:st|nd|rd|th|\.|º)?(?: of| de)?) (?:{_MONTHS}))\b"
)


def is_about_the_past(question: str) -> bool:
    """Return whether a question names a time, uses a past tense, or asks about a change."""
    asked = lower_without_accents(question)
    return bool(_DATES.search(asked)) or any(_PAST[language].search(asked) for language in languages_of(question))
