"""Render a window as text for a prompt, in which no user's words can imitate a turn or end the transcript. Pure.

The same window always gives the same text, whatever the store holds and whatever day it is. The form of the text is
part of a prompt's version, so a change needs a new version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from afterword.extractors.extractor import Window
from afterword.facts.transcripts import Role, Turn
from afterword.privacy.foreign.stretches import ForeignStretch, foreign_stretches_by_turn

OPENING = "<transcript>"
CLOSING = "</transcript>"
CONTINUATION = "    "
LONGEST_SPEAKER = 80

# strftime("%a") would follow the machine's locale, and the request must be the same everywhere.
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# A closing tag would end the transcript. `<|` begins control tokens of many models, which some servers accept in text.
DELIMITERS = re.compile(r"<(?=\s*/?\s*transcript)|<(?=\|)", re.IGNORECASE)
BRACKETS = str.maketrans({"[": "(", "]": ")", "<": "(", ">": ")", ":": " "})


def render_window(window: Window) -> str:
    """Return the window as a delimited transcript: numbered turns with role, speaker and time.

    Turns of the context are marked as read before. Each turn starts a new line and its further lines are indented, so
    that no text can look like another turn. Pasted text is a turn of its own with the same number and another role.
    """
    turns = (*window.context, *window.turns)
    first = len(window.context)
    rendered = [
        line
        for index, (turn, stretches) in enumerate(zip(turns, foreign_stretches_by_turn(turns), strict=True))
        for line in _turn_lines(turn, stretches, window.owners, note=", already read" if index < first else "")
    ]
    owners = shown_names(window.owners) or "none of the speakers"
    people = f"Owner of the memory: {owners}. People: {shown_names(window.humans) or 'none'}."
    return "\n".join([people, OPENING, *rendered, CLOSING])


def neutralised_text(text: str) -> str:
    """Return the text with each `<` replaced that could end the transcript or begin a control token."""
    return DELIMITERS.sub("\u2039", text)


def quoted_line(text: str) -> str:
    """Return the text as a quoted string on one line, which cannot end a list or begin a control token."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False).replace("<", "\u2039")


def shown_names(speakers: Sequence[str]) -> str:
    """Return the names of speakers in quotation marks, as the transcript shows them."""
    return ", ".join(json.dumps(speaker_label(speaker), ensure_ascii=False) for speaker in speakers)


def speaker_label(speaker: str) -> str:
    """Return the name of a speaker as the transcript shows it."""
    return " ".join(speaker.translate(BRACKETS).split())[:LONGEST_SPEAKER]


def _turn_lines(turn: Turn, stretches: Sequence[ForeignStretch], owners: Sequence[str], note: str) -> Iterator[str]:
    """Yield the lines of a turn, in parts if it contains pasted text."""
    owner = " (owner)" if turn.speaker in owners else ""
    name, time = speaker_label(turn.speaker), _shown_time(turn.said_at)
    head = f"[{turn.number}{note}] {turn.role} {name}{owner}, {time}:"
    # A quotation within a line is not separated, because its quotation marks show what it is.
    blocks = [stretch for stretch in stretches if not stretch.is_inline_quotation(turn.text)]
    start = 0
    for block in blocks:
        if turn.text[start : block.start].strip():
            yield _indented_lines(head, turn.text[start : block.start])
        pasted = f"[{turn.number}{note}] {Role.PASTED} by {name}, {time}:"
        yield _indented_lines(pasted, turn.text[block.start : block.end])
        start = block.end
    if not blocks or turn.text[start:].strip():
        yield _indented_lines(head, turn.text[start:])


def _indented_lines(head: str, text: str) -> str:
    lines = neutralised_text(text).splitlines() or [""]
    return f"\n{CONTINUATION}".join([f"{head} {lines[0]}", *lines[1:]])


def _shown_time(said_at: datetime | None) -> str:
    if said_at is None:
        return "time unknown"
    # Relative days ("tomorrow") count from the speaker's own day, so the offset must be shown.
    minute = said_at.isoformat(timespec="minutes").removesuffix("+00:00")
    return f"{WEEKDAYS[said_at.weekday()]} {minute}{'' if said_at.utcoffset() else 'Z'}"
