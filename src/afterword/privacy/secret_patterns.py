"""All patterns of secrets, in the order in which they are tried. Pure.

Each recognises a value by something that is typical of secrets: a provider's prefix, a check digit, or a word such as
"password" beside it. Every quantifier is bounded or possessive, so that the time is linear in the text.
"""

from __future__ import annotations

from dataclasses import replace

from afterword.privacy import secret_numbers as numbers
from afterword.privacy import secret_values as values
from afterword.privacy.secret_access import ACCESS_WORD, ANSWER_PATTERNS, PROGRAM
from afterword.privacy.secret_codes import CODE_PATTERNS
from afterword.privacy.secret_forms import COMMAND_PATTERNS, PROVIDER_PATTERNS, VALUE
from afterword.privacy.secret_kinds import SecretKind, SecretPattern, SecretSentencePattern, any_value_span
from afterword.privacy.secret_vocabulary import (
    AS,
    ASSIGNS,
    CARD,
    IDENTITY,
    IDENTITY_HINTS,
    IS,
    KEY,
    NETWORK,
    NO_COMPOUND,
    NO_SECRET_KEY,
    OWNERS,
    PASSWORD,
    PASSWORD_HINTS,
    SEED,
    SPARE_CODES,
    TO,
    USE,
    WEAK_PASSWORD,
    WEAK_PASSWORD_HINTS,
)

_START = r"(?<![^\W_])"
_GAP = r"(?P<gap>\s?\([^()\n]{0,60}\)|,?\s[^.!?\n;:=]{0,60}?)?"
_WORD_VALUE = r"(?P<value>[^\s\"'`<>“”„«»]{3,100}+)"
_QUOTED = r"[\"'`“„«]?"
_UNQUOTED = r"[\"'`”“»]?"
_TOKEN = (
    r"(?:(?:[a-z0-9]{1,20}[_-]){0,4}(?:(?:api|access|secret|auth|private|client|encryption|signing|service|storage"
    r"|account|subscription|shared[_ -]?access|refresh|bot|deploy|license|licence)[_ -]?(?:access[_ -]?)?"
    r"(?:key|token|secret)|token|secret|apikey))"
)
_KEY_HINTS = (
    "key",
    "vault",
    "kit",
    "token",
    "secret",
    "bearer",
    "schlüssel",
    "geheim",
    "clave",
    "llave",
    "clé",
    "clef",
    "jeton",
    "chiave",
    "chave",
    "sleutel",
)
_DIGIT_HINTS = tuple("0123456789")


