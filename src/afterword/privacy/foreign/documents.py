"""Find pasted records, tables, logs, CVs, posts, tickets, chats with headers, subtitles and scripts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from afterword.privacy.foreign.lines import (
    ForeignKind,
    ForeignStretch,
    Line,
    groups_of_lines,
    head_of_next_line,
    last_line_of_paragraph,
    stretch_of_lines,
)
from afterword.privacy.foreign.speakers import is_personal_name

_JSON = re.compile(r"[{\[]\s{0,20}(?:\{\s{0,20})?[\"'][^\"'\n]{1,80}[\"']\s{0,5}:")
_TABLE_ROW = re.compile(r"\|.*\|$")
_FIELDS = re.compile(r"[^\s,;\t][^,;\t\n]{0,80}(?:[,;\t][^\s,;\t][^,;\t\n]{0,80}){1,30}$")
_SETTING = re.compile(r"(?:export )?[\w.-]{1,40}\s?=\s?\S")
_LEVEL = r"(?:INFO|WARN(?:ING)?|ERROR|DEBUG|TRACE|FATAL|CRITICAL|NOTICE)"
_LOG_STAMP = r"[\[(]?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d[:.]\d\d[:.]\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w{0,6} {1,2}\d{1,2},? \d\d:\d\d|\d{1,3}(?:\.\d{1,3}){3} - )"
_LOG_LINE = re.compile(rf"{_LOG_STAMP}|\[?{_LEVEL}\]?[:\s]|Traceback \(|File \"|at [\w.$<>]{{3,100}}\(|\$ \w|>>> ")
_LEVELLED = re.compile(rf"{_LOG_STAMP}[^\n]{{0,40}}\b{_LEVEL}\b|Traceback \(")
_RESUME_TITLE = re.compile(
    r"\W{0,6}(?:curriculum vitae|r[ée]sum[ée]|cv|lebenslauf|curr[íi]culum|hoja de vida)\b", re.IGNORECASE
)
_RESUME_HEADING = re.compile(
    r"\W{0,6}(?:(?:work|professional|job|relevant) )?(?:experience|employment(?: history)?|work history|datos personales|profilo|lingue|diplômes?|perfil profissional|datos de contacto|education|skills|technical skills|qualifications|certifications|references|objective|"
    r"(?:professional )?summary|profile|career|languages|interests|publications|awards|contact|personal (?:details|information|data)|berufserfahrung|ausbildung|kenntnisse|persönliche daten|"
    r"experiencia(?: laboral)?|formación|educación|habilidades|idiomas|expérience(?: professionnelle)?|formation|compétences|esperienza|istruzione|competenze|experiência|formação|werkervaring|opleiding|vaardigheden)\W{0,6}$",
    re.IGNORECASE,
)
_RESUME_FIELD = re.compile(
    r"\W{0,6}(?:name|full name|nombre|nom|nome|naam|vor- und nachname|date of birth|geburtsdatum|nationality)\s?:\s?\S",
    re.IGNORECASE,
)
_YEARS = re.compile(
    r"\b(?:19|20)\d\d\b.{0,12}?(?:[-–—]|to|until|bis)\s?.{0,12}?(?:(?:19|20)\d\d\b|present|today|now|current|heute|ongoing|actualidad|aujourd'hui|oggi|heden)",
    re.IGNORECASE,
)
_FEWEST_RESUME_SIGNS = 2
_FEWEST_FIELDS_ROWS = 3
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
_SCRIPT_SPEAKER = re.compile(
    r"(?:THE )?[A-ZÀ-Þ][A-ZÀ-Þ'’-]{1,20}(?: [A-ZÀ-Þ'’-]{1,20}){0,2}(?:\s?\([^()\n]{1,30}\))?(?:\.\s|$)"
)
_LOWER_CASE = re.compile(r"[a-zß-öø-ÿ]")
_ASKED = r"(?:question|frage|pregunta|domanda|pergunta|vraag|q)\s?\d{0,3}"
_QUESTION_FIELD = re.compile(rf"{_ASKED}\s?[.:)]\s[^\n]{{0,200}}\?$", re.IGNORECASE)


def find_documents(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are records, tables, logs and CVs."""
    opened = _JSON.search(text)
    if opened:
        end = max(text.rfind("}"), text.rfind("]"))
        yield ForeignStretch(opened.start(), len(text) if end < opened.end() else end + 1, ForeignKind.RECORDS)
    yield from _tables_and_settings(lines)
    yield from _logs(lines)
    yield from _resumes(lines)


