"""The lines of a block, each rendered and counted once. Pure."""

from __future__ import annotations

from functools import lru_cache

from afterword.facts.fact import Fact
from afterword.recall.block import Entry, SaidTurn, entry_key, entry_line, frame, missing_line
from afterword.recall.tokens import token_count

MOST_LINES = 20_000


class LineCache:
    """The lines of entries that do not change: those of one view."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[Entry, str, int]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, entry: Entry) -> str:
        """Return the line of an entry."""
        return self._rendered(entry)[1]

    def tokens(self, entry: Entry) -> int:
        """Return the tokens of the line of an entry."""
        return self._rendered(entry)[2]

    def _rendered(self, entry: Entry) -> tuple[Entry, str, int]:
        key = entry.id if isinstance(entry, Fact) else entry_key(entry)
        rendered = self._lines.get(key)
        if rendered is None or not _has_same_line(rendered[0], entry):
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            line = entry_line(entry)
            rendered = self._lines[key] = entry, line, token_count(line)
        return rendered


def _has_same_line(rendered: Entry, entry: Entry) -> bool:
    if isinstance(rendered, SaidTurn) and isinstance(entry, SaidTurn):
        return rendered.turn is entry.turn and rendered.context is entry.context
    return rendered is entry


@lru_cache(maxsize=64)
def heading_tokens(heading: str) -> int:
    """Return the tokens of a heading."""
    return token_count(heading)


@lru_cache(maxsize=1_000)
def frame_tokens(label: str, *, is_for_question: bool, has_preface: bool) -> int:
    """Return the tokens of the lines around the entries of a part."""
    return token_count("\n".join(frame(label, is_for_question=is_for_question, has_preface=has_preface)))


@lru_cache(maxsize=1_000)
def missing_tokens(count: int) -> int:
    """Return the tokens of the line that says how many flagged facts had no room."""
    return token_count(missing_line(count))
