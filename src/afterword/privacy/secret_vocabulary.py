"""The words that announce a secret, by language, as alternatives of regular expressions. Pure.

The tables by language cover all documented languages: English, German, Spanish, French, Italian, Portuguese, Dutch.
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

PASSWORD_HINTS = tuple(
    (
        "passw|passc|passp|pass c|pass p|pass w|pass-|_pass|\"pass|'pass|<pass|pwd|pw|kennwort|codewort|"
        "geheimwort|losungswort|contrase|clave|palabra clave|passe|mdp|parola|chiave|chave|senha|palavra|"
        "wachtwoord|sleutel|wi-fi|wifi|wlan|wpa|netz|network|netwerk|hotspot|router|internet|secret word|"
        "code word|codeword|master key|master-key|toegangscode|réseau"
    ).split("|")
)
WEAK_PASSWORD_HINTS = tuple(
    (
        "pass|clave|ww|login|log-in|cred|zugangsdaten|identifiant|credencia|credenzia|inloggegevens|"
        "geheimwort|chiave|chave"
    ).split("|")
)

_COMPOUNDS = (
    r"manag\w+|reset\w*|polic\w+|protect\w*|hints?|fields?|length|strength|rules?|hash\w*|generators?|recovery|chang(?:e|er)\b"
    r"|expir\w*|less|based|prompts?|forms?|pages?|requirements?|history|attempts?|lists?|files?|vaults?|apps?|tools?|checkers?"
    r"|guess\w*|crack\w*|spray\w*|stuff\w*|input|box|column|encoder|verif\w+|valid\w+|authentication|auth|encryption"
    r"|verwaltung|tresor|änderung|schutz|geschützt|manager"
)
NO_COMPOUND = rf"(?![\w-]{{0,3}}(?:[- ]|(?<=-))(?:{_COMPOUNDS})\b)(?!-(?:{_COMPOUNDS}))"
"""Excludes compounds after a word for a password: "password manager"."""

_COPULAS = {
    "en": r"is|was|are|were|be|becomes?|will be|would be|should be|has been|reads?|says|equals|remains|stays|'s|goes|(?:(?:is|was) )?(?:called|named)",
    "de": r"ist|sind|lautet|lauten|war|wird|bleibt|heißt|heisst|hieß|hiess|wäre|sei",
    "es": r"es|era|fue|será|sería|sigue siendo|son|se llama(?:ba)?",
    "fr": r"est|c'est|c'était|était|sera|serait|reste|devient|sont|s'appel(?:le|ait)",
    "it": r"è|sono|era|sarà|sarebbe|rimane|resta|diventa|si chiama(?:va)?",
    "pt": r"é|são|era|foi|será|seria|fica|chama(?:va)?-se|continua(?: a ser| sendo)?",
    "nl": r"is|was|wordt|werd|blijft|luidt|zijn|zou|heette?",
}
_ADVERBS = (
    r"now|still|currently|just|simply|always|set to|changed to|called|jetzt|nun|weiterhin|immer noch|noch|neu|ahora|aún|"
    r"todavía|ahora|maintenant|désormais|toujours|encore|ora|adesso|ancora|agora|ainda|nu|nog|voortaan|probably|maybe|"
    r"again|wieder|also|auch"
)
IS = rf"{_any_of(_COPULAS)}(?:\s(?:{_ADVERBS})(?=[\s:])){{0,3}}"
"""The words that link the name of a secret with its value, such as "is now"."""

ASSIGNS = r"[\"'`*_\])\\]{0,4}\s{0,3}(?:=>|:=|==?|->|→|➜|:|–|—)\s{0,3}"
"""The signs that link a name with its value: a colon, an equals sign, an arrow."""

TO = (
    r"(?:\s(?:to|auf|zu|in|a|en|para|naar|als|of|geändert|changed|veranderd|gewijzigd|now|jetzt|ahora|maintenant|ora|agora|nu|"
    r"also|namely|nämlich|mit|with)){0,3}"
)
"""The words between a word for a password and its new value, such as "changed to"."""

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
        "nl": r"(?:api|toegangs|licentie|geheime)[ -]?(?:sleutel|token)",
    }
)
NO_SECRET_KEY = r"public key|primary key|foreign key|cache key|sort key|partition key|idempotency key|fingerprint|clave pública|clé publique|öffentliche\w* schlüssel|checksum|commit|sha-?\d{0,3}sum"
"""Words of sentences in which a long number is no secret."""

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

LOCK = _any_of(
    {
        "en": r"(?:burglar )?alarm|lock ?box|key ?box|key ?safe|safe|vault|keypad|intercom|(?:pad|bike ?|combination ?|number ?)?lock|locker|gate",
        "de": r"alarm(?:anlage)?|(?:[a-zäöüß]{2,14}-?)?(?:tor|tresor|safe|schloss|sperre)|schlüssel(?:box|kasten)|spind|schließfach|tastenfeld|bedienfeld",
        "es": r"alarma|caja fuerte|(?:caj(?:it)?a|caja de seguridad) (?:de|con)(?: la)?(?: las)? llaves?|candado|portón|taquilla|teclado|verja|cancela",
        "fr": r"alarme|portail|portillon|coffre(?:-fort)?|digicode|cadenas|interphone|boîte à clés|antivol|casier",
        "it": r"allarme|antifurto|cancell(?:o|etto)|portone|cassaforte|cassetta (?:delle|di) (?:chiavi|sicurezza)|lucchetto|citofono|tastierino|armadietto",
        "pt": r"alarme|port(?:ão|ãozinho)|cofre|caix(?:inh)?a (?:de|das) chaves|cadeado|armário|cacifo|teclado",
        "nl": r"(?:(?:[a-z]{2,12})?(?:alarm|poort|kluis|slot|hek)|sleutelkast)(?:t?je)?|lockertje",
    }
)
"""Things that a number opens or switches off. The words mean little else."""

PLACE = _any_of(
    {
        "any": LOCK,
        "en": r"(?:front |back |side )?door|garage|entry|entrance|building|suitcase|elevator|stairwell|lobby|panel|storage|shed|barn|office|basement|cellar|parking|car ?park|pool|gym|tv|telly|television|box",
        "de": r"(?:[a-zäöüß]{2,14})?tür(?:chen)?|garage|briefkasten|(?:hinter|haupt|neben|seiten|vorder|personal|liefer(?:anten)?)?eingang|koffer|[a-zäöüß]{0,12}keller|schwimmbad|büro|tiefgarage|schranke|fernseher|kasten|kästchen|box",
        "es": r"puerta|portal|garaje|entrada|edificio|maleta|panel|trastero|barrera|oficina|piscina|tele|televisor|caj(?:it)?a",
        "fr": r"porte|immeuble|garage|entrée|clavier|boîtier|cave|hall|barrière|grille|bureau|piscine|télé|boîte",
        "it": r"porta|garage|ingresso|palazzo|cantina|box|sbarra|ufficio|piscina|valigia|tv|cassetta",
        "pt": r"porta|garagem|entrada|prédio|portaria|painel|cave|cancela|escritório|piscina|mala|caix(?:inh)?a",
        "nl": r"(?:(?:voor|achter|garage)?deur|garage|ingang|gebouw|berging|slagboom|kantoor|zwembad|koffer|tv|kast)(?:t?je)?|paneel",
    }
)
CODE = _any_of(
    {
        "en": r"(?:pass|key)?-?codes?|combinations?|combo|pins?|(?:key ?)?pad|(?:\d|four|six|eight)[ -]digit",
        "de": r"[a-zäöüß]{2,14}-?code|(?:zahlen)?kombination|tastenfeld|bedienfeld|[a-zäöü]{3,6}stellige\w? (?:zahl|nummer)",
        "es": r"c[óo]digos?|combinaci[óo]n|teclado",
        "fr": r"digicode|combinaison|clavier|boîtier",
        "it": r"codic[ei]|combinazione|tastierino",
        "pt": r"c[óo]digos?|combinação|segredo|teclado",
        "nl": r"combinatie|paneel",
    }
)
"""Words for a number that opens something."""
NO_SECRET_CODE = (
    r"(?:error|status|exit|zip|area|post|postal|promo|source|country|fault|discount|return|response|county|dress|product|coupon|referral|booking|tracking|"
    r"voucher|colou?r|order|building|(?:air|sea)port|sort|tax|bar|course|class|morse|machine|reason|fehler|gutschein|rabatt|aktions|quell|farb|kurs|promo|source|fout|kortings|actie|land|bron)[ -]?codes?\b"
    r"|\bqr[ -]code|barcode|vorwahl|postleitzahl|\bc[óo]d(?:igo|ice) (?:postal|de barras|penal|civil[e]?|de conduta|de conducta|de erro|de error|di errore|di avviamento|promocional|promozionale|sconto|de descuento|de desconto|della strada|a barre|fonte|fuente|sorgente|de rastreio|de seguimiento)"
    r"|\bcode (?:camp|base|freeze|coverage|club|postal|barres?|promo|couleur|civil|pénal|du travail|de la route|d'erreur|source|review|of conduct)|\blines? of code"
)
TYPING = (
    r"(?:put(?:s|ting)?|set|dial(?:l?ed)?|choose|chose|used?|turn|stell\w{0,3}|(?:ein)?gestellt|gezet|genommen|nimm\w{0,3}|poniendo|pus[oe]?|puest[oa]|pong[ao]|metti\w{0,3}|mett[oe]|mess[oa]|mets|mise?|ponho|põe|pôs|zet|stel|vul|enter(?:s|ing)?|typ(?:e|es|ing)|press|dial|punch|key(?:ing)? in|hit|tipp\w{0,3}|(?:ein|tipp)\w{0,6}tippen|gib|gibst|gebt|gebe|geben|eingeben|drück\w{0,3}|wähl\w{0,3}|marca[rs]?|teclea[rs]?|introdu\w{1,6}|pulsa[rs]?|pon(?:e[rs]?)?"
    r"|tape[rsz]?|compose[rz]?|saisi\w{0,4}|fais|digit\w{1,4}|prem[ie]\w{0,3}|inseri\w{0,4}|compon\w{1,3}|marque|tecl\w{1,3}|insir\w|toets\w{0,3}|intoetsen|voer|tik)"
)
"""Verbs for entering a number on a keypad."""
OPENING = (
    r"(?:opens?|opened|unlocks?|turns? (?:it )?off|switch(?:es)? off|shuts? (?:it )?(?:off|up)|disarm\w*|deactivat\w*|öffne\w*|entsperr\w*|entschärf\w*|deaktivier\w*|abr[aei]\w*|desactiv\w*|ouvr\w*|désactiv\w*|coup\w{1,3}"
    r"|apr[eio]\w*|disattiv\w*|spegn\w*|desativ\w*|deslig\w*|apag\w*|open(?:t|en)|ontgrendel\w*|uitschakel\w*|geht|schalt\w*|gaat|locked|gesperrt|bloquead[oa]|verrouillé|bloccat[oa]|vergrendeld|desbloque\w*|déverrouill\w*|débloqu\w*|sblocc\w*"
    r"|(?:get|gets|come|comes|go|goes|let|lets|buzz\w*) (?:you |me |us |them )?(?:in(?:to)?|past|through)|komm\w* (?:\w{2,6} )?(?:rein|hinein)|kommt man|entr(?:a|as|e|es|ez|i|o|ar|are|er)|ko(?:m|mt) (?:\w{2,4} )?(?:\w{3,12} )?(?:binnen|in)|set to|changed to)"
)
"""Verbs for opening a door, entering a building or switching off an alarm."""
VERIFYING = (
    r"(?:sms|texts?|texted|e?-?mails?|bank\w*|sent|send|received|got|arrived|verif\w*|confirm\w*|2fa|two-factor|authenticat\w*|whatsapp|google|paypal|bekommen|geschickt|gekommen|erhalten|bestätig\w*|banco|llegado|llegó|recib\w*|enviad\w*|mandad\w*"
    r"|banque|envoyé|texté|reçu|valid\w*|banca|arrivato|ricevuto|mandato|chegou|recebi|enviou|mandou|kreeg|gekregen|gestuurd|bevestig\w*|log-?in|sign-?in|anmeld\w*|einmal\w*)"
)
"""Words for how a one-time code is sent, and for what it is used."""

LOCKING = (
    r"(?:unlock\w*|(?:password[ -]?)?protected|encrypted|entsperr\w*|verschlüsselt|geschützt|desbloque\w*|cifrad[oa]|protegid[oa]|déverrouill\w*"
    r"|chiffré\w*|protégé\w*|sblocc\w*|cifrat[oa]|protett[oa]|encriptad[oa]|ontgrendel\w*|versleuteld|beveiligd)"
)
"""Verbs for what a password does to a device or a file."""
LOCKED = r"zip|archiv\w*|pdf|excel(?:sheet|datei|bestand)?|files?|\w{0,8}datei|archivo|fichier|arquivo|\w{0,8}bestand|drive|stick|disk|festplatte|disco|schijf|spreadsheet|planilha|document\w*|backups?|bios"
DEVICE = r"(?:i|smart)?phone|ipad|handy\w{0,8}|kindle|\w{0,8}(?:computer|rechner)|notebook|tablet|laptop|ordenador|portátil|ordinateur|computador|screen|handy|telefon|bildschirm|teléfono|móvil|pantalla|téléphone|portable|écran|telefono|cellulare|schermo|telemóvel|celular|telefoon|scherm"
"""Devices that are unlocked with a number."""
HOME = r"house|home|cabin|cottage|flat|apartment|haus|wohnung|ferienwohnung|casa|piso|maison|appart(?:ement)?|appartamento|huis"
"""Where people live. A number beside these words may also be a price or a house number."""
OPENED = rf"(?:{PLACE}(?:s|n|en|es)?|{HOME}|{DEVICE}|{LOCKED})"
"""Everything that a number opens."""
SIGNING_IN = (
    r"(?:log(?:s|ged)?[ -]?(?:in|on|into)|sign(?:s|ed)?[ -]?(?:in|on|into)|logge|anmelden|einloggen|inicia\w* sesión|connecte\w*|acced\w+|"
    r"inicia\w* sessão|inloggen|log in|meld\w* (?:\w+ )?an|meld\w* sich|entr(?:a|as|o|ar) (?:en|no|na)|lo[gt]t|accounts?|logins?|\w{0,8}kont(?:en|o)|cuentas?|comptes?|contas?|bios|portal)"
)
"""Words of a sentence about logging in."""
ACCESS = rf"(?:{WEAK_PASSWORD}|{NETWORK}|{SIGNING_IN}|{LOCKING})"
"""All words about access to an account, a network or a device."""
EMAIL = r"[^\s@]{1,60}@[^\s@]{1,60}\.[a-z]{2,10}"
SPARE_CODES = r"(?:recovery|backup|back-up|reset|scratch|2fa|wiederherstellungs|ersatz|backup-)[ -]?codes?|códigos? de (?:recuperaci[óo]n|respaldo|recuperação)|codes? de (?:récupération|secours)|codici di (?:recupero|backup)|herstelcodes?"
"""Codes that replace a password once."""

_IDENTITY_WORDS = (
    r"(?-i:EIN)|\w{0,18}versicher(?:ung|ungs|ten)\w{0,8}nummer|rentenversicherung|carte vitale|medicare(?: card| number)?|ssn|social security|num[ée]ro de sécu|sécu|national insurance|ni (?:number|no)|nhs(?: number)?|utr|n[úu]mero (?:de la |de )?(?:seguridad|segurança) social|num[ée]ro fiscal|n[úu]mero de contribuinte|nino|dni|nie|nif|nuss|codice fiscale|cf(?=\s?:)|insee|nir|numéro de sécurité sociale"
    r"|bsn|burgerservicenummer|sofinummer|cpf|rg|nif|cartão de cidadão|steuer-?(?:id|nummer|identifikationsnummer)|sozialversicherungsnummer|rentenversicherungsnummer"
    r"|passport|reisepass\w*|passnummer|pasaporte|passeport|passaporto|passaporte|paspoort\w*|(?:personal)?ausweis\w*|id[ -]?(?:card|number)|identity (?:card|number)"
    r"|identitätskarte|carte d'identité|carta d'identità|carné|documento de identidad|bilhete de identidade|identiteitskaart|rijbewijs\w*"
    r"|driv(?:er|ing)'?s? licen[cs]e|führerschein\w*|permis de conduire|patente|carta de condução|cnh|tax id|tin|medicare|patient id|insurance number|versichertennummer"
    r"|green card|visa number|aadhaar|pesel"
)
IDENTITY = rf"(?<![\w-])(?:{_IDENTITY_WORDS})(?![^\W_])"
IDENTITY_HINTS = tuple(
    (
        "ssn|social|sociale|sécu|national insurance|ni n|ein|versicher|vitale|nhs|utr|fiscal|contribuinte|"
        "nino|dni|nie|nif|nuss|fiscale|cf:|cf :|insee|nir|bsn|nummer|cpf|rg|cartão|steuer-|steuern|steueri|"
        "ausweis|passport|reisepass|passnum|pasaporte|passeport|passaporto|passaporte|paspoort|identi|"
        "id card|id-card|id number|carné|rijbewijs|licen|führerschein|permis|patente|condução|cnh|tax id|"
        "tin |tin:|medicare|patient id|insurance number|green card|visa number|aadhaar|pesel"
    ).split("|")
)
CARD = r"(?<![\w-])(?:credit|debit)?[ -]?(?:card|\w{0,8}karten?\w{0,6}|tarjeta|carte|carta|cartão|creditcard|\w{0,6}pas|visa|mastercard|amex)\b"
SECURITY_QUESTION = (
    r"(?:safe|code) ?word|alarm (?:phrase|word)|codewort|losungswort|memorable (?:word|date|name)|secret word|geheimwort|kennwort|palabra (?:clave|secreta)|mot secret|parola segreta|palavra secreta|geheime? woord|(?:security|secret|recovery|reset) (?:question|answer)s?|sicherheits(?:ab)?frage\w*|geheimfrage|(?:pregunta|respuesta) (?:de seguridad|secreta)|(?:question|réponse) (?:secrète|de sécurité)"
    r"|(?:domanda|risposta) (?:segreta|di sicurezza)|(?:pergunta|resposta) (?:d[ea] (?:segurança|pergunta secreta)|secreta)|(?:beveiligings|veiligheids|geheime? )(?:vraag|antwoord)"
)
"""Names of a question whose answer opens an account."""
CARD_CODE = (
    r"cvc2?|cvv2?|csc|cid|security code|prüfziffer|(?:karten)?prüfnummer|kartenprüfziffer|sicherheitscode|cryptogramme?|c[óo]digo de seguran[çz]a|c[óo]digo de seguridad|codice di sicurezza|beveiligingscode"
    r"|(?:three|3|drei|tres|trois|tre|três|drie) (?:(?:last|letzten|últimos) )?(?:digits|numbers|ziffern|zahlen|cifras|números|dígitos|chiffres|cifre|numeri|cijfers) "
    r"(?:(?:on|at|in) (?:the )?(?:back|reverse)|auf der (?:rückseite|karte)|hinten|rückseitig|(?:de )?(?:atrás|detrás|trás)|del (?:reverso|dorso)|au (?:dos|verso)|derrière|(?:sul )?retro|dietro|no verso|op de (?:achterkant|kaart)|achterop)"
    r"(?! (?:of|der|von|de|della?|do|van) (?:(?:the|my|la|ma|mia|minha|mijn|meiner) )?+(?!card|karte|kreditkarte|tarjeta|carte|carta|cartão|kaart|it\b)\w)"
)
"""Names of the code of three or four digits on a card."""
PERSONAL_TOPIC = (
    r"maiden name|(?:first )?(?:pet)|first (?:school|car|teacher|street|job|concert)|(?:pet|dog|cat)'?s name|birth ?(?:town|place)|mädchenname|geburtsname|erste[srn]? (?:haustier|schule|auto|lehrer\w*)|geburtsort|apellido de soltera|primer[a]? (?:mascota|colegio|coche|escuela)"
    r"|nom de jeune fille|premi[eè]re? (?:animal|chien|chat|école|voiture)|cognome da nubile|prim[oa] (?:animale|cane|gatto|scuola|auto)|nome de solteira|primeir[oa] (?:animal|cão|gato|cachorro|escola|carro)|meisjesnaam|eerste (?:huisdier|school|auto)"
)
MAIDEN_NAME = r"maiden name|mädchenname\w?|geburtsname\w?|apellido de soltera|nom de jeune fille|cognome da nubile|nome de solteira|meisjesnaam"
ASKING_IN = (
    r"security|reset|recover\w*|verif\w*|log ?in|sign ?in|bank\w*|hotline|ask(?:s|ed)?|sicherheit\w*|zurücksetz\w*|frag(?:t|en)|abfrag\w*|seguridad|recuper\w*|banco|pregunt\w*|pide\w*|sécurité|réinitialis\w*|banque|demand\w*"
    r"|sicurezza|recupero|banca|chied\w*|segurança|recuperação|perg\w*|ped\w*|beveilig\w*|herstel\w*|vraag|vragen|vraagt"
)
"""Words of a sentence in which somebody asks for the answer to a security question."""
SEED = (
    r"(?:seed|recovery|backup|wallet|mnemonic|secret recovery|wiederherstellungs|récupération|recuperación|recupero|recuperação|herstel)"
    r"[ -]?(?:phrase|phrases|words?|key|wörter|wort|frase|woorden|seed)?|mnemonic|frase semilla|phrase de récupération|seed-?phrase|wallet"
)
