"""Whether what stands beside the word for a secret is one: checks of single values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

Found = re.Match[str]
Span = tuple[int, int]

IBAN_LENGTHS = {
    country: int(length)
    for country, length in (
        pair.split(":")
        for pair in (
            "AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DK:18 DO:28 "
            "EE:20 EG:29 ES:24 FI:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HR:21 HU:28 IE:22 IL:23 IS:26 IT:27 "
            "JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 MC:27 MD:24 ME:22 MK:19 MR:27 MT:31 MU:30 NL:18 NO:15 "
            "PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 SA:24 SE:24 SI:19 SK:24 SM:27 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20"
        ).split()
    )
}

_ISSUERS: tuple[tuple[tuple[int, ...], tuple[range, ...]], ...] = (
    ((13, 16, 19), (range(4000, 5000),)),
    ((16,), (range(5100, 5600), range(2221, 2721), range(3528, 3590), range(6011, 6012), range(6500, 6600))),
    ((15,), (range(3400, 3500), range(3700, 3800))),
    ((14,), (range(3600, 3700), range(3800, 3900), range(3000, 3060))),
    ((16, 17, 18, 19), (range(6200, 6300),)),
)
"""How long the numbers of cards are whose first four digits lie in one of the ranges."""

_TRAILING = ".,;:?)]}\\*…"
_QUOTES = "\"'`“”„«»"
_PLACEHOLDER = re.compile(
    r"\W{0,2}(?:<|\{|\$[{(]|\$[A-Z_]+$|%[(s]|\*\*|\.\.|•|…)|x{3,}|\W*$|\[redacted"
    r"|(?:your|my|the|some|any|new|old|test|dummy|example|sample)[_-](?:\w+[_-]){0,3}(?:pass\w*|pwd?|tokens?|keys?|secrets?)\b"
    r"|\W{0,2}(?:your|example|placeholder|change[_-]?me|redacted|masked|hidden|todo|none|null|undefined)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|\w+\(|.*[()\[\]{}]|[^@]+@[^@]+\.\w+$|\w+://")
_MEASURE = re.compile(
    r"v?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s|x|k|m|ms|min|h|hrs?|px|pt|kb|mb|gb|%|\+)?$"
    r"|\d+[-+](?:char|digit|word|step|factor|bit|byte|day|hour|minute|year|month|week)"
    r"|(?:sha|md|utf|base|aes|oauth|http|bcrypt|argon|pbkdf|rfc|iso|rs|hs|es|ed|p)-?\d+\w{0,3}(?:-\d+)?$"
    r"|(?:gpt|claude|llama|gemini|mistral|o\d)-",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"(?:[a-z]{1,20}_|new|old|confirm|current|user|hashed)?(?:passwords?|passwd|pwd|tokens?|secrets?|keys?)_?\d?$",
    re.IGNORECASE,
)
# Words that may stand where a password could: "the password is wrong".
_NO_VALUE = frozenset(
    (
        "a an the my your his her our their its this that these those it he she we they you i in on at of to for from by as "
        "and or but if so not no yes never always only just also still now then there here where when what which who how why "
        "too very quite really already again all any some each every none nothing something somewhere being been going gone "
        "wrong right correct incorrect invalid valid weak strong safe secure insecure secret private public fine ok okay "
        "good bad new old same different similar unknown lost empty blank long short longer shorter simple complex easy hard "
        "difficult mandatory optional necessary unique random temporary default plain visible ready available missing unset "
        "case known sent kept hidden broken shown given written taken stolen string str int bool bytes text number float any "
        "object true false none null nil void undefined optional required varchar char type field input value name email "
        "with without before after under above below via per about between during until since because must should can could "
        "may might will would has have had do does did be is are was were up down out off one two three both "
        "falsch richtig zu nicht das der die den dem ein eine einen noch immer sehr schon wieder weg sicher unsicher lang "
        "kurz nötig erforderlich notwendig abgelaufen vergessen geändert gespeichert ungültig gültig mir dir uns auf im am "
        "incorrecta correcta muy la el una un demasiado difícil fácil segura débil nueva vieja misma igual importante "
        "obligatoria necesaria secreta en de que por expiré trop le les une obligatoire oublié oubliée perdu faux nécessaire "
        "dans sur incorreta errada muito o os uma fraca forte segura errata sbagliata scaduta troppo il corretta debole "
        "sicura nella nel necessaria"
    ).split()
)
_GRAMMAR = re.compile(r"(?:ed|ing|able|ible|ly|ado|ada|ido|ida|ato|ata|é|ée)$", re.IGNORECASE)
_ASKING = re.compile(r"enter|type|choose|please|invalid|must|should|use|do|does|is|are|at\b")
# "reset the password for user: lena77" names whose it is.
_WHOSE = re.compile(r"\b(?:users?|usernames?|accounts?|logins?|emails?)$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[\s\"'”]{0,3}(?:[.,;!?)\n\\]|$)|\s{1,2}(?:and|but|und|y|et|e|so|btw|by the way|please|bitte)\b", re.IGNORECASE
)


def whole(found: Found) -> Span | None:
    """Everything that the pattern found is a secret."""
    return found.span("value")


def with_a_digit(found: Found) -> Span | None:
    """A key holds a digit and a letter: words and names do not."""
    value = found.group("value")
    return found.span("value") if _is_mixed(value) and not _MEASURE.match(value) else None


def random(found: Found) -> Span | None:
    """A header's value: mixed, or long and in both letter cases."""
    value = found.group("value")
    is_cased = len(value) >= 16 and value != value.lower() and value != value.upper()
    return found.span("value") if (_is_mixed(value) or is_cased) and not _is_placeholder(value) else None


