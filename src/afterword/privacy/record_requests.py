"""Recognise a person's request to go off the record or back on it, in seven languages. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from afterword.privacy.normalisation import Span, searchable_text
from afterword.privacy.record_wishes.clauses import wish_clauses
from afterword.privacy.record_wishes.phrases import COMMAND, MEMORY, PHRASES, PLAIN_WISHES
from afterword.text_caches import text_cache

OFF = ("off the record", "/off-record")
ON = ("back on the record", "on the record again", "/on-record")

HIDDEN = "[off the record]"
HIDDEN_FROM_HERE = "[off the record from now on]"

_HEAD, _TAIL = 2_000, 300
_LONGEST_NAME = 3

# Words before a request that do not make it a report: "ok, let's go off the record".
_LEAD_WORDS = frozenset(
    (
        "ok okay so now well thanks thank you please alright all right hey hi hello just strictly btw by the way um uh and but also "
        "look listen honestly quick note nb ps psst this that it is was be are s re m ll d let us me we i can could may shall should "
        "must will would want wanted like to go going gonna switch switching move speaking completely totally really very entirely "
        "purely for a moment minute second bit keep treat consider following stays remains stay wholly dear my assistant what "
        "everything anything next part chat conversation mark marked as off from here on something tell say talk quickly "
        "actually one thing sentence message turn only remark comment more again then first before telling saying asking "
        "also bitte jetzt nur ganz also hallo das ist wir gehen por favor ahora solo esto es s'il te plaît maintenant juste "
        "c est ceci unter uns und per favore adesso solo questo è agora isto é só alsjeblieft nu dit even fyi here's here need heads up sorry"
    ).split()
)
_GOING = frozenset("go going gonna switch switching move gehen gehe".split())
_REPORTED = re.compile(
    r"\b(?!(?:i|we|you|to|not|never|let|me|i've|just)\b)[\w'-]+\s(?:has |had |have |also |once |even )?(?:told|said|says|spoke|mentioned|admitted|"
    r"confessed|talked|chatted|confirmed|hinted|revealed|commented|explained|shared|sagte|erzählte|hat|dijo|contó|a dit|ha detto|disse|zei|vertelde)\b"
)
_MENTIONED = re.compile(
    r"\bmean(?:s|ing|t)?\b|\bphrase\b|\bterm\b|\bexpression\b|\bdefin\w+|\btranslat\w+|\bstands? for\b|\bbedeutet\b|\bsignifi\w+"
)
_ADJECTIVE = re.compile(r"\b(?:the|an?|his|her|their|its|some|any|this|those|these|several|many)\s*$")
_OF_RECORDS = re.compile(
    r"\s(?:shel\w+|store|shop|player|label|collection|books?|compan\w+|deal|sleeve|cover|holder|pile|stack)\b"
)
_TITLE_OPENS, _TITLE_CLOSES = re.compile(r"[\"'“‘«]$"), re.compile(r"[\"'”’»]")
_FROM_NOW = re.compile(
    r"\b(?:from (?:now|here|this (?:point|moment)) (?:on(?:wards?)?|forward)?|for the rest|until (?:i|we|further)\b|starting now|henceforth|ab (?:jetzt|hier|sofort)|von (?:jetzt|nun) an"
    r"|a partir de (?:ahora|agora|aquí|aqui)|desde ahora|à partir de maintenant|désormais|dorénavant|d'ora in (?:poi|avanti)|da adesso|vanaf (?:nu|hier))"
)
_CONVERSATION = re.compile(
    r"\b(?:conversation|chat|session|gespräch|unterhaltung|sitzung|discussion|conversación|charla|sesión|conversazione|sessione|conversa|sessão|gesprek|sessie)\b"
)
_PART = re.compile(r"\b(?:message|part|sentence|bit|teil|satz|nachricht|partie|phrase|frase|parte|bericht|deel|zin)\b")
_FOLLOWING = re.compile(
    r"\b(?:next|about to|going to|follow(?:s|ing)|jetzt sage|nächste\w*|folgt|folgende|vais (?:te |vous )?(?:dire|raconter)|suit|voy a|siguiente|sigue|sto per|segue|vou (?:te |lhe )?(?:dizer|contar)|nu ga|volgende|volgt)\b"
)
_ALONE = re.compile(
    r"(?:\W|\b(?:now|please|then|again|thanks|thank you|ok|okay|everyone|guys|all|bitte|jetzt|por favor|ahora|maintenant|adesso|agora|nu|for (?:a|one) (?:moment|minute|second|bit))\b)*\Z"
)
_THIRD_PERSON = re.compile(r"\s*(?:he|she|they|\w+ (?:told|said|says|mentioned|admitted))\b(?! is\b)")

# "Between us" and "confidential" do not count: people tell an assistant in confidence what it should use.
_ASIDES = "|".join(
    (
        rf"not (?:for|on) (?:the records?|{MEMORY})|unofficially(?: speaking)?|off[\s_-]record(?: (?:comment|remark|note|question|info|confession)| for (?:a|one|just a) (?:moment|minute|sec(?:ond)?|bit))?|no (?:memory|notes|record) (?:for|of|on|about) this(?: one)?(?: please)?|without (?:saving|storing|recording|remembering|keeping|noting) (?:it|this|that)|don't quote me(?: on (?:this|that))?|nothing for the record",
        r"inoffiziell|nicht für(?:s| das) protokoll",
        r"extraoficialmente|fuera de (?:registro|acta|micr[óo]fono)|sin que conste",
        r"hors micro|officieusement",
        r"ufficiosamente|in via ufficiosa",
        r"em off",
        r"niet voor de notulen|onofficieel",
    )
)
_FORGET = re.compile(
    r"\b(?:forget|delete|erase|remove|wipe|vergiss|lösch\w*|streich\w*|olvida\w*|borra\w*|oublie\w*|efface\w*|supprime\w*|dimentica\w*|cancella\w*|esque[cç]\w*|apaga\w*|vergeet|wis|verwijder)\b"
)


# Words that name a secret. The secret is masked in any case, so the rest of the turn need not be hidden.
_SECRET_NAMED = re.compile(r"\bcode d(?:e|u)\b|mot de passe|\bmdp\b|\bclave\b|contraseña|\bsenha\b|palavra-passe")
_NOT_TO_FORGET = re.compile(
    r"\b(?:(?:do ?n[o']?t|never) forget|vergiss nicht|nicht vergessen|no (?:te )?olvides|n'oublie[sz]? pas|non (?:ti )?dimenticare|não (?:te |se )?esque[cç]as?|vergeet (?:het )?niet)\b"
)
_NOTHING = re.compile(r"\b(?:forget|delete|erase|remove|wipe) nothing\b")


# "If you don't remember it, I'll send it again" asks for nothing, "is it ok if you don't save this?" does.
_IS_CONDITION = re.compile(r"(?:\A|[.,;:!?])\s*(?:if|when|unless) (?:you|we|i)\s*\Z")
# "Meine Oma kann sich das nicht merken" tells what somebody is not able to do, and asks for nothing.
_IS_ABLE = re.compile(r"\b(?:kann|konnten?|kan|kon|konden)\b(?! (?:je|jij|u|man|men)\b)[^.,;:!?()\n–—]*\Z")


class RecordChange(Enum):
    """What a person's turn requests: hide this turn, go off the record, or return to the record."""

    THIS = "this turn"
    OFF = "from here on"
    ON = "back"


