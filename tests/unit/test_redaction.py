"""Secrets are masked, and nothing else is."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterword.privacy.normalisation import plain_forms
from afterword.privacy.redaction import MASK, mask_secrets
from afterword.privacy.secret_kinds import SecretKind
from afterword.privacy.secret_patterns import PATTERNS
from fresh_secret_cases import fresh_secret_cases, later_secret_cases
from secret_cases import secret_cases

HEX = "0123456789abcdef"

# (pattern, text before, secret, text after): the secret goes, everything else stays.
SECRETS = [
    (
        "private key block",
        "see ",
        f"-----BEGIN RSA PRIVATE KEY-----\n{'aB3/' * 20}\n-----END RSA PRIVATE KEY-----",
        " ok",
    ),
    ("private key block", "cut ", f"-----BEGIN PRIVATE KEY-----\n{'aB3/' * 16}", "\n… left out"),
    ("webhook", "post to https://hooks.slack.com/services/", "T000/B000/XXXXabcd1234", " please"),
    ("webhook", "https://discord.com/api/webhooks/", "123456/abcDEF-ghi_jkl", ""),
    ("anthropic", "key sk-ant: ", "sk-ant-api03-abcDEF123456789xyz", "!"),
    ("openai", "use ", "sk-proj-abcDEF123456ghiJKL789", "."),
    ("google", "maps ", "AIza" + "Sy3" * 12, ","),
    ("google oauth", "it was ", "GOCSPX-1234567890abcdefGHIJ", ""),
    ("aws", "id ", "AKIAIOSFODNN7EXAMPLE", " here"),
    ("github", "push with ", "ghp_" + "a1B2" * 9, ""),
    ("github", "or ", "github_pat_11ABCDEFG0" + "x9" * 20, ""),
    ("gitlab", "clone with ", "glpat-abcdEF12345ghiJKL678", ""),
    ("slack", "bot ", "xoxb-123456789012-abcdefABCDEF", ""),
    ("stripe", "charge by ", "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc", ""),
    ("hugging face", "pull ", "hf_" + "aB1" * 12, ""),
    ("npm", "publish ", "npm_" + "aB1" * 12, ""),
    ("pypi", "the old one was ", "pypi-AgEIcHlwaS5vcmcCJDk0", ", gone"),
    ("sendgrid", "mail ", "SG.abcdefghij1234567890.ABCDEFGHIJ1234567890abcdefghij", ""),
    ("twilio", "call ", "SK" + HEX * 2, ""),
    ("others", "deploy ", "dop_v1_" + HEX * 4, ""),
    ("telegram bot token", "bot ", "123456789:AAabcdefghijklmnopqrstuvwxyz0123456", ""),
    ("jwt", "cookie ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijk", ";"),
    ("url with a password", "postgresql://app:", "not-a-word-77", "@localhost:5432/app"),
    ("signature in a url", "https://x.blob.core.windows.net/c?sv=2022&sig=", "abcDEF123%2Fabcdefghij%3D", ""),
    ("authorization header", "Authorization: Bearer ", "abcdef1234567890abcdef", ""),
    ("authorization header", '"Authorization": "Basic ', "dXNlcjpwYXNzd29yZA==", '"'),
    ("azure connection string", "AccountName=x;AccountKey=", "abcdefghij0123456789ABCDEFGHIJ==", ";End"),
    ("option of a command", "mysql --password=", "hunter2", " -u root"),
    ("credentials of curl", "curl -u admin:", "hunter22", " https://x"),
    ("password that is assigned", "DB_PASSWORD=", "s3cr3tvalue", "\n"),
    ("password that is assigned", 'json {"password": "', "hunter2", '", "user": "x"}'),
    ("password that is assigned", "Password: ", "sunshine", "\nnext line"),
    ("password that is assigned", 'wifi password: "', "my dog rex", '"'),
    ("password in a sentence", "my password is ", "sunshine", ". I like it"),
    ("password in a sentence", "Password for the new wifi if your devices ask is ", "crossing-FAKE-12-bus", ", and"),
    ("password beside its word", "change the password to ", "Blau4Kraut", " please"),
    ("password in a sentence", "Passwort für das WLAN: ", "Sommer2024", ""),
    ("word like a password in a sentence about access", "my laptop unlocks with ", "Hedgehog42", "!"),
    ("key of a network", "WLAN heißt Birkenweg, Schlüssel dazu ist ", "regenbogen-2020", ""),
    ("number in a sentence about a code or a lock", "you get into the building with ", "5580", ""),
    ("password in a sentence", "la clave del wifi es ", "girasol7", ""),
    ("password in a sentence", "the wifi key is ", "abcd1234efgh", "."),
    ("password that is assigned", "DB_PASS=", "hunter2", "\n"),
    ("password in a sentence", "Mein Passwort lautet ", "Sonnenblume", "."),
    ("password in a sentence", "mi contraseña es ", "girasol99", ""),
    ("password in a sentence", "mon mot de passe est ", "tournesol", "."),
    ("password in a sentence", "minha senha é ", "girassol7", " ok"),
    ("password in a sentence", "la mia password è ", "girasole88", ""),
    ("passphrase of several words", "the passphrase is ", "correct horse battery staple", "."),
    ("password beside its word", "Netz KI-Gast, Passwort ", "Krabbenbrot-FAKE-0000", ". Druck das"),
    ("token that is assigned", "AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLE1", ""),
    ("token that is assigned", 'api_key = "', "abc123def456ghi", '"'),
    ("token that is assigned", "AZURE_OPENAI_API_KEY: ", HEX * 2, ""),
    ("token in a sentence", "API key for staging: ", "9f8e7d6c5b4a3f2e", ""),
    ("token in a sentence", "the API key for staging is ", "9f8e7d6c5b4a3f2e", " for now"),
    ("pin", "my PIN is ", "4711", "."),
    ("pin", "PIN: ", "123456", ""),
    ("number in a sentence about a one-time code", "your verification code is ", "123456", ""),
    ("number in a sentence about a one-time code", "TAN ", "483920", " please"),
    ("one-time code before its word", "", "123456", " is your Google verification code"),
    ("number in a sentence about a code or a lock", "the alarm code is ", "4711", ""),
    (
        "number in a sentence about a code or a lock",
        "the lockbox at the back door, code is ",
        "0000-FAKE-4471",
        ", they",
    ),
    ("number in a sentence about a code or a lock", "Code für die Haustür: ", "4711", ""),
    ("number in a sentence about a code or a lock", "Türcode ", "4711", ""),
    ("number in a sentence about a code or a lock", "der Code fürn Hintereingang ist ", "4471#", ""),
    ("identity number beside its word", "my NIF is ", "287654321", " for the tax office"),
    ("identity number beside its word", "my passport number is ", "X1234567", " for the trip"),
    ("identity number beside its word", "Die Steuernummer lautet ", "12 345/6789", " und gilt noch"),
    ("number in a sentence about a code or a lock", "el código de la alarma es ", "4711", ""),
    ("number in a sentence about a code or a lock", "le code de la porte est ", "47B11", ""),
    ("number in a sentence about a code or a lock", "il codice dell'allarme è ", "4711", ""),
    ("number in a sentence about a code or a lock", "the safe combination is ", "12-34-56", ""),
    ("security code of a card", "CVC ", "123", "."),
    ("security code of a card", "the three digits on the back of my card are ", "737", ""),
    ("security code behind the number of its card", "[redacted: card number], 06/29, ", "814", " ok"),
    ("answer to a security question", "The answer to the security question is ", "Mrs Wiggins", "."),
    ("answer that an account asks for", "my maiden name, which the bank asks for, is ", "Hollingsworth", ""),
    ("key of many digits", "the BitLocker key: ", "438251-209341-110253-653840-227711-092345-555012-418263", ""),
    ("word like a password in a sentence about access", "you'll need ", "Z00keeper!", " to open the spreadsheet"),
    ("number in a sentence about a code or a lock", "c'est toujours ", "4471", " pour la piscine"),
    ("number in a sentence about a code or a lock", "sie kommen mit ", "2794", " durchs Hoftor"),
    ("number in a sentence about a code or a lock", "the bank texted me ", "883014", ", where do I put it?"),
    ("card number", "paid by ", "4111 1111 1111 1111", " yesterday"),
    ("card number", "paid by ", "378282246310005", ""),
    ("number beside a card's word", "Do you need my card? It's ", "4000 0000 0000 0000", " FAKE"),
    ("iban", "to ", "DE89 3704 0044 0532 0130 00", " PLEASE"),
    ("iban", "to ", "gb82west12345698765432", "."),
    ("social security number", "SSN: ", "123-45-6789", ""),
]

NEAR_MISSES = [
    "commit 3f2a9c1b4d5e6f708192a3b4c5d6e7f8091a2b3c is the fix",
    "the session 123e4567-e89b-12d3-a456-426614174000",
    "order number 1234567890123456 and 4000123412341235",
    "call me at +49 170 1234567 or 555-123-4567",
    "a password reset email, a password-protected file2, a password manager 1Password",
    "the token expired, the token limit is 128000, max_tokens: 4096",
    "a secret recipe, the secret to a good life is 8hours",
    "on 2026-05-01 at 12:00, 1700000000000 milliseconds",
    "4000 0000 0000 0000",
    "$1,234.56 and 1200 EUR",
    "The fee at the Tin Shed is 1100.",
    "The rent of the garage is 1100.",
    "the password is wrong, the password is too short! the password was changed in 2024",
    "password must be at least 8 characters; password: required; password: str; password sha256 hash",
    'password = request.form["password"]; password=os.environ["DB_PASSWORD"]; token = get_token()',
    'password: "Enter your password"',
    "your password is <password>; password: ${DB_PASSWORD}; password: '***'; password: your_password",
    "error code is 500, zip code 90210, country code is 49, the alarm shows error code 5012",
    "pin 3 of the connector, pin 2024 posts, Die PIN ist abgelaufen",
    "IBAN DE00 1234, DE89 3704 0044 0532 0130 01",
    "gpt-4o-mini-2024-07-18 token usage is 12000",
    "the passphrase is stored in the vault and required when you log in",
    "bearer of bad news, PASS: test_foo1, a password policy: 12characters",
    "Reset the password for user: lena77, the password for the account is managed",
    "PRIMARY KEY: id1234567, public key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
    "http://localhost:8080/x, mailto:a@b.example, git@github.com:a/b.git",
    "files that start with -----BEGIN PRIVATE KEY----- are keys",
    "I typed 4500 words on the laptop, the door is 2040 mm high, the gate closes at 2200",
    "we opened the shop in 2019, the app opens 1200 files, my phone is 0161 496 0018",
    "my locker is number 318, our code has 48210 lines, the laptop code-named T14 is 1450 euros",
    "outline: 2px solid #51a7e8; redis.setex(lockout_key, 3600, 1); pip install flask-login==0.6.2",
    "mein Passwort ist falsch, mi contraseña es incorrecta, mon mot de passe est expiré",
    "sk-loading-indicator-container-wide, AKIA, hf_hub_download_with_a_long_function_name",
]

SHORT = st.sampled_from([before + secret + after for _, before, secret, after in SECRETS] + NEAR_MISSES)
HOSTILE = [
    *(
        "-----BEGIN PRIVATE KEY-----",
        "sk-a1",
        "eyJaaaaaaaaaa.",
        "a://b:c@",
        "password for the ",
        "password is ",
        'password: "',
    ),
    *("token is ", "a_secret_key_", "1", "4111 1111 1111 111", "DE89 ", "pin 1 ", "code alarm ", "alarm code ", "1-"),
    *(
        "123456 is your a ",
        "safe combination is 1-",
        "passphrase is correct horse ",
        "curl -u a ",
        "card 4111 ",
        "= ",
        "\\",
    ),
    *("[redacted: password]", "password is [redacted: password] ", "my password is hunter{} ", "alarm code is 47{} "),
]


@pytest.mark.parametrize(("name", "before", "secret", "after"), SECRETS)
def test_a_secret_is_masked_and_nothing_around_it(name: str, before: str, secret: str, after: str) -> None:
    found, counts = mask_secrets(before + secret + after)
    assert re.fullmatch(re.escape(before) + MASK.pattern + re.escape(after), found), found
    assert sum(counts.values()) == 1
    spans = [span for pattern in PATTERNS if pattern.name == name for span in pattern.spans(before + secret + after)]
    assert (len(before), len(before) + len(secret)) in spans


def test_every_pattern_has_a_case() -> None:
    """A pattern that matches neither an example here nor a generated case is not needed."""
    texts = [before + secret + after for _, before, secret, after in SECRETS]
    cases = [*secret_cases(), *fresh_secret_cases(), *later_secret_cases()]
    texts += [form.text for case in cases for form in plain_forms(case.text)]
    unused = {pattern.name for pattern in PATTERNS if not any(next(iter(pattern.spans(text)), None) for text in texts)}
    assert unused == set()


@pytest.mark.parametrize("text", NEAR_MISSES)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert mask_secrets(text) == (text, Counter())


def test_only_the_kinds_that_are_asked_for_are_masked() -> None:
    text = "my password is hunter2 and my PIN is 4711"
    assert mask_secrets(text, {SecretKind.CODE}) == (
        "my password is hunter2 and my PIN is [redacted: code]",
        {"code": 1},
    )
    assert mask_secrets(text, ()) == (text, {})


def test_a_repeated_secret_is_masked_without_its_word() -> None:
    assert "hunter2" not in mask_secrets("my password is hunter2. No, hunter2 with a small h: hunter2!")[0]


@given(st.lists(SHORT | st.text(max_size=20), max_size=6), st.sampled_from([" ", "\n", "", ". "]))
def test_masking_twice_is_masking_once(parts: list[str], between: str) -> None:
    once, _ = mask_secrets(between.join(parts))
    assert mask_secrets(once) == (once, Counter())


@given(st.text(alphabet=st.characters(exclude_categories=["Nd", "Cs"], exclude_characters=":=@")))
def test_a_text_without_digits_and_signs_is_never_touched(text: str) -> None:
    """What tells a secret in such a text is a word, and no word that is drawn at random is one."""
    assert mask_secrets(text) == (text, Counter())


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_repetitions_are_read_to_their_end(unit: str) -> None:
    """A pattern whose cost is not in proportion would hold the tests up for hours."""
    text = "".join(unit.format(number) if "{}" in unit else unit for number in range(60_000 // len(unit)))
    found, counts = mask_secrets(text)
    assert sum(counts.values()) or found == text


def test_real_conversations_lose_their_secrets_and_nothing_else(shared: Path) -> None:
    """Of every message of the scenarios only those change that hold what the gold calls a secret."""
    changed = set()
    for path in sorted((shared / "data" / "scenarios").glob("*.json")):
        scenario = json.loads(path.read_text(encoding="utf-8"))
        not_facts = [one for one in scenario["gold"]["not_facts"] if one["why"] == "secret"]
        words = [word for one in not_facts for group in one["keywords"] for word in group]
        secrets = [word.removesuffix("|CVC|card number") for word in words]  # those stand beside the number
        for session in scenario["sessions"]:
            for message in session["messages"]:
                text = str(message.get("content") or "")
                found, counts = mask_secrets(text)
                if counts:
                    changed.add(session["session_id"])
                    assert any(re.search(secret, text) for secret in secrets), session["session_id"]
                assert not any(re.search(secret, found) for secret in secrets), session["session_id"]
    assert changed == {
        *("tarrant-2026-02-11", "tollbooth-2025-11-11", "wiebke-2025-11-24", "quillfmt-2026-01-20"),
        *("fjordlys-2026-01-15", "akuffo-2026-01-22"),
    }
