"""Find pasted records, tables, logs and CVs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from afterword.privacy.foreign.lines import ForeignKind, ForeignStretch, Line, runs

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


def find_documents(text: str, lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    """Yield the stretches of a text that are records, tables, logs and CVs."""
    opened = _JSON.search(text)
    if opened:
        end = max(text.rfind("}"), text.rfind("]"))
        yield ForeignStretch(opened.start(), len(text) if end < opened.end() else end + 1, ForeignKind.RECORDS)
    yield from _line_records(lines)
    yield from _logs(lines)
    yield from _resumes(lines)


def _line_records(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    for pattern, shortest in ((_TABLE_ROW, 2), (_FIELDS, _FEWEST_FIELDS_ROWS), (_SETTING, _FEWEST_FIELDS_ROWS)):
        matching = (index for index, line in enumerate(lines) if pattern.match(line.head))
        for first, last in runs(matching, lines, shortest=shortest):
            yield ForeignStretch(lines[first].start, lines[last].end, ForeignKind.RECORDS)


def _logs(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    matching = [index for index, line in enumerate(lines) if _LOG_LINE.match(line.head)]
    is_levelled = any(_LEVELLED.match(lines[index].head) for index in matching)
    for first, last in runs(matching, lines, shortest=1 if is_levelled else 2, blank_lines=1):
        yield ForeignStretch(lines[first].start, lines[last].end, ForeignKind.LOG)
    if is_levelled and matching:
        yield ForeignStretch(lines[matching[0]].start, lines[matching[-1]].end, ForeignKind.LOG)


def _resumes(lines: Sequence[Line]) -> Iterator[ForeignStretch]:
    fields = [index for index, line in enumerate(lines) if _RESUME_FIELD.match(line.head)]
    headings = [index for index, line in enumerate(lines) if _RESUME_HEADING.match(line.head)]
    titles = [index for index, line in enumerate(lines) if _RESUME_TITLE.match(line.head) and len(line.head) < 80]
    dated = [index for index, line in enumerate(lines) if _YEARS.search(line.head) and len(line.head) < 120]
    if len(headings) + bool(titles) + bool(fields) + (len(dated) >= 2) < _FEWEST_RESUME_SIGNS or not (
        headings or titles
    ):
        return
    first = min((*headings, *titles, *dated))
    # The name and the address stand above the first heading of a CV.
    while first > 0 and not lines[first - 1].head.endswith((":", "?")) and len(lines[first - 1].head) < 80:
        first -= 1
    yield ForeignStretch(lines[first].start, lines[-1].end, ForeignKind.RESUME)