@dataclass(frozen=True, slots=True)
class Markers:
    """The phrases, in any letter case, that take a conversation off the record and back.

    Other wordings of the same request ("not for the record", "don't save this") count too, as long as "off the record"
    is one of the phrases.
    """

    off: tuple[str, ...] = OFF
    on: tuple[str, ...] = ON

    def requested_change(self, text: str) -> RecordChange | None:
        """Return what a person's turn requests, or None: "he told me off the record" requests nothing.

        In case of doubt the turn is off the record.
        """
        if text.startswith(HIDDEN_FROM_HERE):
            return RecordChange.OFF
        if text.strip() == HIDDEN:
            return RecordChange.THIS
        # A request stands at the beginning or the end of what a person writes, not in the middle of a long paste.
        expressions, head = _expressions(self.off, self.on), searchable_text(text[:_HEAD]).casefold().strip()
        if expressions.off_commands.match(head):
            return RecordChange.OFF
        if (match := expressions.on.search(head[:120])) and _is_lead_in(head[: match.start()]):
            return RecordChange.ON
        if (change := _off_change(head, expressions)) is not None or len(text) <= _HEAD:
            return change
        tail = searchable_text(text[-_TAIL:]).casefold().strip()
        return RecordChange.THIS if _off_change(tail, expressions) else None


