"""Other requests that something is not kept: commands, modes, a pause, forgetting afterwards, and pretending. Pure."""

from __future__ import annotations

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
    rf"{_SENTENCE_START}(?:please )?(?:(?:memory|recording) off|no memory|(?:private|incognito|ephemeral|temporary|off-the-record) (?:mode|chat|message|question|note)|"
    r"privater? (?:modus|chat|nachricht)|modo (?:privado|incógnito|incognito)|mode privé|modalità privata|privémodus|privé-?modus)(?: on)?(?: please)?(?=\s*(?:[:.!–—-]|$))"
)
_PAUSING = (
    rf"{_START}(?:please )?(?:pause|stop|suspend|turn off|switch off|disable) (?:your |the )?"
    r"(?:memory|recording|saving|storing|logging|note[- ]taking|remembering|taking notes)(?= for (?:this|that|a|one|now|the next|my next)|\s*:)"
)
_NO_KEEPING = rf"{_START}(?:please )?no (?:saving|storing|recording|logging|remembering|note[- ]taking)(?: please)?(?=\s*[.,:;!)])"
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
        rf"{_START}(?:(?:let'?s |please |just )?(?:pretend(?: that)?|act (?:as if|like)) (?:(?:you|we) (?:never|did ?n[o']t|have ?n[o']t|had ?n[o']t) (?:hear|heard|read|see|seen)|i (?:never|did ?n[o']t|have ?n[o']t|had ?n[o']t) (?:say|said|tell|told|mention|mentioned|write|written))|"
        r"(?:you|u) (?:never|did ?n[o']t|have ?n[o']t) (?:hear|heard) (?:this|that|it)(?: from me)?(?=\s*(?:$|[.,;:!–—-])))",
        rf"{_START}tu(?:n sie)? (?:bitte )?so,? als (?:hättest|hätten|ob) [^.!?\n:]{{0,30}}\b(?:nicht|nichts|nie) (?:gehört|gelesen|gesagt)",
        rf"{_START}fai(?:s|tes) comme si [^.!?\n:]{{0,30}}\b(?:rien|pas|jamais) (?:entendu|lu|dit)",
        rf"{_START}ha(?:z|ga) como (?:si|que) [^.!?\n:]{{0,30}}\bno [^.!?\n:]{{0,20}}(?:oído|leído|dicho|oíste|escuch\w+)",
        rf"{_START}fa(?:i|cci|ccia)? finta [^.!?\n:]{{0,30}}\bnon [^.!?\n:]{{0,20}}(?:sentito|letto|detto)",
        rf"{_START}fin(?:ja|ge|jas) que (?:\w+ ){{0,2}}(?:não|nunca) (?:ouvi\w*|leu|leste|disse|escut\w+)|{_START}fa(?:z|ça) de conta que (?:\w+ ){{0,2}}(?:não|nunca) \w+",
        rf"{_START}doe alsof [^.!?\n:]{{0,30}}\b(?:niet|niets|nooit) (?:gehoord|gelezen|gezegd)",
    )
)

COMMAND = re.compile(_COMMAND)
PHRASES = re.compile("|".join((_MODE, _PAUSING, _NO_KEEPING, _FORGET_AFTERWARDS, _TO_FORGET, _PRETENDING)))
