"""The patterns of PINs, one-time codes, and codes of doors, alarms and cards. Pure."""

from __future__ import annotations

from afterword.privacy import secret_numbers as numbers
from afterword.privacy.secret_cues import (
    CODE_WORD,
    DEVICE,
    ENTERING,
    IS,
    KEY_BOX,
    NO_SECRET_CODE,
    ONE_TIME,
    OPENING,
    PIN,
    PLACE,
)
from afterword.privacy.secret_kinds import Pattern, Secret, SentencePattern, any_value

_BEFORE_NUMBER, _AFTER_NUMBER = r"(?<![\w.,/:€$£+-])", r"(?![\w]|[.:,/-]\d|\s?[%€$£°])"
_DIGITS = rf"{_BEFORE_NUMBER}(?P<value>\d(?:[ -]?\d){{3,7}}+){_AFTER_NUMBER}"
_THREE = ("three", "drei", "tres", "trois", "tre", "três", "drie", "last 3", "3 digits")
_THREE_DIGITS = (
    r"(?:three|3|drei|tres|trois|tre|três|drie) (?:last )?(?:digits|numbers|ziffern|zahlen|cifras|números|dígitos|chiffres|cifre|numeri|cijfers)"
    r"(?= (?:on (?:the )?back|at the back|auf der rückseite|hinten|detrás|del (?:reverso|dorso)|au dos|sul retro|dietro|no verso|atrás|achterop|op de achterkant)"
    r"(?: (?:of (?:the|my|it)|der|de la|de|della|do|van de) (?:card|karte|tarjeta|carte|carta|cartão|kaart))? ?(?:is|are|ist|sind|es|son|est|sont|è|sono|é|são|zijn|:))"
)
_CODE_VALUE = r"(?P<value>[#*]?\d(?:[\w#*-]| (?=\d)){2,20}+)"
_NO_SECRET_CODE_BEFORE = "".join(
    f"(?<!{word} )"
    for word in (
        *"error status exit zip area post postal promo source country fault discount".split(),
        *("return", "response", "dress", "product", "coupon", "voucher", "colour", "color", "order", "building"),
    )
)
_PIN_OWNERS = (
    r"(?:sim|bank|card|debit|credit|atm|phone|mobile|tablet|giro|ec|voicemail|mailbox|account|app|visa|mastercard)"
)
_CODE_HINTS = (
    "code",
    "codice",
    "código",
    "codigo",
    "pin",
    "comb",
    "komb",
    "box",
    "safe",
    "schl",
    "sleutel",
    "clés",
    "caja",
    "caixa",
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
        rf"|code\b[^.!?;\n]{{0,20}}\b{PLACE}|{CODE_WORD}|{KEY_BOX}(?=\s{IS}|:))"
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
    SentencePattern(
        "number to enter with",
        Secret.CODE,
        (rf"\b{ENTERING}\b", rf"(?<![\w-]){PLACE}\b"),
        rf"\b(?:with|mit|con|avec|com|met)\s(?:the\s|dem\s)?(?:code\s|pin\s)?{_CODE_VALUE}(?=\s?[.,;!?)]|\s?$"
        r"|\s(?:on|at|op|aan|am|an|auf|en|sur|au|à|sul|nel|no|na|in|and|und|y|et|e|then|dann)\b)",
        (" with ", " mit ", " con ", " avec ", " com ", " met "),
        numbers.check_sentence_code,
    ),
    Pattern(
        "number before the door that it opens",
        Secret.CODE,
        rf"{_BEFORE_NUMBER}{_CODE_VALUE}\s(?:(?:to|um|para|pour|per|om)\s(?:[^\W\d]{{2,12}}\s){{0,3}}?(?:zu\s|te\s)?)?"
        rf"{OPENING}\s[^.!?\n]{{0,40}}?\b(?:{PLACE}|{DEVICE})\b",
        (
            *("open", "unlock", "disarm", "deactiv", "öffn", "entsp", "entsch", "abr", "ouvr", "apr", "ontgr"),
            *("desbloq", "déverr", "sblocc"),
        ),
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
        rf"(?<![\w-])(?:cvc2?|cvv2?|csc|cid|security code|prüfziffer|kartenprüfnummer|{_THREE_DIGITS})(?:\s(?:on|at|auf|en|sur|sul|op|no)\s[^.!?\n\d]{{1,25}}?)?(?:\s(?:is|are|code|number|ist|sind|es|son|est|sont|è|sono|é|são|zijn))?\W{{1,3}}(?P<value>\d{{3,4}})(?![\w-]|[.:,/]\d)",
        ("cvc", "cvv", "csc", "cid", "security code", "prüf", *_THREE),
        any_value,
    ),
)
