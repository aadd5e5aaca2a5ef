"""The lines of a text with their positions, and `ForeignStretch`, which every recogniser of pasted text returns. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

LONGEST_HEAD = 240
"""Patterns read only so many characters of a line, so that the time is linear in the text."""

FIRST_PERSON = (
    r"i|i'm|i've|i'd|i'll|im|ive|my|mine|me|myself|we|we're|we've|our|ours|us"
    r"|ich|mein\w{0,2}|mir|mich|wir|uns\w{0,3}|yo|mi|mis|soy|estoy|vivo|tengo|trabajo|llamo|nuestr[oa]s?|je|j'\w+|mon|ma|mes|moi|nous|notre"
    r"|io|mio|mia|sono|abito|ho|lavoro|eu|meu|minha|sou|moro|tenho|trabalho|ik|mijn|mij|wij|ons|onze"
)
FIRST_PERSON_WORD = re.compile(rf"(?<![\w'])(?:{FIRST_PERSON})(?![\w])", re.IGNORECASE)
SPEAKS_TO_SOMEBODY = re.compile(
    rf"(?<![\w'])(?:{FIRST_PERSON}|you|your|yours|you're|du|dein\w{{0,2}}|sie|tú|usted|tu|vous|votre|você|jij|je|u"
    r"|please|remember|forget|delete|erase|remove|ignore|disregard|save|store|note|update|send|the user|user's)(?![\w])",
    re.IGNORECASE,
)
ASKS_TO_FORGET = re.compile(
    r"\b(?:forget|delete|erase|remove|wipe|vergiss|vergesst|lösch\w*|olvid\w+|borr[ae]\w*|oubli\w+|efface\w*|"
    r"dimentic\w+|cancell\w+|esque[cç]\w+|apagu?\w+|vergeet|verwijder\w*)\b",
    re.IGNORECASE,
)


class ForeignKind(StrEnum):
    """The form by which a stretch of a turn was recognised as foreign."""

    SPEAKER = "speaker label"
    MARKUP = "markup"
    CODE = "code"
    BLOCK_QUOTE = "block quote"
    QUOTATION = "quotation"
    DELIMITED = "delimited text"
    MAIL = "mail"
    LETTER = "letter"
    RECORDS = "records"
    LOG = "log"
    RESUME = "resume"
    POST = "post or review"
    SCRIPT = "script or subtitles"
    INTRODUCED = "announced text"
    REGISTER = "other length and style"


@dataclass(frozen=True, slots=True)
class ForeignStretch:
    """A stretch `text[start:end]` of a turn that its speaker did not write, for example pasted text."""

    start: int
    end: int
    kind: ForeignKind

    def is_inline_quotation(self, text: str) -> bool:
        """Return whether the stretch is a quotation within a line of the turn."""
        return self.kind is ForeignKind.QUOTATION and "\n" not in text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Line:
    """A line `text[start:end]` without its line break. `head` holds its first 240 characters, stripped."""

    start: int
    end: int
    head: str

    @property
    def is_blank(self) -> bool:
        """Return whether the line has no visible character."""
        return not self.head


def split_lines(text: str) -> list[Line]:
    """Return the lines of a text."""
    lines: list[Line] = []
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        lines.append(Line(start, end, text[start : min(end, start + LONGEST_HEAD)].strip()))
        start = end + 1
    return lines


def last_line_of_paragraph(lines: Sequence[Line], index: int) -> int:
    """Return the index of the last line of the paragraph that the line at `index` belongs to."""
    while index + 1 < len(lines) and not lines[index + 1].is_blank:
        index += 1
    return index


def head_of_next_line(lines: Sequence[Line], index: int) -> str:
    """Return the head of the line after the line at `index`, which is empty after the last line."""
    return lines[index + 1].head if index + 1 < len(lines) else ""


def stretch_of_lines(lines: Sequence[Line], first: int, last: int, kind: ForeignKind) -> ForeignStretch:
    """Return the stretch from the line `first` to the line `last`."""
    return ForeignStretch(lines[first].start, lines[last].end, kind)


def groups_of_lines(
    indices: Iterable[int], lines: Sequence[Line], *, fewest_lines: int, most_blank_lines: int = 0
) -> list[tuple[int, int]]:
    """Return the first and the last index of each group of neighbouring lines among the lines with these indices.

    A group has at least `fewest_lines` of them. Between two of them there are at most `most_blank_lines` blank lines
    and no other line.
    """
    groups: list[list[int]] = []
    for index in indices:
        between = lines[groups[-1][-1] + 1 : index] if groups else lines
        if groups and len(between) <= most_blank_lines and all(line.is_blank for line in between):
            groups[-1].append(index)
        else:
            groups.append([index])
    return [(group[0], group[-1]) for group in groups if len(group) >= fewest_lines]
