"""Checks for numbers of cards, accounts and identity documents, PINs and codes. Pure.

Each check returns the span of the secret in its text, or None if the number is no secret.
"""

from __future__ import annotations

import re

from afterword.privacy.secret_kinds import Span

_SHORTEST_IBAN = 15
_ISSUERS: tuple[tuple[tuple[int, ...], tuple[range, ...]], ...] = (
    ((13, 16, 19), (range(4000, 5000),)),
    ((16,), (range(5100, 5600), range(2221, 2721), range(3528, 3590), range(6011, 6012), range(6500, 6600))),
    ((15,), (range(3400, 3500), range(3700, 3800))),
    ((14,), (range(3600, 3700), range(3800, 3900), range(3000, 3060))),
    ((16, 17, 18, 19), (range(6200, 6300),)),
)
"""The lengths of card numbers, and the ranges in which their first four digits lie."""


_DATE_OR_MEASURE = re.compile(
    r"\d{4}-\d\d-\d\d.*|\d{1,2}-\d{1,2}-\d{4}|\d{1,4}(?:st|nd|rd|th|am|pm|s|h|x|km|kg|cm|mm|m|k|gb|mb|eur|usd|uhr)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
# Words after which a number is a place, a time or an amount.
_COUNTING = re.compile(
    r"(?:\b(?:room|zimmer|raum|flat|apt|apartment|suite|floor|page|line|step|port|number|no|nr|year|since|until|(?<!changed )from|(?<!punch )(?<!key )(?<!type )in|at|um|seit|bis|ab"
    r"|desde|hasta|depuis|dal|fino|vanaf|sinds|chapter|version|row|error|habitación|chambre|camera|kamer|quarto|about|over|under|only|than)\.?|[€$£#])\s*$",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\s?(?:times|people|users|customers|seconds|minutes|hours|days|weeks|years|characters|digits|euros?|dollars|pounds|attempts|mal|leute|sekunden|minuten|stunden|tage|veces|fois|volte|vezes|keer)\b",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"(?:\b(?:is|ist|es|est|è|é|lautet|luidt|was|war|era|était|with|using|mit|con|avec|com|met|put|set|poniendo|mis|messo)|[:=])\s*$",
    re.IGNORECASE,
)
_PIN_WORD = re.compile(
    r"\bPIN\b|\b(?i:pin[ -]?(?:code|number|nummer)|passcode|geheimzahl|geheimnummer|entsperrcode|ontgrendelcode|"
    r"(?:code|c[óo]digo|codice|n[úu]mero) (?:pin|secret[oa]?|confidentiel|segreto|de (?:(?:ma|la|sa) )?carte|de d[ée]\w+|di sblocco)|"
    r"(?:unlock|screen|bank|card|phone) code|geheime code|puk)\b"
    r"|\b(?i:my|your|our|the|his|her|mein\w*|dein\w*|die|der|mi|tu|su|el|mon|ton|votre|le|il|mio|tuo|meu|seu|o|mijn|jouw|de) pin\b(?! \d)"
)


def pin_span(match: re.Match[str]) -> Span | None:
    """Return the span of a PIN of four to eight digits. Without a link such as "is" it must follow "PIN" in capitals."""
    digits = sum(character.isdigit() for character in match.group("value"))
    has_link = bool(match.group("link").strip()) or not match.group().lower().startswith("pin ")
    is_word = match.group()[:3] == "pin" and not has_link
    return None if digits > 8 or is_word else match.span("value")


def card_span(match: re.Match[str]) -> Span | None:
    """Return the span of a payment card's number: an issuer's prefix and length, and a valid check digit."""
    from stdnum import luhn

    digits = "".join(character for character in match.group("value") if character.isdigit())
    first = int(digits[:4])
    is_issued = any(
        len(digits) in lengths and any(first in numbers for numbers in ranges) for lengths, ranges in _ISSUERS
    )
    return match.span("value") if is_issued and luhn.is_valid(digits) else None


def iban_span(match: re.Match[str]) -> Span | None:
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


def sentence_pin_span(match: re.Match[str]) -> Span | None:
    """Return the span of a number in a sentence that names a PIN. "pin" without an article may be a verb."""
    start, end = match.span("value")
    is_unlinked_year = is_year(match.string[start:end]) and not _LINKED.search(match.string, 0, start)
    return possible_code_span(match) if _PIN_WORD.search(match.string) and not is_unlinked_year else None


def sentence_code_span(match: re.Match[str]) -> Span | None:
    """Return the span of a number in a sentence about the code of a card or for one use, unless it counts something."""
    is_quantity = is_year(match["value"]) or _COUNTED.match(match.string, match.end("value"))
    return None if is_quantity else possible_code_span(match)


def possible_code_span(match: re.Match[str]) -> Span | None:
    """Return the span of a number, unless the word before it says that it is a place, a time or an amount."""
    start, end = match.span("value")
    is_counting = _COUNTING.search(match.string, max(0, start - 20), start)
    return None if is_counting or _DATE_OR_MEASURE.fullmatch(match.group("value")) else (start, end)


def is_year(value: str) -> bool:
    """Return whether a number may be a year of the last or of this century."""
    return _YEAR.fullmatch(value) is not None


def ends_with_linking_word(before: str) -> bool:
    """Return whether the text before a number ends with a link such as "is", "with" or a colon."""
    return _LINKED.search(before) is not None


def identity_number_span(match: re.Match[str]) -> Span | None:
    """Return the span of the number of a person's document: six to twenty letters and digits, and no date."""
    value = match.group("value")
    characters = [character for character in value if character.isalnum()]
    digits = sum(character.isdigit() for character in characters)
    is_date = re.fullmatch(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}", value)
    is_number = (
        6 <= len(characters) <= 20 and digits >= 1 and (digits >= 5 or (value.upper() == value and len(value) >= 8))
    )
    is_measure = _DATE_OR_MEASURE.fullmatch(value)
    return match.span("value") if is_number and not is_date and not is_measure else None


def codice_fiscale_span(match: re.Match[str]) -> Span | None:
    """Return the span of an Italian tax code with a valid check letter."""
    from stdnum.it import codicefiscale

    return match.span("value") if codicefiscale.is_valid(match.group("value")) else None


def cpf_span(match: re.Match[str]) -> Span | None:
    """Return the span of a Brazilian tax number with valid check digits."""
    from stdnum.br import cpf

    return match.span("value") if cpf.is_valid(match.group("value")) else None
