"""Generated texts with planted secrets, by class and language, and harmless texts that resemble them.

The sentences are written the way that people write them and use none of the package's tables. The values are random,
from a fixed seed, so that two runs measure the same cases.
"""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 20_260_301


@dataclass(frozen=True, slots=True)
class SecretCase:
    """A conversation of (speaker, text) pairs in which `secret` must be masked wherever it stands."""

    category: str
    language: str
    turns: tuple[tuple[str, str], ...]
    secret: str

    @property
    def text(self) -> str:
        """The words of all turns."""
        return "\n".join(text for _, text in self.turns)


@dataclass(frozen=True, slots=True)
class HarmlessCase:
    """A text without a secret, which must stay as it is."""

    category: str
    text: str


Value = Callable[[random.Random], str]

_STEMS = (
    "Krabbe",
    "Zebra",
    "Tulpe",
    "Lisboa",
    "Piano",
    "Falke",
    "Roble",
    "Montag",
    "Quarz",
    "Vienna",
    "Orchid",
    "Pixel",
)
_PLAIN = ("sunshine", "butterfly", "girasol", "tournesol", "Fledermaus", "girassol", "tartaruga", "zonnebloem")
_SEED_WORDS = (
    "abandon ability absent acid acoustic actor adapt agent alley amused anchor apple arctic armor artist atom autumn "
    "badge balcony bamboo basket beach bicycle blanket bottle brick bronze cabin cactus camera canal carbon castle cherry "
    "circle clinic coconut copper coral cradle crystal cushion dawn debris desert diesel dolphin dragon eagle elbow ember "
    "engine escape fabric falcon fatigue fever fiction galaxy garlic ginger glove goose gravity hammer harvest hazard hockey "
    "humor hybrid icon impulse inject ivory jacket jungle kangaroo kidney ladder lemon lizard lunar magnet mango marble "
    "meadow mimic mosquito nephew noodle nuclear oak olive onion orbit oyster panda parrot pelican pepper picnic puzzle "
    "quantum rabbit raccoon ribbon ritual rocket saddle salmon sausage silk slogan spider stadium sugar tennis tiger tornado "
    "tunnel turtle umbrella vacuum velvet violin volcano walnut weasel whale wisdom wolf yellow zebra zone"
).split()


def _mixed(chance: random.Random) -> str:
    return f"{chance.choice(_STEMS)}{chance.randint(10, 9999)}{chance.choice(['', '!', 'x', '#'])}"


def _hyphened(chance: random.Random) -> str:
    return f"{chance.choice(_STEMS)}-{chance.randint(10, 99)}-{chance.choice(_STEMS).lower()}"


def _random_signs(chance: random.Random) -> str:
    signs = string.ascii_letters + string.digits + "$%&!+=#"
    return chance.choice(string.ascii_letters) + "".join(chance.choices(signs, k=9)) + str(chance.randint(0, 9))


def _leet(chance: random.Random) -> str:
    return chance.choice(["tr0ub4d0r", "p1ngu1n", "m0nt4gn3", "schn33m4nn", "g4t1t0s"]) + chance.choice("!$&") + "3"


def _plain(chance: random.Random) -> str:
    return chance.choice(_PLAIN)


def _quoted_phrase(chance: random.Random) -> str:
    return f"{chance.choice(_SEED_WORDS)} {chance.choice(_SEED_WORDS)} {chance.choice(_SEED_WORDS)}"


def _digits(count: int) -> Value:
    return lambda chance: str(chance.randint(1, 9)) + "".join(chance.choices(string.digits, k=count - 1))


def _letters(alphabet: str, count: int, prefix: str = "") -> Value:
    # A digit always stands among them, as it practically always does in a key of this length.
    return lambda chance: (
        prefix + "".join(chance.choices(alphabet, k=count - 2)) + chance.choice("23456789") + chance.choice(alphabet)
    )


_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"
PASSWORDS: tuple[Value, ...] = (_mixed, _hyphened, _random_signs, _leet)

