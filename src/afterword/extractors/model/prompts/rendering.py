"""Render a window as a delimited transcript, in which no text can forge a turn or close the transcript. Pure.

The same window always gives the same text, whatever the store holds and whatever day it is. The text belongs to the
version of a prompt: change it only together with the version.
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
    """Return the window as a delimited transcript: numbered turns with role, speaker and time.

    Turns that were read before are marked. Each turn starts a new line and its further lines are indented, so that no
    text can look like another turn.
    """
    context = [_turn(turn, window.owners, note=", already read") for turn in window.context]
    turns = [_turn(turn, window.owners) for turn in window.turns]
    return "\n".join([_people(window), OPENING, *context, *turns, CLOSING])


def neutralised(text: str) -> str:
    """Return the text with every character replaced that could close the transcript or begin a control token."""
    return DELIMITERS.sub("\u2039", text)


def as_data(text: str) -> str:
    """Return the text as a quoted string on one line, which cannot close a list or begin a control token."""
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
