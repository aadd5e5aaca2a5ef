"""The file of an export as it is read: some lines at a time, and known to be whole only at its end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from afterword.errors import FileInvalid
from afterword.store.transfer.json_rows import Line

FORMAT, VERSION = "afterword export", 1
LINES_AT_ONCE = 1_000
LETTERS_AT_ONCE = 2_000_000
"""A group of lines ends at so many, or so much text: a session is one line, with all its turns and its state."""


def read_head(path: Path) -> Line:
    """Return the first line. Raises `FileInvalid` where the file is no export, or one of another version."""
    head = next(_parsed(path), (1, {}))[1]
    if head.get("format") != FORMAT:
        raise FileInvalid("this is no export of afterword; `afterword import --from KIND` reads those of others")
    if head.get("version") != VERSION:
        raise FileInvalid(f"the export is of version {head.get('version')}, this program reads {VERSION}; upgrade it")
    return head


def read_groups(path: Path) -> Iterator[tuple[str, list[Line]]]:
    """Yield the lines between the first and the last in groups of one kind, each with its kind.

    Raises `FileInvalid` where the file is damaged or cut short, once all before that has been yielded.
    """
    for kind, found in groupby(_between(path), key=lambda one: str(one[1]["row"])):
        group: list[Line] = []
        letters = 0
        for size, line in found:
            group.append(line)
            letters += size
            if len(group) == LINES_AT_ONCE or letters > LETTERS_AT_ONCE or kind in ("scope", "end"):
                yield kind, group
                group, letters = [], 0
        if group:
            yield kind, group


def _between(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield the lines between the first and the last, with their sizes."""
    count, is_whole = -1, False
    for size, line in _parsed(path):
        if line["row"] == "foot":
            is_whole = line.get("lines") == count
            continue
        count += 1
        if count:
            yield size, line
    if not is_whole:
        raise FileInvalid(f"{path} is cut short after {count} lines; import the whole file, it goes on from there")


def _parsed(path: Path) -> Iterator[tuple[int, Line]]:
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            try:
                line: Line = json.loads(text)
                _ = line["row"]
            except (ValueError, TypeError, KeyError):
                raise FileInvalid(f"{path} line {number} cannot be read; the file is damaged or cut short") from None
            yield len(text), line
