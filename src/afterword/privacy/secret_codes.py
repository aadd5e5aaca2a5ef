"""The patterns of PINs, one-time codes, and codes of doors, alarms and cards. Pure."""

from __future__ import annotations

from afterword.privacy import secret_numbers as numbers
from afterword.privacy.secret_code_sentences import check_code
from afterword.privacy.secret_cues import CARD_CODE, CODE, IS, NO_SECRET_CODE, ONE_TIME, OPENED, PIN, VERIFYING
from afterword.privacy.secret_kinds import Pattern, Secret, SentencePattern, any_value

_BEFORE_NUMBER, _AFTER_NUMBER = r"(?<![\w.,/:€$£+-])", r"(?![\w]|[.:,/-]\d|\s?[%€$£°])"
_DIGITS = rf"{_BEFORE_NUMBER}(?P<value>\d(?:[ -]?\d){{3,7}}+){_AFTER_NUMBER}"
_CODE_VALUE = r"(?P<value>[#*]?(?:\d|(?-i:[A-Z])(?=[\w-]{0,6}\d[\w-]{0,6}\d))(?:[\w#*-]| (?=\d)){2,20}+)"
_PIN_OWNERS = (
    r"(?:sim|bank|card|debit|credit|atm|phone|mobile|tablet|giro|ec|voicemail|mailbox|account|app|visa|mastercard)"
)
CODE_PATTERNS: tuple[Pattern | SentencePattern, ...] = (
    Pattern(
        "pin",
        Secret.CODE,
        rf"(?<![\w-])(?:{_PIN_OWNERS}[ -]{{1,2}}|(?:[a-zäöüß]{{2,20}}-){{1,2}})?pin(?:[ -]?(?:code|number|nummer))?(?P<link>\s{{0,2}}(?:{IS}|to|:|\?)\s{{0,2}}|[\"']\s?:\s?[\"']?|\s)"
        r"(?P<value>\d(?:[ -]?\d){3,7}+)(?![\w-]|[.:,/]\d)",
        ("pin",),
        numbers.check_pin,
    ),
    SentencePattern(
        "number in a sentence about a pin",
        Secret.CODE,
        (rf"(?<![\w-]){PIN}(?![\w])",),
        _DIGITS,
        ("pin", "code", "codi", "códi", "puk", "geheim", "secreto"),
        numbers.check_sentence_pin,
    ),
    Pattern(
        "one-time code",
        Secret.CODE,
        rf"(?<![\w-])(?:m?tan|{ONE_TIME})(?:\s{{0,2}}(?:{IS}|:))?\s{{1,2}}(?P<value>(?:[A-Z]-)?\d(?:[ -]?\d){{3,9}}+)(?![\w-]|[.:,/]\d)",
        ("otp", "tan", "one", "code", "codice", "código", "codigo", "pin", "passw"),
        numbers.check_one_time_code,
    ),
    SentencePattern(
        "number in a sentence about a one-time code",
        Secret.CODE,
        (rf"(?<![\w-])(?:{ONE_TIME}|(?-i:m?TAN|OTP))(?![\w])",),
        _DIGITS,
        ("otp", "tan", "one", "code", "codice", "código", "codigo", "passw"),
        numbers.check_sentence_one_time_code,
    ),
    Pattern(
        "one-time code before its word",
        Secret.CODE,
        r"(?<![\w.,-])(?P<value>(?:[A-Z]-)?\d{3}[ -]?\d{1,5}) is (?:your|the|my)\b(?:\s[\w-]{1,20}){0,4}?"
        r"\s(?:code|otp|tan|passcode|pin)\b",
        ("code", "otp", "tan", "pin"),
        any_value,
    ),
    SentencePattern(
        "number in a sentence about a code or a lock",
        Secret.CODE,
        (rf"(?<![\w-])(?:{CODE}|{OPENED}|{VERIFYING})(?![\w])",),
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}{_AFTER_NUMBER}",
        tuple("0123456789"),
        check_code,
        rf"{NO_SECRET_CODE}|\w\(|[{{}}<>]|//|=>",
    ),
    Pattern(
        "security code behind the number of its card",
        Secret.CODE,
        r"\[redacted: card number\][^.!?\n]{0,60}?(?:[,;/]|\d\d/\d{2,4}(?=\s)|\b(?:code|c[óo]digo|codice|back|hinten|atrás|detrás|derrière|dietro|achterop)\b[^\d\n]{0,20})\s{0,2}"
        r"(?P<value>\d{3})(?![\w/]|[.,:-]\d)",
        ("[redacted: card number]",),
    ),
    SentencePattern(
        "security code of a card",
        Secret.CODE,
        (rf"(?<![\w-])(?:{CARD_CODE})(?![\w])",),
        rf"{_BEFORE_NUMBER}(?P<value>\d{{3,4}}){_AFTER_NUMBER}",
        tuple("0123456789"),
        numbers.check_card_code,
    ),
)