@dataclass(frozen=True, slots=True)
class _Expressions:
    """The compiled expressions of a set of phrases. `asides` is None if other wordings do not count."""

    off: re.Pattern[str]
    off_commands: re.Pattern[str]
    on: re.Pattern[str]
    asides: re.Pattern[str] | None


@lru_cache(maxsize=16)
def _expressions(off: tuple[str, ...], on: tuple[str, ...]) -> _Expressions:
    commands = tuple(phrase for phrase in off if phrase.startswith("/"))
    has_asides = "off the record" in (phrase.casefold() for phrase in off)
    return _Expressions(
        off=re.compile(rf"(?<![\w/]){_any_phrase(tuple(p for p in off if p not in commands))}(?!\w)"),
        off_commands=re.compile(rf"\W{{0,8}}{_any_phrase(commands)}(?!\w)"),
        on=re.compile(rf"(?<!\w){_any_phrase(on)}(?!\w)"),
        asides=re.compile(rf"(?<!\w)(?:{_ASIDES})(?!\w)") if has_asides else None,
    )


def _any_phrase(phrases: tuple[str, ...]) -> str:
    expressions = []
    for phrase in phrases:
        words = [re.escape(word) for word in re.split(r"[\s_-]+", phrase.casefold()) if word]
        expression = r"[\s_–—-]{0,3}".join(words)
        # "/off-record" is also typed "/off the record", and with other signs of a command.
        expression = expression.replace(r"off[\s_–—-]{0,3}record", r"off[\s_–—-]{0,3}(?:the[\s_–—-]{0,3})?record")
        expressions.append(f"[/!#]{expression[1:]}" if expression.startswith("/") else expression)
    return f"(?:{'|'.join(filter(None, expressions)) or '(?!)'})"


# Cached, because a live session is stored after each turn, with all turns before it.
@text_cache(4096)
def _off_change(text: str, expressions: _Expressions) -> RecordChange | None:
    for match in expressions.off.finditer(text):
        if change := _phrase_change(text, match):
            return change
    for aside in expressions.asides.finditer(text) if expressions.asides else ():
        if _is_separate_remark(aside):
            return _change_of_request(text, aside.span())
    return _wish_change(text) if expressions.asides else None


def _wish_change(text: str) -> RecordChange | None:
    """Return the change that other wordings request: a command such as "/private", or "don't save this"."""
    if command := COMMAND.match(text):
        return RecordChange.OFF if _ALONE.match(text, command.end()) else RecordChange.THIS
    phrase = PHRASES.search(text)
    if phrase and not _has_mask(_sentence_around(text, phrase.span())):
        return _change_of_request(text, phrase.span())
    wish = _find_wish(text)
    # A turn that asks to forget something is not hidden, or nobody would act on it. A secret is masked in any case.
    if wish is None or _asks_to_forget(text) or _is_about_secret(_sentence_around(text, wish)):
        return None
    return _change_of_request(text, wish)


def _find_wish(text: str) -> Span | None:
    """Return the span of the first words that ask for something not to be stored, or None."""
    wish = next(wish_clauses(text), None)
    if wish is not None:
        return wish
    plain = (match.span() for match in PLAIN_WISHES.finditer(text) if not _is_condition_or_ability(text, match.start()))
    return next(plain, None)


def _asks_to_forget(text: str) -> bool:
    return _FORGET.search(_NOT_TO_FORGET.sub("", text)) is not None and not _NOTHING.search(text)


