"""Checks whether a value beside a word such as "password" is a secret. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from stdnum import luhn

from afterword.facts.words import plain_words

Span = tuple[int, int]

_ISSUERS: tuple[tuple[tuple[int, ...], tuple[range, ...]], ...] = (
    ((13, 16, 19), (range(4000, 5000),)),
    ((16,), (range(5100, 5600), range(2221, 2721), range(3528, 3590), range(6011, 6012), range(6500, 6600))),
    ((15,), (range(3400, 3500), range(3700, 3800))),
    ((14,), (range(3600, 3700), range(3800, 3900), range(3000, 3060))),
    ((16, 17, 18, 19), (range(6200, 6300),)),
)
"""The lengths of card numbers, and the ranges in which their first four digits lie."""

_SHORTEST_IBAN = 15
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
# Words that may stand in the position of a password: "the password is wrong".
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
# "reset the password for user: lena77" names a user, not a password.
_WHOSE = re.compile(r"\b(?:users?|usernames?|accounts?|logins?|emails?)$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[\s\"'”]{0,3}(?:[.,;!?)\n\\]|$)|\s{1,2}(?:and|but|und|y|et|e|so|btw|by the way|please|bitte)\b", re.IGNORECASE
)


def check_any(match: re.Match[str]) -> Span | None:
    """Return the span of the value: any value that the pattern matches is a secret."""
    return match.span("value")


def check_key(match: re.Match[str]) -> Span | None:
    """Return the span of a key: it holds a digit and a letter, unlike words and names."""
    value = match.group("value")
    return match.span("value") if _is_mixed(value) and not _MEASURE.match(value) else None


def check_header(match: re.Match[str]) -> Span | None:
    """Return the span of a header's value: letters with digits, or long and in both letter cases."""
    value = match.group("value")
    is_cased = len(value) >= 16 and value != value.lower() and value != value.upper()
    return match.span("value") if (_is_mixed(value) or is_cased) and not _is_placeholder(value) else None


def check_url_password(match: re.Match[str]) -> Span | None:
    """Return the span of the password in a URL, unless it is a placeholder."""
    return None if _is_placeholder(match.group("value")) else match.span("value")


