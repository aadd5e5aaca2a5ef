"""Checks whether a value is a secret, beside a word such as "password" or in a field with such a name. Pure.

Each check returns the span of the secret in its text, or None if the value is no secret.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from afterword.facts.words import words_as_written
from afterword.privacy.secret_kinds import SecretKind, Span, compiled_expression
from afterword.text_caches import text_cache

_LEAST_ENTROPY = 2.8
_FEW_WORDS = 3
_FEWEST_KEY_DIGITS = 16
_ASSIGNED = re.compile(r"[:=]\s*\Z")
_COMMON = frozenset(
    "the and was were for with from this that have has had not but they them their there then when what will would could into "
    "over just like very much many some more most other than been only also about after before because people time day going get "
    "got make made know think want need come came went see saw said tell told good great really thing things love work year".split()
)
_TRAILING = ".,;:?)]}\\*…"
_QUOTES = "\"'`“”„«»"
_PLACEHOLDER = re.compile(
    r"\W{0,2}(?:<|\{|\$[{(]|\$[A-Z_]+$|%[(s]|\*\*|\.\.|•|…)|x{3,}|\W*$|\[redacted"
    r"|(?:your|my|the|some|any|new|old|test|dummy|example|sample)[_-](?:\w+[_-]){0,3}(?:pass\w*|pwd?|tokens?|keys?|secrets?)\b"
    r"|\W{0,2}(?:your|example|placeholder|change[_-]?me|redacted|masked|hidden|todo|none|null|undefined)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|\w+\(|.*[()\[\]{}]|[^@]+@[^@]+\.\w+$|\w+://")
_DOTTED = re.compile(r"(?=\w*[A-Z])[^\W\d]+\.(?=\w*\d)\w+")
"""Two words joined by a full stop, with a capital letter and a digit: rather a password than program code."""
_MEASURE = re.compile(
    r"v?\d+(?:[.,:/-]\d+)*(?:st|nd|rd|th|s|x|k|m|ms|min|h|hrs?|px|pt|kb|mb|gb|%|\+)?$"
    r"|\d+[-+](?:char|digit|word|step|factor|bit|byte|day|hour|minute|year|month|week)"
    r"|(?:sha|md|utf|base|aes|oauth|http|bcrypt|argon|pbkdf|rfc|iso|rs|hs|es|ed|p)-?\d+\w{0,3}(?:-\d+)?$"
    r"|(?:gpt|claude|llama|gemini|mistral|o\d)-",
    re.IGNORECASE,
)
_CIPHER = re.compile(
    r"(?:aes|rsa|curve|(?:ed|x)(?=\d{3,5}(?!\w))|chacha|salsa|twofish|blowfish|serpent|luks|tls|gpg|pgp)-?\d|.*-(?:cbc|gcm|xts|poly)",
    re.IGNORECASE,
)
_NOUN = re.compile(
    r"(?:[a-z]{1,20}_|new|old|confirm|current|user|hashed)?(?:passwords?|passwd|pwd|tokens?|secrets?|keys?)_?\d?$",
    re.IGNORECASE,
)
# Words that may stand in the position of a password: "the password is wrong".
NO_VALUE = frozenset(
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
        "sicura nella nel necessaria usted ustedes este esta esto ese eso questo questa quello isso isto deze dit dat niet "
        "geen fout goed verkeerd juist veilig onveilig verlopen vergeten nieuw oud hetzelfde diese dieser dieses etwas nichts "
        "nada nichts rien niente niets algo quelque qualcosa iets forgotten expired saved stored anything it's same email "
        "hint username login user account everyone nobody someone later today tomorrow yesterday soon maybe perhaps "
        "sure thanks thank please hello hi hey sorry don't can't won't idk dunno what's which whatever morgen heute gestern "
        "später klar danke bitte hallo mañana hoy ayer claro gracias demain hier merci bonjour domani oggi ieri grazie amanhã "
        "hoje ontem obrigado obrigada vandaag gisteren bedankt dank cuál quel quelle qual welches welcher welche wie was wat welk qué ja nein sí si oui non sim não nee"
    ).split()
)
_GRAMMAR = re.compile(r"(?:ed|ing|able|ible|ado|ada|ido|ida|ato|ata|é|ée)$", re.IGNORECASE)
_ADVERB = re.compile(r"ly$|mente$|ment$|lich$", re.IGNORECASE)
_ASKING = re.compile(r"enter|type|choose|please|invalid|must|should|use|do|does|is|are|at\b")
# "reset the password for user: lena77" names a user, not a password.
_OWNER_BEFORE = re.compile(
    r"\b(?:users?|usernames?|accounts?|logins?|emails?|usuario|utente|usuário|gebruiker|benutzer\w*|identifiant)[:=]?\s{0,2}$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"//|\w\.[a-z]{2,}/|^(?:[\w.-]+/){2}", re.IGNORECASE)
_PRODUCT = re.compile(
    r"(?:iphone|ipad|ios|windows|win|acrobat|macos|android|ubuntu|debian|python|node|php|java|jdk|es|css|html|mysql|postgres\w*|oauth"
    r"|galaxy|pixel|ps|xbox|mp|ipv|log4|web|[a-z]|k8|i18|l10)-?\d{1,2}[a-z]{0,3}$|(?:rtx|gtx|covid|windows|es|office)-?\d{2,4}$|1password$|\d+[a-z]?$",
    re.IGNORECASE,
)
_TECHNICAL = re.compile(r"https?:|[/\\]|\.[a-z]\w{1,3}$|_\w+_|^#[0-9a-f]{3,8}$|^0x|[=<>~]=\d")
"""Addresses, paths, names of files and variables, colours, hexadecimal numbers and versions of packages."""
_CLAUSE_END = re.compile(
    r"[\s\"'”]{0,3}(?:[.,;!?)\n\\]|$)|\s{1,2}(?:and|but|und|y|et|e|so|btw|by the way|please|bitte)\b", re.IGNORECASE
)
_LONGEST_NAME = 80
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PREFIX = r"(?:.*_)?"

# Names are compared in lower case with underscores: "userPassword" and "User-Password" are "user_password".
_NAMES = (
    (
        _PREFIX
        + r"(?:pass|pass_?(?:word|code|phrase|wd)|pwd|pw|psk|passwort|kennwort|contrase[ñn]a|clave|mot_de_passe|mdp"
        r"|senha|palavra_passe|wachtwoord|parola|(?:wi_?fi|wlan|wpa\d?)_key|credentials?|requirepass)(?:_?\d|_(?:value|text|confirm\w*|again|repeat))?",
        SecretKind.PASSWORD,
    ),
    (
        _PREFIX
        + r"(?:pin|pin_?code|otp|m?tan|cvc\d?|cvv\d?|puk|(?:alarm|door|access|gate|entry|lock|security|verification|unlock)_code)",
        SecretKind.CODE,
    ),
    (_PREFIX + r"(?:card_?(?:number|no)|pan|credit_card)", SecretKind.CARD),
    (
        _PREFIX
        + r"(?:ssn|social_security(?:_number)?|passport(?:_(?:number|no))?|id_card(?:_number)?|tax_id|dni|nif|bsn|cpf)",
        SecretKind.IDENTITY,
    ),
    (_PREFIX + r"(?:seed_(?:phrase|words)|mnemonic|recovery_(?:phrase|words))", SecretKind.SEED),
    (
        r"(?!.*(?:page|next|continuation|cursor|sync|max|count|usage|prompt|completion|public))"
        + _PREFIX
        + r"(?:(?:api|access|secret|auth|private|client|encryption|signing|service|storage|account|subscription|shared_access|refresh|bot"
        r"|deploy|licen[cs]e|session|webhook)_?(?:access_?)?(?:key|token|secret)|tokens?|secrets?|apikey|bearer|authorization|jwt)",
        SecretKind.TOKEN,
    ),
)


def key_span(match: re.Match[str]) -> Span | None:
    """Return the span of a key: it holds a digit and a letter, unlike words and names."""
    value = match.group("value")
    return match.span("value") if _is_mixed(value) and not _MEASURE.match(value) else None


def header_value_span(match: re.Match[str]) -> Span | None:
    """Return the span of a header's value: letters with digits, or long and in both letter cases."""
    value = match.group("value")
    is_cased = len(value) >= 16 and value != value.lower() and value != value.upper()
    return match.span("value") if (_is_mixed(value) or is_cased) and not _PLACEHOLDER.match(value) else None


