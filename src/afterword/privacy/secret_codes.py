"""The patterns of PINs, one-time codes, and codes of doors, alarms and cards. Pure."""

from __future__ import annotations

from afterword.privacy import secret_numbers as numbers
from afterword.privacy.secret_code_sentences import check_code
from afterword.privacy.secret_cues import CODE, IS, NO_SECRET_CODE, ONE_TIME, OPENED, PIN
from afterword.privacy.secret_kinds import Pattern, Secret, SentencePattern, any_value

_BEFORE_NUMBER, _AFTER_NUMBER = r"(?<![\w.,/:€$£+-])", r"(?![\w]|[.:,/-]\d|\s?[%€$£°])"
_DIGITS = rf"{_BEFORE_NUMBER}(?P<value>\d(?:[ -]?\d){{3,7}}+){_AFTER_NUMBER}"
_THREE = ("three", "drei", "tres", "trois", "tre", "três", "drie", "last 3", "3 digits")
_THREE_DIGITS = (
    r"(?:three|3|drei|tres|trois|tre|três|drie) (?:last )?(?:digits|numbers|ziffern|zahlen|cifras|números|dígitos|chiffres|cifre|numeri|cijfers)"
    r"(?= (?:on (?:the )?back|at the back|auf der rückseite|hinten|detrás|del (?:reverso|dorso)|au dos|sul retro|dietro|no verso|atrás|achterop|op de achterkant)"
    r"(?: (?:of (?:the|my|it)|der|de la|de|della|do|van de) (?:card|karte|tarjeta|carte|carta|cartão|kaart))? ?(?:is|are|ist|sind|es|son|est|sont|è|sono|é|são|zijn|:))"
)
_CODE_VALUE = r"(?P<value>[#*]?(?:\d|(?-i:[A-Z])(?=[\w-]{0,6}\d[\w-]{0,6}\d))(?:[\w#*-]| (?=\d)|/(?=\d)){2,20}+)"
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
        (rf"(?<![\w-])(?:{CODE}|{OPENED})(?![\w])",),
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}{_AFTER_NUMBER}",
        tuple("0123456789"),
        check_code,
        rf"{NO_SECRET_CODE}|\w\(|[{{}}<>]|//|=>",
    ),
    Pattern(
        "security code of a card",
        Secret.CODE,
        rf"(?<![\w-])(?:cvc2?|cvv2?|csc|cid|security code|prüfziffer|(?:karten)?prüfnummer|kartenprüfziffer|sicherheitscode|cryptogramme?|c[óo]digo de seguran[çz]a|c[óo]digo de seguridad|codice di sicurezza|beveiligingscode|{_THREE_DIGITS})(?:\s(?:on|at|auf|en|sur|sul|op|no)\s[^.!?\n\d]{{1,25}}?)?(?:\s(?:is|are|code|number|ist|sind|es|son|est|sont|è|sono|é|são|zijn))?\W{{1,3}}(?P<value>\d{{3,4}})(?![\w-]|[.:,/]\d)",
        ("cvc", "cvv", "csc", "cid", "security code", "prüf", "crypto", "code", "codi", "códi", *_THREE),
        any_value,
    ),
)
