"""Show what was said to a model: delimited, so that nobody inside can forge or close it.

Pure. A transcript is of the window alone: the same window gives the same text whatever the store holds and whatever day
it is. The text is part of what a prompt version stands for; change it together with the version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from afterword.extractors.extractor import Window
from afterword.facts.transcripts import Turn

OPENING = "<transcript>"
CLOSING = "</transcript>"
CONTINUATION = "    "
LONGEST_SPEAKER = 80

# strftime("%a") would follow the machine's locale, and the request must be the same everywhere.
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
# A closing tag would end the block; `<|` opens the control tokens of many models, which some servers honour in text.
DELIMITERS = re.compile(r"<(?=\s*/?\s*transcript)|<(?=\|)", re.IGNORECASE)
BRACKETS = str.maketrans({"[": "(", "]": ")", "<": "(", ">": ")", ":": " "})


def render(window: Window) -> str:
    """Return the window as a delimited transcript: numbered turns with role, speaker and time, context marked as read.

    Every turn starts its own line; further lines of a turn are indented, so that no text can pass for a turn.
    """
    context = [_turn(turn, window.owners, note=", already read") for turn in window.context]
    turns = [_turn(turn, window.owners) for turn in window.turns]
    return "\n".join([_people(window), OPENING, *context, *turns, CLOSING])


def neutralised(text: str) -> str:
    """Return the text with the characters that could close the block, or start a control token, made harmless."""
    return DELIMITERS.sub("\u2039", text)


def as_data(text: str) -> str:
    """Return the text as a quoted string on one line, in which nothing can close a list or start a control token."""
    return json.dumps(" ".join(text.split()), ensure_ascii=False).replace("<", "\u2039")


def _people(window: Window) -> str:
    owners = _names(window.owners) or "none of the speakers"
    return f"Owner of the memory: {owners}. People: {_names(window.humans) or 'none'}."


def _names(speakers: Sequence[str]) -> str:
    return ", ".join(json.dumps(_name(speaker), ensure_ascii=False) for speaker in speakers)


def _name(speaker: str) -> str:
    return " ".join(speaker.translate(BRACKETS).split())[:LONGEST_SPEAKER]


def _turn(turn: Turn, owners: Sequence[str], note: str = "") -> str:
    owner = " (owner)" if turn.speaker in owners else ""
    head = f"[{turn.number}{note}] {turn.role} {_name(turn.speaker)}{owner}, {_time(turn.said_at)}:"
    lines = neutralised(turn.text).splitlines() or [""]
    return f"\n{CONTINUATION}".join([f"{head} {lines[0]}", *lines[1:]])


def _time(said_at: datetime | None) -> str:
    if said_at is None:
        return "time unknown"
    instant = said_at.astimezone(UTC)
    return f"{WEEKDAYS[instant.weekday()]} {instant:%Y-%m-%dT%H:%MZ}"
