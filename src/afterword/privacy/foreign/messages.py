"""Chats with speaker labels, mails with headers, letters with signatures, and texts that a person announces. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from afterword.privacy.foreign.given_names import GIVEN_NAMES
from afterword.privacy.foreign.lines import (
    FIRST_PERSON_WORD,
    SPEAKS_TO_SOMEBODY,
    ForeignKind,
    ForeignStretch,
    Line,
    paragraph_end,
)

# Words before a colon that introduce what the person says, not another speaker.
_TOPICS = frozenset(
    (
        "note notes nb ps pps p.s fyi edit update updates correction clarification reminder question questions answer answers request task goal goals aim "
        "context background summary tldr tl;dr btw also plan plans idea ideas problem issue issues example examples important warning hint tip tips info "
        "information details detail reason reasons result results conclusion todo status news topic title subject name names age job work occupation "
        "profession employer company home city town country address location place date dates time times day days deadline budget price cost costs "
        "diet food allergy allergies health medication preference preferences likes dislikes hobby hobbies interests family wife husband partner kids "
        "children son daughter pets pet dog cat car language languages schedule travel trip destination seat meal breakfast lunch dinner weekend monday tuesday "
        "wednesday thursday friday saturday sunday january february march april may june july august september october november december morning "
        "afternoon evening night today tomorrow yesterday first second third fourth fifth finally next then last step option options rule rules decision "
        "decisions agreed remember confirmed confession disclaimer spoiler fact facts truth thing things point points part parts section and but so or yes no ok "
        "okay well sure great thanks sorry hello hi hey oh hmm actually anyway basically honestly seriously meaning namely i.e e.g total item items list "
        "description requirements requirement constraints constraint style tone format length audience "
        "hinweis frage notiz wichtig nachtrag ziel aufgabe nota pregunta importante objetivo remarque question objectif domanda obiettivo pergunta vraag let op "
        "about us about me my me myself mine i we our side short long bonus exception exceptions caveat favourite favorite favourites setup stack hardware software "
        "phone email mail password pin http https ftp mailto re fwd fw aw wg project version"
    ).split()
)
_SPEAKER_ROLES = frozenset(
    (
        "user human customer client guest patient tenant landlord interviewer interviewee candidate applicant caller agent assistant bot ai system chatgpt gpt claude "
        "gemini copilot tool support operator moderator host reporter witness speaker narrator friend colleague boss manager teacher student doctor nurse "
        "mum mom mother dad father brother sister grandma grandpa neighbour neighbor admin sender recipient author q a "
        "benutzer kunde kundin nutzer mensch usuario cliente utilisateur utente usuário gebruiker klant"
    ).split()
)
_TITLES = frozenset(
    "mr mrs ms dr prof professor herr frau señor señora sr sra monsieur madame signor signora senhor senhora".split()
)
_DETERMINERS = frozenset(
    "my our the a an this that mein meine der die mi el la mon ma le mio mia il meu minha o mijn de".split()
)
_ABOUT_SOMEBODY = re.compile(r"\b(?:he|she|him|her|his|hers|they|them|their)\b", re.IGNORECASE)
_AFTER_NAMES = frozenset("from in at of and aus von de van".split())
_OWN_LABELS = frozenset("me i myself ich yo moi io eu ik".split())
_GENERIC_NAMES = frozenset("user human customer client you person owner me participant".split())
_STAMP = r"(?:[\[(<]?(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?\s{0,2})?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[ap]m)?[\])>]?\s{0,2}[-–—|]?\s{0,2})"
_LABEL = re.compile(
    rf"(?:[-*•]\s|\d{{1,2}}[.)]\s)?(?P<stamp>{_STAMP})?(?P<at>[@<\[(]{{0,2}})(?P<name>[^\W\d_][\w.'’&-]{{0,30}}(?:\s[\w.'’&-]{{1,30}}){{0,3}})"
    rf"[>\])]{{0,2}}(?:\s?[(\[][^()\[\]]{{1,40}}[)\]])?(?:,?\s{_STAMP})?(?P<mark>\s?[:：]|(?<=>)|\s[>»])(?:\s+|$|(?-i:(?=[A-ZÀ-Þ])))",
    re.IGNORECASE,
)
_LOGGED_DASH = re.compile(
    rf"{_STAMP}(?P<name>[^\W\d_][\w.'’&-]{{0,30}}(?:\s[\w.'’&-]{{1,30}}){{0,2}})\s[-–—]\s", re.IGNORECASE
)

_HEADERS = r"from|to|cc|bcc|sent|date|reply-to|von|an|gesendet|datum|de|para|enviado|fecha|à|envoyé|date|da|a|inviato|data|van|aan|verzonden|message-id|received|x-[\w-]{1,30}|mime-version|content-type"
_HEADER = re.compile(rf"(?:\W{{0,3}})(?:{_HEADERS})\s?:\s", re.IGNORECASE)
_SUBJECT = re.compile(
    r"\W{0,3}(?:subject|betreff|asunto|objet|oggetto|assunto|onderwerp|message-id)\s?:\s?\S", re.IGNORECASE
)
_FORWARDED = re.compile(
    r"(?:[-_=*>\s]{0,30})(?:(?:begin )?forwarded message|original message|ursprüngliche nachricht|weitergeleitete nachricht|mensaje (?:original|reenviado)|"
    r"message (?:d'origine|transféré)|messaggio (?:originale|inoltrato)|mensagem (?:original|encaminhada)|oorspronkelijk bericht|doorgestuurd bericht)\b"
    r"|(?:on|am|le|el|il|em|op) [^\n]{4,160}(?:wrote|schrieb|a écrit|escribió|ha scritto|escreveu|schreef)\b[^\n]{0,80}:$",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}\.\w")
_ASSISTANTS = r"assistant|bot|agent|ai|chatgpt|claude|there|all|team|everyone|everybody|friend|both"
_DEAR = re.compile(
    rf"(?:dear|liebe[rs]?|sehr geehrte[rs]?|querid[oa]s?|estimad[oa]s?|chère?s?|car[oa]|gentile|spettabile|prezad[oa]s?|geachte|beste) (?!(?:{_ASSISTANTS})\b)[^\n:?]{{1,60}}[,!:]$",
    re.IGNORECASE,
)
_HELLO = re.compile(
    rf"(?:hi|hello|hey|hallo|hola|salut|bonjour|ciao|olá|oi|moin) (?!(?:{_ASSISTANTS})\b)[^\W\d_][\w .'-]{{1,40}}[,!:]?$",
    re.IGNORECASE,
)
_FORMAL_CLOSING = (
    r"(?:(?:with )?(?:best|kind(?:est)?|warm(?:est)?|many) (?:regards|wishes)|regards|best|all the best|(?:yours )?(?:sincerely|faithfully|truly)|yours|respectfully"
    r"|(?:mit )?(?:freundlichen|besten|herzlichen|vielen|lieben|viele|liebe|beste|schöne) gr(?:ü|ue)(?:ß|ss)en?|mfg|lg|(?:un )?(?:cordial(?:es)?|atentos?) saludos?|saludos(?: cordiales)?|atentamente|cordialement|bien à vous|amicalement"
    r"|cordiali saluti|distinti saluti|un caro saluto|atenciosamente|com os melhores cumprimentos|abraços?|met vriendelijke groet(?:en)?|groet(?:en|jes)?|hoogachtend|xoxo|love|lots of love|hugs|take care)"
)
_CLOSING = re.compile(rf"{_FORMAL_CLOSING}[,.!]?$", re.IGNORECASE)
_CASUAL_CLOSING = re.compile(
    r"(?:thanks|thank you|many thanks|cheers|thx|danke|gracias|merci|grazie|obrigad[oa]|bedankt)[,.!]?$", re.IGNORECASE
)
_INLINE_CLOSING = re.compile(
    r"\b(?i:(?:best|kind|warm) (?:regards|wishes)|regards|best|sincerely|yours \w+|mit freundlichen grüßen|viele grüße|liebe grüße|saludos|cordialement|cordiali saluti|atenciosamente|groet(?:en|jes)?)"
    r"[,!]\s(?P<name>[A-ZÀ-Þ][\w'-]{1,30}(?:\s[A-ZÀ-Þ][\w.'-]{0,30}){0,2})\.?$"
)
_NAME_LINE = re.compile(
    r"[-–—~\s]{0,3}(?:(?:dr|prof|mr|mrs|ms)\.? )?[A-ZÀ-Þ][\w'’.-]{0,30}(?:\s(?:[A-ZÀ-Þ][\w'’.-]{0,30}|de|van|von|der|del|da)){0,3}[.!]?(?:\s[(<|,][^\n]{0,80})?$"
)
_SENT_FROM = re.compile(
    r"(?:sent|von meinem|enviado|envoyé|inviato|verzonden|get outlook)\b[^\n]{0,20}\b(?:from|gesendet|desde|depuis|de|da|van|vanaf|mon|for)?\b[^\n]{0,20}\b(?:iphone|ipad|android|galaxy|phone|mobile|outlook|samsung|gmail)\b",
    re.IGNORECASE,
)

_PAPER = (
    r"(?:e-?mails?|mails?|letters?|messages?|sms|texts?|posts?|tweets?|threads?|replies|reply|articles?|transcripts?|chats?|conversations?|dialogues?|bio|biography|logs?|pages?|web ?pages?"
    r"|web ?sites?|sites?|blogs?|reviews?|essays?|stor(?:y|ies)|poems?|lyrics|songs?|documents?|docs?|files?|papers?|reports?|contracts?|cvs?|r[ée]sum[ée]s?|ads?|adverts?|listings?|snippets?"
    r"|excerpts?|passages?|paragraphs?|quotes?|quotations?|scripts?|outputs?|json|html|markdown|interviews?|statements?|testimonials?|comments?|newsletters?|press releases?|descriptions?|wikipedia)"
)
_SPOKE = r"(?:wrote|writes|said|says|replied|replies|answered|answers|texted|told (?:me|us)|posted|sent(?: me| us)?(?: this)?|goes|reads|schrieb|sagt|escribió|a écrit|ha scritto|escreveu|schreef)"
_ASKING = r"(?:(?:hi|hey|hello|ok|okay|so|now|and|also|then|please|pls|just|can you|could you|would you|will you|i need you to|help me|kannst du|bitte|por favor)\b[, ]{0,2}){0,4}"
_WORK = r"(?:translate|proof-?read|summari[sz]e|rewrite|reword|rephrase|paraphrase|shorten|polish|transcribe|spell-?check|correct|improve|tl;?dr|analy[sz]e|classify|parse|extract|übersetze?|zusammenfassen|traduce|traduis|traduci|traduza|vertaal|resume|résume|riassumi)"
# "Summarise claim C-7788: ...": what follows is what the person says of a case of their own.
_CASE = r"[^\n:.!?]{0,40}(?-i:\b[A-Z]{1,8}-?\d{1,12}\b)"
_ANNOUNCED = re.compile(
    "|".join(
        (
            rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}{_WORK}\b(?!{_CASE})[^\n:.!?]{{0,120}}(?::(?=\s)|[ \t]?\n)",
            rf"(?:^|(?<=[.!?,]\s))[ \t]{{0,8}}{_ASKING}{_WORK}\b[^\n:.!?]{{0,60}}\b(?:following|this|below)\b[^\n:.!?]{{0,40}}\.(?=\s)",
            rf"\b(?:here(?:'s| is| are| comes?)|this is|below is|got|received|found|read|from|saw|copied|pasted?|forwarding|what does|what is|look at|check out|see|think of|think about|make of|opinion (?:on|of|about))\b(?! (?:my|our|not|for)\b)[^\n:.!?]{{0,80}}\b{_PAPER}\b[^\n:.!?]{{0,60}}:(?=\s)",
            rf"\b(?:the|this|that|his|her|their|[A-Z][\w-]{{1,30}}'s) (?:\w{{1,20}} )?{_PAPER}(?: \w{{1,20}}){{0,3}} (?:says|said|reads|states|goes|is|was|starts?|begins?):(?=\s)",
            rf"\b{_PAPER} (?:from|by|of) [^\n:.!?]{{1,60}}:(?=\s)",
            rf"\b(?:he|she|they|(?-i:[A-ZÀ-Þ])[\w'-]{{1,30}}) {_SPOKE}\b(?: [\w']{{1,20}}){{0,5}}:(?=\s)",
            r"\b(?:my|our|the|an?|some|this) (?:\w{1,20} ){1,3}?(?:wrote|writes|posted|texted|e?mailed|replied)\b(?: [\w']{1,20}){0,3}:(?=\s)",
            rf"\b(?:my|our|the|an?|some|this) (?:\w{{1,20}} ){{1,3}}?{_SPOKE}\b(?: [\w']{{1,20}}){{0,3}}:(?=\s[^\n]{{0,60}}\b(?:I|I'm|my|me)\b)",
            r"\b(?:pasted?|copied|copy-?pasted?|quoting|quoted?|verbatim|excerpt|zitat|cita|citation|citazione|citação|citaat)\b[^\n:.!?]{0,40}:(?=\s)",
            r"\b(?:following|below|this) (?:was|is|came|comes) (?:\w{1,20} ){0,2}(?:from|by|written by|sent by|on)\b[^\n:.!?]{0,60}:(?=\s)",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)
_POINTING = re.compile("following|this|below", re.IGNORECASE)
_ENCLOSED = re.compile(r'\s{0,8}(?:["“„«`<>\']|```|~~~|\[)')


class _SpeakerLabel(NamedTuple):
    """A label that begins a line, the name on it in lower case, and whether the words after it speak to somebody."""

    line_index: int
    name: str
    addresses_somebody: bool


def find_messages(text: str, lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are somebody's messages. `own_names` are the person's, in lower case."""
    yield from _labelled(lines, own_names)
    yield from _mails(text, lines)
    yield from _letters(text, lines, own_names)
    yield from _announced(text)


