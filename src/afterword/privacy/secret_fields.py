"""Names of fields, arguments and settings that hold a secret. Pure."""

from __future__ import annotations

import re

from afterword.privacy import secret_values as values
from afterword.privacy.secret_kinds import Secret, compiled
from afterword.text_caches import text_cache

_LONGEST_NAME = 80
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PREFIX = r"(?:.*_)?"

# Names are compared in lower case with underscores: "userPassword" and "User-Password" are "user_password".
_NAMES = (
    (
        _PREFIX
        + r"(?:pass|pass_?(?:word|code|phrase|wd)|pwd|pw|psk|passwort|kennwort|contrase[ñn]a|clave|mot_de_passe|mdp"
        r"|senha|palavra_passe|wachtwoord|parola|(?:wi_?fi|wlan|wpa\d?)_key|credentials?|requirepass)(?:_?\d|_(?:value|text|confirm\w*|again|repeat))?",
        Secret.PASSWORD,
    ),
    (
        _PREFIX
        + r"(?:pin|pin_?code|otp|m?tan|cvc\d?|cvv\d?|puk|(?:alarm|door|access|gate|entry|lock|security|verification|unlock)_code)",
        Secret.CODE,
    ),
    (_PREFIX + r"(?:card_?(?:number|no)|pan|credit_card)", Secret.CARD),
    (
        _PREFIX
        + r"(?:ssn|social_security(?:_number)?|passport(?:_(?:number|no))?|id_card(?:_number)?|tax_id|dni|nif|bsn|cpf)",
        Secret.IDENTITY,
    ),
    (_PREFIX + r"(?:seed_(?:phrase|words)|mnemonic|recovery_(?:phrase|words))", Secret.SEED),
    (
        r"(?!.*(?:page|next|continuation|cursor|sync|max|count|usage|prompt|completion|public))"
        + _PREFIX
        + r"(?:(?:api|access|secret|auth|private|client|encryption|signing|service|storage|account|subscription|shared_access|refresh|bot"
        r"|deploy|licen[cs]e|session|webhook)_?(?:access_?)?(?:key|token|secret)|tokens?|secrets?|apikey|bearer|authorization|jwt)",
        Secret.TOKEN,
    ),
)


def kind_of_named_field(name: str, value: str) -> Secret | None:
    """Return the kind of secret that a field of this name holds, or None if the value is no secret."""
    kind = _kind_of_name(name) if len(name) <= _LONGEST_NAME else None
    return kind if kind is not None and values.is_secret_value(kind.value, value) else None


@text_cache(1024)
def _kind_of_name(name: str) -> Secret | None:
    plain = re.sub(r"[\s.\-]+", "_", _HUMP.sub("_", name)).casefold()
    kinds = (kind for expression, kind in _NAMES if compiled(expression, re.IGNORECASE).fullmatch(plain))
    return next(kinds, None)
