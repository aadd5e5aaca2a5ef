"""Find text that a person announces as somebody else's: "Translate this: ...", "Message de Paul : ...". Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from afterword.privacy.foreign.lines import ForeignKind, ForeignStretch
from afterword.privacy.foreign.speakers import PRONOUNS, SPEAKER_ROLES

_PAPER = (
    r"(?:e-?mails?|mails?|letters?|messages?|sms|texts?|posts?|tweets?|threads?|replies|reply|articles?|transcripts?|chats?|conversations?|dialogues?|bio|biography|logs?|pages?|web ?pages?"
    r"|web ?sites?|sites?|blogs?|reviews?|essays?|stor(?:y|ies)|poems?|lyrics|songs?|documents?|docs?|files?|papers?|reports?|contracts?|cvs?|r[ée]sum[ée]s?|ads?|adverts?|listings?|snippets?"
    r"|excerpts?|passages?|paragraphs?|quotes?|quotations?|scripts?|outputs?|json|html|markdown|interviews?|statements?|testimonials?|comments?|newsletters?|press releases?|descriptions?|wikipedia"
    r"|nachricht(?:en)?|brief|bericht|zitat|mensaje|carta|lettre|messaggio|lettera|mensagem|candidature|opini[oó]n|bewertung|rezension|avis|recensione|avaliação)"
)
_SPOKE = (
    r"(?:wrote|writes|said|says|replied|replies|answered|answers|texted|told (?:me|us)|posted|sent(?: me| us)?(?: this)?|goes|reads|schrieb|sagt|escribió|a écrit|ha scritto|escreveu|schreef"
    r"|schreibt|sagte|meinte?|antwortete?|escribe|dice|dijo|écrit|dit|a dit|scrive|ha detto|escreve|diz|disse|schrijft|zegt|zei)"
)
_HEADED = r"(?:lyrics|poem|transcript|chat|conversation|sms|tweet|thread|letter|essay|excerpt|passage|interview|sentence \d{1,2}|opini[oó]n|bewertung|rezension|avis|recensione|dialog(?:ue)?)"
_ASKING = (
    r"(?:(?:hi|hey|hello|ok|okay|so|now|and|also|then|please|pls|just|can you|could you|would you|will you|i need you to|help me|kannst du|könntest du|können sie|bitte|por favor"
    r"|puedes|podrías|peux-tu|pourrais-tu|pouvez-vous|s'il te plaît|puoi|potresti|per favore|podes|pode|você pode|poderia|kun je|kunt u|wil je|graag|alsjeblieft)\b[, ]{0,2}){0,4}"
)
_WORK = (
    r"(?:translate|proof-?read|summari[sz]e|rewrite|reword|rephrase|paraphrase|shorten|polish|transcribe|spell-?check|correct|improve|tl;?dr|analy[sz]e|classify|parse|extract|übersetze?|zusammenfassen|traduce|traduis|traduci|traduza|vertaal|resume|résume|riassumi"
    r"|korrigiere?n?|lektorieren?|verbessere?n?|fasse?|corrig(?:e|ez|er|ir|i)|corrij[ae]|corregir|correggi|correggere|mejorar?|traducir|traduzca|traduis(?:ez)?|traduire|traduci|tradurre|traduz(?:a|ir)|améliore[rz]?|resum(?:a|ir)|résume[rz]?|riassumere|migliora(?:re)?|melhor(?:a|e|ar)|reescrev[ae]|verbeter|vertalen|vat (?:dit|deze|het|de)"
    r"|fix (?:the|my|this|its) (?:grammar|spelling|text|typos|english|wording|sentence)|code (?:these|this)|sum up)"
)
_TEXT = r"(?:text|satz|texto|frase|texte|phrase|testo|tekst|zin|das|dies\w*|esto|ceci|ça|questo|isto|dit|deze)"
# A short first sentence about a text, in whatever words: "Can you check this paragraph?", "Sentiment of: ...".
_LANGUAGE_WORK = (
    r"(?:paragraph|sentence|spelling|grammar|wording|sentiment|tone|homework|absatz|satz|rechtschreibung|frase|párrafo|ortografía|phrase|paragraphe|"
    r"testo da \w+|zin|alinea|input text|freundlicher|höflicher|kürzer|korter|shorter|politer|reformule[rz]?)"
)
_OF = r"(?:from|by|of|von|de|del|di|da|do|van|par|d')"
# "Summarise claim C-7788: ...": what follows is what the person says of a case of their own.
_CASE = r"[^\n:.!?]{0,40}(?-i:\b[A-Z]{1,8}-?\d{1,12}\b)"
_ANNOUNCEMENTS = "|".join(
    (
        rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}{_WORK}\b(?!{_CASE})[^\n:.!?]{{0,120}}(?::(?=\s)|[ \t]?\n)",
        rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}{_WORK}\b[^\n:.!?]{{0,60}}\b(?:following|this|below)\b[^\n:.!?]{{0,40}}\.(?=\s)",
        rf"\b(?:here(?:'s| is| are| comes?)|this is|below is|got|received|found|read|from|saw|copied|pasted?|forwarding|what does|what is|look at|check out|see|think of|think about|make of|opinion (?:on|of|about))\b(?! (?:my|our|not|for)\b)[^\n:.!?]{{0,80}}\b{_PAPER}\b[^\n:.!?]{{0,60}}:(?=\s)",
        rf"\b(?:the|this|that|his|her|their|[A-Z][\w-]{{1,30}}'s) (?:\w{{1,20}} )?{_PAPER}(?: \w{{1,20}}){{0,3}} (?:says|said|reads|states|goes|is|was|starts?|begins?):(?=\s)",
        rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}(?:{_TEXT} (?:\w{{1,20}} ){{0,3}}(?:korrigieren|übersetzen|verbessern|corrigeren|verbeteren|vertalen|samenvatten)|{_WORK} (?:\w{{1,20}} ){{0,2}}{_TEXT}\b[^\n:.!?]{{0,60}}|{_TEXT} (?:\w{{1,20}} ){{0,2}}{_WORK})\s?[:.?]?(?=\s*\n)",
        rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}{_WORK}\b[^\n:.!?]{{0,60}}(?:->|→|=>)(?=\s)",
        rf"\b{_PAPER}(?: \w{{1,20}}){{0,2}} {_OF} (?:[^\n:.!?]|\([^()\n]{{0,40}}\)){{1,60}}:(?=\s)",
        rf"^[ \t]{{0,8}}(?!(?:my|our)\b)(?:\w{{1,20}} ){{0,2}}{_PAPER} {_OF} [^\n:]{{1,60}}\n",
        rf"^[ \t]{{0,8}}(?:\w{{1,20}} ){{0,2}}{_HEADED}(?: [\w#+]{{1,20}}){{0,3}}(?:\s?\([^()\n]{{1,40}}\))?\s?:(?=\s)",
        rf"\b[\w-]{{1,30}}['’]s {_PAPER}\b[^\n:.!?]{{0,40}}:(?=\s)",
        rf"\b(?:{'|'.join(sorted(SPEAKER_ROLES - PRONOUNS))})['’]s (?:\w{{1,20}} ?){{1,6}}:(?=\s)",
        r"\b(?:says|said|reads|states|goes|wrote) (?:the following|this|as follows)\.(?=\s)",
        rf"@\w{{1,30}} {_SPOKE}\b:?(?=\s)",
        r"\b(?:examples?|samples?|tests?) (?:prompts?|messages?|inputs?|sentences?|cases?|requests?)\b[^\n:]{0,40}:(?=\s)",
        r"\b(?:tests?|regex|example|pattern|rule)\b[^\n:.!?]{0,30}\bfor the (?:message|sentence|input|prompt|request|words?)\b(?=\s)",
        rf"\b(?:mein\w{{0,2}}|unser\w{{0,2}}|mon|ma|notre|mi|nuestr[oa]|mio|mia|meu|minha|mijn|onze|der|die|le|la|el|il|lo|o|de|het) (?:\w{{1,20}} ){{1,3}}?{_SPOKE}(?: \w{{1,20}}){{0,3}}\s?:(?=\s)",
        rf"\b(?:he|she|they|(?-i:[A-ZÀ-Þ])[\w'-]{{1,30}}) {_SPOKE}\b(?: [\w']{{1,20}}){{0,5}}:(?=\s)",
        r"\b(?:my|our|the|an?|some|this) (?:\w{1,20} ){1,3}?(?:wrote|writes|posted|texted|e?mailed|replied)\b(?: [\w']{1,20}){0,3}:(?=\s)",
        rf"\b(?:my|our|the|an?|some|this) (?:\w{{1,20}} ){{1,3}}?{_SPOKE}\b(?: [\w']{{1,20}}){{0,3}}:(?=\s[^\n]{{0,60}}\b(?:I|I'm|my|me)\b)",
        rf"^[^\n:.!?]{{0,60}}\b{_LANGUAGE_WORK}\b[^\n:.!?=]{{0,40}}(?:[:?=]|(?=\n))(?=\s)",
        r"\b(?:spell|grammar) ?-?check(?:er)?\b[^\n:.!?]{0,40}[.:](?=\s)",
        r"\bas (?:[\w']{1,20} ){1,4}(?:puts?|said|says|wrote) it:(?=\s)",
        r"\bin (?:his|her|their|[A-Z]\w{1,20}['’]s) (?:own )?words,(?=\s)",
        r"\b(?:homework|essay|letter|note|post|e?mail|message|review|article|page) (?:says|reads)(?=\s)",
        r"\b(?:pasted?|copied|copy-?pasted?|quoting|quoted?|verbatim|excerpt|zitat|cita|citation|citazione|citação|citaat)\b[^\n:.!?]{0,40}:(?=\s)",
        r"\b(?:following|below|this) (?:was|is|came|comes) (?:\w{1,20} ){0,2}(?:from|by|written by|sent by|on)\b[^\n:.!?]{0,60}:(?=\s)",
    )
)
_POINTING = re.compile("following|this|below|for the|->|→|=>|@|words|says|reads|goes|check|=", re.IGNORECASE)
_ENCLOSED = re.compile(r'\s{0,8}(?:["“„«`<>\']|```|~~~|\[)')


def find_announced_text(text: str) -> Iterator[ForeignStretch]:
    """Yield the stretch after an announcement, to the end of the text, unless it begins with quotation marks or markup."""
    # Every announcement contains one of these signs.
    if ":" not in text and "\n" not in text and not _POINTING.search(text):
        return
    for match in _announcement().finditer(text):
        if not _ENCLOSED.match(text, match.end()):
            yield ForeignStretch(match.end(), len(text), ForeignKind.INTRODUCED)
            return


@cache
def _announcement() -> re.Pattern[str]:
    """Return the pattern of announcements. Compiling it takes a tenth of a second, so it waits until it is needed."""
    return re.compile(_ANNOUNCEMENTS, re.IGNORECASE | re.MULTILINE)
