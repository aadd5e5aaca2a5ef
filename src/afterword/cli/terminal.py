"""Output for a terminal: text with escaped control characters, and tables that fit its width.

In a table, texts wrap at words. A narrow terminal gets a list instead. rich is imported only when a table is printed,
so that `--json` does not wait for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

LONGEST_UNWRAPPED = 30
"""A column whose cells are all at most this wide is never wrapped."""
NARROWEST_WRAPPED = 26
"""A column that is wrapped is at least this wide in a table."""
SENTENCE_COLUMNS = frozenset(
    {"statement", "quotes", "words", "text", "earlier", "later", "before", "after", "reason", "detail", "failure"}
)
"""Columns of sentences. In a list, each of their cells has a line of its own, however short it is."""
_GAP = 2
_INDENT = 4
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that could move the cursor or reorder a line: in names of files, or in quoted words."""


def terminal_safe_text(text: str) -> str:
    """Return a text with control characters and bidirectional marks written out, as in `\\x1b`. Line breaks stay."""
    return _UNSAFE.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def terminal_safe_line(text: str) -> str:
    """Return a text on one line, with line breaks written out too."""
    return terminal_safe_text(text).replace("\n", "\\n")


def terminal_safe_json(text: str) -> str:
    """Return JSON in which the same characters are written as `\\u` escapes."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class ResponsiveTable:
    """Rows under a title. Columns without any content are left out.

    If wrapped columns would be too narrow, each row is printed as a list instead: its short cells in one line, and
    below it a line for each cell of a wrapped column or of a column in `SENTENCE_COLUMNS`.
    """

    def __init__(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        styles: Sequence[str] | None = None,
    ) -> None:
        missing = [""] * len(columns)  # the row of a failed session has fewer cells
        cells = [
            ["" if cell is None else terminal_safe_text(str(cell)) for cell in (*row, *missing)][: len(columns)]
            for row in rows
        ]
        shown = [place for place in range(len(columns)) if any(row[place] for row in cells)]
        self._title, self._columns = terminal_safe_text(title), [columns[place] for place in shown]
        self._rows = [[row[place] for place in shown] for row in cells]
        self._styles = styles or [""] * len(rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield the table, or the list; only the title if there are no rows."""
        from rich.cells import cell_len
        from rich.text import Text

        if not self._rows:
            yield Text(self._title, style="italic")
            return
        widths = [
            max(cell_len(line) for cell in (name, *column) for line in cell.splitlines() or [""])
            for name, column in zip(self._columns, zip(*self._rows, strict=True), strict=True)
        ]
        wrapped_columns = {place for place, width in enumerate(widths) if width > LONGEST_UNWRAPPED}
        needed = sum(NARROWEST_WRAPPED if place in wrapped_columns else width for place, width in enumerate(widths))
        if needed + _GAP * (len(widths) - 1) <= options.max_width:
            yield self._as_table(wrapped_columns)
        else:
            # The first column names the row, so that it stands in the first line.
            sentences = {place for place, name in enumerate(self._columns) if place > 0 and name in SENTENCE_COLUMNS}
            yield from self._as_list(wrapped_columns | sentences, console, options.max_width)

    def _as_table(self, wrapped_columns: set[int]) -> Table:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        plain = Table(title=self._title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for place, name in enumerate(self._columns):
            plain.add_column(name, overflow="fold", no_wrap=place not in wrapped_columns)
        for row, style in zip(self._rows, self._styles, strict=True):
            plain.add_row(*(Text(cell, style=style) for cell in row))
        return plain

    def _as_list(self, own_line_columns: set[int], console: Console, width: int) -> Iterator[RenderableType]:
        from rich.text import Text

        yield Text(self._title, style="italic")
        for row, style in zip(self._rows, self._styles, strict=True):
            yield Text("")
            cells = [(place, cell) for place, cell in enumerate(row) if cell and place not in own_line_columns]
            named = [cell if place == 0 else f"{self._columns[place]} {cell}" for place, cell in cells]
            yield from _wrapped_lines(", ".join(named), style, 0, console, width)
            for place in sorted(own_line_columns):
                label = "" if len(own_line_columns) == 1 else f"{self._columns[place]}: "
                if row[place]:
                    yield from _wrapped_lines(f"{label}{row[place]}", style, _INDENT, console, width)
        yield Text("")


def _wrapped_lines(text: str, style: str, indent: int, console: Console, width: int) -> Iterator[Text]:
    """Yield the lines of a text, wrapped at words. The console wraps nothing, so that piped lines stay whole."""
    from rich.text import Text

    for line in Text(text, style=style).wrap(console, width - indent, overflow="fold"):
        yield Text(" " * indent) + line