_PASSWORD_PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    SecretPattern(
        "password that is assigned",
        SecretKind.PASSWORD,
        rf"(?:{_START}|(?<=[a-z](?=P)))(?:{PASSWORD}|(?<=[_\"'])pass){NO_COMPOUND}(?P<link>{ASSIGNS}){VALUE}",
        PASSWORD_HINTS,
        values.password_span,
    ),
    SecretPattern(
        "password in a sentence",
        SecretKind.PASSWORD,
        rf"(?<![\w-]){PASSWORD}(?:s|e)?(?![\w]){NO_COMPOUND}[\"'`*)]{{0,2}}{_GAP}(?:(?:\s{{1,4}}|(?='s)){IS}[:,]?|\s?:)\s{{1,4}}{VALUE}",
        PASSWORD_HINTS,
        values.password_span,
    ),
    SecretPattern(
        "passphrase of several words",
        SecretKind.PASSWORD,
        r"\b(?:pass ?phrase|(?:seed|recovery) (?:phrase|words))\b[^.!?\n\d:=]{0,40}?(?:\s(?:is|was|are|ist|lautet)\b:?|\s?[:=])\s{1,2}"
        r"[\"'“]?(?P<value>[^\W\d_]{2,20}(?:[ -][^\W\d_]{2,20}){2,24}+)",
        ("phrase", "recovery words", "seed words"),
        values.passphrase_span,
    ),
    SecretPattern(
        "password beside its word",
        SecretKind.PASSWORD,
        rf"(?<![\w-]){PASSWORD}{NO_COMPOUND}{TO}[,|?]?\s{{1,4}}(?:[|(]\s?)?{VALUE}",
        PASSWORD_HINTS,
        values.password_after_word_span,
    ),
    SecretPattern(
        "password on the line below its word",
        SecretKind.PASSWORD,
        rf"(?m:^)[ \t#>*|-]{{0,6}}(?:{OWNERS}\s)?{PASSWORD}[ \t]?:?[ \t]*\n\n?[ \t>*-]{{0,4}}{VALUE}(?=[ \t]*(?:\n|\Z))",
        PASSWORD_HINTS,
        values.password_span,
    ),
    SecretPattern(
        "password between tags",
        SecretKind.PASSWORD,
        rf"<(?:[\w-]{{1,20}}[-_:])?(?:{PASSWORD}|pass)[^<>\n]{{0,60}}>(?P<value>[^<>\s]{{3,100}}+)</",
        PASSWORD_HINTS,
        values.command_password_span,
    ),
    SecretPattern(
        "password before its word",
        SecretKind.PASSWORD,
        rf"(?<![^\s\"'`(«“„]){_QUOTED}{_WORD_VALUE}{_UNQUOTED}(?:,|\s?[–—-])?\s{{1,2}}(?:(?:that'?s|that is|das ist|eso es|c'est|è|é|dat is|{IS})\s{{1,2}}(?:\w{{2,9}}\s)??)"
        rf"(?P<sure>(?:{OWNERS}\s{{1,2}}){{1,3}})(?P<far>(?:[\w'-]{{1,15}}\s){{0,2}}?)(?:{PASSWORD}|{WEAK_PASSWORD})(?!\w){NO_COMPOUND}",
        (*PASSWORD_HINTS, *WEAK_PASSWORD_HINTS),
        values.reversed_password_span,
    ),
    SecretPattern(
        "password that is put to use",
        SecretKind.PASSWORD,
        rf"(?<![^\s\"'`(«“„])(?P<sure>{USE}\s)?(?:[\w'-]{{1,10}}\s)?{_QUOTED}{_WORD_VALUE}{_UNQUOTED}\s{{1,2}}{AS}\s{{1,2}}(?:{OWNERS}\s{{1,2}}){{0,3}}(?P<far>(?:[\w'-]{{1,15}}\s){{0,3}}?)"
        rf"(?:{PASSWORD}|{WEAK_PASSWORD})(?!\w){NO_COMPOUND}",
        (*PASSWORD_HINTS, *WEAK_PASSWORD_HINTS),
        values.reversed_password_span,
    ),
    SecretPattern(
        "password after a user",
        SecretKind.PASSWORD,
        rf"\b(?:users?|usernames?|logins?|accounts?|benutzer\w{{0,8}}|usuario|utilisateur|utente|usuário|gebruiker)\b[^.!?\n]{{0,60}}?(?<![\w-])(?:pass|pw|pwd)(?:\s?[:=])?\s{{1,3}}{VALUE}",
        ("pass", "pw"),
        values.password_after_word_span,
    ),
    SecretPattern(
        "password behind a name",
        SecretKind.PASSWORD,
        rf"(?<![\w-]){WEAK_PASSWORD}{_GAP}(?:\s{{1,3}}{IS}:?|\s?[:=])\s{{1,3}}[^\s/|,;]{{2,60}}(?:\s?[/|,;]\s?|\s(?:and|with|und|mit|y|con|et|avec|e|com|en|met)\s){VALUE}",
        WEAK_PASSWORD_HINTS,
        values.password_after_word_span,
    ),
    SecretSentencePattern(
        "key of a network",
        SecretKind.PASSWORD,
        (rf"(?<![\w-]){NETWORK}(?![\w])",),
        rf"(?<![\w-])(?:key|schlüssel|llave|clave|cl[ée]|clef|chiave|chave|sleutel)(?:(?:\s[^\W\d]{{2,10}}){{0,2}}?(?:\s{IS}:?|\s?[:=]))?\s{{1,2}}(?P<value>[^\s\"'`<>“”„«»|]{{6,100}}+)",
        ("key", "schlüssel", "llave", "clave", "clé", "cle", "chiave", "chave", "sleutel"),
        values.password_after_word_span,
    ),
    SecretPattern(
        "password after the name of a network",
        SecretKind.PASSWORD,
        rf"(?<![\w-])(?:wi-?fi|wlan|hotspot|router|red wifi|rede wifi)\s?[:=]\s{{1,3}}{VALUE}",
        ("wi-fi", "wifi", "wlan", "hotspot", "router"),
        values.password_after_word_span,
    ),
    SecretPattern(
        "word that may mean a password",
        SecretKind.PASSWORD,
        rf"(?<![\w-]){WEAK_PASSWORD}{_GAP}(?:\s{{1,3}}{IS}:?|\s?[:=])\s{{1,3}}{VALUE}",
        WEAK_PASSWORD_HINTS,
        values.password_after_word_span,
    ),
)

