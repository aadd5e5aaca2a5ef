"""Regular expressions for requests not to store something. Pure.

They match common wordings, commands such as "/private", modes, a pause of the memory, and requests to forget something
afterwards or to pretend that it was not said.
"""

import re

_START = r"(?:^|(?<=[.!?;:,(\[–—-])|(?<=\bbut)|(?<=\band)|(?<=\bok)|(?<=please))\s*"
_SENTENCE_START = r"(?:^|(?<=[.!?;:\n(]))\s*"
_STORES = r"(?:save|store|keep|log|record|remember|memor(?:y|ise|ize)|track|note|persist|retain)"
_COMMAND = (
    rf"\A\W{{0,3}}[/!#](?:(?:do[-_]?n['o]?t?|dont|no|never|stop|skip|without)[-_ ]?{_STORES}(?:[-_]?(?:this|it|that))?"
    rf"|(?:memory|recording)[-_ ]?off|off[-_ ]?memory|private|incognito|ephemeral|temporary|temp[-_ ]?chat|secret|confidential|otr|forget[-_]?(?:this|that|it)"
    rf"|privat|privé|privado|privato|inkognito)(?![\w/.])"
)
_MODE = (
    rf"{_SENTENCE_START}(?:please )?(?:(?:memory|recording) off|no memory|forget-me mode|(?:private|incognito|ephemeral|temporary|off-the-record) (?:mode|chat|message|question|note)|"
    rf"privater? (?:modus|chat|nachricht)|modo (?:privado|incógnito|incognito)|mode privé|modalità privata|privémodus|privé-?modus)(?: on)?(?: please)?(?=\s*(?:[:.!–—-]|$))|{_SENTENCE_START}(?:please )?(?:strictly |just )?(?:incognito|in private|off the books|unrecorded|ephemeral|not for storage)(?: please)?(?=\s*:)"
)
_MEMORY_OFF = (
    rf"{_START}(?:bitte |por favor |s'il te plaît |per favore )?(?:gedächtnis aus|(?:speicher|aufzeichnung) aus|(?:memoria|memória) (?:apagada|desativada|desligada|desactivada|spenta|off)"
    r"|mémoire (?:coupée|désactivée|off)|geheugen uit)(?=\s*(?:[.:!,–—-]|$))"
)
_PAUSING = (
    rf"{_START}(?:please )?(?:pause|stop|suspend|turn off|switch off|disable) (?:your |the )?"
    r"(?:memory|recording|saving|storing|logging|note[- ]taking|remembering|taking notes)(?:,? please)?(?= for (?:this|that|a|one|now|the next|my next)|\s*[:,])"
)
_NO_KEEPING = rf"{_START}(?:please )?no (?:saving|storing|recording|logging|remembering|note[- ]taking)(?: please)?(?=\s*[.,:;!)])"
_NOT_SAVED = (
    rf"{_START}(?:please |so |and )?(?:(?:do ?n[o']?t|do not|never) (?:save|store|record|remember|memori[sz]e|retain)"
    r"|(?:bitte )?nicht (?:ab|mit)?(?:speichern|merken|loggen|notieren|aufzeichnen|aufschreiben|protokollieren)|no (?:guardar|guardes|recordar|memorizar)"
    r"|ne pas (?:enregistrer|retenir|mémoriser|sauvegarder)|non (?:salvare|memorizzare|registrare)"
    r"|não (?:guardar|guardes|salvar|salves|memorizar)|niet (?:opslaan|bewaren|onthouden|loggen|noteren|opschrijven|vastleggen))"
    r"(?:,? (?:please|pls|bitte|por favor|s'il te plaît|per favore|aub|alsjeblieft|graag))?(?=\s*(?:[.!]|$))"
)
_FORGETTING = (
    r"(?:forget|delete|erase|remove|wipe)|vergiss|lösch\w*|oublie[zs]?|efface[zs]?|supprime[zs]?|olv[ií]d\w*|borr\w*|dimentica\w*|cancella\w*|"
    r"esque[cç]\w*|apag\w*|vergeet|wis|verwijder"
)
_AFTER = (
    r"as soon as|once|right (?:away|after)|immediately|straight away|after(?:wards?)?|when (?:you|we)|gleich|sofort|direkt|danach|nachher|hinterher|sobald|"
    r"tout de suite|aussitôt|après|dès que|une fois|en cuanto|después|cuando|nada más|justo|enseguida|appena|subito|dopo|una volta|"
    r"assim que|logo|depois|quando|zodra|meteen|daarna|nadat|direct"
)
_WHAT_IS_SAID = (
    r"this|that|it|what|everything|anything|all|das|dies\w*|es|alles|was|ça|ca|cela|ceci|tout|ce que|esto|eso|lo|todo|questo|ciò|"
    r"quello|tutto|isto|isso|tudo|o que|dit|dat|het|alles|wat"
)
_FORGET_AFTERWARDS = rf"{_START}(?=[^.!?\n:]{{0,100}}(?:\b(?:{_WHAT_IS_SAID})\b|\wl[oa]\b))(?:\w+ ){{0,2}}(?:{_FORGETTING})\b[^.!?\n:]{{0,40}}\b(?:{_AFTER})\b[^.!?\n:]{{0,40}}:(?!\d)"
_TO_FORGET = (
    rf"{_START}(?:to be forgotten|zum vergessen|gleich vergessen|à oublier|para (?:olvidar|esquecer)|da dimenticare|(?:meteen|direct) vergeten)"
    r"\b[^.!?\n:]{0,30}:"
)
_PRETENDING = "|".join(
    (
        rf"{_START}(?:(?:let'?s |please |just )*(?:pretend|act|treat|consider|regard)\b[^.!?\n:]{{0,50}}\b(?:never|did ?n[o']t|have ?n[o']t|had ?n[o']t|was ?n[o']t|not)\b[^.!?\n:]{{0,12}}"
        r"\b(?:say|said|tell|told|typed?|mention(?:ed)?|hear|heard|read|see|seen|write|wrote|written|shared?)|"
        r"(?:you|u) (?:never|did ?n[o']t|have ?n[o']t) (?:hear|heard) (?:this|that|it)(?: from me)?(?=\s*(?:$|[.,;:!–—-])))",
        rf"{_START}tu(?:n sie)? (?:bitte )?so,? als (?:hätte\w*|wär\w*|ob) [^.!?\n:]{{0,30}}\b(?:nicht|nichts|nix|nie) (?:gehört|gelesen|gesagt|geschrieben|erzählt)",
        rf"{_START}fai(?:s|tes) comme si [^.!?\n:]{{0,30}}\b(?:rien|pas|jamais) (?:entendu|lu|dit|écrit|raconté)",
        rf"{_START}ha(?:z|ga) como (?:si|que) [^.!?\n:]{{0,30}}\bno [^.!?\n:]{{0,20}}(?:oído|leído|dicho|contado|escrito|oíste|escuch\w+)",
        rf"{_START}fa(?:i|cci|ccia)? (?:finta|come se) [^.!?\n:]{{0,30}}\bnon [^.!?\n:]{{0,20}}(?:sentito|letto|detto|scritto|raccontato)|{_START}fa(?:i|cci|ccia)? come se non [^.!?\n:]{{0,20}}(?:sentito|letto|detto|scritto|raccontato)",
        rf"{_START}fin(?:ja|ge|jas) que (?:\w+ ){{0,2}}(?:não|nunca) (?:ouvi\w*|leu|leste|disse|escut\w+)|{_START}fa(?:z|ça) de conta que (?:\w+ ){{0,2}}(?:não|nunca) \w+",
        rf"{_START}doe alsof [^.!?\n:]{{0,30}}\b(?:niet|niets|niks|nooit) (?:gehoord|gelezen|gezegd|verteld|geschreven)",
    )
)