def url_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of the password in a URL, unless it is a placeholder."""
    return None if _PLACEHOLDER.match(match.group("value")) else match.span("value")


def option_value_span(match: re.Match[str]) -> Span | None:
    """Return the span of the value of a command's option, unless it is a placeholder, a plain word or program code."""
    start, end, value = span_and_bare_value(match)
    no_value = len(value) < 3 or _PLACEHOLDER.match(value) or value.startswith("-") or value.casefold() in NO_VALUE
    return None if no_value or _CODE.match(value) else (start, end)


def password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a password: letters with digits or symbols, or a plain word that can mean nothing else."""
    start, end, value = span_and_bare_value(match)
    groups = match.groupdict("")
    gap = groups.get("gap", "")
    is_quoted = start > match.start("value")
    is_code = not is_quoted and _is_program_code(value, may_be_dotted="link" not in groups)
    if is_code or _names_no_password(value) or _OWNER_BEFORE.search(gap):
        return None
    is_assigned = _is_assigned(match)
    is_near = _is_near(gap, may_have_words=is_assigned or value.isdigit())
    if _is_more_than_letters(value):
        is_password = _is_password_beside_word(value, is_near=is_near or is_quoted)
    else:
        is_last = _CLAUSE_END.match(match.string, end) is not None
        is_password = is_near and _can_only_be_password(value, is_quoted, is_last=is_last, is_assigned=is_assigned)
    return (start, end) if is_password else None


def _is_program_code(value: str, *, may_be_dotted: bool) -> bool:
    """Return whether a value looks like program code. With `may_be_dotted`, "Summer.2024" is none."""
    return _CODE.match(value) is not None and not (may_be_dotted and _DOTTED.fullmatch(value))


def _is_assigned(match: re.Match[str]) -> bool:
    """Return whether a sign such as an equals sign, or the group `link`, links a value with its name."""
    has_link = "link" in match.groupdict()
    return has_link or _ASSIGNED.search(match.string, match.start(), match.start("value")) is not None


def _is_near(gap: str, *, may_have_words: bool) -> bool:
    """Return whether no words stand between the word for a password and the value, or few and `may_have_words`."""
    return not gap or (may_have_words and len(gap.split()) <= _FEW_WORDS)


def _is_password_beside_word(value: str, *, is_near: bool) -> bool:
    """Return whether a value of letters with digits or symbols, in a sentence with a word for a password, is one."""
    return not _MEASURE.match(value) and (is_near or _is_mixed(value))


def _can_only_be_password(value: str, is_quoted: bool, *, is_last: bool, is_assigned: bool) -> bool:
    """Return whether a value of letters or digits only, just after a word for a password, must be the password."""
    if value.isdigit():
        return len(value) >= 4
    if " " in value:
        return is_quoted and _is_no_sentence(value)
    word = value.rstrip("!")
    is_plain = _is_plain_word(word) or (not is_assigned and _ADVERB.search(word))
    return not is_plain and (is_quoted or is_last)


def _names_no_password(value: str) -> bool:
    return len(value) < 3 or bool(_PLACEHOLDER.match(value) or _NOUN.match(value))


def _is_plain_word(word: str) -> bool:
    return len(word) < 4 or word.casefold() in NO_VALUE or _GRAMMAR.search(word) is not None


def reversed_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a password before its word: "X is my password", "use X as the password"."""
    start, end, value = span_and_bare_value(match)
    if _names_no_password(value) or _matches_any(value, _CODE, _MEASURE, _PRODUCT):
        return None
    if _is_more_than_letters(value) or (value.isdigit() and len(value) >= 4):
        return start, end
    is_sure = match["sure"] and not match["far"] and _CLAUSE_END.match(match.string, match.end())
    return (start, end) if is_sure and not _is_plain_word(value) else None


