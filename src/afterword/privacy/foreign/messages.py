"""Find pasted chats with speaker labels, mails with headers, letters with signatures, and announced texts. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from afterword.privacy.foreign.announcements import find_announced_text
from afterword.privacy.foreign.lines import (
    ASKS_TO_FORGET,
    FIRST_PERSON_WORD,
    SPEAKS_TO_SOMEBODY,
    ForeignKind,
    ForeignStretch,
    Line,
    head_of_next_line,
    last_line_of_paragraph,
    stretch_of_lines,
)
from afterword.privacy.foreign.speakers import (
    ABOUT_SOMEBODY,
    DETERMINERS,
    GENERIC_NAMES,
    NOT_LATIN,
    OWN_LABELS,
    PRONOUNS,
    SPEAKER_ROLES,
    TITLES,
    is_personal_name,
    name_words,
)

_STAMP = r"(?:[\[(<]?(?:\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?\s{0,2})?\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?(?:[ap]m|uhr|h))?[\])>]?\s{0,2}[-–—|]?\s{0,2})"
_LABEL = re.compile(
    rf"(?:[-*•]\s|\d{{1,2}}[.)]\s)?(?P<stamp>{_STAMP})?(?P<at>[@<\[(]{{0,2}})(?P<name>[^\W\d_][\w.'’&-]{{0,30}}(?:\s[\w.'’&-]{{1,30}}){{0,3}})"
    rf"[>\])]{{0,2}}(?:\s?[(\[][^()\[\]]{{1,40}}[)\]])?(?:,?\s{_STAMP})?(?P<mark>\s?[:：]|(?<=>)|\s[>»▸►→])(?:\s+|$|(?-i:(?=[A-ZÀ-Þ]|[^\x00-ɏ])))",
    re.IGNORECASE,
)
_LOGGED_DASH = re.compile(
    rf"{_STAMP}(?P<name>[^\W\d_][\w.'’&-]{{0,30}}(?:\s[\w.'’&-]{{1,30}}){{0,2}})\s[-–—]\s", re.IGNORECASE
)
_ROLE_DASH = re.compile(r"(?P<name>[^\W\d_]{3,20})(?:\s\d{1,3})?\s[-–—]\s")
_IN_PARENTHESES = re.compile(r"[\[(](?P<name>[^\W\d_][\w.'’-]{1,30}(?:\s[\w.'’-]{1,30})?)[\])]\s")
_SINGLE_LETTER = re.compile(r"[A-ZÀ-Þ]")

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
_HELLO_ALL = re.compile(
    r"(?:hi|hello|hey|hallo|hola|salut|bonjour|ciao|olá) (?:all|team|everyone|everybody|both|folks|guys)[,!:]?$",
    re.IGNORECASE,
)
_FORMAL_CLOSING = (
    r"(?:(?:with )?(?:best|kind(?:est)?|warm(?:est)?|many) (?:regards|wishes)|regards|best|all the best|(?:yours )?(?:sincerely|faithfully|truly)|yours|respectfully"
    r"|(?:mit )?(?:freundlichen|besten|herzlichen|vielen|lieben|viele|liebe|beste|schöne) gr(?:ü|ue)(?:ß|ss)en?|mfg|lg|hg|bg|vg|(?:bien )?cordialement|(?:un )?(?:cordial(?:es)?|atentos?) saludos?|saludos(?: cordiales)?|atentamente|cordialement|bien à vous|amicalement"
    r"|cordiali saluti|distinti saluti|un caro saluto|atenciosamente|com os melhores cumprimentos|abraços?|(?:un |muchos |gros )?bes(?:o|os|itos)|un abrazo|bis(?:es|ous)|gros bisous|un abbraccio|baci(?:oni)?|beijos|beijinhos|kus(?:jes)?|veel liefs|liefs|signed|met vriendelijke groet(?:en)?|groet(?:en|jes)?|hoogachtend|xoxo|love|lots of love|hugs|take care)"
)
_CLOSING = re.compile(rf"{_FORMAL_CLOSING}[,.!]?$", re.IGNORECASE)
_CASUAL_CLOSING = re.compile(
    r"(?:thanks|thank you|many thanks|cheers|thx|danke|gracias|merci|grazie|obrigad[oa]|bedankt)[,.!]?$", re.IGNORECASE
)
_INLINE_CLOSING = re.compile(
    r"\b(?i:(?:best|kind|warm) (?:regards|wishes)|regards|best|sincerely|signed|yours \w+|mit freundlichen grüßen|viele grüße|liebe grüße|saludos|cordialement|cordiali saluti|atenciosamente|groet(?:en|jes)?)"
    r"[,!]\s(?P<name>[A-ZÀ-Þ][\w'-]{1,30}(?:\s[A-ZÀ-Þ][\w.'-]{0,30}){0,2})\.?$"
)
_NAME_LINE = re.compile(
    r"[-–—~\s]{0,3}(?:(?:dr|prof|mr|mrs|ms)\.? )?[A-ZÀ-Þ][\w'’.-]{0,30}(?:\s(?:[A-ZÀ-Þ][\w'’.-]{0,30}|de|van|von|der|del|da)){0,3}[.!]?(?:\s[(<|,][^\n]{0,80})?$"
)
_SENT_FROM = re.compile(
    r"(?:sent|von meinem|enviado|envoyé|inviato|verzonden|get outlook)\b[^\n]{0,20}\b(?:from|gesendet|desde|depuis|de|da|van|vanaf|mon|for)?\b[^\n]{0,20}\b(?:iphone|ipad|android|galaxy|phone|mobile|outlook|samsung|gmail)\b",
    re.IGNORECASE,
)


class _SpeakerLabel(NamedTuple):
    """A speaker label at the start of a line, with the name in lower case.

    `addresses_somebody` says whether the words after it speak to somebody.
    """

    line_index: int
    name: str
    addresses_somebody: bool


def find_messages(text: str, lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are messages of others. `own_names` are the person's names in lower case."""
    yield from _labelled_paragraphs(lines, own_names)
    yield from _mails(text, lines)
    yield from _letters(text, lines, own_names)
    yield from find_announced_text(text)


