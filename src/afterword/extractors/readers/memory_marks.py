"""Recognise memory that a program put into a conversation, so that it is never taken for a speaker's words.

The forms are those that known memory adapters and tutorials write. Words in a sentence ("a relevant memory of mine")
are not enough: a header must stand alone on the first line, with a list or the user's own words below it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from afterword.recall.block import CLOSING, OPENING


class MessagePiece(NamedTuple):
    """A part of a message: injected memory, or words of the speaker."""

    is_memory: bool
    text: str


_HINT = re.compile(r"memor(?:y|ies)|=== CANVAS FILES", re.IGNORECASE)
_LONGEST_SEARCH = 200_000
_HEADER = re.compile(
    r"\s{0,20}(?:#{1,6} )?(?:"
    r"(?P<sure>relevant memory content(?: \(in chronological order\))?|(?:potentially )?relevant memor(?:y|ies))"
    r"|context from memory|memory context|from memory|memor(?:y|ies)"
    r"):[ \t]{0,20}\r?\n",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"\s{0,20}(?:[-*•]|\d{1,6}[.)])\s")
_ASKING = r"(?:(?:the |current )?user(?:'s)? (?:message|question|query|input|request)|user|question|message|query)"
_ASKED_APART = re.compile(rf"\n[ \t]{{0,20}}\r?\n[ \t]{{0,20}}(?:#{{1,6}} )?{_ASKING}[ \t]?:", re.IGNORECASE)
_ASKED = re.compile(rf"\n[ \t]{{0,20}}(?:#{{1,6}} )?{_ASKING}[ \t]?:", re.IGNORECASE)
_APPENDED = re.compile(r"(?:\A|\n)[ \t]{0,20}\n?# Memories that might help[ \t]{0,20}\r?\n(?=\s{0,20}[-*] )")
_CANVAS = re.compile(r"\s{0,20}=== CANVAS FILES ===(?:.*?=== END OF CANVAS ===|.*\Z)", re.DOTALL)


def split_injected_memory(text: str, injected: Collection[str] = ()) -> list[MessagePiece]:
    """Split a message into injected memory and words of the speaker, in order.

    `injected` are the exact texts, without white space around them, that the state lists as results of memory queries.
    """
    if injected and text.strip() in injected:
        return [MessagePiece(True, text)]
    if not _HINT.search(text):
        return [MessagePiece(False, text)]
    pieces: list[MessagePiece] = []
    end = 0
    for start, stop in _afterword_blocks(text):
        pieces += _pieces_without_block(text[end:start])
        pieces.append(MessagePiece(True, text[start:stop]))
        end = stop
    if not end:
        return _pieces_without_block(text) or [MessagePiece(False, text)]
    return pieces + _pieces_without_block(text[end:])


def is_system_memory(text: str, injected: Collection[str] = ()) -> bool:
    """Whether a whole system message is memory: it has a known header, is a canvas, or repeats an injected text."""
    header = _HEADER.match(text)
    is_known = bool(header and header.group("sure")) or bool(_CANVAS.match(text))
    return is_known or (bool(injected) and repeats_injected_text(text, injected))


def _afterword_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block that afterword itself wrote. A cut block ends with the text."""
    start = text.find(OPENING)
    while start >= 0:
        opened = text.find(">", start)
        if opened < 0:
            return
        closed = text.find(CLOSING, opened)
        stop = closed + len(CLOSING) if closed >= 0 else len(text)
        yield start, stop
        start = text.find(OPENING, stop)


def repeats_injected_text(text: str, injected: Collection[str]) -> bool:
    """Whether the text, or a line of it without its bullet or number, is one of the injected texts."""
    if text.strip() in injected:
        return True
    lines = (_LIST_ITEM.sub("", line, count=1).strip() for line in text.splitlines())
    return any(line in injected for line in lines if line)


def _pieces_without_block(text: str) -> list[MessagePiece]:
    """Split a text that holds no block of afterword itself. Blank text gives nothing."""
    if not text.strip():
        return []
    canvas = _CANVAS.match(text)
    if canvas:
        return [MessagePiece(True, canvas.group()), *_spoken_piece(text[canvas.end() :])]
    header = _HEADER.match(text)
    if header:
        return _pieces_after_header(text, header)
    return _pieces_before_appended(text)


def _pieces_after_header(text: str, header: re.Match[str]) -> list[MessagePiece]:
    """Split a message that starts with a memory header. The user's words may follow below a header of their own."""
    start, end = header.end() - 1, header.end() + _LONGEST_SEARCH
    asked = _ASKED_APART.search(text, start, end)
    asked = asked or max(_ASKED.finditer(text, start, end), key=lambda match: match.start(), default=None)
    if asked:
        return [MessagePiece(True, text[: asked.start()]), *_spoken_piece(text[asked.end() :])]
    if header.group("sure") and _LIST_ITEM.match(text, header.end()):
        return [MessagePiece(True, text)]
    return _pieces_before_appended(text)


def _pieces_before_appended(text: str) -> list[MessagePiece]:
    appended = _APPENDED.search(text)
    if not appended:
        return [MessagePiece(False, text)]
    return [*_spoken_piece(text[: appended.start()]), MessagePiece(True, text[appended.start() :].strip())]


def _spoken_piece(text: str) -> list[MessagePiece]:
    return [MessagePiece(False, text.strip())] if text.strip() else []