def _tables_and_settings(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    for pattern, fewest_lines in ((_TABLE_ROW, 2), (_FIELDS, _FEWEST_FIELDS_ROWS), (_SETTING, _FEWEST_FIELDS_ROWS)):
        for first, last in groups_of_lines(_matching_indices(lines, pattern), lines, fewest_lines=fewest_lines):
            yield stretch_of_lines(lines, first, last, ForeignKind.RECORDS)


def _logs(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    matching = _matching_indices(lines, _LOG_LINE)
    is_levelled = any(_LEVELLED.match(lines[index].head) for index in matching)
    for first, last in groups_of_lines(matching, lines, fewest_lines=1 if is_levelled else 2, most_blank_lines=1):
        yield stretch_of_lines(lines, first, last, ForeignKind.LOG)
    if is_levelled and matching:
        yield stretch_of_lines(lines, matching[0], matching[-1], ForeignKind.LOG)


def _resumes(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    fields, headings = _matching_indices(lines, _RESUME_FIELD), _matching_indices(lines, _RESUME_HEADING)
    titles = _short_line_indices(lines, _RESUME_TITLE.match, 80)
    dated = _short_line_indices(lines, _YEARS.search, 120)
    signs = len(headings) + bool(titles) + bool(fields) + (len(dated) >= 2)
    if signs < _FEWEST_RESUME_SIGNS or not (headings or titles):
        return
    first = min((*headings, *titles, *dated))
    # The name and the address stand above the first heading of a CV.
    while first > 0 and not lines[first - 1].head.endswith((":", "?")) and len(lines[first - 1].head) < 80:
        first -= 1
    yield stretch_of_lines(lines, first, -1, ForeignKind.RESUME)


def _short_line_indices(lines: Sequence[Line], find: Callable[[str], object], length: int) -> list[int]:
    """Return the indices of the lines of fewer characters than `length` in which `find` finds something."""
    return [index for index, line in enumerate(lines) if find(line.head) and len(line.head) < length]


def find_posts_and_scripts(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are posts, reviews, records, answers to forms, subtitles and scripts."""
    yield from _posts_and_messages(lines)
    yield from _between(lines, _matching_indices(lines, _FIELD_OF_RECORD), _FEWEST_FIELDS, ForeignKind.RECORDS)
    yield from _between(lines, _matching_indices(lines, _SUBTITLE), 1, ForeignKind.SCRIPT)
    yield from _between(
        lines, [*_matching_indices(lines, _SCENE), *_script_speaker_indices(lines)], 2, ForeignKind.SCRIPT
    )


def _posts_and_messages(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield paragraphs with a mark of a post, and the part of others that begins with a message header or question."""
    start = 0
    while start < len(lines):
        end = last_line_of_paragraph(lines, start)
        for index in range(start, end + 1):
            head, following = lines[index].head, index < end
            if _OF_A_POST.match(head):
                yield stretch_of_lines(lines, start, end, ForeignKind.POST)
                break
            if following and _is_message_header(head):
                yield stretch_of_lines(lines, index, end, ForeignKind.SPEAKER)
            elif following and _QUESTION_FIELD.match(head):
                yield stretch_of_lines(lines, index, end, ForeignKind.RECORDS)
        start = end + 1


def _is_message_header(head: str) -> bool:
    """Return whether a line is nothing but a person's name with a time."""
    match = _MESSAGE_HEADER.match(head)
    return match is not None and is_personal_name(match["name"])


def _script_speaker_indices(lines: Sequence[Line]) -> list[int]:
    """Return the indices of the lines where a script names a speaker in capitals, before words of that speaker."""
    named = [(index, match) for index, line in enumerate(lines) if (match := _SCRIPT_SPEAKER.match(line.head))]
    spoken = ((index, match.string[match.end() :] or head_of_next_line(lines, index)) for index, match in named)
    return [index for index, words in spoken if _LOWER_CASE.search(words)]


def _matching_indices(lines: Sequence[Line], pattern: re.Pattern[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if pattern.match(line.head)]


def _between(lines: Sequence[Line], marks: Sequence[int], fewest: int, kind: ForeignKind) -> Iterator[ForeignStretch]:
    """Yield the lines from the first mark to the end of the paragraph of the last, if there are enough marks."""
    if len(marks) >= fewest:
        yield stretch_of_lines(lines, min(marks), last_line_of_paragraph(lines, max(marks)), kind)