def _labelled_paragraphs(lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield the paragraphs that begin with a speaker label, or all lines from the first to the last label."""
    labels = _speaker_labels(lines)
    others = {label.name for label in labels} - OWN_LABELS - set(own_names)
    if len(labels) >= 2 and others:
        first, last = labels[0].line_index, labels[-1].line_index
        speaks = any(FIRST_PERSON_WORD.search(line.head) for line in lines[first:last])
        # A list of remarks about people is no dialogue: somebody must speak after one of the labels.
        if speaks or any(label.addresses_somebody for label in labels):
            yield _stretch_of_paragraphs(lines, first, last)
            return
    for label in labels:
        is_own = label.name in OWN_LABELS or (label.name in own_names and label.name not in GENERIC_NAMES)
        if label.addresses_somebody and not is_own:
            yield _stretch_of_paragraphs(lines, label.line_index, label.line_index)


def _speaker_labels(lines: Sequence[Line]) -> list[_SpeakerLabel]:
    labels: list[_SpeakerLabel] = []
    for index, line in enumerate(lines):
        match = _speaker_label(line.head)
        if match is not None:
            words = line.head[match.end() :] or head_of_next_line(lines, index)
            speaks = (
                SPEAKS_TO_SOMEBODY.search(words) or ASKS_TO_FORGET.search(words) or NOT_LATIN.fullmatch(match["name"])
            )
            labels.append(_SpeakerLabel(index, match["name"].casefold(), speaks is not None))
    return labels


def _speaker_label(head: str) -> re.Match[str] | None:
    match = _LABEL.match(head) or _LOGGED_DASH.match(head)
    if match is not None:
        return match if _names_speaker(match) else None
    match = _ROLE_DASH.match(head)
    if match is not None:
        return match if match["name"].casefold() in SPEAKER_ROLES - PRONOUNS else None
    match = _IN_PARENTHESES.match(head)
    return match if match is not None and is_personal_name(match["name"]) else None


def _stretch_of_paragraphs(lines: Sequence[Line], first: int, last: int) -> ForeignStretch:
    """Return the stretch from line `first` to the end of the paragraph that contains line `last`."""
    return stretch_of_lines(lines, first, last_line_of_paragraph(lines, last), ForeignKind.SPEAKER)


def _names_speaker(match: re.Match[str]) -> bool:
    """Return whether a label names a speaker: in a message log always, elsewhere if it is a role or a person's name."""
    if _is_of_message_log(match):
        return True
    name = match["name"]
    words = name_words(name)
    if any(map(_is_abbreviation, name.split())):
        return False
    is_role = words[0] in SPEAKER_ROLES and all(word.strip("#").isdigit() for word in words[1:])
    if words[0] in TITLES or is_role or NOT_LATIN.fullmatch(name) or _SINGLE_LETTER.fullmatch(name):
        return True
    if words[0] in DETERMINERS and words[-1] in SPEAKER_ROLES:
        # "My mum: I must call her" is about her.
        return not ABOUT_SOMEBODY.search(match.string, match.end())
    return is_personal_name(name)


def _is_abbreviation(word: str) -> bool:
    """Return whether a word ends with a full stop and is neither an initial nor a title."""
    return word.endswith(".") and len(word) > 2 and word.casefold().strip(".") not in TITLES


def _is_of_message_log(match: re.Match[str]) -> bool:
    """Return whether a label has the time of a message, or a sign before a user name, as in `@ida`."""
    groups = match.groupdict()
    has_stamp = bool(groups.get("stamp")) or "stamp" not in groups
    return has_stamp or (bool(groups["at"]) and "<" not in groups["at"])


def _mails(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the rest of a text from the first header of a mail on, or from the line before a forwarded mail on."""
    headers = [index for index, line in enumerate(lines) if _HEADER.match(line.head) or _SUBJECT.match(line.head)]
    is_mail = any(_SUBJECT.match(lines[index].head) or _ADDRESS.search(lines[index].head) for index in headers)
    if headers and is_mail:
        yield ForeignStretch(lines[headers[0]].start, len(text), ForeignKind.MAIL)
    for index, line in enumerate(lines):
        following = head_of_next_line(lines, index)
        if _FORWARDED.match(line.head) or (following.endswith(":") and _FORWARDED.match(f"{line.head} {following}")):
            yield ForeignStretch(line.start, len(text), ForeignKind.MAIL)
            return


def _letters(text: str, lines: Sequence[Line], own_names: Collection[str]) -> Iterator[ForeignStretch]:
    """Yield the stretch of a letter, from a greeting or the start of the text to a signature.

    Without a signature, a letter reaches from "Dear ...," to the end of the text.
    """
    dear = next((index for index, line in enumerate(lines) if _DEAR.match(line.head)), None)
    hello = next(
        (index for index, line in enumerate(lines) if _HELLO.match(line.head) or _HELLO_ALL.match(line.head)), None
    )
    last = _last_signature(lines, own_names, has_greeting=dear is not None or hello is not None)
    if last is None:
        if dear is not None:
            yield ForeignStretch(lines[dear].start, len(text), ForeignKind.LETTER)
        return
    greetings = [index for index in (dear, hello) if index is not None and index < last]
    first = min(greetings) if greetings else _first_line_of_letter(lines, last)
    yield stretch_of_lines(lines, first, last_line_of_paragraph(lines, last), ForeignKind.LETTER)


def _last_signature(lines: Sequence[Line], own_names: Collection[str], *, has_greeting: bool) -> int | None:
    """Return the index of the last line with a signature that is not the person's own, or None."""
    # A word of thanks counts as the end of a letter only after a greeting, or if the person's name is known.
    allows_casual = has_greeting or any(name not in GENERIC_NAMES for name in own_names)
    last = None
    for index, line in enumerate(lines):
        inline = _INLINE_CLOSING.search(line.head)
        if _SENT_FROM.match(line.head) or (inline and not _is_own_name(inline["name"], own_names)):
            last = index
        elif _is_closing(line.head) or (allows_casual and _CASUAL_CLOSING.match(line.head)):
            last = _signature_after_closing(lines, index, own_names) or last
    return last


def _is_closing(head: str) -> bool:
    """Return whether a line is a formal closing such as "Kind regards,", or the dashes above a signature."""
    return head in ("--", "—") or _CLOSING.match(head) is not None


def _signature_after_closing(lines: Sequence[Line], closing: int, own_names: Collection[str]) -> int | None:
    """Return the index of a line with another person's name, at most one blank line after a closing, or None."""
    after = next((index for index in range(closing + 1, len(lines)) if not lines[index].is_blank), None)
    if after is None or after > closing + 2:
        return None
    name = lines[after].head
    return after if _NAME_LINE.match(name) and not _is_own_name(name, own_names) else None


def _is_own_name(name: str, own_names: Collection[str]) -> bool:
    words = set(re.findall(r"\w+", name.casefold()))
    return any(words & set(re.findall(r"[^\W_]+", own)) for own in own_names)


def _first_line_of_letter(lines: Sequence[Line], last: int) -> int:
    """Return the first line of a letter without a greeting. The paragraph before it may ask about the letter."""
    for index in range(last - 1, 0, -1):
        if lines[index].is_blank and not lines[index - 1].is_blank and lines[index - 1].head.endswith((":", "?")):
            return index + 1
    return 0