def likely_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a word in a sentence about a password that looks like nothing but a password."""
    start, end, value = span_and_bare_value(match)
    is_password = looks_random(value) and not _OWNER_BEFORE.search(match.string, max(0, start - 30), start)
    return (start, end) if is_password else None


def random_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a word that looks random: letters and digits, with a capital letter or a symbol."""
    span = likely_password_span(match)
    value = match.string[span[0] : span[1]] if span else ""
    is_cased = value != value.lower() and value != value.upper()
    is_name = "_" in value and not is_cased
    return span if span and not is_name and _is_mixed(value) and (is_cased or _has_symbol(value)) else None


def unmistakable_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a word that can only be a password: letters of both cases, a digit and a symbol."""
    value = match.group("value").rstrip("!?*")
    is_cased = any(map(str.islower, value)) and any(map(str.isupper, value))
    start = match.start("value")
    return (start, start + len(value)) if is_cased and looks_random(value) and _has_symbol(value) else None


def long_digits_span(match: re.Match[str]) -> Span | None:
    """Return the span of a key of at least 16 digits. A quantity has fewer."""
    return match.span("value") if sum(map(str.isdigit, match["value"])) >= _FEWEST_KEY_DIGITS else None


def looks_random(value: str) -> bool:
    """Return whether a word looks like a password and like no product, measure, address or piece of code."""
    if len(value) < 6 or not _is_mixed(value) or _TECHNICAL.search(value):
        return False
    if _matches_any(value, _PLACEHOLDER, _CODE, _MEASURE, _PRODUCT, _NOUN, _CIPHER):
        return False
    return len(value) >= 8 or _has_symbol(value) or value.lower() != value or sum(map(str.isdigit, value)) >= 2


def _matches_any(value: str, *expressions: re.Pattern[str]) -> bool:
    return any(expression.match(value) for expression in expressions)


def may_be_password(word: str) -> bool:
    """Return whether a word that answers a question may be a password: it is no function word and no participle."""
    return not _is_plain_word(word) and not _names_no_password(word)


def command_password_span(match: re.Match[str]) -> Span | None:
    """Return the span of a password at a fixed place of a command or address, unless it is a placeholder."""
    start, end, value = span_and_bare_value(match)
    return None if len(value) < 3 or _PLACEHOLDER.match(value) or value.startswith(("-", "$")) else (start, end)


def high_entropy_span(match: re.Match[str]) -> Span | None:
    """Return the span of a long random word: letters mixed with digits, with high entropy."""
    start, end, value = span_and_bare_value(match)
    if not _is_mixed(value) or _PLACEHOLDER.match(value) or _MEASURE.match(value) or _ADDRESS.search(value):
        return None
    changes = sum(before.isdigit() != after.isdigit() for before, after in pairwise(value))
    counts = Counter(value)
    entropy = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return (start, end) if changes >= 3 and entropy >= _LEAST_ENTROPY else None


def seed_span(match: re.Match[str]) -> Span | None:
    """Return the span of a seed phrase: 12, 15, 18, 21 or 24 words, of which hardly any is a function word."""
    words = re.findall(r"[a-z]+", match.group("value"))
    return match.span("value") if len(words) in (12, 15, 18, 21, 24) and _are_random_words(words) else None


def announced_seed_span(match: re.Match[str]) -> Span | None:
    """Return the span of twelve words or more in a sentence about a wallet, of which hardly any is a function word."""
    return match.span("value") if _are_random_words(re.findall(r"[a-z]+", match.group("value"))) else None


def _are_random_words(words: Sequence[str]) -> bool:
    common = sum(word in NO_VALUE or word in _COMMON for word in words)
    return common * 8 <= len(words)


def passphrase_span(match: re.Match[str]) -> Span | None:
    """Return the span of a passphrase of plain words, unless they form a sentence."""
    return match.span("value") if _is_no_sentence(match.group("value")) else None


def password_after_word_span(match: re.Match[str]) -> Span | None:
    """Return the span of a value just after a word such as "password": letters with digits, or a symbol at the end."""
    start, end, value = span_and_bare_value(match)
    is_last = _CLAUSE_END.match(match.string, end) is not None
    is_striking = (
        len(value) >= 6 and (_is_mixed(value) or (is_last and _has_symbol(value))) and not _PLACEHOLDER.match(value)
    )
    is_code = _is_program_code(value, may_be_dotted=True)
    return (start, end) if is_striking and not _MEASURE.match(value) and not is_code else None


def token_span(match: re.Match[str]) -> Span | None:
    """Return the span of a token: at least eight characters, with letters and digits."""
    start, end, value = span_and_bare_value(match)
    is_quoted = start > match.start("value")
    if len(value) < 8 or " " in value or _matches_any(value, _PLACEHOLDER, _MEASURE, _NOUN):
        return None
    if match.groupdict().get("gap") and len(value) < 12:
        return None
    return (start, end) if _is_mixed(value) and (is_quoted or not _CODE.match(value)) else None


def span_and_bare_value(match: re.Match[str]) -> tuple[int, int, str]:
    """Return the start, the end and the text of the value, without quotation marks and punctuation around it."""
    text, (start, end) = match.string, match.span("value")
    while start < end - 1 and (text[start] in "\\¿¡" or (text[start] == "(" and text[end - 1] in ").,;:!?")):
        start += 1
    if text[start] in _QUOTES and end - start >= 2 and text[end - 1] in _QUOTES:
        start, end = start + 1, end - 1 - (text[end - 2] == "\\")
    else:
        while end > start and text[end - 1] in _TRAILING:
            end -= 1
    return start, end, text[start:end]


def _is_no_sentence(value: str) -> bool:
    """Return whether the words may be a passphrase: too few of them are function words to make a sentence."""
    words = words_as_written(value.casefold())
    binding = sum(word in NO_VALUE or bool(_NOUN.match(word)) for word in words)
    is_told = bool(_GRAMMAR.search(words[0]) or _ASKING.match(words[0])) if words else True
    return not is_told and binding * 3 <= len(words)


def _is_mixed(value: str) -> bool:
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)


def _has_symbol(value: str) -> bool:
    return any(character in "@#$%^&*!+=~?" for character in value[:-1]) and any(
        character.isalpha() for character in value
    )


def _is_more_than_letters(value: str) -> bool:
    return _is_mixed(value) or _has_symbol(value)


def kind_of_named_field(name: str, value: str) -> SecretKind | None:
    """Return the kind of secret that a field of this name holds, or None if the value is no secret."""
    kind = _kind_of_name(name) if len(name) <= _LONGEST_NAME else None
    return kind if kind is not None and _is_secret_value(kind.value, value) else None


@text_cache(1024)
def _kind_of_name(name: str) -> SecretKind | None:
    plain = re.sub(r"[\s.\-]+", "_", _HUMP.sub("_", name)).casefold()
    kinds = (kind for expression, kind in _NAMES if compiled_expression(expression, re.IGNORECASE).fullmatch(plain))
    return next(kinds, None)


def _is_secret_value(kind: str, value: str) -> bool:
    """Return whether the value of a field named like a secret of this kind is a secret."""
    if not value.strip() or _PLACEHOLDER.match(value):
        return False
    if kind == "token":
        return len(value) >= 8 and _is_mixed(value) and " " not in value
    if kind == "password":
        return len(value) >= 3 and value.casefold() not in NO_VALUE
    digits = sum(character.isdigit() for character in value)
    return digits >= (12 if kind == "card number" else 3) and digits > len(value) // 2


def is_safe_to_mask_everywhere(secret: str) -> bool:
    """Return whether a secret may be masked wherever it is repeated: no plain word, no short number, no year."""
    if re.fullmatch(r"[\d #*-]+", secret):
        return sum(character.isdigit() for character in secret) >= 4 and not re.fullmatch(r"(?:19|20)\d\d", secret)
    return len(secret) >= 6 and _is_more_than_letters(secret)