# Written by language: {v} is the secret.
FORWARD = {
    "en": (
        "my password is {v}",
        "The wifi password is {v}, in case the guests ask.",
        "Password for the router: {v}",
        "The password of my mail account is {v}.",
        "login: lena / {v} - that's the password for the shop. password {v}",
        "I changed my password to {v} yesterday.",
        "The new password will be {v} from Monday.",
        "passphrase: {v}",
        "PW: {v}",
        "pwd = {v}",
        "My Netflix password's {v}",
        "the WiFi key is {v}",
        "The password (for the printer) is {v}.",
        "Our network is called Fox and the password is now {v}",
        "the password has been set to {v}",
        "My login is lena and my password {v}",
        "The password you need is {v}",
        "Please remember my password, it's {v}",
    ),
    "de": (
        "mein Passwort ist {v}",
        "Das WLAN-Passwort lautet {v}.",
        "Das Kennwort für den Router: {v}",
        "Passwort fürs WLAN ist {v}",
        "Das Passwort von meinem Mailkonto ist {v}.",
        "Ich habe mein Passwort auf {v} geändert.",
        "Das neue Passwort ist jetzt {v}",
        "Der WLAN-Schlüssel ist {v}",
        "Zugangsdaten: lena / {v}, also Passwort {v}",
        "Unser Netz heißt Fuchs, das Passwort dazu ist {v}",
        "Das Codewort fürs Telefonbanking ist {v}",
        "Die Passphrase lautet {v}",
        "Netzwerkschlüssel: {v}",
    ),
    "es": (
        "mi contraseña es {v}",
        "la clave es {v}",
        "La clave del wifi es {v}.",
        "Contraseña para el router: {v}",
        "la contraseña de mi correo es {v}",
        "He cambiado la contraseña a {v}",
        "La nueva contraseña es ahora {v}",
        "mi clave de acceso: {v}",
        "El password es {v}",
        "La contraseña del banco sigue siendo {v}",
        "Usuario lena, contraseña {v}",
    ),
    "fr": (
        "mon mot de passe est {v}",
        "mdp : {v}",
        "Le mdp du wifi c'est {v}",
        "Le mot de passe du routeur est {v}.",
        "Mot de passe pour la boîte mail : {v}",
        "J'ai changé mon mot de passe en {v}",
        "Le nouveau mot de passe est désormais {v}",
        "la clé wifi est {v}",
        "La clé du wifi : {v}",
        "Identifiant lena, mot de passe {v}",
    ),
    "it": (
        "la mia password è {v}",
        "La password del wifi è {v}.",
        "Password per il router: {v}",
        "la parola d'ordine è {v}",
        "Ho cambiato la password in {v}",
        "La nuova password è ora {v}",
        "La chiave del wifi è {v}",
        "utente lena, password {v}",
        "La parola chiave della banca è {v}",
    ),
    "pt": (
        "minha senha é {v}",
        "a minha palavra-passe é {v}",
        "A senha do wifi é {v}.",
        "Senha para o roteador: {v}",
        "Mudei a minha senha para {v}",
        "A nova senha agora é {v}",
        "a senha do meu e-mail é {v}",
        "usuário lena, senha {v}",
        "A chave do wifi é {v}",
    ),
    "nl": (
        "mijn wachtwoord is {v}",
        "Het wifi-wachtwoord is {v}.",
        "Wachtwoord voor de router: {v}",
        "Het wachtwoord van mijn mail is {v}",
        "Ik heb mijn wachtwoord veranderd in {v}",
        "Het nieuwe wachtwoord is nu {v}",
        "De wifi-sleutel is {v}",
        "gebruiker lena, wachtwoord {v}",
        "ww: {v}",
    ),
}
REVERSED = {
    "en": (
        "{v} is my password",
        "{v} is the password for the wifi.",
        "Use {v} as the password.",
        "Please set {v} as my new password",
        "Log in with {v} as password",
        "{v} - that's my password.",
        "I use {v} as my password everywhere",
    ),
    "de": (
        "{v} ist mein Passwort",
        "{v} ist das Passwort fürs WLAN.",
        "Nimm {v} als Passwort.",
        "Bitte {v} als neues Kennwort setzen",
        "{v} lautet mein Passwort",
    ),
    "es": (
        "{v} es mi contraseña",
        "{v} es la clave del wifi.",
        "Usa {v} como contraseña.",
        "Pon {v} como nueva clave",
    ),
    "fr": (
        "{v} est mon mot de passe",
        "{v} est le mot de passe du wifi.",
        "Utilise {v} comme mot de passe.",
        "{v}, c'est mon mot de passe",
    ),
    "it": (
        "{v} è la mia password",
        "{v} è la password del wifi.",
        "Usa {v} come password.",
        "Metti {v} come nuova password",
    ),
    "pt": (
        "{v} é a minha senha",
        "{v} é a senha do wifi.",
        "Usa {v} como senha.",
        "Coloque {v} como nova palavra-passe",
    ),
    "nl": (
        "{v} is mijn wachtwoord",
        "{v} is het wachtwoord van de wifi.",
        "Gebruik {v} als wachtwoord.",
        "Neem {v} als nieuw wachtwoord",
    ),
}
PLAIN_WORD = {
    "en": ("my password is {v}.", "Password: {v}", "Use {v} as the password.", "{v} is my wifi password."),
    "de": ("Mein Passwort lautet {v}.", "Passwort: {v}", "Nimm {v} als Passwort."),
    "es": ("Mi contraseña es {v}.", "Contraseña: {v}", "Usa {v} como contraseña."),
    "fr": ("Mon mot de passe est {v}.", "Mot de passe : {v}", "Utilise {v} comme mot de passe."),
    "it": ("La mia password è {v}.", "Password: {v}", "Usa {v} come password."),
    "pt": ("A minha senha é {v}.", "Senha: {v}", "Use {v} como senha."),
    "nl": ("Mijn wachtwoord is {v}.", "Wachtwoord: {v}", "Gebruik {v} als wachtwoord."),
}
MARKUP = (
    "my password is **{v}**",
    "**Password:** {v}",
    "**my password** is `{v}`",
    "The *password* is _{v}_.",
    "password (it's {v})",
    "my wifi password ({v}) is on the fridge",
    "- Password: `{v}`",
    "| password | {v} |",
    "# Password\n{v}",
    "Password:\n\n{v}",
    "<password>{v}</password>",
    "password -> {v}",
    "password => {v}",
    "password → {v}",
    "my password is: “{v}”",
    "my password is «{v}»",
    "> password: {v}",
    "```\npassword: {v}\n```",
    "~~old~~ new password: __{v}__",
    "MY PASSWORD IS {v}!!!",
    "my password  is   {v}",
    "my password is\n{v}",
    "user=lena;password={v};host=x",
    '{{"user": "lena", "password": "{v}"}}',
    "password='{v}'",
    "password\t{v}",
    "Mein **Passwort** lautet **{v}**",
    "mot de passe : *{v}*",
    "la **clave** es *{v}*",
)
COMMANDS = (
    "mysql -u root -p{v} shop",
    "mysql -uroot -p{v}",
    "mysqldump --user=root --password={v} db > x.sql",
    "sshpass -p {v} ssh lena@host.example",
    "sshpass -p '{v}' scp a b:",
    "ALTER USER lena IDENTIFIED BY '{v}';",
    "CREATE USER 'x'@'%' IDENTIFIED WITH mysql_native_password BY '{v}';",
    "CREATE ROLE lena WITH LOGIN PASSWORD '{v}';",
    "https://shop.example/login?user=lena&pass={v}",
    "https://shop.example/login?user=lena&pwd={v}&next=1",
    "http://x.example/?password={v}",
    "curl -u lena:{v} https://x.example",
    "curl --user lena:{v} https://x.example",
    "wget --password={v} ftp://x.example/a",
    "export DB_PASSWORD={v}",
    "export PGPASSWORD='{v}'",
    "PGPASSWORD={v} psql -h db",
    "redis-cli -a {v} ping",
    "psql postgresql://app:{v}@db.example:5432/app",
    "mongodb+srv://app:{v}@cluster0.example.net/db",
    "docker login -u lena -p {v}",
    "echo '{v}' | sudo -S apt update",
    "echo {v} | docker login --password-stdin",
    "openssl rsa -passin pass:{v} -in key.pem",
    "openssl enc -aes-256-cbc -k {v} -in a",
    "zip -P {v} a.zip a",
    "7z x -p{v} a.7z",
    "net use Z: \\\\srv\\share {v} /user:lena password {v}",
    "set password for lena = '{v}'",
    "smbclient //srv/share -U lena%{v}",
    "ldapsearch -D cn=admin -w {v} -b dc=x",
    "htpasswd -b .htpasswd lena {v}",
    "requirepass {v}",
    "Server=db;User Id=sa;Pwd={v};",
    "spring.datasource.password={v}",
    "machine x.example login lena password {v}",
    "ansible_become_pass: {v}",
    "MYSQL_ROOT_PASSWORD: {v}",
    "passwd: {v}",
    'login(user="lena", passwd="{v}")',
    "git clone https://lena:{v}@git.example/x.git",
)
PROVIDER_KEYS: dict[str, Value] = {
    "openai": _letters(_ALNUM, 48, "sk-proj-"),
    "anthropic": _letters(_ALNUM, 60, "sk-ant-api03-"),
    "google": _letters(_ALNUM, 35, "AIza"),
    "aws": _letters(string.ascii_uppercase + "234567", 16, "AKIA"),
    "github": _letters(_ALNUM, 36, "ghp_"),
    "github fine-grained": _letters(_ALNUM, 60, "github_pat_11AB"),
    "gitlab": _letters(_ALNUM, 20, "glpat-"),
    "slack": lambda chance: f"xoxb-{_digits(12)(chance)}-{_letters(_ALNUM, 24)(chance)}",
    "stripe": _letters(_ALNUM, 24, "sk_" + "live_"),
    "stripe restricted": _letters(_ALNUM, 24, "rk_" + "live_"),
    "hugging face": _letters(_ALNUM, 34, "hf_"),
    "npm": _letters(_ALNUM, 36, "npm_"),
    "pypi": _letters(_ALNUM, 60, "pypi-AgEIcHlwaS5vcmc"),
    "sendgrid": lambda chance: f"SG.{_letters(_ALNUM, 22)(chance)}.{_letters(_ALNUM, 43)(chance)}",
    "mailgun": _letters(_HEX, 32, "key-"),
    "mailchimp": lambda chance: _letters(_HEX, 32)(chance) + "-us12",
    "twilio": _letters(_HEX, 32, "SK"),
    "digitalocean": _letters(_HEX, 64, "dop_v1_"),
    "databricks": _letters(_HEX, 32, "dapi"),
    "shopify": _letters(_HEX, 32, "shpat_"),
    "groq": _letters(_ALNUM, 52, "gsk_"),
    "xai": _letters(_ALNUM, 70, "xai-"),
    "perplexity": _letters(_ALNUM, 48, "pplx-"),
    "replicate": _letters(_ALNUM, 37, "r8_"),
    "linear": _letters(_ALNUM, 40, "lin_api_"),
    "notion": _letters(_ALNUM, 46, "ntn_"),
    "airtable": lambda chance: f"pat{_letters(_ALNUM, 14)(chance)}.{_letters(_HEX, 64)(chance)}",
    "square": _letters(_ALNUM, 60, "EAAA"),
    "telegram": lambda chance: f"{_digits(10)(chance)}:AA{_letters(_ALNUM, 33)(chance)}",
    "discord": lambda chance: (
        f"M{_letters(_ALNUM, 25)(chance)}.G{_letters(_ALNUM, 5)(chance)}.{_letters(_ALNUM, 38)(chance)}"
    ),
    "vault": _letters(_ALNUM, 90, "hvs."),
    "new relic": _letters(string.ascii_uppercase + string.digits, 27, "NRAK-"),
    "grafana": _letters(_ALNUM, 40, "glsa_"),
    "atlassian": _letters(_ALNUM, 180, "ATATT3xFfGF0"),
    "doppler": _letters(_ALNUM, 43, "dp.st.prd."),
    "supabase": _letters(_HEX, 40, "sbp_"),
    "planetscale": _letters(_ALNUM, 43, "pscale_tkn_"),
    "cloudflare origin": lambda chance: f"v1.0-{_letters(_HEX, 24)(chance)}-{_letters(_HEX, 146)(chance)}",
    "tailscale": _letters(_ALNUM, 30, "tskey-auth-k"),
    "okta-like jwt": lambda chance: (
        f"eyJhbGciOiJIUzI1NiJ9.eyJ{_letters(_ALNUM, 40)(chance)}.{_letters(_ALNUM, 43)(chance)}"
    ),
    "postman": lambda chance: f"PMAK-{_letters(_HEX, 24)(chance)}-{_letters(_HEX, 34)(chance)}",
    "rubygems": _letters(_HEX, 48, "rubygems_"),
    "sentry": _letters(_ALNUM, 60, "sntrys_"),
    "age": _letters(string.ascii_uppercase + "234567", 58, "AGE-SECRET-KEY-1"),
    "fireworks": _letters(_ALNUM, 30, "fw_"),
    "brevo": lambda chance: f"xkeysib-{_letters(_HEX, 64)(chance)}-{_letters(_ALNUM, 16)(chance)}",
    "posthog": _letters(_ALNUM, 40, "phx_"),
    "mapbox": _letters(_ALNUM, 60, "sk.eyJ1Ijoi"),
    "dropbox": _letters(_ALNUM, 130, "sl.B"),
    "langsmith": lambda chance: f"lsv2_pt_{_letters(_HEX, 32)(chance)}_{_letters(_HEX, 10)(chance)}",
    "tavily": _letters(_ALNUM, 32, "tvly-dev-"),
    "netlify": _letters(_ALNUM, 36, "nfp_"),
    "heroku": _letters(_HEX, 36, "HRKU-"),
    "fly": _letters(_ALNUM, 90, "fm2_lJP"),
    "pulumi": _letters(_HEX, 40, "pul-"),
    "terraform": lambda chance: f"{_letters(_ALNUM, 14)(chance)}.atlasv1.{_letters(_ALNUM, 67)(chance)}",
    "contentful": _letters(_ALNUM, 43, "CFPAT-"),
    "razorpay": _letters(_ALNUM, 14, "rzp_" + "live_"),
    "plaid": lambda chance: (
        f"access-production-{_letters(_HEX, 8)(chance)}-1a2b-4c3d-8e4f-{_letters(_HEX, 12)(chance)}"
    ),
    "flutterwave": _letters(_ALNUM, 32, "FLWSECK-"),
    "easypost": _letters(_HEX, 54, "EZAK"),
    "stripe webhook": _letters(_ALNUM, 32, "whsec_"),
    "alibaba": _letters(_ALNUM, 20, "LTAI"),
    "tencent": _letters(_ALNUM, 32, "AKID"),
    "docker": _letters(_ALNUM, 27, "dckr_oat_"),
    "elevenlabs": _letters(_HEX, 48, "sk_"),
    "bitcoin extended": _letters("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 107, "xprv"),
    "nostr": _letters("023456789acdefghjklmnpqrstuvwxyz", 58, "nsec1"),
    "facebook": _letters(_ALNUM, 120, "EAACEdEose0cBA"),
}
KEY_SENTENCES = ("{v}", "here you go: {v}", "use {v} for the import please", "({v})", "I pasted `{v}` into the config")
TOKEN_SENTENCES = (
    "my API key is {v}",
    "the access token: {v}",
    "api_key={v}",
    "{v} is my API key",
    "use {v} as the token",
    "token {v}",
    "mein API-Schlüssel ist {v}",
    "la clave de API es {v}",
    "ma clé API est {v}",
    "la chiave API è {v}",
    "a chave da API é {v}",
    "mijn API-sleutel is {v}",
    "The license key is {v}",
    "client secret = {v}",
    "X-Api-Key: {v}",
    "Authorization: Bearer {v}",
    "the key for the weather service is {v}",
    "my secret key: {v}",
)
SEED_SENTENCES = (
    "my seed phrase is {v}",
    "{v}",
    "recovery phrase: {v}",
    "These are the words of my wallet: {v}",
    "Here is the mnemonic: {v}",
    "Meine Seed-Phrase lautet {v}",
    "ma phrase de récupération : {v}",
    "Wallet backup:\n{v}\nkeep it safe",
)
DOOR_CODES = {
    "en": (
        "the door code is {v}",
        "Gate code: {v}",
        "the code for the garage is {v}",
        "{v} opens the front door",
        "The alarm is disarmed with {v}",
        "The key safe opens with {v}",
        "entry code {v}#",
    ),
    "de": (
        "Der Türcode ist {v}",
        "Code für die Haustür: {v}",
        "Die Alarmanlage geht mit {v} aus",
        "Der Code vom Schlüsselkasten ist {v}",
        "Der Tresor hat den Code {v}",
    ),
    "es": ("el código de la puerta es {v}", "Código del portal: {v}", "el código de la alarma es {v}"),
    "fr": ("le code de la porte est {v}", "Le digicode est le {v}", "code de l'immeuble : {v}"),
    "it": ("il codice della porta è {v}", "Codice dell'allarme: {v}", "il codice del cancello è {v}"),
    "pt": ("o código da porta é {v}", "Código do portão: {v}", "o código do alarme é {v}"),
    "nl": ("de deurcode is {v}", "Code van de poort: {v}", "de code van het alarm is {v}", "alarmcode {v}"),
}
PINS = {
    "en": (
        "my PIN is {v}",
        "PIN: {v}",
        "the pin of my bank card is {v}",
        "{v} is my PIN",
        "use {v} as the PIN",
        "My phone unlocks with {v}, that is the passcode",
    ),
    "de": (
        "meine PIN ist {v}",
        "Die PIN meiner Karte lautet {v}",
        "{v} ist meine PIN",
        "Geheimzahl: {v}",
        "Nimm {v} als PIN",
    ),
    "es": ("mi PIN es {v}", "el pin de la tarjeta es {v}", "{v} es mi PIN"),
    "fr": ("mon code PIN est {v}", "le code de ma carte est {v}", "code secret : {v}"),
    "it": ("il mio PIN è {v}", "il pin della carta è {v}", "{v} è il mio PIN"),
    "pt": ("meu PIN é {v}", "o PIN do cartão é {v}", "{v} é o meu PIN"),
    "nl": ("mijn pincode is {v}", "de pin van mijn pas is {v}", "{v} is mijn pincode"),
}
ONE_TIME = (
    "your verification code is {v}",
    "Your OTP: {v}",
    "{v} is your login code",
    "G-{v} is your Google verification code.",
    "TAN {v}",
    "Dein Bestätigungscode lautet {v}",
    "Ihr Sicherheitscode: {v}",
    "tu código de verificación es {v}",
    "votre code de vérification est {v}",
    "il tuo codice di verifica è {v}",
    "o seu código de verificação é {v}",
    "je verificatiecode is {v}",
    "The SMS code was {v}",
)
QUESTIONS = {
    "en": (
        ("What is your wifi password?", "{v}"),
        ("Which password should I use?", "Take {v}"),
        ("Please enter the password for the shop.", "{v}"),
        ("What's the PIN?", "it's {n}"),
        ("Could you tell me the door code?", "Sure, {n}"),
        ("And the password?", "that would be {v}, thanks"),
        ("I need your API key to continue.", "ok: {k}"),
    ),
    "de": (
        ("Wie lautet das Passwort?", "{v}"),
        ("Welches Passwort soll ich nehmen?", "Nimm {v}"),
        ("Wie ist der Türcode?", "der ist {n}"),
        ("Bitte gib dein Kennwort ein.", "klar, {v}"),
    ),
    "es": (("¿Cuál es la contraseña?", "{v}"), ("¿Qué clave quieres?", "pon {v}"), ("¿Y el PIN?", "es {n}")),
    "fr": (
        ("Quel est votre mot de passe ?", "{v}"),
        ("Quel est le code de la porte ?", "c'est {n}"),
        ("Votre mdp ?", "voilà : {v}"),
    ),
    "it": (("Qual è la password?", "{v}"), ("Mi dici il PIN?", "sì, {n}")),
    "pt": (("Qual é a senha?", "{v}"), ("E o PIN?", "é {n}")),
    "nl": (("Wat is het wachtwoord?", "{v}"), ("Wat is de pincode?", "die is {n}")),
}
SPLIT = (
    ("my wifi password is", "{v}"),
    ("Here comes my password:", "{v}"),
    ("the password is ...", "{v}"),
    ("I'll give you the password now", "{v}"),
    ("Mein Passwort ist", "{v}"),
    ("mi contraseña es:", "{v}"),
    ("mon mot de passe est", "{v}"),
    ("la mia password è", "{v}"),
    ("a minha senha é", "{v}"),
    ("mijn wachtwoord is", "{v}"),
    ("The door code is", "{n}"),
    ("My API key:", "{k}"),
)
IDENTITY_SENTENCES = {
    "us ssn": ("My SSN is {v}", "social security number: {v}", "SSN {v}"),
    "uk nino": ("My national insurance number is {v}", "NI number: {v}"),
    "es dni": ("mi DNI es {v}", "DNI: {v}", "Mi NIF es {v}"),
    "it codice fiscale": ("il mio codice fiscale è {v}", "CF: {v}", "{v}"),
    "fr nir": ("mon numéro de sécurité sociale est {v}", "NIR : {v}"),
    "nl bsn": ("mijn BSN is {v}", "burgerservicenummer: {v}"),
    "br cpf": ("meu CPF é {v}", "CPF: {v}"),
    "de steuer-id": ("Meine Steuer-ID ist {v}", "Steueridentifikationsnummer: {v}"),
    "passport": (
        "my passport number is {v}",
        "Reisepassnummer: {v}",
        "numéro de passeport : {v}",
        "número de pasaporte: {v}",
    ),
    "id card": ("Meine Personalausweisnummer ist {v}", "my ID card number is {v}", "driver's license number: {v}"),
}


def _identity_number(kind: str, chance: random.Random) -> str:
    """Return a valid number of this kind, computed by the library's check digits where there are any."""
    from stdnum.br import cpf
    from stdnum.es import dni
    from stdnum.fr import nir
    from stdnum.it import codicefiscale
    from stdnum.nl import bsn

    digits = _digits(9)(chance)
    if kind == "us ssn":
        return f"{chance.randint(101, 665)}-{chance.randint(10, 99)}-{chance.randint(1000, 9999)}"
    if kind == "uk nino":
        return f"AB {chance.randint(10, 99)} {chance.randint(10, 99)} {chance.randint(10, 99)} C"
    if kind == "es dni":
        return digits[:8] + dni.calc_check_digit(digits[:8])
    if kind == "it codice fiscale":
        stem = f"RSSMRA{chance.randint(50, 99)}{chance.choice('ABCDEHLMPRST')}{chance.randint(10, 28)}H{chance.randint(100, 999)}"
        return stem + codicefiscale.calc_check_digit(stem)
    if kind == "fr nir":
        stem = f"1{chance.randint(50, 99)}{chance.randint(1, 12):02d}75{chance.randint(100, 999)}{chance.randint(100, 999)}"
        return stem + nir.calc_check_digits(stem)
    if kind == "nl bsn":
        return next(n for n in map(str, range(int(digits), int(digits) + 1000)) if bsn.is_valid(n))
    if kind == "br cpf":
        number = digits + cpf._calc_check_digits(digits)
        return f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}"
    if kind == "de steuer-id":
        return _digits(11)(chance)
    return chance.choice("CFGHX") + _letters("CFGHJKLMNPRTVWXYZ0123456789", 8)(chance).upper()[:8]