def of_url(found: Found) -> Span | None:
    """The password of a URL, unless it only says where one goes."""
    return None if _is_placeholder(found.group("value")) else found.span("value")


def likely(found: Found) -> Span | None:
    """What follows an option or stands where a password must."""
    start, end = _bare(found)
    value = found.string[start:end]
    no_value = len(value) < 3 or _is_placeholder(value) or value.startswith("-") or value.casefold() in _NO_VALUE
    return None if no_value or _is_code(value) else (start, end)


@dataclass(frozen=True, slots=True)
class _Told:
    """A value and how it stands: between quotation marks, parted from the word for it, as the last of its clause."""

    value: str
    is_quoted: bool
    is_far: bool
    is_last: bool


def password(found: Found) -> Span | None:
    """A password that is assigned or told: a striking value; a plain word only where nothing else can be meant."""
    start, end = _bare(found)
    value, gap = found.string[start:end], found.groupdict().get("gap") or ""
    is_quoted = start > found.start("value")
    if _names_no_password(value) or _WHOSE.search(gap) or (not is_quoted and _is_code(value)):
        return None
    told = _Told(value, is_quoted, bool(gap), bool(_CLAUSE_END.match(found.string, end)))
    is_one = next((judge for has_shape, judge in _PASSWORD_SHAPES if has_shape(value)), _is_word_password)
    return (start, end) if is_one(told) else None


def _names_no_password(value: str) -> bool:
    return len(value) < 3 or _is_placeholder(value) or bool(_NOUN.match(value))


def _is_number_password(told: _Told) -> bool:
    return len(told.value) >= 4 and not told.is_far


def _is_striking_password(told: _Told) -> bool:
    return not _MEASURE.match(told.value) and (not told.is_far or told.is_quoted or _is_mixed(told.value))


def _is_phrase_password(told: _Told) -> bool:
    return told.is_quoted and not told.is_far and _are_no_sentence(told.value)


def _is_word_password(told: _Told) -> bool:
    word = told.value.rstrip("!")
    is_plain = len(word) < 4 or word.casefold() in _NO_VALUE or bool(_GRAMMAR.search(word))
    return not told.is_far and not is_plain and (told.is_quoted or told.is_last)


def passphrase(found: Found) -> Span | None:
    """Several plain words after "the passphrase is", unless they are a sentence of their own."""
    return found.span("value") if _are_no_sentence(found.group("value")) else None


def striking(found: Found) -> Span | None:
    """What stands right beside the word must look like nothing but a password."""
    start, end = _bare(found)
    value = found.string[start:end]
    is_one = len(value) >= 6 and _is_mixed(value) and not _is_placeholder(value)
    return (start, end) if is_one and not _MEASURE.match(value) and not _is_code(value) else None


def token(found: Found) -> Span | None:
    """A token or key is long and holds letters and digits."""
    start, end = _bare(found)
    value = found.string[start:end]
    is_quoted = start > found.start("value")
    if len(value) < 8 or " " in value or _is_placeholder(value) or _MEASURE.match(value) or _NOUN.match(value):
        return None
    if found.groupdict().get("gap") and len(value) < 12:
        return None
    return (start, end) if _is_mixed(value) and (is_quoted or not _is_code(value)) else None


def pin(found: Found) -> Span | None:
    """Four to eight digits; right beside the word only where that is written as an abbreviation."""
    digits = sum(sign.isdigit() for sign in found.group("value"))
    has_link = bool(found.group("link").strip()) or not found.group().lower().startswith("pin ")
    is_word = found.group()[:3] == "pin" and not has_link
    return None if digits > 8 or is_word else found.span("value")


