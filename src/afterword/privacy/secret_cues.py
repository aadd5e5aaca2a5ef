"""The words that announce a secret, by language, as alternatives of regular expressions. Pure.

Every table has one entry per documented language: English, German, Spanish, French, Italian, Portuguese, Dutch.
"""

from __future__ import annotations

from collections.abc import Mapping


def _any_of(words_by_language: Mapping[str, str]) -> str:
    return f"(?:{'|'.join(dict.fromkeys(words_by_language.values()))})"


NETWORK = r"(?:wi-?fi|wlan|wpa2?|network|netzwerk|hotspot|router|internet|red|réseau|rete|rede|box|netwerk)"

PASSWORD = _any_of(
    {
        "en": rf"pass[ -]?(?:word|code|phrase)|passwd|pwd|pw|{NETWORK}[ -]?(?:key|code|pass)|(?:secret|code) ?word|master[ -]?key",
        "de": rf"(?:[a-zäöü]{{1,20}}-?)?(?:passwort|kennwort|passphrase)|(?:codewort|geheimwort|losungswort)|{NETWORK}[ -]?(?:schlüssel|schluessel)",
        "es": rf"contrase[ñn]a|clave (?:de acceso|(?:de(?: la|l)? )?{NETWORK})|palabra clave",
        "fr": rf"mots? de passe|mdp|cl(?:é|ef|e) (?:du |de la |de |d')?{NETWORK}|code (?:du |de la |de )?wi-?fi",
        "it": rf"parola (?:d'ordine|chiave)|chiave (?:del |della |di |d')?(?:{NETWORK}|accesso)",
        "pt": rf"senha|palavra[- ](?:passe|chave)|chave (?:do |da |de )?(?:{NETWORK}|acesso)",
        "nl": rf"(?:[a-z]{{1,20}}-?)?wachtwoord|{NETWORK}[ -]?sleutel|toegangscode",
    }
)
"""Words that mean a password and little else."""

WEAK_PASSWORD = r"(?:(?<!boarding )(?<!bus )(?<!day )(?<!ski )pass(?!\s?[:=])|clave|ww|log-?in|creds?|credentials?|zugangsdaten|identifiants|credenciales|credenciais|credenziali|inloggegevens|geheimwort|chiave|chave)"
"""Words that may mean a password. Only a value that looks like a password counts beside them."""

PASSWORD_HINTS = (
    *(
        "passw",
        "passc",
        "passp",
        "pass c",
        "pass p",
        "pass w",
        "pass-",
        "_pass",
        '"pass',
        "'pass",
        "<pass",
        "pwd",
        "pw",
        "kennwort",
        "codewort",
    ),
    *(
        "geheimwort",
        "losungswort",
        "contrase",
        "clave",
        "palabra clave",
        "passe",
        "mdp",
        "parola",
        "chiave",
        "chave",
        "senha",
    ),
    *(
        "palavra",
        "wachtwoord",
        "sleutel",
        "wi-fi",
        "wifi",
        "wlan",
        "wpa",
        "netz",
        "network",
        "netwerk",
        "hotspot",
        "router",
    ),
    *("internet", "secret word", "code word", "codeword", "master key", "master-key", "toegangscode", "réseau"),
)
WEAK_PASSWORD_HINTS = (
    *("pass", "clave", "ww", "login", "log-in", "cred", "zugangsdaten", "identifiant", "credencia", "credenzia"),
    *("inloggegevens", "geheimwort", "chiave", "chave"),
)

_COMPOUNDS = (
    r"manag\w+|reset\w*|polic\w+|protect\w*|hints?|fields?|length|strength|rules?|hash\w*|generators?|recovery|chang(?:e|er)\b"
    r"|expir\w*|less|based|prompts?|forms?|pages?|requirements?|history|attempts?|lists?|files?|vaults?|apps?|tools?|checkers?"
    r"|guess\w*|crack\w*|spray\w*|stuff\w*|input|box|column|encoder|verif\w+|valid\w+|authentication|auth|encryption"
    r"|verwaltung|tresor|änderung|schutz|geschützt|manager"
)
NO_COMPOUND = rf"(?![\w-]{{0,3}}(?:[- ]|(?<=-))(?:{_COMPOUNDS})\b)(?!-(?:{_COMPOUNDS}))"
"""Follows a word for a password: "password manager" is none."""

