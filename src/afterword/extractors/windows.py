"""Cut a transcript into windows, the parts that a model reads in one request. Pure.

Windows are filled from the first turn on. If a session grows, only its last window changes and new windows follow it.
Earlier windows keep their content and their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from afterword.extractors.extractor import Window
from afterword.facts.assertions import digest
from afterword.facts.transcripts import Transcript, Turn
from afterword.recall.tokens import BYTES_PER_TOKEN, tokens_by_byte_size

CONTEXT_TOKENS = 1_000
"""The most tokens of earlier turns that are shown as context of a window."""

TOKENS_PER_TURN = 8
"""Tokens of a turn besides its words: number, speaker and line break."""

SMALLEST_TOKENS = 150
"""A window of at most this many tokens is not halved further. If a model finds it too long, it is not the cause."""

_KEY_DIGITS = 40
_BORDERS = ("\n", ". ", " ")


def cut_windows(transcript: Transcript, owners: tuple[str, ...], *, budget_tokens: int = 6_000) -> list[Window]:
    """Cut a transcript into windows of at most `budget_tokens`, each with the turns before it as context.

    A turn that exceeds the budget by itself is split, and its parts keep its number. The owners and humans of a window
    are those who have spoken up to its end. Raises ValueError if the budget leaves no room for a turn's words.
    """
    if budget_tokens <= 2 * TOKENS_PER_TURN:
        raise ValueError(f"a window of {budget_tokens} tokens holds no turn; allow more than {2 * TOKENS_PER_TURN}")
    pieces = [piece for turn in transcript.turns for piece in _turn_pieces(turn, budget_tokens)]
    cut: list[Window] = []
    heard: set[str] = set()
    start = 0
    for end in _window_ends(pieces, budget_tokens):
        heard |= {piece.speaker for piece in pieces[start:end]}
        window = Window(
            ordinal=len(cut) + 1,
            turns=tuple(pieces[start:end]),
            context=_context_turns(pieces, start),
            owners=tuple(name for name in owners if name in heard),
            humans=tuple(name for name in transcript.humans if name in heard),
        )
        cut.append(window)
        start = end
    return cut


def halve_window(window: Window) -> tuple[Window, Window] | None:
    """Return the window as two halves, cut between turns near its middle, or None if it is too small.

    A single turn is cut after a line, a sentence or a word before its middle, and both parts keep its number. Each half
    has the turns before it as context, and the ordinal, owners and humans of the whole window.
    """
    if sum(map(_turn_tokens, window.turns)) <= SMALLEST_TOKENS:
        return None
    if len(window.turns) > 1:
        costs = list(accumulate(map(_turn_tokens, window.turns)))
        border = min(range(1, len(window.turns)), key=lambda end: abs(2 * costs[end - 1] - costs[-1]))
        first, second = window.turns[:border], window.turns[border:]
    else:
        turn = window.turns[0]
        end = _piece_end(turn.text, 0, len(turn.text.encode("utf-8", "surrogatepass")) // 2)
        first, second = (replace(turn, text=turn.text[:end]),), (replace(turn, text=turn.text[end:]),)
    before = (*window.context, *first)
    return replace(window, turns=first), replace(window, turns=second, context=_context_turns(before, len(before)))


def window_key(window: Window, extractor_version: str) -> str:
    """Return a stable hash of everything that an extraction from this window depends on. Its ordinal is left out."""
    turns = [[_key_content(turn) for turn in part] for part in (window.turns, window.context)]
    return digest(extractor_version, turns, window.owners, window.humans, length=_KEY_DIGITS)


def _key_content(turn: Turn) -> tuple[object, ...]:
    said_at = turn.said_at.isoformat() if turn.said_at else None
    return turn.number, turn.speaker, turn.role.value, turn.text, said_at, turn.time_is_guess


def _turn_tokens(turn: Turn) -> int:
    return tokens_by_byte_size(turn.text) + TOKENS_PER_TURN


def _window_ends(pieces: Sequence[Turn], budget: int) -> Iterator[int]:
    """Yield the index where each window ends: before the first piece that does not fit."""
    used = 0
    for place, piece in enumerate(pieces):
        if used and used + _turn_tokens(piece) > budget:
            yield place
            used = 0
        used += _turn_tokens(piece)
    if pieces:
        yield len(pieces)


def _turn_pieces(turn: Turn, budget: int) -> Iterator[Turn]:
    """Yield the turn, or its parts if it does not fit a window."""
    if _turn_tokens(turn) <= budget:
        yield turn
        return
    limit = (budget - TOKENS_PER_TURN) * BYTES_PER_TOKEN
    start = 0
    while start < len(turn.text):
        end = _piece_end(turn.text, start, limit)
        yield replace(turn, text=turn.text[start:end])
        start = end


def _piece_end(text: str, start: int, limit: int) -> int:
    """Return where a piece of at most `limit` bytes ends: after a line, else a sentence, else a word."""
    end = start + len(_longest_beginning(text[start : start + limit], limit))
    if end >= len(text):
        return len(text)
    for mark in _BORDERS:
        cut = text.rfind(mark, start + (end - start) // 2, end)
        if cut >= 0:
            return cut + len(mark)
    return end


def _longest_beginning(text: str, limit: int) -> str:
    """Return the longest beginning of a text that fits `limit` bytes."""
    encoded = text.encode("utf-8", "surrogatepass")
    # A character is not cut: its further bytes begin with the bits 10.
    while 0 < limit < len(encoded) and encoded[limit] & 0xC0 == 0x80:
        limit -= 1
    return encoded[:limit].decode("utf-8", "surrogatepass")


def _context_turns(pieces: Sequence[Turn], start: int) -> tuple[Turn, ...]:
    """Return the turns just before the window that fit the context. Of a single turn that is too long, keep the end."""
    nearest: list[Turn] = []
    left = CONTEXT_TOKENS
    most = CONTEXT_TOKENS // TOKENS_PER_TURN
    for piece in reversed(pieces[max(0, start - most) : start]):
        if _turn_tokens(piece) > left:
            if not nearest:
                end = _longest_beginning(piece.text[::-1], (left - TOKENS_PER_TURN) * BYTES_PER_TOKEN)[::-1]
                nearest.append(replace(piece, text=end))
            break
        nearest.append(piece)
        left -= _turn_tokens(piece)
    return tuple(reversed(nearest))
