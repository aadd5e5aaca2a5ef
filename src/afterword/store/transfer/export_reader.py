"""Reading an export file in groups of lines. Only at its end it is known to be complete."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from afterword.errors import FileInvalid
from afterword.store.json_lines import Line, read_lines
from afterword.store.transfer.line_shapes import parse_line

FORMAT, VERSION = "afterword export", 1
LINES_AT_ONCE = 1_000
LETTERS_AT_ONCE = 2_000_000
"""The most text of a group of lines. The line of a session is long: it holds all turns and the state."""


def read_head(path: Path) -> Line:
    """Return the first line. Raises `FileInvalid` if the file is no export, or one of another version."""
    try:
        head: Line = next(read_lines(path, dict), (1, 0, {}))[2]
    except FileInvalid as error:
        raise FileInvalid(f"{error}; `afterword import --from KIND` reads the files of other libraries") from None
    if head.get("format") != FORMAT:
        raise FileInvalid("this is no export of afterword; `afterword import --from KIND` reads those of others")
    if head.get("version") != VERSION:
        raise FileInvalid(f"the export is of version {head.get('version')}, this program reads {VERSION}; upgrade it")
    return head


def read_groups(path: Path) -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines between the first and the last in groups of one kind, each with its kind.

    Raises `FileInvalid` if the file is damaged or cut short, after everything before the damage was yielded.
    """
    for kind, sized_lines in groupby(_lines_between(path), key=lambda sized_line: str(sized_line[1]["row"])):
        group: list[Line] = []
        letters = 0
        for size, line in sized_lines:
            group.append(line)
            letters += size
            if len(group) == LINES_AT_ONCE or letters > LETTERS_AT_ONCE or kind in ("scope", "end"):
                yield kind, group
                group, letters = [], 0
        if group:
            yield kind, group


def _lines_between(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield the lines between the first and the last, with their sizes."""
    count, is_complete = -1, False
    for _, size, line in read_lines(path, parse_line):
        if line["row"] == "foot":
            is_complete = line.get("lines") == count
            continue
        count += 1
        if count:
            yield size, line
    if not is_complete:
        raise FileInvalid(f"{path} is cut short after {count} lines; import the whole file, it goes on from there")
