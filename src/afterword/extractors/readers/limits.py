"""Read and parse saved states within limits of size and depth. A hostile or broken file raises a `ReadError`."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import NoReturn

from afterword.extractors.errors import ReadError, StateBroken, StateTooLarge
from afterword.facts.transcripts import LARGEST_STATE_BYTES

DEEPEST_NESTING = 200

_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_STRING_OR_NO_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', re.DOTALL)
_LINES = re.compile(r"\s*\{[^\n]*\}[ \t\r]*\n\s*\{")
_TOO_DEEP = (
    f"nested more than {DEEPEST_NESTING} levels deep; no saved conversation is, so check where the file comes from"
)


def parse_state(raw: bytes) -> object:
    """Return the JSON value that the bytes hold.

    Of JSON Lines, with an object on each line, it is the list of the objects. Raises `StateTooLarge` for more than
    64 MiB or 200 levels, and `StateBroken` (with the position) for bytes that are empty, truncated or not UTF-8, that
    begin with a byte order mark, or that hold NaN or Infinity.
    """
    if len(raw) > LARGEST_STATE_BYTES:
        raise StateTooLarge(_too_large_message(len(raw)))
    if raw.startswith(_BYTE_ORDER_MARKS):
        raise StateBroken("starts with a byte order mark (position 0); save it again as UTF-8 without one")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StateBroken(f"is not UTF-8 at byte {error.start}; save it again as UTF-8") from error
    return _parse_lines(text) if _LINES.match(text) else parse_json_text(text)


def _parse_lines(text: str) -> list[object]:
    """Return the values of JSON Lines. Raises the errors of `parse_state`. Their messages name the line."""
    values = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values.append(parse_json_text(line))
            except StateBroken as error:
                raise StateBroken(f"line {number} {error}") from None
    return values


def parse_json_text(text: str) -> object:
    """Return the JSON value of a text. Raises the errors of `parse_state`."""
    if not text.strip():
        raise StateBroken("is empty (position 0); save the state again")
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno} (position {error.pos})"
        raise StateBroken(f"is not valid JSON at {where}: {error.msg}; the file may be incomplete") from None
    except RecursionError:
        raise StateTooLarge(_TOO_DEEP) from None
    except _NoNumberError as error:
        position = next((match.start(1) for match in _STRING_OR_NO_NUMBER.finditer(text) if match.group(1)), 0)
        raise StateBroken(
            f"holds {error} at position {position}, which JSON does not allow; write null or a number in its place"
        ) from None
    except ValueError:
        raise StateBroken("holds a number that is too large or has too many digits; write it as a string") from None
    check_depth(value)
    return value


def check_depth(value: object) -> None:
    """Raise `StateTooLarge` if the value is nested more than 200 levels deep."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST_NESTING):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return
    raise StateTooLarge(_TOO_DEEP)


def read_bytes(path: Path, folder: Path | None = None) -> bytes:
    """Return the bytes of a file. A file over the limit is not read.

    Raises `StateTooLarge`, or `ReadError` if the file cannot be opened or a symbolic link leads out of `folder`.
    """
    try:
        # Reading a pipe or device could block; a saved state is a regular file.
        if path.exists() and not path.is_file():
            raise ReadError("cannot be opened: it is not a regular file; give the path of the saved state")
        with open(path if folder is None else _opened_below(folder, path), "rb") as file:  # noqa: PTH123 - a descriptor
            size = os.fstat(file.fileno()).st_size
            if size > LARGEST_STATE_BYTES:
                raise StateTooLarge(_too_large_message(size))
            return file.read(LARGEST_STATE_BYTES + 1)
    except OSError as error:
        raise ReadError(f"cannot be opened: {error.strerror}; check the path and its permissions") from error
    except (RuntimeError, ValueError) as error:  # a NUL in the path, a loop of links, or a link that leads out
        raise ReadError("cannot be opened: the path does not lie in its folder; check the manifest") from error


def _opened_below(folder: Path, path: Path) -> int:
    """Open a file folder by folder, so that no link can be put in the way meanwhile. Return its file descriptor.

    Raises `ValueError` if a link leads out of the folder, and `OSError` if the file cannot be opened.
    """
    *folders, name = path.resolve().relative_to(folder).parts
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for step in folders:
            inner = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inner
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened)
    finally:
        os.close(opened)


class _NoNumberError(ValueError):
    """NaN or an infinity stands in the place of a JSON number."""


def _refuse_constant(constant: str) -> NoReturn:
    raise _NoNumberError(constant)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


def _too_large_message(size: int) -> str:
    return f"has {size} bytes; at most {LARGEST_STATE_BYTES} are read, so split it into single sessions"