def one_time(found: Found) -> Span | None:
    """Four to ten digits; `tan` and `otp` count in capitals only."""
    head = found.group()[:3]
    return None if head.casefold() in ("tan", "otp") and head != head.upper() else found.span("value")


def code(found: Found) -> Span | None:
    """A code of a door: at least three digits, and no time, date or year of a sentence."""
    start, end = found.span("value")
    value = found.string[start:end].rstrip("-")
    if sum(sign.isdigit() for sign in value) < 3 or re.fullmatch(
        r"\d{4}-\d\d-\d\d.*|\d+(?:st|nd|rd|th|am|pm|s|h|x)", value
    ):
        return None
    return start, start + len(value)


def card(found: Found) -> Span | None:
    """A payment card's number: an issuer's beginning and length, and Luhn's check digit."""
    digits = "".join(sign for sign in found.group("value") if sign.isdigit())
    return found.span("value") if _is_issued(digits) and _luhn(digits) else None


def iban(found: Found) -> Span | None:
    """An IBAN: the length of its country, and its check digits."""
    start, end = found.span("value")
    wanted = IBAN_LENGTHS.get(found.string[start : start + 2].upper(), 0)
    signs = [place for place in range(start, end) if found.string[place].isalnum()]
    if not wanted or len(signs) < wanted:
        return None
    stop = signs[wanted - 1] + 1
    follows = found.string[stop : stop + 1]
    account = "".join(found.string[place] for place in signs[:wanted]).upper()
    is_sound = account.isascii() and int("".join(str(int(sign, 36)) for sign in account[4:] + account[:4])) % 97 == 1
    return (start, stop) if is_sound and not follows.isalnum() else None


def _bare(found: Found) -> Span:
    """Return where the value stands without its quotation marks, or the punctuation of its sentence."""
    start, end = found.span("value")
    text = found.string
    if text[start] == "\\":
        start += 1
    if text[start] in _QUOTES and end - start >= 2 and text[end - 1] in _QUOTES:
        end -= 1
        return start + 1, end - (text[end - 1] == "\\")
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return start, end


def _are_no_sentence(value: str) -> bool:
    """Whether words stand beside each other as those of a passphrase do: hardly one of them holds a sentence together."""
    words = re.findall(r"[^\W_]+", value.casefold())
    binding = sum(word in _NO_VALUE or bool(_NOUN.match(word)) for word in words)
    is_told = bool(_GRAMMAR.search(words[0]) or _ASKING.match(words[0])) if words else True
    return not is_told and binding * 3 <= len(words)


def _is_mixed(value: str) -> bool:
    return any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)


def _has_symbol(value: str) -> bool:
    return any(sign in "@#$%^&*!+=~?" for sign in value[:-1]) and any(sign.isalpha() for sign in value)


def _is_striking(value: str) -> bool:
    return _is_mixed(value) or _has_symbol(value)


def _has_words(value: str) -> bool:
    return " " in value


_PASSWORD_SHAPES: tuple[tuple[Callable[[str], bool], Callable[[_Told], bool]], ...] = (
    (str.isdigit, _is_number_password),
    (_is_striking, _is_striking_password),
    (_has_words, _is_phrase_password),
)
"""What a value looks like, and when one that looks so is a password: the first shape that fits decides, else a word."""


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.match(value))


def _is_code(value: str) -> bool:
    return bool(_CODE.match(value))


def _is_issued(digits: str) -> bool:
    first = int(digits[:4])
    return any(len(digits) in lengths and any(first in one for one in ranges) for lengths, ranges in _ISSUERS)


def _luhn(digits: str) -> bool:
    doubled = "".join(str(int(digit) * (1 + place % 2)) for place, digit in enumerate(reversed(digits)))
    return sum(map(int, doubled)) % 10 == 0


def held(kind: str, value: str) -> bool:
    """Whether the value of a field that is named like a secret of this kind is one."""
    if not value.strip() or _is_placeholder(value):
        return False
    if kind == "token":
        return len(value) >= 8 and _is_mixed(value) and " " not in value
    if kind == "password":
        return len(value) >= 3 and value.casefold() not in _NO_VALUE
    digits = sum(sign.isdigit() for sign in value)
    return digits >= (12 if kind == "card number" else 3) and digits > len(value) // 2


def is_distinct(secret: str) -> bool:
    """Whether a secret is recognised by itself wherever it is repeated: no plain word, no short number, no year."""
    if re.fullmatch(r"[\d #*-]+", secret):
        return sum(sign.isdigit() for sign in secret) >= 4 and not re.fullmatch(r"(?:19|20)\d\d", secret)
    return len(secret) >= 6 and _is_striking(secret)