_KEY_PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    SecretPattern(
        "token that is assigned",
        SecretKind.TOKEN,
        rf"{_START}{_TOKEN}(?P<link>{ASSIGNS}){VALUE}",
        ("key", "token", "secret"),
        values.token_span,
    ),
    SecretPattern(
        "token in a sentence",
        SecretKind.TOKEN,
        rf"(?<![\w-])(?:{_TOKEN}|{KEY}){_GAP}(?:\s{{1,2}}{IS}[:,]?|\s?:)\s{{1,2}}{VALUE}",
        _KEY_HINTS,
        values.token_span,
    ),
    SecretSentencePattern(
        "key of a private wallet",
        SecretKind.PRIVATE_KEY,
        (r"private key|privater? schlüssel|clave privada|clé privée|chiave privata|chave privada|privésleutel|wallet",),
        r"(?<!\w)(?P<value>(?:0x)?[0-9a-f]{64})(?!\w)",
        ("key", "schlüssel", "clave", "clé", "chiave", "chave", "sleutel", "wallet"),
    ),
    SecretSentencePattern(
        "code that replaces a password",
        SecretKind.CODE,
        (rf"(?<![\w-])(?:{SPARE_CODES})(?![\w])",),
        r"(?<![\w-])(?P<value>[a-z0-9]{2,20}(?:-[a-z0-9]{2,20}){0,5}+)(?![\w-])",
        ("code", "codi", "códi"),
        values.high_entropy_span,
    ),
    SecretSentencePattern(
        "random word in a sentence about a key",
        SecretKind.TOKEN,
        (rf"(?<![\w-])(?:x-)?(?:{KEY}|key|keys|vault|emergency kit)(?![\w])",),
        r"(?<![^\s\"'`(«“„:=|])(?P<value>[A-Za-z0-9_\-+/=.~]{14,300}+)",
        _KEY_HINTS,
        values.high_entropy_span,
        NO_SECRET_KEY,
    ),
)

_NUMBER_PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    SecretPattern(
        "card number",
        SecretKind.CARD,
        r"(?<![\w.,+/-])(?P<value>\d{4}[ .·–-]{1,2}\d{4}[ .·–-]{1,2}\d{4}[ .·–-]{1,2}\d{1,7}|3\d{3}[ .·–-]{1,2}\d{6}[ .·–-]{1,2}\d{5}|\d{13,19})"
        r"(?![\w/-]|\.\d)",
        _DIGIT_HINTS,
        numbers.card_span,
    ),
    SecretPattern(
        "number beside a card's word",
        SecretKind.CARD,
        rf"{CARD}[^\n]{{0,40}}?(?<![\w.-])(?P<value>\d{{4}}(?P<sep>[ .-])\d{{4}}(?P=sep)\d{{4}}(?P=sep)\d{{4}})(?![\w-])",
        ("card", "karte", "tarjeta", "carte", "carta", "cartão", "visa", "amex", "pas"),
        any_value_span,
    ),
    SecretPattern(
        "iban",
        SecretKind.IBAN,
        r"(?<![A-Za-z0-9])(?P<value>[a-z]{2}\d{2}(?:[ .–-]{0,2}[a-z0-9]){11,30}+)",
        _DIGIT_HINTS,
        numbers.iban_span,
    ),
    SecretPattern(
        "social security number",
        SecretKind.SSN,
        r"(?<![\w-])(?:ssn|social(?: security)?(?: (?:number|no\.?|#))?)[^.!?\n\d:=#]{0,30}?[\s:#=]{1,3}"
        r"(?P<value>\d{3}([ .-]?)\d{2}\2\d{4})(?![\w-])",
        ("ssn", "social"),
        any_value_span,
    ),
    SecretPattern(
        "identity number beside its word",
        SecretKind.IDENTITY,
        rf"{IDENTITY}[\"'*)]{{0,2}}(?:(?P<gap>[^.!?\n;:=\d]{{0,40}}?)(?:\s{{1,2}}{IS}:?|\s?[:=#])\s{{0,2}}|\s?(?:\(?(?:no|nr|num|núm|number|nummer|num[ée]ro|número|n)\b[.°º]?:?\)?\s{{0,2}})?\(?)(?P<value>[A-Z]{{2}} ?\d\d ?\d\d ?\d\d ?[A-D]\b|(?=[A-Z-]{{0,8}}[0-9])[A-Z0-9]{{1,16}}(?:[ ./-](?:(?=[A-Z]{{0,5}}\d)[A-Z0-9]{{1,10}}|(?-i:[A-Z]{{1,3}}))(?=[\s./,;-]|$|[^\w])){{0,6}}+)(?![\w])",
        IDENTITY_HINTS,
        numbers.identity_number_span,
    ),
    SecretPattern(
        "italian tax code",
        SecretKind.IDENTITY,
        r"(?<![\w-])(?P<value>[a-z]{6}\d{2}[abcdehlmprst]\d{2}[a-z]\d{3}[a-z])(?![\w-])",
        _DIGIT_HINTS,
        numbers.codice_fiscale_span,
    ),
    SecretPattern(
        "brazilian tax number",
        SecretKind.IDENTITY,
        r"(?<![\w.-])(?P<value>\d{3}\.\d{3}\.\d{3}-\d{2})(?![\w-])",
        _DIGIT_HINTS,
        numbers.cpf_span,
    ),
)