def _card(chance: random.Random) -> str:
    from stdnum import luhn

    stem = chance.choice(["4", "51", "52", "55", "2221"])
    stem += "".join(chance.choices(string.digits, k=15 - len(stem)))
    return stem + luhn.calc_check_digit(stem)


def _iban(chance: random.Random) -> str:
    from stdnum import iban

    country, bban = chance.choice(
        [
            ("DE", _digits(18)(chance)),
            ("AT", _digits(16)(chance)),
            ("NL", "ABNA" + _digits(10)(chance)),
            ("ES", _digits(20)(chance)),
            ("FR", _digits(23)(chance)),
            ("IT", "X" + _digits(22)(chance)),
            ("PT", _digits(21)(chance)),
            ("GB", "WEST" + _digits(14)(chance)),
        ]
    )
    return country + iban.calc_check_digits(country + "00" + bban) + bban


def _grouped(number: str, separator: str) -> str:
    return separator.join(number[start : start + 4] for start in range(0, len(number), 4))


_LOOKALIKES = str.maketrans({"a": "а", "e": "е", "o": "ο", "p": "р", "s": "ѕ", "i": "і", "w": "ԝ"})
DISGUISES: dict[str, Callable[[str, str], str]] = {
    "zero-width in the word": lambda text, secret: text.replace("assw", "as\u200bsw"),
    "zero-width in the secret": lambda text, secret: text.replace(secret, "\u200b".join(secret)),
    "soft hyphens": lambda text, secret: text.replace("ss", "s\u00ads"),
    "non-breaking blanks": lambda text, secret: text.replace(" ", "\u00a0"),
    "look-alike word": lambda text, secret: text.replace("password", "password".translate(_LOOKALIKES)),
    "full width": lambda text, secret: "".join(chr(ord(s) + 0xFEE0) if "!" <= s <= "~" else s for s in text),
    "bidirectional marks": lambda text, secret: text.replace(secret, f"\u202e{secret}\u202c").replace("is", "\u200fis"),
    "variation selectors": lambda text, secret: text.replace("pass", "p\ufe0fass\ufe0f"),
    "thin blanks": lambda text, secret: text.replace(" ", "\u2009"),
    "mathematical letters": lambda text, secret: text.replace(
        "password", "".join(chr(0x1D5EE + ord(s) - 97) for s in "password")
    ),
    "word joiners": lambda text, secret: text.replace("password", "\u2060".join("password")),
    "tag characters": lambda text, secret: text.replace("password", "pass\U000e0041word"),
}
DISGUISED = ("my password is {v}", "Password: {v}", "the wifi password is {v}, thanks", "{v} is my password")
TOOL_ARGUMENT_NAMES = (
    "pass", "password", "passwd", "pwd", "user_pass", "db_pass", "secret", "apiKey", "accessToken", "wifiPassword",
    "passphrase", "passcode", "clientSecret", "contraseña", "mot_de_passe", "kennwort", "senha", "wachtwoord", "pw", "auth_token",
)  # fmt: skip