def check_option(match: re.Match[str]) -> Span | None:
    """Return the span of the value of a command's option."""
    start, end = _bare(match)
    value = match.string[start:end]
    no_value = len(value) < 3 or _is_placeholder(value) or value.startswith("-") or value.casefold() in _NO_VALUE
    return None if no_value or _is_code(value) else (start, end)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A possible password: whether it is quoted, has words between it and its cue, and ends its clause."""

    value: str
    is_quoted: bool
    is_far: bool
    is_last: bool


def check_password(match: re.Match[str]) -> Span | None:
    """Return the span of a password: letters with digits or symbols, or a plain word that can mean nothing else."""
    start, end = _bare(match)
    value, gap = match.string[start:end], match.groupdict().get("gap") or ""
    is_quoted = start > match.start("value")
    if _names_no_password(value) or _WHOSE.search(gap) or (not is_quoted and _is_code(value)):
        return None
    candidate = _Candidate(value, is_quoted, bool(gap), bool(_CLAUSE_END.match(match.string, end)))
    check = next((check for has_shape, check in _PASSWORD_SHAPES if has_shape(value)), _is_word_password)
    return (start, end) if check(candidate) else None


def _names_no_password(value: str) -> bool:
    return len(value) < 3 or _is_placeholder(value) or bool(_NOUN.match(value))


def _is_number_password(candidate: _Candidate) -> bool:
    return len(candidate.value) >= 4 and not candidate.is_far


def _is_striking_password(candidate: _Candidate) -> bool:
    return not _MEASURE.match(candidate.value) and (
        not candidate.is_far or candidate.is_quoted or _is_mixed(candidate.value)
    )


def _is_phrase_password(candidate: _Candidate) -> bool:
    return candidate.is_quoted and not candidate.is_far and _are_no_sentence(candidate.value)


def _is_word_password(candidate: _Candidate) -> bool:
    word = candidate.value.rstrip("!")
    is_plain = len(word) < 4 or word.casefold() in _NO_VALUE or bool(_GRAMMAR.search(word))
    return not candidate.is_far and not is_plain and (candidate.is_quoted or candidate.is_last)


def check_passphrase(match: re.Match[str]) -> Span | None:
    """Return the span of a passphrase of plain words, unless they form a sentence."""
    return match.span("value") if _are_no_sentence(match.group("value")) else None


def check_adjacent_password(match: re.Match[str]) -> Span | None:
    """Return the span of a value right after the word "password": letters with digits only."""
    start, end = _bare(match)
    value = match.string[start:end]
    is_striking = len(value) >= 6 and _is_mixed(value) and not _is_placeholder(value)
    return (start, end) if is_striking and not _MEASURE.match(value) and not _is_code(value) else None


def check_token(match: re.Match[str]) -> Span | None:
    """Return the span of a token: at least eight characters, with letters and digits."""
    start, end = _bare(match)
    value = match.string[start:end]
    is_quoted = start > match.start("value")
    if len(value) < 8 or " " in value or _is_placeholder(value) or _MEASURE.match(value) or _NOUN.match(value):
        return None
    if match.groupdict().get("gap") and len(value) < 12:
        return None
    return (start, end) if _is_mixed(value) and (is_quoted or not _is_code(value)) else None


def check_pin(match: re.Match[str]) -> Span | None:
    """Return the span of a PIN of four to eight digits. Without a link it must follow the capitals "PIN"."""
    digits = sum(character.isdigit() for character in match.group("value"))
    has_link = bool(match.group("link").strip()) or not match.group().lower().startswith("pin ")
    is_word = match.group()[:3] == "pin" and not has_link
    return None if digits > 8 or is_word else match.span("value")


def check_one_time_code(match: re.Match[str]) -> Span | None:
    """Return the span of a one-time code. The words `TAN` and `OTP` count in capitals only."""
    head = match.group()[:3]
    return None if head.casefold() in ("tan", "otp") and head != head.upper() else match.span("value")


def check_door_code(match: re.Match[str]) -> Span | None:
    """Return the span of a door code: at least three digits, and no date or time."""
    start, end = match.span("value")
    value = match.string[start:end].rstrip("-")
    if sum(character.isdigit() for character in value) < 3 or re.fullmatch(
        r"\d{4}-\d\d-\d\d.*|\d+(?:st|nd|rd|th|am|pm|s|h|x)", value
    ):
        return None
    return start, start + len(value)


def check_card(match: re.Match[str]) -> Span | None:
    """Return the span of a payment card's number: an issuer's prefix and length, and a valid Luhn digit."""
    digits = "".join(character for character in match.group("value") if character.isdigit())
    return match.span("value") if _is_issued(digits) and luhn.is_valid(digits) else None


def check_iban(match: re.Match[str]) -> Span | None:
    """Return the span of an IBAN: the structure of its country, and valid check digits."""
    # Its import reads a file, which a live agent without IBANs does not need.
    from stdnum import iban

    start, end = match.span("value")
    text = match.string
    positions = [position for position in range(start, end) if text[position].isalnum()]
    account = "".join(text[position] for position in positions)
    for length in range(_SHORTEST_IBAN, len(account) + 1):
        stop = positions[length - 1] + 1
        is_whole = not text[stop : stop + 1].isalnum()
        if is_whole and account.isascii() and iban.is_valid(account[:length], check_country=False):
            return start, stop
    return None


def _bare(match: re.Match[str]) -> Span:
    """Return the span of the value without quotation marks and without the punctuation of its sentence."""
    start, end = match.span("value")
    text = match.string
    if text[start] == "\\":
        start += 1
    if text[start] in _QUOTES and end - start >= 2 and text[end - 1] in _QUOTES:
        end -= 1
        return start + 1, end - (text[end - 1] == "\\")
    while end > start and text[end - 1] in _TRAILING:
        end -= 1
    return start, end


def _are_no_sentence(value: str) -> bool:
    """Return whether the words are a passphrase: few of them are function words that make a sentence."""
    words = plain_words(value.casefold())
    binding = sum(word in _NO_VALUE or bool(_NOUN.match(word)) for word in words)
    is_told = bool(_GRAMMAR.search(words[0]) or _ASKING.match(words[0])) if words else True
    return not is_told and binding * 3 <= len(words)


def _is_mixed(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)


def _has_symbol(value: str) -> bool:
    return any(character in "@#$%^&*!+=~?" for character in value[:-1]) and any(
        character.isalpha() for character in value
    )


def _is_striking(value: str) -> bool:
    return _is_mixed(value) or _has_symbol(value)


def _has_words(value: str) -> bool:
    return " " in value


_PASSWORD_SHAPES: tuple[tuple[Callable[[str], bool], Callable[[_Candidate], bool]], ...] = (
    (str.isdigit, _is_number_password),
    (_is_striking, _is_striking_password),
    (_has_words, _is_phrase_password),
)
"""Shapes of a value, each with the check that decides. The first matching shape counts, otherwise the word check."""


def _is_placeholder(value: str) -> bool:
    return bool(_PLACEHOLDER.match(value))


def _is_code(value: str) -> bool:
    return bool(_CODE.match(value))


def _is_issued(digits: str) -> bool:
    first = int(digits[:4])
    return any(len(digits) in lengths and any(first in numbers for numbers in ranges) for lengths, ranges in _ISSUERS)


def is_secret_value(kind: str, value: str) -> bool:
    """Return whether the value of a field named like a secret of this kind is a secret."""
    if not value.strip() or _is_placeholder(value):
        return False
    if kind == "token":
        return len(value) >= 8 and _is_mixed(value) and " " not in value
    if kind == "password":
        return len(value) >= 3 and value.casefold() not in _NO_VALUE
    digits = sum(character.isdigit() for character in value)
    return digits >= (12 if kind == "card number" else 3) and digits > len(value) // 2


def is_distinct(secret: str) -> bool:
    """Return whether a secret may be masked wherever it is repeated: no plain word, no short number, no year."""
    if re.fullmatch(r"[\d #*-]+", secret):
        return sum(character.isdigit() for character in secret) >= 4 and not re.fullmatch(r"(?:19|20)\d\d", secret)
    return len(secret) >= 6 and _is_striking(secret)
