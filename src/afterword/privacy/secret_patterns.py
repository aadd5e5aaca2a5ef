"""A table of patterns that match secrets. Pure.

Each pattern recognises a value by something that only stands near secrets: a provider's prefix, a checksum, or a word
such as "password" before it. Every quantifier is bounded or possessive, so that the time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache

from afterword.privacy import secret_values as values


class Secret(StrEnum):
    """The kinds of secret. Each is masked as `[redacted: kind]`."""

    API_KEY = "api key"
    TOKEN = "token"
    PRIVATE_KEY = "private key"
    PASSWORD = "password"
    CODE = "code"
    WEBHOOK = "webhook"
    CARD = "card number"
    IBAN = "iban"
    SSN = "social security number"


_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to recognise a secret.

    The pattern is tried only on texts that contain one of the lower-case `hints`, or on all texts if there are none. The
    group `value` of the expression is the possible secret. `check` returns the span to mask, or None if it is none.
    """

    name: str
    kind: Secret
    expression: str
    hints: tuple[str, ...] = ()
    check: Callable[[re.Match[str]], tuple[int, int] | None] = values.check_any
    flags: int = 0

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of the secrets that this pattern matches, in order and without overlap."""
        position, expression = 0, _compiled(self.expression, self.flags)
        while (match := expression.search(text, position)) is not None:
            span = self.check(match)
            if span is not None:
                yield span
            # A value that is no secret may contain the words before a secret.
            position = max(span[1] if span else match.start("value"), match.start() + 1)


@cache
def _compiled(expression: str, flags: int) -> re.Pattern[str]:
    # Not at import: a live agent loads this table with the store, and most texts need few of it.
    return re.compile(expression, flags)


def _plain(name: str, kind: Secret, expression: str, *hints: str) -> Pattern:
    return Pattern(name, kind, expression, hints)


def _checked(
    name: str, kind: Secret, expression: str, check: Callable[[re.Match[str]], tuple[int, int] | None], *hints: str
) -> Pattern:
    return Pattern(name, kind, expression, hints, check, re.IGNORECASE)


_START, _END = r"(?<![\w-])", r"(?![\w-])"

_PREFIXED = (
    ("anthropic", r"sk-ant-[\w-]{16,}+", "sk-ant-"),
    ("openai", r"sk-[\w-]{20,}+", "sk-"),
    ("google", r"AIza[\w-]{30,}+", "aiza"),
    ("google oauth", r"(?:GOCSPX-[\w-]{20,}+|ya29\.[\w-]{20,}+)", "gocspx-", "ya29."),
    ("aws", r"(?:AKIA|ASIA)[0-9A-Z]{16}", "akia", "asia"),
    ("github", r"(?:gh[opsur]_[A-Za-z0-9]{20,}+|github_pat_\w{20,}+)", *"gho_ ghp_ ghs_ ghu_ ghr_ github_pat_".split()),
    ("gitlab", r"gl(?:pat|dt|rt|cbt|ptt)-[\w.-]{18,}+", "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"),
    ("slack", r"xox[abeoprs]-[\w-]{10,}+|xapp-\d-[\w-]{10,}+", "xox", "xapp-"),
    ("stripe", r"(?:[sr]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}+", "k_live_", "k_test_", "whsec_"),
    ("hugging face", r"hf_[A-Za-z0-9]{30,}+", "hf_"),
    ("npm", r"npm_[A-Za-z0-9]{30,}+", "npm_"),
    ("pypi", r"pypi-[\w-]{20,}+", "pypi-"),
    ("sendgrid", r"SG\.[\w-]{16,}+\.[\w-]{16,}+", "sg."),
    ("twilio", r"SK[0-9a-f]{32}", "sk"),
    (
        "others",
        r"(?:dop_v1_[0-9a-f]{60,}+|dapi[0-9a-f]{32}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|gsk_\w{40,}+|xai-\w{40,}+"
        r"|lin_api_\w{30,}+|ntn_\w{40,}+|hv[sbr]\.[\w-]{24,}+|glsa_\w{32,}+|sbp_[0-9a-f]{40}|dckr_pat_[\w-]{20,}+"
        r"|figd_[\w-]{30,}+|NRAK-[0-9A-Z]{20,}+|r8_\w{30,}+|AGE-SECRET-KEY-1[0-9A-Z]{50,}+|ATATT3[\w=-]{30,}+)",
        *"dop_v1_ dapi shpat_ shpss_ shpca_ shppa_ gsk_ xai- lin_api_ ntn_ hvs. hvb.".split(),
        *("hvr.", "glsa_", "sbp_", "dckr_pat_", "figd_", "nrak-", "r8_", "age-secret-key-1", "atatt3"),
    ),
)
"""The prefixes of providers' keys. A digit must follow, so that no plain word matches."""