_SEED_WORDS = r"[a-z]{3,8}(?:[ ,]\s?[a-z]{3,8}){11,23}+"
_SEED_PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    SecretPattern(
        "seed phrase",
        SecretKind.SEED,
        rf"(?:(?m:^)[ \t>]{{0,4}}|[:\"'“`]\s?|\bis |\bist |\best )(?P<value>{_SEED_WORDS})(?=[\"'”`.]?\s*(?:\n|\Z))",
        (),
        values.seed_span,
        0,
    ),
    SecretPattern(
        "seed phrase in numbered words",
        SecretKind.SEED,
        r"(?<!\w)(?P<value>(?:1[.):]\s?[a-z]{3,8})(?:[\s,]{1,3}\d{1,2}[.):]\s?[a-z]{3,8}){11,23}+)(?!\w)",
        (),
        values.seed_span,
        0,
    ),
    SecretSentencePattern(
        "words in a sentence about a wallet",
        SecretKind.SEED,
        (SEED,),
        rf"(?<![\w])(?P<value>{_SEED_WORDS})(?!\w)",
        ("seed", "recovery", "backup", "wallet", "mnemonic", "wieder", "récup", "recup", "herstel", "semilla"),
        values.announced_seed_span,
    ),
)

_LIKELY_PASSWORD = SecretSentencePattern(
    "word like a password in a sentence about one",
    SecretKind.PASSWORD,
    (rf"(?<![\w-])(?:{PASSWORD})(?![\w]){NO_COMPOUND}",),
    r"(?<![^\s\"'`(«“„:=|>])(?P<value>[^\s\"'`<>“”„«»|]{6,100}+)",
    PASSWORD_HINTS,
    values.likely_password_span,
    PROGRAM,
    is_far_reaching=True,
)

_RANDOM_WORD = replace(
    _LIKELY_PASSWORD,
    name="random word in a sentence about passwords",
    topics=(rf"(?<![\w-])(?:{PASSWORD})(?![\w])",),
    check=values.random_password_span,
)

_DIGIT_KEY = SecretSentencePattern(
    "key of many digits",
    SecretKind.TOKEN,
    (rf"(?<![\w-])(?:key|keys|{KEY}|{NETWORK}|schlüssel|clave|llave|cl[ée]f?|chiave|chave|sleutel|bitlocker)(?![\w])",),
    r"(?<![\w-])(?P<value>\d(?:[ -]?\d){15,63}+)(?![\w-])",
    (*_KEY_HINTS, "bitlocker"),
    values.long_digits_span,
    NO_SECRET_KEY,
)

_UNMISTAKABLE = SecretPattern(
    "word that looks like nothing but a password",
    SecretKind.PASSWORD,
    r"(?<![^\s\"'`(«“„:,])"
    r"(?P<value>[^\W_][\w-]{0,40}[!#$%&*]{1,3}[\w!#$%&*+-]{1,40}+)(?![^\s\"'`)»”“.,;:?])",
    ("!", "#", "$", "%", "&", "*"),
    values.unmistakable_password_span,
)

PATTERNS: tuple[SecretPattern | SecretSentencePattern, ...] = (
    *PROVIDER_PATTERNS,
    *COMMAND_PATTERNS,
    *_SEED_PATTERNS,
    *ANSWER_PATTERNS,
    *_PASSWORD_PATTERNS,
    *_KEY_PATTERNS,
    *CODE_PATTERNS,
    *_NUMBER_PATTERNS,
    _LIKELY_PASSWORD,
    _RANDOM_WORD,
    ACCESS_WORD,
    _DIGIT_KEY,
    _UNMISTAKABLE,
)
