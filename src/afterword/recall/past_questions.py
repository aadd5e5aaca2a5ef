"""Recognise questions about the past: what held before, when, since when, how often, what changed. Pure.

Patterns in English, German, Spanish, French, Italian, Portuguese and Dutch. A question that names a year, a month or a
day counts too.
"""

from __future__ import annotations

import re

_ENGLISH = (
    r"used to|previous(?:ly)?|former(?:ly)?|before(?= (?:that|then|this|it|i|we|my|our|the|he|she|they)\b|\W*$)"
    r"|originally|initially|earlier|back then|back in|in the past|at the time|at that time|no longer|any ?more"
    r"|still|not yet|did (?:i|we|he|she|they|you|the|my|our|it)|was|were|old(?:er)?|prior|at first|first|history"
    r"|until when|chang(?:e|es|ed|ing)|switch(?:ed)?|replac(?:e|ed|es)|instead of|in place of|moved|swapped"
    r"|dropped|gave up|stopped|in between|in the meantime|meanwhile|so far|since when"
    r"|when (?:is|are|was|were|did|do|does|will|has|have|had|should|must|can)|how (?:many times|often|long)"
    r"|which (?:day|date)|what (?:day|date)|last (?:year|month|week|winter|spring|summer|autumn|fall|time)"
    r"|(?:weeks?|months?|years?|days?) ago|planned|the plan|decided|agreed|evol(?:ve|ved|ution)|timeline",
)
_OTHERS = (
    r"fruher\w*|vorher\w*|zuvor|davor|ehemals?|damals|ursprunglich\w*|zuerst|bisher\w*|nicht mehr|immer noch"
    r"|noch immer|seit wann|wann|war|waren|hatte[nst]?|wie oft|wie lange|gewechselt|geandert|verandert|statt"
    r"|letzte[nrms]?|vorige[nrms]?|zwischendurch|geplant|wurden?|bis wann",
    r"antes|anterior\w*|previ[oa]s?\w*|originalmente|al principio|entonces|ya no|todavia|aun|desde cuando|cuando"
    r"|cuantas veces|cuanto tiempo|cambi[oa]\w*|solia\w*|era|eran|fue|fueron|habia\w*|pasad[oa]s?|mientras tanto"
    r"|en lugar de|hasta cuando",
    r"avant|auparavant|ancien\w*|precedent\w*|autrefois|jadis|a l['’]origine|d['’]abord|ne plus|plus maintenant"
    r"|encore|toujours|depuis quand|quand|combien de (?:fois|temps)|chang[ea]\w*|etait|etaient|avait|avaient"
    r"|dernier\w*|entre-temps|a la place|jusqu['’]a quand",
    r"prima|precedent[ei]\w*|in passato|originariamente|all['’]inizio|allora|non piu|ancora|da quando|quando"
    r"|quante volte|quanto tempo|cambiat\w*|era|erano|aveva\w*|scors[oaie]|nel frattempo|invece di|fino a quando",
    r"anteriormente|antigamente|no passado|no inicio|ja nao|ainda|desde quando|quantas vezes|quanto tempo|mudou"
    r"|mudaram|tinha\w*|foi|foram|passad[oa]s?|entretanto|em vez de|ate quando",
    r"vroeger|voorheen|eerder|eerst|destijds|toen|oorspronkelijk\w*|niet meer|nog steeds|sinds wanneer|wanneer"
    r"|hoe (?:vaak|lang)|veranderd|gewijzigd|gewisseld|was|waren|had|hadden|vorige|afgelopen|intussen"
    r"|in plaats van|tot wanneer",
)
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|januar|februar|marz|mai|juni"
    "|juli|oktober|dezember|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    "|janvier|fevrier|mars|avril|juin|juillet|aout|septembre|octobre|novembre|decembre|gennaio|febbraio|aprile|maggio"
    "|giugno|luglio|settembre|ottobre|dicembre|janeiro|fevereiro|marco|maio|junho|julho|setembro|outubro|novembro"
    "|dezembro|januari|februari|maart|mei|augustus"
)
_DATES = (
    r"(?:19|20)\d\d|\d{1,2}[./-]\d{1,2}[./-](?:\d\d|\d{4})|yesterday|gestern|ayer|hier|ieri|ontem|gisteren",
    rf"(?:in|im|en|em|a|nel|de|on|\d{{1,2}}(?:st|nd|rd|th|\.|º)?(?: of| de)?) (?:{_MONTHS})",
)
_PAST = re.compile(rf"\b(?:{'|'.join((*_ENGLISH, *_OTHERS, *_DATES))})\b")
_MARKS = str.maketrans("áàâäãåéèêëíìîïóòôöõúùûüçñ", "aaaaaaeeeeiiiiooooouuuucn")


def is_about_the_past(question: str) -> bool:
    """Return whether a question names a time or asks for a change."""
    return bool(_PAST.search(question.casefold().translate(_MARKS)))