def _has_mask(parts: Iterable[str]) -> bool:
    return any("[redacted: " in part for part in parts)


def _is_about_secret(around: tuple[str, str]) -> bool:
    """Return whether the words around a wish contain a masked secret, or the name of a secret and a digit before it."""
    names_secret = _SECRET_NAMED.search(around[0]) and re.search(r"\d", around[0])
    return _has_mask(around) or bool(names_secret)


def _is_condition_or_ability(text: str, start: int) -> bool:
    """Return whether the words before a request make it a condition, or a statement of what somebody is able to do."""
    before = text[max(0, start - 300) : start]
    if _IS_CONDITION.search(before):
        return True
    return bool(_IS_ABLE.search(before)) and "bitte" not in before and "alsjeblieft" not in before


def _is_only_mentioned(before: str, after: str, *, is_initial: bool) -> bool:
    """Return whether the words around a phrase only talk about it and request nothing."""
    if any(map(_MENTIONED.search, (before, after))) or _REPORTED.search(before):
        return True
    if _ADJECTIVE.search(before) and re.match(r"[\s-]\w", after):
        return True
    if _OF_RECORDS.match(after) or (not is_initial and _TITLE_OPENS.search(before) and _TITLE_CLOSES.match(after)):
        return True
    return is_initial and _THIRD_PERSON.match(after) is not None


def _phrase_change(text: str, match: re.Match[str]) -> RecordChange | None:
    """Return the change that a phrase such as "off the record" requests, or None if it is only mentioned."""
    before, after = _sentence_around(text, match.span())
    words = re.findall(r"[^\W_]+", before)
    is_initial = _is_lead_in(before)
    if _is_only_mentioned(before, after, is_initial=is_initial):
        return None
    is_past = "was" in words
    is_alone = is_initial and bool(_ALONE.match(text, match.end()))
    has_moved = not _GOING.isdisjoint(words) and is_initial
    if _FROM_NOW.search(after) or _FROM_NOW.search(before) or ((is_alone or has_moved) and not is_past):
        return RecordChange.OFF
    return RecordChange.THIS


def _is_separate_remark(match: re.Match[str]) -> bool:
    """Return whether words such as "not for the record" begin a sentence, end it after a comma, or stand in parentheses."""
    before, after = _sentence_around(match.string, match.span())
    is_strict = _is_lead_in(before) and not re.match(r"\s\w", after)
    is_final = bool(re.search(r"[,(\[–—-]\s*$", before)) and bool(re.match(r"\s*(?:$|[,:;.!)\]–—-])", after))
    return is_strict or is_final


def _change_of_request(text: str, span: Span) -> RecordChange:
    before, after = _sentence_around(text, span)
    wish = text[slice(*span)]
    lasts = _FROM_NOW.search(before + wish + after) or (_CONVERSATION.search(wish) and not _PART.search(wish))
    # A request about what follows, with nothing after it, is about the next turns.
    is_announced = _FOLLOWING.search(wish) and _ALONE.match(text, span[1])
    return RecordChange.OFF if lasts or is_announced else RecordChange.THIS


def _sentence_around(text: str, span: Span) -> tuple[str, str]:
    """Return the text before and after a span in its sentence, at most 300 characters of each."""
    start = max((text.rfind(stop, 0, span[0]) for stop in (".", "!", "?", "\n", ";")), default=-1) + 1
    ends = [place for stop in (".", "!", "?", "\n", ";") if (place := text.find(stop, span[1])) >= 0]
    return text[max(start, span[0] - 300) : span[0]], text[span[1] : min(ends, default=len(text))][:300]


def _is_lead_in(before: str) -> bool:
    """Return whether the words before a request only introduce it: none, "ok, let's" and the like, or a name."""
    words = re.findall(r"[^\W_]+", before)
    if len(words) <= 20 and all(word in _LEAD_WORDS for word in words):
        return True
    name, comma, leads = before.rpartition(",")
    return (
        bool(comma)
        and len(name.split()) <= _LONGEST_NAME
        and all(word in _LEAD_WORDS for word in re.findall(r"[^\W_]+", leads))
    )