_COPULAS = {
    "en": r"is|was|are|be|becomes?|will be|would be|should be|has been|reads?|equals|remains|stays|'s|goes",
    "de": r"ist|lautet|war|wird|bleibt|heißt|heisst|wäre|sei",
    "es": r"es|era|fue|será|sigue siendo|son",
    "fr": r"est|c'est|était|sera|reste|devient|sont",
    "it": r"è|era|sarà|rimane|resta|diventa",
    "pt": r"é|era|foi|será|fica|continua(?: a ser| sendo)?",
    "nl": r"is|was|wordt|blijft|luidt|zijn",
}
_ADVERBS = (
    r"now|still|currently|just|simply|always|set to|changed to|called|jetzt|nun|weiterhin|immer noch|noch|neu|ahora|aún|"
    r"todavía|ahora|maintenant|désormais|toujours|encore|ora|adesso|ancora|agora|ainda|nu|nog|voortaan|probably|maybe|"
    r"again|wieder|also|auch"
)
IS = rf"{_any_of(_COPULAS)}(?:\s(?:{_ADVERBS})(?=[\s:])){{0,3}}"
"""Links a word for a secret with its value."""

ASSIGNS = r"[\"'`*_\])\\]{0,4}\s{0,3}(?:=>|:=|==?|->|→|➜|:|–|—)\s{0,3}"
"""Links a name with its value: a colon, a sign of assignment, an arrow."""

TO = (
    r"(?:\s(?:to|auf|zu|in|a|en|para|naar|als|of|geändert|changed|veranderd|gewijzigd|now|jetzt|ahora|maintenant|ora|agora|nu|"
    r"also|namely|nämlich|mit|with)){0,3}"
)
"""Stands between a word for a password and the value that it was changed to."""

OWNERS = (
    r"(?:my|our|the|your|his|her|their|this|mein\w{0,2}|unser\w{0,2}|dein\w{0,2}|ihr\w{0,2}|das|die|der|den|dem|mi|tu|su|nuestr[ao]|la|el|los|las"
    r"|mon|ma|ton|ta|votre|notre|son|le|les|l'|il|lo|mi[ao]|tu[ao]|nostr[ao]|su[ao]|o|a|os|as|minha|meu|nossa|nosso|tua|teu"
    r"|mijn|on(?:s|ze)|jouw|je|uw|het|de|een|new|neue[rsn]?|nueva|nuevo|nouveau|nouvelle|nuov[ao]|nov[ao]|nieuwe?|current|default"
    r"|temporary|main|personal|wi-?fi|wlan|netflix|e-?mail|mail)"
)
AS = r"(?:as|als|como|comme|come|for|für|fürs|per|para|pour|voor)"
USE = (
    r"(?:use|using|set|take|choose|pick|try|enter|type|put|make|with|nimm|nehmt|nehme|nutze|verwende|benutze|setze?|gib|bitte|usa|usar?|use|uso|utiliza|pon|pone"
    r"|ponga|utilise[rz]?|prends|prenez|mets|mettez|metti|imposta|coloque|põe|ponha|utilize|gebruik|neem|zet|kies)"
)
"""Verbs that put a value to use: "use X as the password"."""

KEY = _any_of(
    {
        "en": r"(?:api|access|secret|auth|private|client|encryption|signing|service|storage|account|subscription|licen[cs]e|bot|deploy|product|activation|master|session|webhook)[ _-]?(?:access[ _-]?)?(?:key|token|secret)|token|secret|api[ _-]?key|bearer",
        "de": r"(?:api|zugangs|zugriffs|lizenz|dienst|geheim|produkt)[ -]?(?:schlüssel|token|key)|geheimnis",
        "es": r"(?:clave|llave|token) (?:de |del |de la )?(?:api|acceso|licencia|servicio)|clave secreta",
        "fr": r"cl(?:é|ef) (?:d'|de |de l'|du )?(?:api|accès|licence|service)|cl(?:é|ef) (?:api|secrète)|jeton",
        "it": r"chiave (?:api|d'accesso|segreta|di licenza|dell'api)",
        "pt": r"chave (?:d[ae] )?(?:api|acesso|licença|serviço)|chave secreta",
        "nl": r"(?:api|toegangs|licentie|geheime)[ -]?sleutel",
    }
)
NO_SECRET_KEY = r"public key|primary key|foreign key|cache key|sort key|partition key|idempotency key|fingerprint|clave pública|clé publique|öffentliche\w* schlüssel|checksum|commit|sha-?\d{0,3}sum"
"""Words of a sentence whose long numbers are no secret."""

PIN = _any_of(
    {
        "en": r"pin(?:[ -]?(?:code|number))?|passcode|(?:unlock|screen|bank|card|phone) code",
        "de": r"(?:[a-zäöüß]{2,20}-){0,2}pin(?:[ -]?(?:code|nummer))?|geheimzahl|geheimnummer|entsperrcode|puk",
        "es": r"pin|c[óo]digo (?:pin|secreto|de desbloqueo)|n[úu]mero secreto",
        "fr": r"(?:code )?pin|code (?:secret|confidentiel|de (?:(?:ma|la|sa) )?carte|de déverrouillage)",
        "it": r"(?:codice )?pin|codice (?:segreto|di sblocco)",
        "pt": r"(?:código )?pin|código (?:secreto|de desbloqueio)",
        "nl": r"pin(?:[ -]?code)?|ontgrendelcode|geheime code",
    }
)