def _single(category: str, language: str, text: str, secret: str) -> SecretCase:
    return SecretCase(category, language, (("user", text),), secret)


def _sentences(chance: random.Random) -> Iterator[SecretCase]:
    for category, table in (("statement", FORWARD), ("reversed order", REVERSED)):
        for language, templates in table.items():
            for template in templates:
                for value in (make(chance) for make in PASSWORDS):
                    yield _single(category, language, template.format(v=value), value)
    for language, templates in PLAIN_WORD.items():
        for template in templates:
            for value in (_plain(chance), _plain(chance)):
                yield _single("plain word", language, template.format(v=value), value)
    for language in FORWARD:
        phrase = _quoted_phrase(chance)
        yield _single("quoted phrase", language, FORWARD[language][0].format(v=f'"{phrase}"'), phrase)


def _written_forms(chance: random.Random) -> Iterator[SecretCase]:
    for template in MARKUP:
        for value in (make(chance) for make in PASSWORDS[:3]):
            yield _single("markup", "en", template.format(v=value), value)
    for template in COMMANDS:
        for value in (_mixed(chance), _hyphened(chance), _leet(chance)):
            safe = value.replace("#", "x").replace("&", "x")
            yield _single("command or address", "any", template.format(v=safe), safe)
    for disguise in DISGUISES.values():
        for template in DISGUISED:
            value = _mixed(chance)
            yield _single("disguised", "en", disguise(template.format(v=value), value), value)


