"""Sentences with a secret as people type them to an assistant, written without looking at the patterns."""

from __future__ import annotations

from collections.abc import Iterator

from secret_cases import HarmlessCase, SecretCase

_FIRST = {
    "en": (
        ("can you log into my hotmail, the password's Barney!2019", "Barney!2019"),
        ("The Netflix login is jo@mail.com and the password is popcorn88", "popcorn88"),
        ("I changed the router password yesterday to Tulip-Field-7 so use that one", "Tulip-Field-7"),
        ("my laptop unlocks with Hedgehog42!", "Hedgehog42!"),
        ("alarm code at mum's house is 2580, please remember it for the sitter", "2580"),
        ("The key safe next to the door opens with 4471", "4471"),
        ("gate code for the delivery guy: 7735#", "7735"),
        ("PIN for the bank card 8841", "8841"),
        ("pls use 5309 to unlock my phone", "5309"),
        ("the combination of the bike lock is 3-9-1-4", "3-9-1-4"),
        ("wifi at the cottage: network Lakeview, pw trout&perch", "trout&perch"),
        ("guest wifi is OpenHouse and you get in with Welcome#24", "Welcome#24"),
        ("My Visa is 4111 1111 1111 1111, expires 09/28, the three digits on the back are 737", "737"),
        ("book it with 5500005555555559", "5500005555555559"),
        ("my social is 536-22-8145", "536-22-8145"),
        ("my national insurance number is QQ123456C", "QQ123456C"),
        ("Here is my Stripe secret, sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
        ("the openai key I use is sk-proj-8fhGh2kLmN0pQrStUvWxYz12345678", "sk-proj-8fhGh2kLmN0pQrStUvWxYz12345678"),
        ("use postgres://admin:Moss!Rock9@db.internal:5432/shop for the report", "Moss!Rock9"),
        ("ssh into the box as root, pass is gr4nite_Hill", "gr4nite_Hill"),
        ("I got a text from the bank saying 482913 is my verification code", "482913"),
        ("my github token ghp_16C7e42F292c6912E7710c838347Ae178B4a expired I think", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("the recovery code they gave me was 9KX2-77PL-QM40", "9KX2-77PL-QM40"),
        ("My mother's maiden name, which the bank asks for, is Hollingsworth", "Hollingsworth"),
        ("The zip file is encrypted with Maple.Leaf.33", "Maple.Leaf.33"),
        ("My locker at the gym is 1902, right then left", "1902"),
        ("voicemail pin 6620 if you need to check it", "6620"),
        ("password for the school portal = Ruby&Max2016", "Ruby&Max2016"),
    ),
    "de": (
        ("Das Passwort von meinem Web.de-Konto ist Kastanie!81", "Kastanie!81"),
        ("WLAN heißt Birkenweg, Schlüssel dazu ist regenbogen-2020", "regenbogen-2020"),
        ("Der Code für die Haustür ist 4711, für den Keller 0815", "0815"),
        ("Meine EC-Karten-PIN lautet 3094", "3094"),
        ("Handy entsperren geht mit 200588", "200588"),
        ("Schick das Geld an DE89 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130 00"),
        ("Meine Steuer-ID ist 86 095 742 719", "86 095 742 719"),
        ("der Tresor im Büro geht mit 27-14-33 auf", "27-14-33"),
        ("Ich hab das Kennwort auf Lavendel_9 geändert", "Lavendel_9"),
        ("Zugang fürs Elternportal: mueller.a / Sonnenblume!4", "Sonnenblume!4"),
        ("Meine TAN von eben war 730 118", "730 118"),
    ),
    "es": (
        ("La contraseña del wifi de casa es gato_negro_21", "gato_negro_21"),
        ("mi pin de la tarjeta es el 4096", "4096"),
        ("para entrar al portal marca 1357B", "1357B"),
        ("El código de la alarma de la oficina: 8642", "8642"),
        ("mi usuario es pablo.r y la contraseña Tortilla#7", "Tortilla#7"),
        ("Mi DNI es 12345678Z", "12345678Z"),
        ("he puesto Limonero.88 como clave del correo", "Limonero.88"),
        ("el candado de la bici se abre con 7214", "7214"),
        ("desbloquea mi móvil con 951753", "951753"),
    ),
    "fr": (
        ("Mon mot de passe Gmail c'est Croissant!14", "Croissant!14"),
        ("le code de l'immeuble est 45B12", "45B12"),
        ("Le wifi c'est Livebox-A1 et la clé c'est fraise-des-bois-6", "fraise-des-bois-6"),
        ("mon code de carte bleue est le 7301", "7301"),
        ("mdp du compte impôts : Platane_75", "Platane_75"),
        ("pour désactiver l'alarme il faut taper 5519", "5519"),
        ("Mon IBAN est FR14 2004 1010 0505 0001 3M02 606", "FR14 2004 1010 0505 0001 3M02 606"),
        ("mon numéro de sécu : 1 85 05 78 006 084 91", "1 85 05 78 006 084 91"),
    ),
    "it": (
        ("La password di casa per il wifi è Basilico!9", "Basilico!9"),
        ("il codice del cancello è 2468", "2468"),
        ("Il mio PIN del telefono è 130279", "130279"),
        ("per l'allarme digita 9075 e poi invio", "9075"),
        ("accedi con utente rossi e password Girasole_5", "Girasole_5"),
        ("il mio codice fiscale è RSSMRA85T10A562S", "RSSMRA85T10A562S"),
        ("ho messo Vespa&Mare3 come password di Spotify", "Vespa&Mare3"),
    ),
    "pt": (
        ("A senha do wifi é abacaxi-doce-4", "abacaxi-doce-4"),
        ("o pin do cartão é 5582", "5582"),
        ("Minha senha do banco agora é Ipanema!23", "Ipanema!23"),
        ("o código do alarme da loja: 6174", "6174"),
        ("meu CPF é 529.982.247-25", "529.982.247-25"),
        ("desbloqueia o telemóvel com 4826", "4826"),
        ("pus Sardinha.7 como palavra-passe do email", "Sardinha.7"),
    ),
    "nl": (
        ("Het wachtwoord van de wifi is stroopwafel_11", "stroopwafel_11"),
        ("mijn pincode is 7093", "7093"),
        ("De code van het sleutelkastje is 3358", "3358"),
        ("je komt binnen met 1946 op het paneel", "1946"),
        ("mijn BSN is 111222333", "111222333"),
    ),
    "asked": (
        (("helper", "Which password should I use for the shop?"), ("user", "try Velvet-Otter-5"), "Velvet-Otter-5"),
        (("helper", "What's the code for the front gate?"), ("user", "I think it was 9917"), "9917"),
        (("helper", "Wie lautet die PIN?"), ("user", "die ist 6045"), "6045"),
        (("helper", "Quel est le mot de passe ?"), ("user", "toujours Canard!44"), "Canard!44"),
        (("user", "I'll give you my Apple ID password."), ("user", "Peach$Tree19"), "Peach$Tree19"),
    ),
}  # fmt: skip
_LATER = {
    "en": (
        ("the iPad opens with 4402", "4402"),
        ("type 9081 to open the side door", "9081"),
        ("My Airbnb host said the lockbox is 3340", "3340"),
        ("I use Panther!Creek5 for everything", "Panther!Creek5"),
        ("PayPal pw: sunny_Side-44", "sunny_Side-44"),
        ("the kids' tablet is locked with 1212", "1212"),
        ("the PDF is protected with Oak-Barrel-93", "Oak-Barrel-93"),
        ("you get into the building with 5580", "5580"),
        ("my apple id is jo@me.com / Quartz.Moon8", "Quartz.Moon8"),
        ("my debit pin's 4420", "4420"),
        ("cvv 392, exp 04/27", "392"),
        ("The two-factor code that just arrived: 118 402", "118 402"),
        ("login for the tax site: user hm77, pass Briar&Rose1", "Briar&Rose1"),
        ("account number 12345678 sort code 40-47-84", "40-47-84"),
    ),
    "de": (
        ("Der PIN von meinem Handy ist 9907", "9907"),
        ("Mein Passwort bei der Bahn: Ziegel?Rot7", "Ziegel?Rot7"),
        ("Ins Haus kommt man mit 6612 am Tastenfeld", "6612"),
        ("die Alarmanlage schaltest du mit 4490 aus", "4490"),
        ("Mein Laptop-Kennwort ist jetzt Wolke_Sieben7", "Wolke_Sieben7"),
        ("Meine Sozialversicherungsnummer ist 65 170839 J 003", "65 170839 J 003"),
        ("WLAN im Ferienhaus: Seeblick, Passwort ente2023see", "ente2023see"),
    ),
    "es": (
        ("el pin del móvil es 7788", "7788"),
        ("la clave del wifi del bar es cafe-solo-9", "cafe-solo-9"),
        ("la caja fuerte se abre con 31-07-22", "31-07-22"),
        ("mi contraseña de Amazon: Naranja_2!", "Naranja_2!"),
        ("te paso el código del portal, es el 2290", "2290"),
    ),
    "fr": (
        ("le code du portail c'est 7719", "7719"),
        ("mon mdp netflix c'est tournesol42", "tournesol42"),
        ("je déverrouille mon téléphone avec 3081", "3081"),
        ("on entre avec 4402B au digicode", "4402B"),
    ),
    "it": (
        ("la password del computer è Ulivo.77!", "Ulivo.77!"),
        ("il pin della carta è 6093", "6093"),
        ("sblocco il telefono con 2210", "2210"),
        ("il codice del portone è 5587", "5587"),
    ),
    "pt": (
        ("a palavra-passe do portátil é Rio_Douro8", "Rio_Douro8"),
        ("o código do prédio é 9912", "9912"),
        ("o meu NIF é 123456789", "123456789"),
    ),
    "nl": (
        ("het wachtwoord van Netflix is kaas!Brood3", "kaas!Brood3"),
        ("mijn pin is 8852", "8852"),
        ("de code van de voordeur is 4407", "4407"),
    ),
}  # fmt: skip
"""Written after the patterns had been changed for the first ones, of which 19 were missed. Of these 7 were missed at first."""
_HARMLESS = (
    "The door opens with a loud creak at 7.",
    "My phone unlocks with my face.",
    "He came in with 2000 other people at the stadium entrance.",
    "The backup is encrypted with AES-256.",
    "The disk is encrypted with ChaCha20-Poly1305.",
    "The file is protected with bcrypt.",
    "Das Tor geht mit 20 Euro auf.",
    "Die PDF ist mit Acrobat9 geschützt worden",
    "Er kommt mit 120 Leuten zum Haus.",
    "The key to a good network is trust.",
    "Social: 300 people came.",
    "three digits on the back of the jersey: 117",
    "My locker is number 214.",
    "The zip opens with 7zip",
    "I unlocked the garage with 2 keys",
    "the wifi key issue is solved",
    "La clé du wifi est sur le frigo",
    "De sleutel van de wifi is kapot",
    "Drei Ziffern auf dem Schild: 417",
    "We go in with 3 people and then the panel starts.",
    "I get in with 10 euro on the bus",
    "the panel has 12 members",
    "My tax account is locked until 2027.",
    "Kommt rein mit 15 Grad auf dem Balkon",
    "Entra con 20 euros en la caja.",
    "In this panel we go in with 300 units on Monday",
    "To unlock the tablet mode press F12",
    "desbloquea la tarjeta 4 con 20 euros",
)
"""Sentences with the words of the new patterns and no secret."""


def plain_secret_cases() -> Iterator[SecretCase]:
    """Yield each sentence with its secret."""
    for category, languages in (("plain sentence", _FIRST), ("later plain sentence", _LATER)):
        for language, sentences in languages.items():
            for *turns, secret in sentences:
                spoken = tuple(turn if isinstance(turn, tuple) else ("user", turn) for turn in turns)
                yield SecretCase(category, language, spoken, str(secret))


def plain_harmless_cases() -> Iterator[HarmlessCase]:
    """Yield each harmless sentence."""
    yield from (HarmlessCase("plain sentence without a secret", text) for text in _HARMLESS)