ONE_TIME = _any_of(
    {
        "en": r"otp|one[- ]time (?:code|password|passcode|pin)|(?:verification|security|2fa|mfa|two-factor|login|log-in|sign-in|sms|authentication|authenticator|confirmation|reset|backup|recovery|access)[- ]code|passcode",
        "de": r"m?tan|(?:bestätigungs|sicherheits|verifizierungs|einmal|freischalt|anmelde|sms-?|zugangs)-?(?:code|passwort|pin)",
        "es": r"c[óo]digo de (?:verificaci[óo]n|seguridad|confirmaci[óo]n|acceso)",
        "fr": r"code (?:de vérification|de sécurité|de confirmation|d'accès|sms)",
        "it": r"codice di (?:verifica|sicurezza|conferma|accesso)",
        "pt": r"c[óo]digo de (?:verificação|segurança|confirmação|acesso)",
        "nl": r"(?:verificatie|beveiligings|bevestigings|inlog|sms-?|toegangs)-?code",
    }
)

PLACE = _any_of(
    {
        "en": r"(?:front |back |side )?door|alarm|gate|garage|entry|entrance|lock ?box|key ?box|key ?safe|safe|vault|keypad|building|intercom|padlock|locker|suitcase|elevator|stairwell|lobby|panel",
        "de": r"(?:haus|wohnungs|garagen|hinter|ein[gn]angs)?tür|alarm(?:anlage)?|tor|garage|schlüssel(?:box|safe|kasten)|tresor|briefkasten|safe|zahlenschloss|fahrradschloss|(?:hinter|haupt|neben|seiten|vorder|personal|liefer(?:anten)?)?eingang|haus|spind|koffer|schloss|bedienfeld|tastenfeld",
        "es": r"puerta|alarma|portal|garaje|caja fuerte|entrada|edificio|candado|portón|maleta|teclado|panel",
        "fr": r"porte|alarme|portail|immeuble|coffre(?:-fort)?|garage|entrée|digicode|cadenas|interphone|boîte à clés|clavier|boîtier",
        "it": r"porta|allarme|cancello|portone|cassaforte|garage|ingresso|palazzo|lucchetto|citofono|tastierino",
        "pt": r"porta|alarme|portão|cofre|garagem|entrada|prédio|cadeado|portaria|teclado|painel",
        "nl": r"(?:(?:voor|achter|garage)?deur|alarm|poort|kluis|garage|sleutelkast|sleutelkluis|ingang|gebouw|hangslot|fietsslot)(?:t?je)?|paneel",
    }
)
NO_SECRET_CODE = (
    r"(?:error|status|exit|zip|area|post|postal|promo|source|country|fault|discount|return|response|dress|product|coupon|"
    r"voucher|colou?r|order|building|fehler|gutschein|rabatt)[ -]?codes?\b|\bqr[ -]code|barcode|vorwahl|postleitzahl"
)
CODE_WORD = r"(?:(?:haus|wohnungs|ein[gn]angs)?tür|alarm|zugangs|tor|haus|eingangs|zutritts|safe|entsperr|deur|poort|kluis|toegangs|voordeur)-?code|digicode"
"""One word that means the code of a door."""
KEY_BOX = r"(?:lock ?box|key ?box|key ?safe|schlüssel(?:box|safe|kasten)|sleutel(?:kast|kluis)(?:t?je)?|boîte à clés|caja de llaves|caixa de chaves)"