_PASSWORD = (
    r"(?:pass[ -]?(?:word|code|phrase)|passwd|pwd|passwort|kennwort|passphrase|contrase[ñn]a|mot de passe|senha"
    r"|palavra[- ]passe|wachtwoord|clave (?:de acceso|de(?: la|l)? wi-?fi)|(?:wi-?fi|wlan|wpa2?)[ -]?(?:key|code|schlüssel)"
    r"|(?:seed|recovery) phrase|pw)"
)
_PASSWORD_HINTS = (
    *("passw", "passc", "passp", "pass ", "pass-", "_pass", "pwd", "kennwort", "contrase", "mot de passe", "senha"),
    *("palavra", "wachtwoord", "phrase", "clave", "wi-fi", "wifi", "wlan", "wpa", "pw"),
)
_TOKEN = (
    r"(?:(?:[a-z0-9]{1,20}[_-]){0,4}(?:(?:api|access|secret|auth|private|client|encryption|signing|service|storage"
    r"|account|subscription|shared[_ -]?access|refresh|bot|deploy|license|licence)[_ -]?(?:access[_ -]?)?"
    r"(?:key|token|secret)|token|secret|apikey))"
)
_IS = r"(?:is|was|=|ist|lautet|war|es|est|é|è|era|'s|’s)"
_ASSIGNED = r"[\"'`*_\]\\]{0,4}\s{0,3}(?:=>|:=|==?|:)\s{0,3}"
_VALUE = r"(?P<value>\\?\"[^\"\n]{1,200}\"|'[^'\n]{1,200}'|`[^`\n]{1,200}`|[“„«][^”“»\n]{1,200}[”“»]|[^\s\"'`<>“”„«»]{1,300})"
_GAP = r"(?P<gap>,? (?:for|to|of|on|at|in|from|that|which|if|für|zum|zur|vom|von|para|de|del|du|des|della|dello|al|pour|per|do|da) [^.!?\n;:=]{0,60}?)?"
_PLACES = (
    r"(?:alarm|door|gate|garage|entry|entrance|entrée|access|lock ?box|key ?box|key ?safe|safe|vault|keypad|building"
    r"|security|intercom|unlock|digicode|puerta|alarma|porte|alarme|portail|porta|portão|cancello|allarme"
    r"|haustür|tür|tor|schlüsselbox|schlüsselsafe|tresor|briefkasten)"
)
_FOREIGN_CODE = r"(?:(?:tür|alarm|zugangs|tor|haus|eingangs|zutritts|safe|entsperr)-?code)"
_NO_SECRET_CODE = "".join(
    f"(?<!{word} )"
    for word in (
        *"error status exit zip area post postal promo source country fault discount".split(),
        *("return", "response", "dress", "product", "coupon", "voucher", "colour", "color", "order", "building"),
    )
)
_CODE_VALUE = r"(?P<value>[#*]?\d(?:[\w#*-]| (?=\d)){2,20}+)"


def _keyed(name: str, expression: str, *hints: str) -> Pattern:
    return Pattern(name, Secret.API_KEY, f"{_START}(?P<value>{expression}){_END}", hints, values.check_key)