COMMAND = re.compile(_COMMAND)
PHRASES = re.compile(
    "|".join((_MODE, _MEMORY_OFF, _PAUSING, _NO_KEEPING, _NOT_SAVED, _FORGET_AFTERWARDS, _TO_FORGET, _PRETENDING))
)

_THIS = (
    r"(?:(?:any|all|nothing|none) of (?:this|that|it|what \w+(?: \w+){0,3})|what (?:i(?:'m| am)?|follows|comes) ?\w*(?: \w+){0,3}|the (?:following|next \w+)|my next \w+"
    r"|(?:this|that)(?: (?:one|part|bit|message|sentence|next \w+))?|it)"
)
MEMORY = r"(?:(?:your|the|any|my) )?(?:long-term )?(?:memory|notes|records?|logs?|files?)"
"""Names of what an assistant keeps."""
_STORE = r"(?:record|save|store|remember|memori[sz]e|log|note|keep (?:a )?(?:record|note|trace) of|keep|hold on to|write down|take notes? of|file|retain|add to (?:your )?memory)"
_STORED = r"(?:recorded|stored|saved|remembered|memori[sz]ed|logged|noted|kept|retained|filed|written down|put on (?:the )?record|on (?:the )?record|(?:for|in|part of) (?:the record|your (?:memory|notes|records?)))"
_NOT = (
    r"(?:(?:do not|don't|dont|never)(?: you dare)?|no need to|please not|(?:you|u) (?:(?:do not|don't|needn't|must not|mustn't|should not|shouldn't|may not|cannot|can't|are not to)(?: (?:need|have) to)?)"
    r"|(?:i|we) (?:do not|don't|would not|wouldn't) (?:want|like|wish)(?: for)?(?: you)? to|(?:i|we)(?:'d| would) (?:rather|prefer)(?: that)?(?: you)? (?:do not|don't|didn't|not))"
)
_CLAUSE_END = r"(?=\s*(?:$|[.,;:!?)\]–—-]|please\b|anywhere\b|in (?:your|the|any) (?:memory|notes|records?)|to (?:your )?memory|down\b|but\b|and\b|bitte\b|por favor|ok\b|either\b|saved\b|stored\b))"
_CLAUSE_START = (
    r"(?:^|(?<=[.!?;:,(\[–—-])|(?<=please)|(?<=but)|(?<=and)|(?<=so)|(?<=you)|(?<=that)|(?<=bitte)|(?<=porfavor))\s*"
)
_WISHES = "|".join(
    (
        rf"{_CLAUSE_START}{_NOT} (?:ever )?{_STORE} {_THIS}{_CLAUSE_END}",
        rf"{_CLAUSE_START}{_NOT} (?:ever )?(?:record|save|store|remember|memori[sz]e|log)(?=\s*[:)\]])",
        rf"{_CLAUSE_START}{_NOT} (?:ever )?(?:write|put|add|take|enter|copy|commit) {_THIS} (?:down|anywhere|(?:in|into|to|on|onto) {MEMORY})",
        rf"{_CLAUSE_START}(?:skip|avoid|refrain from) (?:remembering|saving|storing|recording|noting|keeping|logging|memori[sz]ing) {_THIS}{_CLAUSE_END}",
        rf"{_CLAUSE_START}make no (?:notes?|records?|mention) (?:of|about|on) {_THIS}{_CLAUSE_END}",
        rf"\b{_THIS} (?:is|are)(?: not|n't)(?: something)?(?: for you)? to {_STORE}{_CLAUSE_END}",
        rf"{_CLAUSE_START}(?:i|we) (?:do not|don't) want {_THIS}(?: to be)? {_STORED}{_CLAUSE_END}",
        rf"\b(?:make sure|ensure|see to it|take care)(?: that)? {_THIS} (?:is not|isn't|is never|does not get|doesn't get|won't be|will not be) {_STORED}",
        rf"\b(?:keep|leave|let'?s (?:keep|leave)|have) {_THIS} out of {MEMORY}|\b{_THIS} (?:stays?|remains?|is kept) out of {MEMORY}",
        rf"\b{_THIS} (?:(?:is|are|must|should|shall|may|can|will|does)(?: not|n't| never)|cannot)(?: to)?(?: be| get| go)? {_STORED}{_CLAUSE_END}",
        rf"{_CLAUSE_START}(?:pause|stop|suspend|turn off|switch off|disable) (?:your |the )?(?:memory|recording|note[- ]taking|remembering|taking notes)(?= for (?:this|that|a|one|now|the next|my next)|\s*:)",
        rf"{_CLAUSE_START}not to be {_STORED}{_CLAUSE_END}",
        rf"{_CLAUSE_START}(?:i(?:'d| would) (?:rather|prefer)(?: that| if)? {_THIS} (?:was|were|is|be)(?: not|n't)|i(?:'m| am)(?: not|n't) (?:comfortable|happy|ok|okay) (?:with|about) {_THIS} being) {_STORED}{_CLAUSE_END}",
        rf"{_CLAUSE_START}(?:treat|consider|regard|count|keep|leave|let'?s (?:treat|consider|keep|leave)) {_THIS}(?: as)? (?:un(?:said|recorded|saved|stored|logged|spoken)|ephemeral|never said|not said){_CLAUSE_END}",
        rf"{_CLAUSE_START}i(?:'d| would)? (?:like|want) {_THIS} (?:to (?:be )?)?(?:forgotten|erased|deleted|gone|vanish|disappear|evaporate) (?:as soon as|once|right (?:away|after)|immediately|straight (?:away|after)|after(?:wards?)?)\b",
        rf"{_CLAUSE_START}(?:(?:can|could|let'?s|please|may) )?(?:(?:we|you) )?(?:keep|leave|let) {_THIS}(?: just| only)?(?: right)?(?: here)?(?: just| only)? in (?:this|the|our) (?:chat|conversation|window|thread)(?: only)?{_CLAUSE_END}",
        r"\b(?:merk dir (?:das|dies)|speicher(?:e|n)? (?:das|dies)|schreib(?:e)? (?:das|dies)|notier(?:e)? (?:das|dies)|zeichne (?:das|dies))(?: bitte)? nicht"
        r"|\b(?:soll|darf|sollte) nicht (?:gespeichert|gemerkt|notiert|aufgezeichnet|behalten) werden|\bnicht zum (?:speichern|merken|aufschreiben|aufzeichnen)\b"
        r"|\bich (?:will|möchte) nicht,? dass du (?:dir )?(?:das|dies|es) (?:merkst|speicherst|notierst|aufzeichnest|behältst)"
        r"|\b(?:bitte )?nicht (?:speichern|merken|aufzeichnen|mitschreiben|protokollieren)\b|\bdarf nicht (?:gespeichert|notiert|aufgezeichnet) werden",
        r"\bno (?:lo |la |me lo )?(?:guardes?|recuerdes?|registres?|grabes?|anotes?|memorices?|apuntes?) (?:esto|eso|nada de esto)\b|\bno (?:lo|la) (?:guardes|recuerdes|registres|grabes|anotes|memorices|apuntes)\b|\bno quiero que (?:lo )?(?:guardes|recuerdes|registres|grabes|anotes)\b|\besto no (?:se guarda|es para guardar)|\bque no conste|\bno debe (?:guardarse|quedar registrado)",
        r"\bje ne (?:veux|voudrais) pas que (?:tu|vous) (?:le |la |l')?(?:retienn\w+|not\w+|gard\w+|enregistr\w+|mémoris\w+)|\bn(?:e |')(?:le |la |l')?(?:retiens|retenez|note[sz]?|garde[sz]?|enregistre[sz]?|mémorise[sz]?|conserve[sz]?) pas (?:ça|ca|cela|ceci)\b|\bne pas (?:enregistrer|retenir|noter|mémoriser) (?:ça|cela|ceci)",
        r"\bnon voglio che (?:tu )?(?:lo )?(?:salvi|ricordi|registri|memorizzi|annoti)\b|\bnon (?:salvare|ricordare|registrare|memorizzare|annotare|segnare) (?:questo|ciò)\b|\bnon (?:salvarlo|ricordarlo|registrarlo|segnarlo|annotarlo)\b",
        r"\bnão quero que (?:tu |você )?(?:guardes?|graves?|registes?|lembres?|memorizes?|anotes?)\b|\bnão (?:guardes?|graves?|registes?|registres?|lembres?|anotes?|memorizes?|salves?|guarda|grava) (?:isto|isso)\b",
        r"\bik wil niet dat je (?:dit|dat|het) (?:onthoudt|opslaat|bewaart|noteert)|^\W{0,3}niet (?:opslaan|onthouden|bewaren|noteren)\b|\b(?:sla|bewaar|onthoud|noteer|schrijf) (?:dit|dat)(?: alsjeblieft| aub)? niet\b(?: op)?|(?<!wil )\b(?:dit|dat) niet (?:opslaan|onthouden|bewaren|noteren|opschrijven)\b",
    )
)

PLAIN_WISHES = re.compile(_WISHES)