OPENING = (
    r"(?:opens?|unlocks?|turns? (?:it )?off|switch(?:es)? off|disarm\w*|deactivat\w*|öffne\w*|entsperr\w*|entschärf\w*|deaktivier\w*|abre\w*|desactiva\w*|ouvre\w*|désactive\w*|"
    r"apre|aprire|disattiva|desativa\w*|open(?:t|en)|ontgrendel\w*|geht|schalte\w*|gaat|locked|gesperrt|bloquead[oa]|verrouillé|bloccat[oa]|vergrendeld|desbloque\w*|déverrouill\w*|sblocc\w*)"
)
"""Verbs for opening a door or switching an alarm off."""
ENTERING = r"(?:(?:get|gets|come|comes|go) in(?:to)?|komm\w* (?:\w{2,6} )?(?:rein|hinein)|kommt man|entr(?:a|as|e|es|ez|i|o|ar|are|er)|ko(?:m|mt) (?:\w{2,4} )?binnen)"
"""Verbs for entering a building with a number."""
LOCKING = (
    r"(?:unlock\w*|(?:password[ -]?)?protected|encrypted|entsperr\w*|verschlüsselt|geschützt|desbloque\w*|cifrad[oa]|protegid[oa]|déverrouill\w*"
    r"|chiffré\w*|protégé\w*|sblocc\w*|cifrat[oa]|protett[oa]|encriptad[oa]|ontgrendel\w*|versleuteld|beveiligd)"
)
"""Verbs for what a password does to a device or a file."""
LOCKED = r"zip|archiv\w*|pdf|files?|datei|archivo|fichier|arquivo|bestand|drive|stick|disk|festplatte|disco|schijf|spreadsheet|document\w*|backups?"
DEVICE = r"(?:i|smart)?phone|ipad|kindle|computer|notebook|tablet|laptop|ordenador|portátil|ordinateur|computador|screen|handy|telefon|bildschirm|teléfono|móvil|pantalla|téléphone|écran|telefono|schermo|telemóvel|celular|telefoon|scherm"
"""What else is unlocked with a number."""
SIGNING_IN = (
    r"(?:log(?:s|ged)?[ -]?(?:in|on|into)|sign(?:s|ed)?[ -]?(?:in|on|into)|logge|anmelden|einloggen|inicia\w* sesión|connecte\w*|acced\w+|"
    r"inicia\w* sessão|inloggen|log in|meld\w* (?:\w+ )?an|accounts?|logins?|konten|cuentas|comptes|contas)"
)
"""Words of a sentence about entering an account."""
SPARE_CODES = r"(?:recovery|backup|back-up|reset|scratch|2fa|wiederherstellungs|ersatz|backup-)[ -]?codes?|códigos? de (?:recuperaci[óo]n|respaldo|recuperação)|codes? de (?:récupération|secours)|codici di (?:recupero|backup)|herstelcodes?"
"""Codes that replace a password once."""

_IDENTITY_WORDS = (
    r"ssn|social security|num[ée]ro de sécu|sécu|national insurance|ni number|nino|dni|nie|nif|nuss|codice fiscale|cf(?=\s?:)|insee|nir|numéro de sécurité sociale"
    r"|bsn|burgerservicenummer|sofinummer|cpf|rg|nif|cartão de cidadão|steuer-?(?:id|nummer|identifikationsnummer)|sozialversicherungsnummer|rentenversicherungsnummer"
    r"|passport|reisepass\w*|passnummer|pasaporte|passeport|passaporto|passaporte|paspoort\w*|(?:personal)?ausweis\w*|id[ -]?(?:card|number)|identity (?:card|number)"
    r"|identitätskarte|carte d'identité|carta d'identità|carné|documento de identidad|bilhete de identidade|identiteitskaart|rijbewijs\w*"
    r"|driv(?:er|ing)'?s? licen[cs]e|führerschein\w*|permis de conduire|patente|carta de condução|cnh|tax id|tin|medicare|patient id|insurance number|versichertennummer"
    r"|green card|visa number|aadhaar|pesel"
)
IDENTITY = rf"(?<![\w-])(?:{_IDENTITY_WORDS})(?![^\W_])"
IDENTITY_HINTS = (
    *(
        "ssn",
        "social",
        "sociale",
        "sécu",
        "national insurance",
        "ni number",
        "nino",
        "dni",
        "nie",
        "nif",
        "nuss",
        "fiscale",
        "cf:",
    ),
    *(
        "cf :",
        "insee",
        "nir",
        "bsn",
        "nummer",
        "cpf",
        "rg",
        "cartão",
        "steuer-",
        "steuern",
        "steueri",
        "ausweis",
        "passport",
        "reisepass",
    ),
    *(
        "passnum",
        "pasaporte",
        "passeport",
        "passaporto",
        "passaporte",
        "paspoort",
        "identi",
        "id card",
        "id-card",
        "id number",
    ),
    *(
        "carné",
        "rijbewijs",
        "licen",
        "führerschein",
        "permis",
        "patente",
        "condução",
        "cnh",
        "tax id",
        "tin ",
        "tin:",
        "medicare",
    ),
    *("patient id", "insurance number", "green card", "visa number", "aadhaar", "pesel"),
)
CARD = r"(?<![\w-])(?:credit|debit)?[ -]?(?:card|kreditkarte\w*|karte\w*|tarjeta|carte|carta|cartão|creditcard|bankpas|visa|mastercard|amex)\b"
SEED = (
    r"(?:seed|recovery|backup|wallet|mnemonic|secret recovery|wiederherstellungs|récupération|recuperación|recupero|recuperação|herstel)"
    r"[ -]?(?:phrase|phrases|words?|key|wörter|wort|frase|woorden|seed)?|mnemonic|frase semilla|phrase de récupération|seed-?phrase|wallet"
)
