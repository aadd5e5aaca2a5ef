"""Sentences with a secret, written without looking at the patterns, each tried with random values."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

from secret_cases import SecretCase

_SEED = 20261122


def _mixed(chance: random.Random) -> str:
    word = "".join(chance.choices(string.ascii_letters, k=chance.randint(6, 9)))
    return f"{word}{chance.choice('!#$%&*+?@')}{chance.randint(10, 999)}"


def _word_and_year(chance: random.Random) -> str:
    word = chance.choice(("Sommer", "Marmelade", "Pinguin", "Voilier", "Girasol", "Kitchen", "Orchard", "Trombone"))
    return f"{word}{chance.randint(1950, 2025)}{chance.choice(('', '!', '?', '$'))}"


def _dashed(chance: random.Random) -> str:
    words = chance.sample(("correct", "horse", "staple", "otter", "velvet", "comet", "turnip", "walnut"), 3)
    return "-".join([*words, str(chance.randint(1, 99))])


def _random(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=14)) + str(chance.randint(0, 9))


def _leet(chance: random.Random) -> str:
    return chance.choice(("p4ncakes", "m0ntblanc", "dr4gonfly", "c0ffee2go", "l1ghth0use", "s3cr3tgarden", "h4mm3r"))


PASSWORD_VALUES: tuple[Callable[[random.Random], str], ...] = (_mixed, _word_and_year, _dashed, _random, _leet)

_PASSWORDS = {
    "en": (
        "You'll need the password to get in, it's {v}.", "I finally changed the wifi password, it's {v} now.", "Wifi here: network is Nest24, password {v}", "Just log in as admin with {v} as the password",
        "The password they gave me was {v}, can you store the file there?", "{v} - that's my password for the bank", "fyi the new pw = {v}", "password for the shared drive ({v}) expires in May",
        "Try logging in with the password {v} instead", "I set it to {v} so the password is easier to type", "my netflix password (it's {v}) stopped working", "Sorry, typo: the password should be {v}",
        "To unlock the pdf use password {v}", "The guest network's passphrase is still {v} I think", "Could you log into my account? user mira, pass {v}", "The zip is encrypted, pw {v}",
        "I use {v} everywhere as my password, is that bad?", "Is {v} a strong password? I have been using it for my mail", "login: mira@example.com / {v}", "Username mira and password {v} should work",
        "I keep forgetting that the password is {v}", "My old password, {v}, no longer works", "They reset my password to {v}", "please remember that our router password reads {v}", "Here's the password you asked for: {v}",
        "Our alarm company wants the code word, which is {v}", "The admin password hasn't changed in years, it is {v}", "password? {v}", "Password hint aside, it really is {v}", "The root password of the server is {v}, don't lose it",
        "You can SSH in, user is deploy, password is {v}", "I've written the password on the fridge: {v}", "So the password would be {v} then?", "the passcode for the meeting: {v}", "ok so wifi: {v}",
        "My secret answer / password is: {v}", "We share one password at work, namely {v}", "The database password lives in .env, it's {v}", "I'd like to change my password from {v} to something better", "pw is {v} btw",
    ),
    "de": (
        "Das Passwort lautet jetzt {v}, bitte merken.", "Ich habe das WLAN-Passwort auf {v} geändert.", "Mein Kennwort ist übrigens {v}", "Zum Anmelden nimm {v} als Passwort", "{v} ist das Passwort für die Dropbox", "Passwort vergessen? Es war {v}",
        "Der Router hat das Passwort {v} bekommen", "Benutzer mira, Passwort {v}", "Unser Netzwerkschlüssel: {v}", "Das neue PW für den Server: {v}", "Logge dich mit dem Passwort {v} ein", "Ich benutze überall {v} als Passwort",
    ),
    "es": (
        "La contraseña del wifi es {v}, por si la necesitas", "Cambié mi contraseña a {v}", "Usa {v} como contraseña", "Mi clave del banco es {v}", "{v} es mi contraseña de siempre", "La nueva clave de acceso: {v}",
        "Entra con el usuario mira y la contraseña {v}", "contraseña: {v}",
    ),
    "fr": (
        "Le mot de passe du wifi est {v}", "J'ai changé mon mot de passe, c'est {v} maintenant", "Utilise {v} comme mot de passe", "{v} est mon mot de passe", "mdp du serveur : {v}", "Connecte-toi avec le mot de passe {v}",
        "Notre clé wifi, c'est {v}", "Mon mot de passe est devenu {v}",
    ),
    "it": (
        "La password del wifi è {v}", "Ho cambiato la password in {v}", "Usa {v} come password", "{v} è la mia password", "La parola d'ordine è {v}", "Accedi con la password {v}", "password nuova: {v}",
    ),
    "pt": (
        "A senha do wifi é {v}", "Mudei a minha senha para {v}", "Usa {v} como senha", "{v} é a minha senha", "A palavra-passe do router é {v}", "Entra com a senha {v}", "senha nova: {v}",
    ),
    "nl": (
        "Het wachtwoord van de wifi is {v}", "Ik heb mijn wachtwoord veranderd in {v}", "Gebruik {v} als wachtwoord", "{v} is mijn wachtwoord", "Log in met het wachtwoord {v}", "nieuw wachtwoord: {v}", "Ons wifi-wachtwoord is nu {v}",
    ),
}  # fmt: skip


def _digits(least: int, most: int) -> Callable[[random.Random], str]:
    return lambda chance: "".join(chance.choices("123456789", k=chance.randint(least, most)))


_CODES = {
    "en": (
        "The code for the front door is {v}.", "You can get in with code {v} at the gate", "My PIN is {v}, don't tell anyone", "the alarm goes off unless you type {v}, that's the alarm code", "PIN for my debit card: {v}",
        "Key box by the door, code {v}", "Enter {v} on the keypad to open the garage", "The verification code I just got is {v}", "They texted me {v} as the one-time code", "SIM pin {v}", "The safe opens with {v}",
        "My phone's unlock code is {v}", "the lockbox combination is {v}",
    ),
    "de": ("Der Code für die Haustür ist {v}", "Meine PIN lautet {v}", "Der Türcode ist {v}", "Die Alarmanlage geht mit {v} aus, das ist der Code", "Meine Geheimzahl ist {v}", "Der Bestätigungscode ist {v}"),
    "es": ("El código de la puerta es {v}", "Mi PIN es {v}", "El código de verificación es {v}"),
    "fr": ("Le code de la porte est {v}", "Mon code PIN est {v}", "Le digicode est {v}"),
    "it": ("Il codice del portone è {v}", "Il mio PIN è {v}"),
    "pt": ("O código da porta é {v}", "O meu PIN é {v}"),
    "nl": ("De code van de voordeur is {v}", "Mijn pincode is {v}"),
}  # fmt: skip

_KEYS = (
    "Here is my API key: {v}", "export SERVICE_TOKEN={v}", "the token is {v}, use it for the calls", "Set the header X-Api-Key to {v}", "my access key {v} stopped working", "client secret -> {v}", "curl -H 'Authorization: Bearer {v}' https://api.example.com",
    "api_key = \"{v}\"", "I pasted the key {v} into the config", "The webhook secret should be {v}", "license key: {v}", "Der API-Schlüssel ist {v}", "La clave de API es {v}", "La clé API est {v}", "Chiave API: {v}", "A chave da API é {v}", "De API-sleutel is {v}",
)  # fmt: skip


def _key(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_letters + string.digits, k=31)) + str(chance.randint(0, 9))


def _hex(chance: random.Random) -> str:
    return "".join(chance.choices("0123456789abcdef", k=40))


ASKED = (
    ("What is the wifi password?", "{v}"), ("Which password should I use?", "Use {v}"), ("I need your login to continue. Could you share the password?", "sure, {v}"), ("And the password?", "it's {v}, thanks"),
    ("Please type your password.", "{v}"), ("Wie lautet das Passwort?", "{v}"), ("¿Cuál es la contraseña?", "es {v}"), ("Quel est le mot de passe ?", "c'est {v}"), ("Qual è la password?", "è {v}"), ("Qual é a senha?", "{v}"),
    ("Wat is het wachtwoord?", "{v}"), ("I can open the portal for you, what password do you use there?", "I think {v}"), ("Do you have a password for the archive?", "yes: {v}"), ("The form asks for a password.", "then take {v}"),
    ("What's the password for your e-mail account?", "Ah right, that is {v}."),
)  # fmt: skip
SPLIT = (
    ("My password is", "{v}"), ("ok the wifi password:", "{v}"), ("The password is the following", "{v}"), ("sending you the password now", "{v}"), ("Das Passwort ist", "{v}"), ("La contraseña es:", "{v}"),
)  # fmt: skip


LATER = {
    "en": (
        "can you note that the Hulu password got changed? new one: {v}", "Mum's laptop needs {v} to log on, it's her password", "When the router asks, the wifi key to enter is {v}", "I just generated a password with the tool: {v}. Nice, right?",
        "Our Airbnb host wrote that the wifi is Casa5 with password {v}", "It won't take my password! I typed {v} three times", "Set up a new mailbox for Tom with {v} as its initial password", "{v}, that was the password I had before the reset",
        "The old admin left, his password (probably {v}) still works", "For the record player app my password is {v} and my user name is mira77", "let's use the same password as last time, so {v}", "I'd go with {v} for the password",
        "The password to the wine cellar app? {v}, all lower case", "Wifi pass at the cabin: {v}", "my work password, which is {v}, has to be renewed", "you can find it under the password {v} in the vault", "Password is the usual one, {v}",
        "They sent me a temporary password by text, {v}, valid for a day", "Does {v} meet the password rules?", "the new passphrase: {v} (same for both drives)", "I told Ida the password already: {v}", "My password manager suggested {v}",
        "So my login is mira@example.com with {v}", "Account mira77, password unchanged: {v}", "If you need the BIOS password, try {v} first",
    ),
    "de": ("Fürs Gästenetz gilt das Passwort {v}", "Mein Passwort war früher {v}, jetzt weiß ich es nicht mehr", "Wir haben {v} als WLAN-Schlüssel eingestellt", "Sag Tom, das Passwort sei {v}", "Das Kennwort fürs Archiv, also {v}, bleibt gleich", "Ich logge mich mit mira und {v} als Kennwort ein"),
    "es": ("Me dieron la contraseña {v} para entrar", "Creo que la contraseña sigue siendo {v}", "He puesto {v} como clave del wifi", "la contraseña de siempre, o sea {v}"),
    "fr": ("On m'a donné le mot de passe {v}", "Je crois que le mot de passe est toujours {v}", "J'ai mis {v} comme mot de passe du wifi", "le mot de passe habituel, donc {v}"),
    "it": ("Mi hanno dato la password {v}", "Credo che la password sia ancora {v}", "Ho messo {v} come password del wifi"),
    "pt": ("Deram-me a senha {v}", "Acho que a senha continua a ser {v}", "Pus {v} como senha do wifi"),
    "nl": ("Ik kreeg het wachtwoord {v}", "Volgens mij is het wachtwoord nog steeds {v}", "Ik heb {v} als wachtwoord van de wifi ingesteld"),
}  # fmt: skip
"""Sentences that were written after the patterns were changed for the others, to see what they miss then."""
LATER_CODES = (
    "The gate wants {v}#, that's the code", "Our garage code changed to {v}", "I got the login code {v} by mail", "tell the cleaner the lockbox code, {v}", "my card's PIN used to be {v}", "{v} is the code for the building", "The bike lock opens at {v}", "2FA code: {v}",
    "Dial {v} at the entrance", "Die PIN für die neue Karte: {v}", "Der Code vom Tresor ist {v}", "Le code de l'immeuble, c'est {v}", "El pin del móvil es {v}", "the sms says {v} is my verification code",
)  # fmt: skip

ATTACKS = (
    ('my netflix login is mia.k / Bluebird77', 'Bluebird77'),
    ('the alarm at home turns off with 4471', '4471'),
    ('to get into the building, type 9021#', '9021'),
    ('just use Kestrel!2024 when it asks for a password', 'Kestrel!2024'),
    ('Password for the router: hunter2hunter', 'hunter2hunter'),
    ("here's the token: ghp_16C7e42F292c6912E7710c838347Ae178B4a", 'ghp_16C7e42F292c6912E7710c838347Ae178B4a'),
    ('my card number is 4111 1111 1111 1111 exp 09/28 cvv 123', '4111 1111 1111 1111'),
    ('the cvv on the back is 932', '932'),
    ('Mein WLAN heißt Fritz und das Kennwort lautet Sonne-Mond-77', 'Sonne-Mond-77'),
    ('la contraseña del banco es Perro.Gato9', 'Perro.Gato9'),
    ("le mot de passe c'est Soleil#1999", 'Soleil#1999'),
    ('la password del wifi è gatto-nero-42', 'gatto-nero-42'),
    ('a senha do meu email é Lua2020cheia', 'Lua2020cheia'),
    ('het wachtwoord van de server is Tulp!2211', 'Tulp!2211'),
    ('PGPASSWORD=s3cr3tpg psql -h db', 's3cr3tpg'),
    ('curl -u admin:Zx9pQ2 https://api.example.com', 'Zx9pQ2'),
    ('my SSN is 078-05-1120', '078-05-1120'),
    ('safe combination is 24-8-31', '24-8-31'),
    ('log in as root with toor1234', 'toor1234'),
    ('I changed my passcode to 998811', '998811'),
    ('export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', 'wJalrXUtnFEMI'),
    ("the gate code's 2580", '2580'),
    ('IBAN DE89 3704 0044 0532 0130 00', '3704 0044'),
    ('my recovery codes are 1a2b-3c4d, 5e6f-7g8h', '1a2b-3c4d'),
    ('postgres://admin:S3cretPw@db.internal/prod', 'S3cretPw'),
    ('"pass": "Qwerty!77"', 'Qwerty!77'),
    ('unlock the phone with 1379', '1379'),
    ('the key to the vault server is abX93kLmQ2zz81', 'abX93kLmQ2zz81'),
    ('Meine TAN ist 883 192', '883 192'),
    ("I wrote down the admin pw, it's Fjord-91-Elk", 'Fjord-91-Elk'),
    ('sudo pw: letmein99', 'letmein99'),
    ('My Apple ID password used to be Mango88 and is now Papaya99', 'Papaya99'),
    ('2FA code 552 901', '552 901'),
    ('Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop', 'eyJhbGciOiJIUzI1NiJ9'),
    ('my tax id is 12 345 678 901', '345 678'),
    ('the locker opens with 3-14-15', '3-14-15'),
    ('I use Dragon!Fly7 for all my accounts', 'Dragon!Fly7'),
    ('the bike lock is set to 7349', '7349'),
    ('the wifi is HomeNet, pass is cocoa-beans-5', 'cocoa-beans-5'),
    ('OTP: 662190', '662190'),
)  # fmt: skip
"""Sentences of somebody who looked for what is missed, each with its secret. The patterns were then changed for these."""
UNTUNED = (
    ('for Spotify I log in with Tango_45x', 'Tango_45x'),
    ('The NAS wants admin and then Pebble*Creek3', 'Pebble*Creek3'),
    ('my unlock pattern code is 2589', '2589'),
    ('His PIN? 6620.', '6620'),
    ('the key safe by the door takes 5512', '5512'),
    ('Note down: Steam - mia99 - Rocket&Moon4', 'Rocket&Moon4'),
    ('ssh into the box, the passphrase on that key is "tall blue giraffe soup"', 'tall blue giraffe soup'),
    ('my debit card ends in... actually the full number is 5500-0000-0000-0004', '5500-0000-0000-0004'),
    ('API secret = 9f8e7d6c5b4a39281706', '9f8e7d6c5b4a39281706'),
    ('Use this webhook: https://hooks.slack.com/services/T00000000/B00000000/XXXXq1w2e3r4t5y6u7i8o9p0', 'XXXXq1w2e3r4t5y6u7i8o9p0'),
    ('the alarm code got changed from 1212 to 8934', '8934'),
    ('tell the plumber to punch in 7781 at the gate', '7781'),
    ('Passwort fürs Tablet: Regen.Bogen12', 'Regen.Bogen12'),
    ('Zum Entsperren vom Handy gibst du 4826 ein', '4826'),
    ('la clave de la caja fuerte es 7-21-43', '7-21-43'),
    ('mi usuario es pepe y la clave Sol_y_Luna8', 'Sol_y_Luna8'),
    ("pour ouvrir le portail c'est 4590B", '4590B'),
    ("l'identifiant est marie75 et le mdp Chaton!75", 'Chaton!75'),
    ('per entrare nel conto uso Vento&Mare21', 'Vento&Mare21'),
    ('il pin del bancomat è 60714', '60714'),
    ('a chave do wifi é Cafe_com_leite7', 'Cafe_com_leite7'),
    ('o código do portão é 3391', '3391'),
    ('de code van de schuur is 8120', '8120'),
    ('mijn wachtwoord voor DigiD is Koe_Gras_55', 'Koe_Gras_55'),
    ('my passport number is X4820193', 'X4820193'),
    ('driving licence MORGA753116SM9IJ', 'MORGA753116SM9IJ'),
    ('my NHS login: mia@x.org, Copper-Kettle-9', 'Copper-Kettle-9'),
    ('MONGO_URI=mongodb+srv://app:Vx7!kk2@cluster0.mongodb.net', 'Vx7!kk2'),
    ('docker login -u mia -p Harbor#2025', 'Harbor#2025'),
    ('the answer to the security question is Mrs Wiggins', 'Wiggins'),
    ('kubectl create secret generic db --from-literal=password=Blue$ky9', 'Blue$ky9'),
    ("it's Dune!Sea88 again, same as for the bank", 'Dune!Sea88'),
    ('My bank sent 773 104 as the confirmation number to log in', '773 104'),
    ('the garage remote pairing code: 10-44-92', '10-44-92'),
)  # fmt: skip
"""More of them, with unusual forms on purpose, written after that change. At first 17 were missed. Then words were masked
whose form alone shows a password, and the number after a question for a PIN."""


def later_secret_cases() -> Iterator[SecretCase]:
    """Yield each of the later sentences with values of several shapes."""
    chance = random.Random(_SEED + 1)
    for language, templates in LATER.items():
        for template in templates:
            for make in PASSWORD_VALUES:
                yield _case("later sentence, password", language, (template,), make(chance))
    for category, sentences in (("attack", ATTACKS), ("unforeseen attack", UNTUNED)):
        yield from (SecretCase(category, "any", (("user", text),), secret) for text, secret in sentences)
    for template in LATER_CODES:
        for make in (_digits(4, 4), _digits(5, 6)):
            yield _case("later sentence, code", "any", (template,), make(chance))


def fresh_secret_cases() -> Iterator[SecretCase]:
    """Yield each sentence with values of several shapes."""
    chance = random.Random(_SEED)
    codes = (_digits(4, 4), _digits(5, 6))
    sentences = [
        *(("password", language, template, PASSWORD_VALUES) for language, group in _PASSWORDS.items() for template in group),
        *(("code", language, template, codes) for language, group in _CODES.items() for template in group),
        *(("key", "any", template, (_key, _hex)) for template in _KEYS),
    ]  # fmt: skip
    for category, language, template, makes in sentences:
        for make in makes:
            yield _case(f"fresh sentence, {category}", language, (template,), make(chance))
    for make in PASSWORD_VALUES:
        for question, answer in ASKED:
            yield _case("fresh question and answer", "any", (question, answer), make(chance), asked=True)
        for first, second in SPLIT:
            yield _case("fresh, in two turns", "any", (first, second), make(chance))


def _case(category: str, language: str, templates: tuple[str, ...], secret: str, *, asked: bool = False) -> SecretCase:
    speakers = ("helper", "user") if asked else ("user",) * len(templates)
    turns = tuple((speaker, template.format(v=secret)) for speaker, template in zip(speakers, templates, strict=True))
    return SecretCase(category, language, turns, secret)
