"""Patterns of PINs, one-time codes, and codes of doors, alarms and cards. Pure.

A number is judged by the topic of its sentence and by the words around it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from afterword.privacy import secret_numbers as numbers
from afterword.privacy.secret_kinds import SecretKind, SecretPattern, SecretSentencePattern, Span, any_value_span
from afterword.privacy.secret_numbers import ends_with_linking_word, is_year, possible_code_span
from afterword.privacy.secret_vocabulary import (
    CARD_CODE,
    CODE,
    DEVICE,
    IS,
    LOCK,
    NO_SECRET_CODE,
    ONE_TIME,
    OPENED,
    OPENING,
    PIN,
    PLACE,
    TYPING,
    VERIFYING,
)
from afterword.text_caches import text_cache

_BEFORE_NUMBER, _AFTER_NUMBER = r"(?<![\w.,/:€$£+-])", r"(?![\w]|[.:,/-]\d|\s?[%€$£°])"
_DIGITS = rf"{_BEFORE_NUMBER}(?P<value>\d(?:[ -]?\d){{3,7}}+){_AFTER_NUMBER}"
_CODE_VALUE = r"(?P<value>[#*]?(?:\d|(?-i:[A-Z])(?=[\w-]{0,6}\d[\w-]{0,6}\d))(?:[\w#*-]| (?=\d)){2,20}+)"
_PIN_OWNERS = (
    r"(?:sim|bank|card|debit|credit|atm|phone|mobile|tablet|giro|ec|voicemail|mailbox|account|app|visa|mastercard)"
)
_FEWEST, _MOST_DIGITS = 4, 10
_WINDOW = 90


def _whole_word_pattern(expression: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{expression})(?![\w])", re.IGNORECASE)


class _Topics(NamedTuple):
    """Whether a sentence names a code, a thing that a code opens, opening or typing, sending or checking, and a lock."""

    code: bool
    opened: bool
    entering: bool
    verifying: bool
    lock: bool


_WORDS_OF_TOPICS = tuple(map(_whole_word_pattern, (CODE, OPENED, rf"{TYPING}|{OPENING}", VERIFYING, LOCK)))
_BESIDE = re.compile(
    rf"(?<![\w-])(?:{CODE}|(?P<lock>{LOCK}|(?:{DEVICE})(?=\s?:)))\b(?P<gap>[^.!?;\n\d]{{0,60}}?)(?:(?P<link>(?:\s{IS}:?|\s?[:=→-]|,(?:\s(?:that's|{IS}))?"
    r"|\s(?:wants|needs|takes|asks for|set to|reads|hat|braucht|will|steht auf|tiene|prend|ha|vuole|tem|heeft|staat op|a))"
    r"\s{1,2}(?:(?:the|die|der|auf|to|el|la|le|il|lo|o|de|het|en|on|set|number)\s)?)|\s{1,2})\Z",
    re.IGNORECASE,
)
"""A word for a code or a lock, and the words that link it with the number after it."""
_USED = re.compile(
    rf"(?:\b(?:with|using|use|by|mit|con|usando|avec|com|met|via|{TYPING}|in|code|number|pin|{IS}|needs?|braucht|bloß|nur|necesita|necesitas|faut|serve|servono|precisa(?: de)?|alleen|just|only|now|jetzt|nun|ahora|maintenant|ora|agora|nu|tapant|composant|faites|to|unless|then|first"
    r"|the|musst|die|der|den|dem|du|man|el|la|los|le|les|il|lo|de|het|os|as|je|moet)|(?<!\w)[ao]|[:=,])\s{1,2}\Z|\A\W{0,3}\Z",
    re.IGNORECASE,
)
"""The words before a number that is entered somewhere and is no quantity."""
_STANDS_ALONE = re.compile(
    r"\s{0,2}(?:$|[.,;:!?()\[\]\"'”»|/–—\n-])|\s{1,2}(?:"
    r"to|and|or|then|on|at|for|from|in|of|when|if|as|is|was|but|so|btw|by|please|pls|again|with|because|since|until|now|still|which|that"
    r"|followed|plus|star|hash|pound|first|it|i|you|he|she|they|we|works?|will|does|gets|just|after|before|opens?|unlocks?|lets?"
    r"|und|oder|dann|ein|auf|ab|für|fürs|von|vom|am|an|im|zum|zur|ist|war|wenn|falls|aber|bitte|als|aus|lautet|danach|damit|weil|bei"
    r"|drücken|eingeben|eintippen|tippen|wählen|öffne\w*|entsperr\w*|raute|stern|kommst|kommt"
    r"|y|o|en|para|pra|por|si|al|a|luego|como|es|pero|de|del|que|con|abre|et|ou|puis|pour|sur|à|au|dans|comme|c'est|est|mais"
    r"|s'il|ouvre|étoile|dièse|poi|per|su|se|come|è|ma|nel|nella|sul|sulla|il|apre|e|depois|no|na|é|mas|em|do|da"
    r"|voor|op|aan|bij|van|te|om|maar|still|noch|todavía|toujours|ancora|ainda|nodig|last|yesterday|today|earlier|always|through|past|right|durchs?|immer|gestern|heute|par|attraverso|door|non|né|hè|toch|ja|oder|intoetsen|opent|hekje|sterretje|geschickt|gesendet|gestellt|gesetzt|eingestellt|gezet|gedraaid|genommen|eingegeben|wars?|passen|ils|elles|ze|zij|they|kommen)(?![\w])",
    re.IGNORECASE,
)
"""What may follow a code: punctuation, a function word, or a verb of its use. A number before a noun is a quantity."""
_INSTRUMENT = re.compile(
    r"\b(?:with|using|mit|con|avec|com|met)\s{1,2}(?:(?:the|dem|der|el|le|il|lo|o|de|het)\s{1,2})?\Z", re.IGNORECASE
)
_SENT = re.compile(
    r"\b(?:sent|texted|emailed|mailed|gave)(?: (?:me|us|you))?\s{1,2}\Z|\b(?:hat|haben) (?:(?:mir|uns) )?\Z|\b(?:mandó|mandado|enviado|envió|envoyé|texté|mandato|inviato|mandou|enviou|stuurde|gestuurd|"
    r"says|steht|pone|écrit|scritto|diz)(?: (?:me|mij|aqui|da))?\s{1,2}\Z|\A\W{0,3}\Z",
    re.IGNORECASE,
)
"""The words before a number that somebody sent."""
_SENT_DIGITS = 6
_SET = re.compile(
    r"\b(?:(?:set|dial|turn|put|move|changed?) (?:it|them|that) (?:to|at|on)|made (?:it|that)|stell\w* \w{2,6} auf|dreh\w* \w{2,6} auf|pon\w{0,4} en|mets-?l[ea]s? (?:sur|à)|met(?:ti)?l[oae] (?:su|a)|mettil[oae] (?:su|a)"
    r"|põe(?:-?n?[ao])? em|mete(?:-?[ao])? em|zet (?:het|hem|'m|die) op|draai (?:het|hem|'m) naar)\s{1,2}\Z",
    re.IGNORECASE,
)
_ONTO = re.compile(r"\b(?:to|auf|en|sur|su|em|op)\s{1,2}\Z", re.IGNORECASE)
_OPENS = re.compile(
    rf"\s{{1,2}}(?:(?:to|um|para|pour|per|om|zu|te|will|would|should)\s{{1,2}}){{0,2}}{OPENING}(?!\w)", re.IGNORECASE
)
_SHAPE = re.compile(r"[#*]?[A-Fa-f]?\d{1,10}(?:[ -]\d{1,6}|-[A-Z]{2,6}){0,6}(?:[A-Fa-f]\d{0,4})?[#*]?")
_OF_PLACE = re.compile(
    rf"(?<![\w-]){PLACE}\s{{1,2}}(?:[^\W\d]{{1,12}}\s{{1,2}}){{0,3}}?(?:{IS}:?|hat|tiene|ha|tem|heeft)\s{{1,2}}\Z|(?<![\w-]){PLACE}'s\s{{1,2}}\Z",
    re.IGNORECASE,
)
_AT_PLACE = re.compile(
    r"\b(?:at|of|in|for|from|beim?|vom|im|für|del|de la|d[aou]|en|em|para|pour|chez|per|al|van|bij|voor)\s"
    r"(?:[^\W\d]{1,4}\s)?(?:[^\W\d]{1,12}\s)?\Z",
    re.IGNORECASE,
)
"""A preposition before a place. In "the fee at the shed is 1100" the number is the fee, not a code of the shed."""
_FOR_PLACE = re.compile(
    rf"\s{{1,2}}(?:[^\W\d]{{1,10}}\s{{1,2}}){{0,2}}?(?:for|für|para|pour|per|voor)\s{{1,2}}(?:[^\W\d]{{1,12}}\s{{1,2}}){{0,2}}?{OPENED}(?![\w])",
    re.IGNORECASE,
)
_AFTER_IS = re.compile(rf"\b(?:{IS}|stimmt|gilt)\s{{1,2}}(?:[^\W\d]{{2,8}}\s{{1,2}}){{0,3}}\Z", re.IGNORECASE)
_ENDS = re.compile(r"\s{0,2}(?:\Z|[.!?;,\n])")
_SURE_LOCK = re.compile(
    r"\b(?:[a-zäöü]{2,12}-?)?(?:lock|schloss|slot|safe|tresor|candado|cadenas|antivol|lucchetto|cadeado|kluis)\s\Z",
    re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,3}(?:[- ]\d{1,3}){2,5}|\d+[#*]|[#*]\d+")
_ODD = re.compile(r"[#*]?[A-Z]?\d{2,6}(?:[A-Z]\d{0,4}|[#*])")


@text_cache(64)
def _named_topics(sentence: str) -> _Topics:
    return _Topics(*(words.search(sentence) is not None for words in _WORDS_OF_TOPICS))


def code_span(match: re.Match[str]) -> Span | None:
    """Return the span of a number that opens something and is neither a quantity nor a date, or None."""
    sentence = match.string
    start = match.start("value")
    value = match["value"].rstrip("-/ ")
    end = start + len(value)
    if not _SHAPE.fullmatch(value) or not possible_code_span(match):
        return None
    opens = _OPENS.match(sentence, end) is not None
    if not (opens or _GROUPED.fullmatch(value) or _STANDS_ALONE.match(sentence, end)):
        return None
    before = sentence[max(0, start - _WINDOW) : start]
    if is_year(value) and not ends_with_linking_word(before):
        return None
    is_code_of_place = _is_code_of_place(before, value, sentence[end : end + _WINDOW])
    return (start, end) if is_code_of_place or _is_called_code(sentence, before, value, opens=opens) else None


def _is_code_of_place(before: str, value: str, after: str) -> bool:
    """Return whether a number is called the code of a door: "the door is 7090", "is it 4471 for the pool".

    It has four to six digits and is no year.
    """
    if not value.isdigit() or not _FEWEST <= len(value) <= _SENT_DIGITS or is_year(value):
        return False
    if (place := _OF_PLACE.search(before)) and _ENDS.match(after):
        return _AT_PLACE.search(before, 0, place.start()) is None
    return _AFTER_IS.search(before) is not None and _FOR_PLACE.match(after) is not None


def _is_called_code(sentence: str, before: str, value: str, *, opens: bool) -> bool:
    """Return whether a sentence shows that its number is a code: by its topics, or by the words beside the number.

    `opens` says whether a verb of opening follows the number.
    """
    topics = _named_topics(sentence)
    is_grouped = _GROUPED.fullmatch(value) is not None
    name = _BESIDE.search(before)
    is_of_lock = name is not None and _names_lock(name, topics)
    fewest_digits = 3 if is_grouped or is_of_lock else _FEWEST
    if not fewest_digits <= sum(map(str.isdigit, value)) <= _MOST_DIGITS:
        return False
    if is_of_lock or (name is not None and (is_grouped or _is_close_to_number(name))):
        return True
    is_used = opens or _USED.search(before) is not None
    return _is_code_by_topics(before, value, topics, is_used=is_used)


def _names_lock(name: re.Match[str], topics: _Topics) -> bool:
    """Return whether the word for a code or a lock before a number certainly means a lock that the number opens."""
    return bool((name["link"] and topics.opened) or (name["lock"] and _SURE_LOCK.search(name.string)))


def _is_close_to_number(name: re.Match[str]) -> bool:
    """Return whether a word for a code stands just before its number, or is linked with it by a word such as "is"."""
    return bool(name["link"] or not (name["lock"] or name["gap"]))


def _is_code_by_topics(before: str, value: str, topics: _Topics, *, is_used: bool) -> bool:
    """Return whether the topics of a sentence, and the words before its number, make the number a code."""
    if topics.code and any((topics.opened, topics.entering, topics.verifying, is_used)):
        return True
    digits = sum(map(str.isdigit, value))
    # A long number in groups is a telephone number.
    is_telephone = " " in value and digits > _SENT_DIGITS
    if topics.opened and not is_telephone and _is_entered(before, value, topics, is_used=is_used):
        return True
    return topics.verifying and digits == _SENT_DIGITS and _SENT.search(before) is not None


def _is_entered(before: str, value: str, topics: _Topics, *, is_used: bool) -> bool:
    """Return whether somebody enters a number at the thing that it opens, or sets the thing to it."""
    if _SET.search(before) or _INSTRUMENT.search(before) or (ends_with_linking_word(before) and _ODD.fullmatch(value)):
        return True
    return topics.entering and (is_used or (topics.lock and _ONTO.search(before) is not None))


CODE_PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    SecretPattern(
        "pin",
        SecretKind.CODE,
        rf"(?<![\w-])(?:{_PIN_OWNERS}[ -]{{1,2}}|(?:[a-zäöüß]{{2,20}}-){{1,2}})?pin(?:[ -]?(?:code|number|nummer))?(?P<link>\s{{0,2}}(?:{IS}|to|:|\?)\s{{0,2}}|[\"']\s?:\s?[\"']?|\s)"
        r"(?P<value>\d(?:[ -]?\d){3,7}+)(?![\w-]|[.:,/]\d)",
        ("pin",),
        numbers.pin_span,
    ),
    SecretSentencePattern(
        "number in a sentence about a pin",
        SecretKind.CODE,
        (rf"(?<![\w-]){PIN}(?![\w])",),
        _DIGITS,
        ("pin", "code", "codi", "códi", "puk", "geheim", "secreto"),
        numbers.sentence_pin_span,
    ),
    SecretSentencePattern(
        "number in a sentence about a one-time code",
        SecretKind.CODE,
        (rf"(?<![\w-])(?:{ONE_TIME}|(?-i:m?TAN|OTP))(?![\w])",),
        _DIGITS,
        ("otp", "tan", "one", "code", "codice", "código", "codigo", "passw"),
        numbers.sentence_code_span,
    ),
    SecretPattern(
        "one-time code before its word",
        SecretKind.CODE,
        r"(?<![\w.,-])(?P<value>(?:[A-Z]-)?\d{3}[ -]?\d{1,5}) is (?:your|the|my)\b(?:\s[\w-]{1,20}){0,4}?"
        r"\s(?:code|otp|tan|passcode|pin)\b",
        ("code", "otp", "tan", "pin"),
        any_value_span,
    ),
    SecretSentencePattern(
        "number in a sentence about a code or a lock",
        SecretKind.CODE,
        (rf"(?<![\w-])(?:{CODE}|{OPENED}|{VERIFYING})(?![\w])",),
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}{_AFTER_NUMBER}",
        tuple("0123456789"),
        code_span,
        rf"{NO_SECRET_CODE}|\w\(|[{{}}<>]|//|=>",
    ),
    SecretPattern(
        "security code behind the number of its card",
        SecretKind.CODE,
        r"\[redacted: card number\][^.!?\n]{0,60}?(?:[,;/]|\d\d/\d{2,4}(?=\s)|\b(?:code|c[óo]digo|codice|back|hinten|atrás|detrás|derrière|dietro|achterop)\b[^\d\n]{0,20})\s{0,2}"
        r"(?P<value>\d{3})(?![\w/]|[.,:-]\d)",
        ("[redacted: card number]",),
    ),
    SecretSentencePattern(
        "security code of a card",
        SecretKind.CODE,
        (rf"(?<![\w-])(?:{CARD_CODE})(?![\w])",),
        rf"(?<!\d[ -]){_BEFORE_NUMBER}(?P<value>\d{{3,4}})(?![ -]\d){_AFTER_NUMBER}",
        tuple("0123456789"),
        numbers.sentence_code_span,
    ),
)
