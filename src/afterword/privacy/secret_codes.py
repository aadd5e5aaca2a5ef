"""The patterns of PINs, one-time codes, and codes of doors, alarms and cards. Pure."""

from __future__ import annotations

from afterword.privacy import secret_numbers as numbers
from afterword.privacy.secret_cues import (
    CODE_WORD,
    DEVICE,
    IS,
    NO_SECRET_CODE,
    ONE_TIME,
    OPENING,
    PIN,
    PLACE,
)
from afterword.privacy.secret_kinds import Pattern, Secret, SentencePattern, any_value

_BEFORE_NUMBER, _AFTER_NUMBER = r"(?<![\w.,/:€$£+-])", r"(?![\w]|[.:,/-]\d|\s?[%€$£°])"
_DIGITS = rf"{_BEFORE_NUMBER}(?P<value>\d(?:[ -]?\d){{3,7}}+){_AFTER_NUMBER}"
_CODE_VALUE = r"(?P<value>[#*]?\d(?:[\w#*-]| (?=\d)){2,20}+)"
_NO_SECRET_CODE_BEFORE = "".join(
    f"(?<!{word} )"
    for word in (
        *"error status exit zip area post postal promo source country fault discount".split(),
        *("return", "response", "dress", "product", "coupon", "voucher", "colour", "color", "order", "building"),
    )
)
_CODE_HINTS = ("code", "codice", "código", "codigo", "pin", "comb", "komb")


CODE_PATTERNS: tuple[Pattern | SentencePattern, ...] = (
    Pattern(
        "pin",
        Secret.CODE,
        rf"(?<![\w-])(?:(?:sim|bank|card|debit|phone|giro|ec)[ -]{{1,2}})?pin(?:[ -]?(?:code|number|nummer))?(?P<link>\s{{0,2}}(?:{IS}|to|:|\?)\s{{0,2}}|[\"']\s?:\s?[\"']?|\s)"
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
        (rf"(?<![\w-])(?:{ONE_TIME})(?![\w])",),
        _DIGITS,
        ("otp", "one", "code", "codice", "código", "codigo", "passw"),
        numbers.check_sentence_one_time_code,
    ),
    SentencePattern(
        "number to type at a door",
        Secret.CODE,
        (rf"(?<![\w-]){PLACE}\b",),
        rf"\b(?:enter|type|press|dial|punch(?: in)?|key in|tipp\w{{0,3}}|gib|drücke?|marca|teclea|introduce|tape[rz]?|compose[rz]?|digita|premi|digite|marque|toets|voer)\s(?:in\s|the\s)?(?:code\s|number\s)?{_CODE_VALUE}{_AFTER_NUMBER}",
        (
            "enter",
            "type",
            "press",
            "dial",
            "punch",
            "key in",
            "tipp",
            "gib",
            "drück",
            "marca",
            "tecl",
            "intro",
            "tape",
            "compo",
            "digit",
            "premi",
            "marque",
            "toets",
            "voer",
        ),
        numbers.check_sentence_code,
    ),
    Pattern(
        "one-time code before its word",
        Secret.CODE,
        r"(?<![\w.,-])(?P<value>(?:[A-Z]-)?\d{3}[ -]?\d{1,5}) is (?:your|the|my)\b(?:\s[\w-]{1,20}){0,4}?"
        r"\s(?:code|otp|tan|passcode|pin)\b",
        ("code", "otp", "tan", "pin"),
        any_value,
    ),
    Pattern(
        "code of a door or an alarm",
        Secret.CODE,
        rf"(?<![\w-])(?:{PLACE}\b[^.!?;\n]{{0,50}}?\b{_NO_SECRET_CODE_BEFORE}code\b"
        rf"|c[óo]d(?:igo|ice)\b(?:\s[\w']{{1,6}}){{0,3}}[\s']{PLACE}|code\b\s(?:de\s(?:la\s|l')?|d')?{PLACE}"
        rf"|code\b[^.!?;\n]{{0,20}}\b{PLACE}|{CODE_WORD})"
        rf"(?:\s{{1,2}}{IS}:?|:|\snow)?\s{{1,2}}[\"'“]?{_CODE_VALUE}",
        _CODE_HINTS,
        numbers.check_door_code,
    ),
    SentencePattern(
        "number in a sentence about a door's code",
        Secret.CODE,
        (
            rf"\bcode\b|c[óo]digo|codice|combin|kombination|digicode|{CODE_WORD}",
            rf"(?<![\w-]){PLACE}(?:s|n|en)?\b|{CODE_WORD}",
        ),
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}{_AFTER_NUMBER}",
        _CODE_HINTS,
        numbers.check_sentence_code,
        NO_SECRET_CODE,
    ),
    SentencePattern(
        "number that opens a door",
        Secret.CODE,
        (rf"\b{OPENING}\b", rf"(?<![\w-])(?:{PLACE}|{DEVICE}|lock)\b"),
        rf"\b(?:with|mit|con|avec|com|met)\s(?:the\s|dem\s)?(?:code\s|pin\s)?{_CODE_VALUE}{_AFTER_NUMBER}",
        (" with ", " mit ", " con ", " avec ", " com ", " met "),
        numbers.check_sentence_code,
    ),
    Pattern(
        "number before the door that it opens",
        Secret.CODE,
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}\s{OPENING}\s[^.!?\n]{{0,40}}?\b{PLACE}\b",
        ("open", "unlock", "disarm", "deactiv", "öffn", "entsp", "entsch", "abre", "ouvre", "apre", "ontgr"),
        numbers.check_sentence_code,
    ),
    Pattern(
        "combination of a lock",
        Secret.CODE,
        rf"\b(?:combination|combo|kombination|combinaci[óo]n|combinaison|combinazione|combinação|combinatie|(?:pad)?lock(?=\s(?:\w+\s){{0,2}}set to))\b(?:[^.!?;\n]{{0,30}}?)\s{IS}:?\s{{1,2}}(?P<value>\d{{1,4}}(?:[ -]\d{{1,4}}){{1,5}}+|\d{{3,8}})(?![\w%°])",
        ("comb", "komb", "lock"),
        any_value,
    ),
    Pattern(
        "security code of a card",
        Secret.CODE,
        r"(?<![\w-])(?:cvc2?|cvv2?|csc|cid|security code|prüfziffer|kartenprüfnummer)(?:\s(?:on|at|auf|en|sur|sul|op|no)\s[^.!?\n\d]{1,25}?)?(?:\s(?:is|code|number|ist|es|est|è|é))?\W{1,3}(?P<value>\d{3,4})(?![\w-]|[.:,/]\d)",
        ("cvc", "cvv", "csc", "cid", "security code", "prüf"),
        any_value,
    ),
)