def _labelled(lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield the paragraphs after speaker labels. Between the labels of several speakers everything is foreign."""
    labels = _speaker_labels(lines)
    others = {label.name for label in labels} - _OWN_LABELS - set(own_names)
    if len(labels) >= 2 and others:
        first, last = labels[0].line_index, labels[-1].line_index
        speaks = any(FIRST_PERSON_WORD.search(line.head) for line in lines[first:last])
        # A list of remarks about people is no dialogue: somebody must speak after one of the labels.
        if speaks or any(label.addresses_somebody for label in labels):
            yield _paragraphs(lines, first, last)
            return
    for label in labels:
        is_own = label.name in _OWN_LABELS or (label.name in own_names and label.name not in _GENERIC_NAMES)
        if label.addresses_somebody and not is_own:
            yield _paragraphs(lines, label.line_index, label.line_index)


def _speaker_labels(lines: Sequence[Line]) -> list[_SpeakerLabel]:
    labels: list[_SpeakerLabel] = []
    for index, line in enumerate(lines):
        match = _LABEL.match(line.head) or _LOGGED_DASH.match(line.head)
        if match and _names_speaker(match):
            words = line.head[match.end() :] or _following_head(lines, index)
            labels.append(_SpeakerLabel(index, match["name"].casefold(), SPEAKS_TO_SOMEBODY.search(words) is not None))
    return labels


def _paragraphs(lines: Sequence[Line], first: int, last: int) -> ForeignStretch:
    """Return the lines from `first` to the end of the paragraph of `last`."""
    return ForeignStretch(lines[first].start, lines[paragraph_end(lines, last)].end, ForeignKind.SPEAKER)


def _following_head(lines: Sequence[Line], index: int) -> str:
    return lines[index + 1].head if index + 1 < len(lines) else ""


def _names_speaker(match: re.Match[str]) -> bool:
    """Return whether a label names somebody. In a message log any label does, elsewhere a role or a person's name."""
    if _is_of_message_log(match):
        return True
    name = match["name"]
    words = name.casefold().replace(".", "").split()
    if any(word.endswith(".") and len(word) > 2 and word.casefold().strip(".") not in _TITLES for word in name.split()):
        return False  # an abbreviation
    if words[0] in _TITLES or (len(words) == 1 and words[0] in _SPEAKER_ROLES):
        return True
    if words[0] in _DETERMINERS and words[-1] in _SPEAKER_ROLES:
        # "My mum: I must call her" is about her.
        return not _ABOUT_SOMEBODY.search(match.string, match.end())
    return words[0] not in _TOPICS and _is_personal_name(name, words)


def _is_of_message_log(match: re.Match[str]) -> bool:
    """Return whether a label has the time of a message, or a mark of user names as in `@ida`."""
    groups = match.groupdict()
    has_stamp = bool(groups.get("stamp")) or "stamp" not in groups
    return has_stamp or (bool(groups["at"]) and "<" not in groups["at"])


def _is_personal_name(name: str, words: Sequence[str]) -> bool:
    """Return whether a name is a person's. `words` are its words in lower case and without full stops."""
    if words[0] in GIVEN_NAMES:
        return len(words) == 1 or words[1] in _AFTER_NAMES or name.split()[1][:1].isupper() or name.islower()
    # An unknown word may be a topic, so a name that is not in the list needs two or three capitalised words.
    is_full_name = len(words) in (2, 3) and all(word[0].isupper() and word[1:].islower() for word in name.split())
    return is_full_name and words[-1] not in _TOPICS


def _mails(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the rest of a text from the first header of a mail, or from a line that announces a forwarded one."""
    headers = [index for index, line in enumerate(lines) if _HEADER.match(line.head) or _SUBJECT.match(line.head)]
    is_mail = any(_SUBJECT.match(lines[index].head) or _ADDRESS.search(lines[index].head) for index in headers)
    if headers and is_mail:
        yield ForeignStretch(lines[headers[0]].start, len(text), ForeignKind.MAIL)
    for index, line in enumerate(lines):
        following = _following_head(lines, index)
        if _FORWARDED.match(line.head) or (following.endswith(":") and _FORWARDED.match(f"{line.head} {following}")):
            yield ForeignStretch(line.start, len(text), ForeignKind.MAIL)
            return


def _letters(text: str, lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield letters: from a greeting, or the start, to a signature; without a signature from "Dear ...," to the end."""
    dear = next((index for index, line in enumerate(lines) if _DEAR.match(line.head)), None)
    hello = next((index for index, line in enumerate(lines) if _HELLO.match(line.head)), None)
    last = _last_signature(lines, own_names, is_letter=dear is not None or hello is not None)
    if last is None:
        if dear is not None:
            yield ForeignStretch(lines[dear].start, len(text), ForeignKind.LETTER)
        return
    greetings = [index for index in (dear, hello) if index is not None and index < last]
    first = min(greetings) if greetings else _first_of_letter(lines, last)
    yield ForeignStretch(lines[first].start, lines[paragraph_end(lines, last)].end, ForeignKind.LETTER)


def _last_signature(lines: Sequence[Line], own_names: Collection[str], *, is_letter: bool) -> int | None:
    """Return the index of the last line with a signature that is not the person's own, or None."""
    # A word of thanks closes only a letter, or what a person with a name of their own has sent.
    allows_casual = is_letter or any(name not in _GENERIC_NAMES for name in own_names)
    last = None
    for index, line in enumerate(lines):
        inline = _INLINE_CLOSING.search(line.head)
        if _SENT_FROM.match(line.head) or (inline and not _is_own(inline["name"], own_names)):
            last = index
        elif (
            line.head in ("--", "—")
            or _CLOSING.match(line.head)
            or (allows_casual and _CASUAL_CLOSING.match(line.head))
        ):
            last = _name_after(lines, index, own_names) or last
    return last


def _name_after(lines: Sequence[Line], closing: int, own_names: Collection[str]) -> int | None:
    """Return the index of the line with somebody else's name, at most one blank line after a closing, or None."""
    after = next((index for index in range(closing + 1, len(lines)) if not lines[index].is_blank), None)
    if after is None or after > closing + 2:
        return None
    name = lines[after].head
    return after if _NAME_LINE.match(name) and not _is_own(name, own_names) else None


def _is_own(name: str, own_names: Collection[str]) -> bool:
    words = set(re.findall(r"\w+", name.casefold()))
    return any(words & set(re.findall(r"[^\W_]+", own)) for own in own_names)


def _first_of_letter(lines: Sequence[Line], last: int) -> int:
    """Return the first line of a letter without a greeting: after the paragraph that asks for something about it."""
    for index in range(last - 1, 0, -1):
        if lines[index].is_blank and not lines[index - 1].is_blank and lines[index - 1].head.endswith((":", "?")):
            return index + 1
    return 0


def _announced(text: str) -> Iterator[ForeignStretch]:
    """Yield the text after words that announce it, to the end, unless quotation marks or markup enclose it."""
    # Each form of an announcement has one of these.
    if ":" not in text and "\n" not in text and not _POINTING.search(text):
        return
    for match in _ANNOUNCED.finditer(text):
        if not _ENCLOSED.match(text, match.end()):
            yield ForeignStretch(match.end(), len(text), ForeignKind.INTRODUCED)
            return
