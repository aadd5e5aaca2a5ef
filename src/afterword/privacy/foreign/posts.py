"""Find pasted posts, reviews, tickets, chats with a header above each message, subtitles and scripts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from afterword.privacy.foreign.lines import ForeignKind, ForeignStretch, Line, paragraph_end
from afterword.privacy.foreign.speakers import is_personal_name

_CLOCK = r"\d{1,2}[:.h]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?m\.?)?(?:\s?(?:uhr|h))?"
# A name above a message, with the time beside it: "Priya Nair  9:14 AM", "eve (14:02)", "Eva — hoy a las 14:02".
_MESSAGE_HEADER = re.compile(
    rf"@?(?P<name>[^\W\d_][\w.'’-]{{0,30}}(?:\s[^\W_][\w.'’-]{{0,30}}){{0,2}})(?:\s?[^\w\s]{{1,4}})?"
    rf"(?:,?\s{{0,2}}[\[(][^\[\]()\n]{{0,30}}{_CLOCK}[\])]:?|\s[—–·|•-]\s[^\n\d]{{0,24}}{_CLOCK}|,?\s{{1,4}}{_CLOCK})$",
    re.IGNORECASE,
)
_OF_A_POST = re.compile(
    r"(?:posted|submitted|shared|asked|answered|reviewed|veröffentlicht|publicado|publié|pubblicato|geplaatst) "
    r"(?:by|von|por|par|da|door)\b"
    r"|[^\n]{0,60}\b\d{1,3}\s?(?:s|m|min|h|hrs?|hours?|d|days?|w|weeks?|mo|months?|y|years?) ago\b[^\n]{0,20}[·•]"
    r"|[^\n]{0,60}[·•]\s?(?:reply|share|like|report|antworten|responder|répondre|rispondi)\b"
    r"|[^\n]{0,230}(?:[★☆⭐]{2}|verified purchase|\b[1-5]\s?/\s?5\b|\b[1-5] (?:stars?|sterne?n?|estrellas?|étoiles?|stelle|estrelas?|sterren)\b)",
    re.IGNORECASE,
)
_FIELD_OF_RECORD = re.compile(
    r"[\"'*-]{0,3}(?:author|body|text|content|message|msg|sender|reporter|assignee|status|description|priority|likes|"
    r"upvotes|created|updated|user|username|id|key|ticket|nom|prénom|autor|inhalt|absender|mensaje|autore|testo)"
    r"[\"'*]{0,3}\s?[:=]\s",
    re.IGNORECASE,
)
_FEWEST_FIELDS = 2
_SUBTITLE = re.compile(r"(?:\d{1,2}:)?\d{1,2}:\d{2}[,.]\d{1,3}\s?-->")
_SCENE = re.compile(r"(?:INT|EXT)\b\.?[ /]")
# The speaker in a script: "WITNESS. I was there.", or a name alone on a line.
_CUE = re.compile(r"(?:THE )?[A-ZÀ-Þ][A-ZÀ-Þ'’-]{1,20}(?: [A-ZÀ-Þ'’-]{1,20}){0,2}(?:\s?\([^()\n]{1,30}\))?(?:\.\s|$)")
_LOWER_CASE = re.compile(r"[a-zß-öø-ÿ]")
_ASKED = r"(?:question|frage|pregunta|domanda|pergunta|vraag|q)\s?\d{0,3}"
_QUESTION_FIELD = re.compile(rf"{_ASKED}\s?[.:)]\s[^\n]{{0,200}}\?$", re.IGNORECASE)


def find_posts(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are posts, reviews, records, answers to forms, subtitles and scripts."""
    yield from _paragraphs_with_marks(lines)
    yield from _between(lines, _indices(lines, _FIELD_OF_RECORD), _FEWEST_FIELDS, ForeignKind.RECORDS)
    yield from _between(lines, _indices(lines, _SUBTITLE), 1, ForeignKind.SCRIPT)
    scenes = _indices(lines, _SCENE)
    yield from _between(lines, [*scenes, *_cues(lines)], 2, ForeignKind.SCRIPT)


def _paragraphs_with_marks(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield each paragraph with a mark of a post, and others from a message header or form question on."""
    start = 0
    while start < len(lines):
        end = paragraph_end(lines, start)
        for index in range(start, end + 1):
            head, following = lines[index].head, index < end
            if _OF_A_POST.match(head):
                yield _lines(lines, start, end, ForeignKind.POST)
                break
            if following and _is_message_header(head):
                yield _lines(lines, index, end, ForeignKind.SPEAKER)
            elif following and _QUESTION_FIELD.match(head):
                yield _lines(lines, index, end, ForeignKind.RECORDS)
        start = end + 1


def _is_message_header(head: str) -> bool:
    """Return whether a line is nothing but a person's name with a time."""
    match = _MESSAGE_HEADER.match(head)
    return match is not None and is_personal_name(match["name"])


def _cues(lines: Sequence[Line]) -> list[int]:
    """Return the indices of the lines where a script names a speaker in capitals, before words of that speaker."""
    cues = []
    for index in _indices(lines, _CUE):
        match = _CUE.match(lines[index].head)
        words = lines[index].head[match.end() :] if match else ""
        spoken = words or (lines[index + 1].head if index + 1 < len(lines) else "")
        if _LOWER_CASE.search(spoken):
            cues.append(index)
    return cues


def _indices(lines: Sequence[Line], pattern: re.Pattern[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if pattern.match(line.head)]


def _between(lines: Sequence[Line], marks: Sequence[int], fewest: int, kind: ForeignKind) -> Iterator[ForeignStretch]:
    """Yield the lines from the first mark to the end of the paragraph of the last, if there are enough marks."""
    if len(marks) >= fewest:
        yield _lines(lines, min(marks), paragraph_end(lines, max(marks)), kind)


def _lines(lines: Sequence[Line], first: int, last: int, kind: ForeignKind) -> ForeignStretch:
    return ForeignStretch(lines[first].start, lines[last].end, kind)