PATTERNS: tuple[Pattern, ...] = (
    _plain(
        "private key block",
        Secret.PRIVATE_KEY,
        r"(?P<value>-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----)[\s\S])*+-----END [A-Z0-9 ]{0,40}-----|(?:(?:\\[nr]|\s)*+[A-Za-z0-9+/=]{32,}+)++))",
        "private key",
    ),
    _plain(
        "webhook",
        Secret.WEBHOOK,
        r"https://(?:hooks\.slack\.com/(?:services|workflows)/|(?:\w{1,10}\.)?discord(?:app)?\.com/api/webhooks/"
        r"|[\w-]{1,60}\.webhook\.office\.com/)(?P<value>[^\s\"'<>)\]]{10,}+)",
        "hooks.slack.com",
        "/api/webhooks/",
        "webhook.office.com",
    ),
    *(_keyed(*entry) for entry in _PREFIXED),
    _plain(
        "telegram bot token",
        Secret.TOKEN,
        r"(?<![\w:-])(?P<value>\d{8,10}:[A-Za-z0-9_-]{35})(?![\w-])",
        ":aa",
    ),
    _plain("jwt", Secret.TOKEN, rf"{_START}(?P<value>eyJ[\w-]{{8,}}+\.[\w-]{{8,}}+\.[\w-]{{4,}}+)", "eyj"),
    _checked(
        "url with a password",
        Secret.PASSWORD,
        r"(?<![\w+.-])[a-z][a-z0-9+.-]{1,20}+://[^\s/:@\"'<>]{0,100}+:(?P<value>[^\s/@\"'<>]{1,200}+)@(?=[\w\[%{-])",
        values.check_url_password,
        "://",
    ),
    _checked(
        "signature in a url",
        Secret.TOKEN,
        r"[?&;](?:sig|signature|x-amz-signature|x-goog-signature|key|code|auth)=(?P<value>[\w%+/=.-]{20,}+)",
        values.check_key,
        "=",
    ),
    _checked(
        "authorization header",
        Secret.TOKEN,
        r"\b(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:basic|token|apikey|bearer)|bearer)\s{1,3}"
        r"(?P<value>[\w.~+/=-]{8,}+)",
        values.check_header,
        "authorization",
        "bearer",
    ),
    _checked(
        "azure connection string",
        Secret.API_KEY,
        r"\b(?:AccountKey|SharedAccessKey|SharedSecret)=(?P<value>[A-Za-z0-9+/]{20,}+={0,2})",
        values.check_any,
        "accountkey",
        "sharedaccesskey",
        "sharedsecret",
    ),
    _checked(
        "option of a command",
        Secret.PASSWORD,
        rf"(?<![\w-])--?(?:password|passwd|passphrase|token|api-key|secret|client-secret|access-token)[= ]{_VALUE}",
        values.check_option,
        *("-pass", "-token", "-api-key", "-secret", "-client-secret", "-access-token"),
    ),
    _checked(
        "credentials of curl",
        Secret.PASSWORD,
        r"\bcurl\b[^\n]{0,300}?\s(?:-u|--user)\s{0,2}[\"']?[^\s:\"']{1,60}:(?P<value>[^\s\"']{3,100}+)",
        values.check_option,
        "curl",
    ),
    _checked(
        "password that is assigned",
        Secret.PASSWORD,
        rf"(?:(?<![^\W_])|(?<=[a-z](?=P)))(?:{_PASSWORD}|(?<=_)pass)(?P<link>{_ASSIGNED}){_VALUE}",
        values.check_password,
        *_PASSWORD_HINTS,
    ),
    _checked(
        "password in a sentence",
        Secret.PASSWORD,
        rf"(?<![\w-]){_PASSWORD}(?:s|e)?{_GAP}(?:(?:\s{{1,2}}|(?='s|’s)){_IS}[:,]?|:)\s{{1,2}}{_VALUE}",
        values.check_password,
        *_PASSWORD_HINTS,
    ),
    _checked(
        "passphrase of several words",
        Secret.PASSWORD,
        r"\b(?:pass ?phrase|(?:seed|recovery) (?:phrase|words))\b(?:\s(?:is|was|are|ist|lautet)\b:?|\s?[:=])\s{1,2}"
        r"[\"'“]?(?P<value>[^\W\d_]{2,20}(?:[ -][^\W\d_]{2,20}){2,24})",
        values.check_passphrase,
        "phrase",
        "recovery words",
        "seed words",
    ),
    _checked(
        "password beside its word",
        Secret.PASSWORD,
        rf"(?<![\w-])(?:{_PASSWORD})(?:\sto)?\s{{1,2}}{_VALUE}",
        values.check_adjacent_password,
        *_PASSWORD_HINTS,
    ),
    _checked(
        "token that is assigned",
        Secret.TOKEN,
        rf"(?<![^\W_]){_TOKEN}(?P<link>{_ASSIGNED}){_VALUE}",
        values.check_token,
        "key",
        "token",
        "secret",
    ),
    _checked(
        "token in a sentence",
        Secret.TOKEN,
        rf"(?<![\w-]){_TOKEN}{_GAP}(?:\s{{1,2}}{_IS}[:,]?|:)\s{{1,2}}{_VALUE}",
        values.check_token,
        "key",
        "token",
        "secret",
    ),
    _checked(
        "pin",
        Secret.CODE,
        rf"(?<![\w-])pin(?:[ -]?(?:code|number|nummer))?(?P<link>\s{{0,2}}(?:{_IS}|to|:)\s{{0,2}}|[\"']\s?:\s?[\"']?|\s)"
        r"(?P<value>\d(?:[ -]?\d){3,7}+)(?![\w-]|[.:,/]\d)",
        values.check_pin,
        "pin",
    ),
    _checked(
        "one-time code",
        Secret.CODE,
        r"(?<![\w-])(?:otp|m?tan|one[- ]time (?:code|password|passcode|pin)|(?:verification|2fa|mfa|login|log-in|sign-in"
        r"|sms|authentication|authenticator|confirmation|reset|backup)[- ]code|bestätigungscode|código de verificación"
        r"|code de vérification|codice di verifica|código de verificação)"
        rf"(?:\s{{0,2}}(?:{_IS}|:))?\s{{1,2}}(?P<value>(?:[A-Z]-)?\d(?:[ -]?\d){{3,9}}+)(?![\w-]|[.:,/]\d)",
        values.check_one_time_code,
        *("otp", "tan", "one", "code", "codice", "código"),
    ),
    _checked(
        "one-time code before its word",
        Secret.CODE,
        r"(?<![\w.,-])(?P<value>(?:G-)?\d{3}[ -]?\d{1,5}) is (?:your|the|my)\b(?:\s[\w-]{1,20}){0,4}?"
        r"\s(?:code|otp|tan|passcode|pin)\b",
        values.check_any,
        "code",
        "otp",
        "tan",
        "pin",
    ),
    _checked(
        "code of a door or an alarm",
        Secret.CODE,
        rf"(?<![\w-])(?:{_PLACES}\b[^.!?;\n]{{0,50}}?\b{_NO_SECRET_CODE}code\b"
        rf"|c[óo]d(?:igo|ice)\b(?:\s[\w']{{1,6}}){{0,3}}[\s']{_PLACES}|code\b\s(?:de\s(?:la\s|l')?|d')?{_PLACES}"
        rf"|code\b[^.!?;\n]{{0,20}}\b{_PLACES}|{_FOREIGN_CODE})"
        rf"(?:\s{{1,2}}{_IS}:?|:|\snow)?\s{{1,2}}[\"'“]?{_CODE_VALUE}",
        values.check_door_code,
        "code",
        "codice",
        "código",
        "codigo",
    ),
    _checked(
        "combination of a lock",
        Secret.CODE,
        rf"\b(?:combination|combo|kombination)\b(?:[^.!?;\n]{{0,30}}?)\s{_IS}:?\s{{1,2}}(?P<value>\d{{1,4}}(?:[ -]\d{{1,4}}){{1,5}}+)",
        values.check_any,
        "combination",
        "combo",
        "kombination",
    ),
    _checked(
        "security code of a card",
        Secret.CODE,
        r"(?<![\w-])(?:cvc2?|cvv2?|csc|cid|security code)(?:\s(?:is|code|number))?\W{1,3}(?P<value>\d{3,4})(?![\w-]|[.:,/]\d)",
        values.check_any,
        *("cvc", "cvv", "csc", "cid", "security code"),
    ),
    _checked(
        "card number",
        Secret.CARD,
        r"(?<![\w.,+/-])(?P<value>\d{4}(?P<sep>[ -])\d{4}(?P=sep)\d{4}(?P=sep)\d{1,7}|3\d{3}[ -]\d{6}[ -]\d{5}|\d{13,19})"
        r"(?![\w/-]|\.\d)",
        values.check_card,
    ),
    _checked(
        "number beside a card's word",
        Secret.CARD,
        r"(?<![\w-])(?:card|kreditkarte|karte|tarjeta|carte|carta|cartão|visa|mastercard|amex)\b[^\n]{0,40}?"
        r"(?<![\w.-])(?P<value>\d{4}(?P<sep>[ -])\d{4}(?P=sep)\d{4}(?P=sep)\d{4})(?![\w-])",
        values.check_any,
        *("card", "karte", "tarjeta", "carte", "carta", "cartão", "visa", "amex"),
    ),
    _checked(
        "iban",
        Secret.IBAN,
        r"(?<![A-Za-z0-9])(?P<value>[a-z]{2}\d{2}(?:[ -]?[a-z0-9]){11,30}+)",
        values.check_iban,
    ),
    _checked(
        "social security number",
        Secret.SSN,
        r"(?<![\w-])(?:ssn|social security(?: (?:number|no\.?|#))?)(?:\s(?:is|was))?[\s:#=]{1,3}"
        r"(?P<value>\d{3}([ -]?)\d{2}\2\d{4})(?![\w-])",
        values.check_any,
        "ssn",
        "social security",
    ),
)

_NAMES = (
    (rf"(?:.*[_\-. ])?{_PASSWORD}|.*_pass", Secret.PASSWORD),
    (r"(?:.*[_\-. ])?(?:pin|passcode|otp|tan|cvc|cvv|(?:alarm|door|access|gate|entry|lock)_?code)", Secret.CODE),
    (r"(?:.*[_\-. ])?(?:card_?number|pan)", Secret.CARD),
    (rf"(?!.*(?:page|next|continuation|cursor|sync)){_TOKEN}", Secret.TOKEN),
)


def kind_of_named_field(name: str, value: str) -> Secret | None:
    """Return the kind of secret that a field of this name holds, or None if the value is no secret."""
    kind = _kind_of_name(name) if len(name) <= _LONGEST_NAME else None
    return kind if kind is not None and values.is_secret_value(kind.value, value) else None


@lru_cache(maxsize=1024)
def _kind_of_name(name: str) -> Secret | None:
    kinds = (kind for expression, kind in _NAMES if _compiled(expression, re.IGNORECASE).fullmatch(name))
    return next(kinds, None)