def _keys(chance: random.Random) -> Iterator[SecretCase]:
    for make in PROVIDER_KEYS.values():
        for sentence in KEY_SENTENCES[:3]:
            key = make(chance)
            yield _single("bare key", "any", sentence.format(v=key), key)
    for sentence in TOKEN_SENTENCES:
        for make in (_letters(_HEX, 32), _letters(_ALNUM, 24), _letters(_ALNUM, 40)):
            key = make(chance)
            yield _single("key beside its word", "any", sentence.format(v=key), key)
    for label in ("RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "PGP PRIVATE KEY BLOCK"):
        body = base64.b64encode(chance.randbytes(300)).decode()
        lines = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
        yield _single(
            "private key", "any", f"here:\n-----BEGIN {label}-----\n{lines}\n-----END {label}-----", body[64:128]
        )
        yield _single("private key", "any", f"-----BEGIN {label}-----\n{lines}", body[64:128])
    wif = chance.choice("KL5") + "".join(
        chance.choices("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", k=51)
    )
    yield _single("private key", "any", f"bitcoin private key {wif}", wif)
    ether = "0x" + "".join(chance.choices(_HEX, k=64))
    yield _single("private key", "any", f"the private key of my wallet is {ether}", ether)
    for sentence in SEED_SENTENCES:
        for count in (12, 24):
            words = " ".join(chance.sample(_SEED_WORDS, count))
            yield _single("seed phrase", "any", sentence.format(v=words), words)
    numbered = "\n".join(f"{place}. {word}" for place, word in enumerate(words.split(), 1))
    yield _single("seed phrase", "any", f"my wallet words:\n{numbered}", words.split()[5] + "\n")


def _numbers(chance: random.Random) -> Iterator[SecretCase]:
    for category, table, count in (("door code", DOOR_CODES, 4), ("pin", PINS, 4), ("pin", PINS, 6)):
        for language, templates in table.items():
            for template in templates:
                value = _digits(count)(chance)
                yield _single(category, language, template.format(v=value), value)
    for template in ONE_TIME:
        for value in (_digits(6)(chance), _digits(6)(chance)):
            yield _single("one-time code", "any", template.format(v=value), value)
    yield from _account_numbers(chance)
    for kind, sentences in IDENTITY_SENTENCES.items():
        for sentence in sentences:
            for number in (_identity_number(kind, chance), _identity_number(kind, chance)):
                yield _single("identity number", "any", sentence.format(v=number), number)


def _account_numbers(chance: random.Random) -> Iterator[SecretCase]:
    for sentence in ("I paid with {v}.", "card: {v}", "{v}", "Meine Kreditkarte ist {v}", "número de tarjeta {v}"):
        for separator in ("", " ", "-", ".", "\u00a0", "\u2009", "\u200b", "\u2011", "  "):
            number = _grouped(_card(chance), separator)
            yield _single("card number", "any", sentence.format(v=number), number)
    for sentence in ("My IBAN is {v}.", "please pay to {v}", "{v}", "Konto {v} bei der Bank"):
        for separator in ("", " ", "-", ".", "\u00a0", "\u202f", "\u200b"):
            number = _grouped(_iban(chance), separator)
            yield _single("iban", "any", sentence.format(v=number), number)


def _conversations(chance: random.Random) -> Iterator[SecretCase]:
    for language, pairs in QUESTIONS.items():
        for question, answer in pairs:
            for make in (_mixed, _hyphened, _plain):
                secrets = {"v": make(chance), "n": _digits(4)(chance), "k": _letters(_ALNUM, 32)(chance)}
                if make is _plain and "{v}" not in answer:
                    continue
                secret = next(value for name, value in secrets.items() if f"{{{name}}}" in answer)
                turns = (("assistant", question), ("user", answer.format(**secrets)))
                yield SecretCase("asked and answered", language, turns, secret)
    for start, end in SPLIT:
        for between in ((), (("assistant", "Go ahead."),)):
            secrets = {"v": _mixed(chance), "n": _digits(4)(chance), "k": _letters(_ALNUM, 32)(chance)}
            secret = next(value for name, value in secrets.items() if f"{{{name}}}" in end)
            turns = (("user", start), *between, ("user", end.format(**secrets)))
            yield SecretCase("split over two turns", "any", turns, secret)


def secret_cases() -> list[SecretCase]:
    """Return all generated cases with a secret, the same in every run."""
    chance = random.Random(SEED)
    makers = (_sentences, _written_forms, _keys, _numbers, _conversations)
    return [case for make in makers for case in make(chance)]


_SUBJECTS = (
    "the password",
    "my password",
    "Das Passwort",
    "la contraseña",
    "le mot de passe",
    "la password",
    "a senha",
    "het wachtwoord",
)
_REMARKS = {
    "the password": (
        "is wrong",
        "has expired",
        "must have at least 12 characters",
        "was changed in 2024",
        "manager is 1Password",
        "policy changed",
        "reset link expired",
        "hint is shown",
        "should be rotated every 90 days",
    ),
    "my password": (
        "is too short!",
        "is the same everywhere",
        "does not work",
        "never works on Monday",
        "was stolen",
        "is saved in the browser",
        "manager crashed",
    ),
    "Das Passwort": (
        "ist falsch",
        "ist abgelaufen",
        "wurde geändert",
        "habe ich vergessen",
        "ist zu kurz",
        "muss 8 Zeichen haben",
    ),
    "la contraseña": ("es incorrecta", "ha caducado", "debe tener 8 caracteres", "es demasiado corta"),
    "le mot de passe": ("est expiré", "est oublié", "doit contenir 8 caractères", "ne marche pas"),
    "la password": ("è sbagliata", "è scaduta", "deve avere 8 caratteri"),
    "a senha": ("está errada", "é muito fraca", "deve ter 8 caracteres"),
    "het wachtwoord": ("is verlopen", "is niet goed", "moet 8 tekens hebben"),
}
_EVERYDAY = (
    "I bought {n} tickets for the concert in {y}.",
    "The order number is {d10} and it ships on Monday.",
    "Call me at +49 170 {d7}.",
    "Commit {hex40} fixes the build.",
    "The session id is {uuid}.",
    "I was born in {y} and moved to Porto in {y}.",
    "Room {n} on floor 3 has the best view.",
    "My flight is LH{n} at 14:30.",
    "The door is {n} cm wide and the gate opens at 8.",
    "Building {n} is next to the station.",
    "We sold {n} units at 12.50 each, {d7} in total.",
    "The invoice {d10} is due on 2026-05-01.",
    "The score was {n} to 12.",
    "See page {n} of the manual for the alarm.",
    "Mein Termin ist am 3.5.{y} um 14 Uhr.",
    "Die Hausnummer ist {n}.",
    "Ich wohne seit {y} in Graz.",
    "Vivo en la calle Mayor {n}.",
    "J'habite au {n} rue de la Paix depuis {y}.",
    "Abito in via Roma {n} dal {y}.",
    "Moro na rua Augusta {n} desde {y}.",
    "Ik woon sinds {y} in Utrecht op nummer {n}.",
    "The tracking number is {d12}.",
    "Use version {n} of the API, not the old one.",
    "The token limit is {d7} and the key point is speed.",
    "He holds the key to the city since {y}.",
    "The secret of good bread is {n} minutes of patience.",
    "Pin the message with {n} likes, please.",
    "The error code is {n}, the zip code {d5}.",
    "My discount code gives {n} percent off.",
    "Die Postleitzahl ist {d5}, die Vorwahl 0316.",
    "La clave del éxito es la paciencia.",
    "The key is to practise every day for {n} minutes.",
    "She passed the test with {n} points, what a pass!",
    "The wallet is brown and cost {n} euros.",
    "My phone has 256 GB and a 5000 mAh battery.",
    "The recipe needs 250g of flour, 2 eggs and 100ml of milk.",
    "GPT-4o costs {n} cents, the model gpt-4o-mini-2024-07-18 less.",
    "Our code review takes {n} minutes on average.",
    "The dress code is casual, the door opens at {n}.",
    "My card expires in {y}, I need a new one.",
    "I play cards with {n} friends every Friday.",
    "The passport office opens at 9 and closes at 17.",
    "My passport expires in {y}.",
    "The bank is at Hauptstrasse {n}.",
    "Die Karte kostet {n} Euro.",
    "We use OAuth2 tokens and SHA256 hashes.",
    "The function get_user_by_id{n} returns None.",
    "https://example.org/articles/{n}?page=2&sort=asc",
    "mailto:lena{n}@example.org is my address.",
    "My username is lena{n}.",
)  # fmt: skip


def harmless_cases() -> list[HarmlessCase]:
    """Return texts without a secret: remarks about passwords, and numbers and identifiers of everyday life."""
    chance = random.Random(SEED)
    remarks = [HarmlessCase("remark about a password", f"{s} {r}.") for s in _SUBJECTS for r in _REMARKS[s]]
    everyday = []
    for template in _EVERYDAY:
        for _ in range(8):
            numbers = {f"d{count}": _digits(count)(chance) for count in (5, 7, 10, 12)}
            hexadecimal = "".join(chance.choices(_HEX, k=40))
            uuid = f"{hexadecimal[:8]}-{hexadecimal[8:12]}-4{hexadecimal[12:15]}-a{hexadecimal[15:18]}-{hexadecimal[18:30]}"
            year = chance.randint(1950, 2026)
            values = {"n": chance.randint(13, 4999), "y": year, "hex40": hexadecimal, "uuid": uuid, **numbers}
            everyday.append(HarmlessCase("everyday number", template.format(**values)))
    return remarks + everyday


# Written after the patterns. At first 18 of 204 words like a password and 40 of 51 plain words were missed.
_HELD_OUT = {
    "en": (
        "So the thing you type in at the portal is {v} (that's the password, obviously)", "wifi: FRITZBox / pw {v}", "Please store my login: user lena, password of {v}",
        "{v} should work as password again", "I reset it, the password became {v}", "Don't tell anyone, but my laptop password starts and ends as {v}",
        "The admin password got changed, it's {v} since Tuesday", "hi! password? {v}", "password reminder -- {v}", "creds for staging: admin/{v}",
        "our guest network wants {v} as its key", "you can log in with lena and {v} as the passphrase", "My vault master password equals {v}",
        "The password: it is {v}.", "try password {v} first", "the wifi's password would be {v}",
    ),
    "de": (
        "Fürs WLAN brauchst du {v} als Schlüssel", "Passwort hab ich jetzt auf {v} gestellt", "Mein PC-Passwort: {v}", "{v} war bisher unser Kennwort",
        "Anmelden mit lena und dem Passwort {v}", "Das Passwort heißt {v}", "Kennwort = {v}", "Merk dir: Passwort {v}",
    ),
    "es": ("La contraseña nueva: {v}", "Entra con {v} como contraseña", "mi clave del correo: {v}", "{v} era la contraseña antigua", "contraseña del portátil = {v}", "La clave para el wifi es {v}"),
    "fr": ("Le mot de passe, c'est {v}", "Connecte-toi avec {v} comme mot de passe", "mon mdp est {v}", "Nouveau mot de passe = {v}", "{v} était notre mot de passe", "mdp du routeur : {v}"),
    "it": ("Password nuova: {v}", "Entra con {v} come password", "la password del portatile sarebbe {v}", "{v} era la nostra password", "La password l'ho cambiata in {v}"),
    "pt": ("Senha nova: {v}", "Entre com {v} como senha", "a palavra-passe do portátil é {v}", "{v} era a nossa senha", "A senha, que é {v}, não muda"),
    "nl": ("Nieuw wachtwoord: {v}", "Log in met {v} als wachtwoord", "het wachtwoord van de laptop is {v}", "{v} was ons wachtwoord", "Wachtwoord wordt {v}"),
}  # fmt: skip


def held_out_cases() -> list[SecretCase]:
    """Return cases by sentences that were written after the patterns, in which plain words are hard to tell."""
    chance = random.Random(SEED + 1)
    cases = []
    for language, templates in _HELD_OUT.items():
        for template in templates:
            for make in (*PASSWORDS, _plain):
                value = make(chance)
                category = (
                    "unforeseen sentence, plain word" if make is _plain else "unforeseen sentence, word like a password"
                )
                cases.append(_single(category, language, template.format(v=value), value))
    return cases
