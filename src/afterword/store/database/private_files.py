"""Files that hold what a user said: only their owner can read them, and they never replace another file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from afterword.errors import FileInvalid, StoreUnreachable


@contextmanager
def opened_private(path: Path) -> Iterator[TextIO]:
    """Open a new file for writing with mode 0600. It gets its name only once it is complete.

    Raises `FileInvalid` if there is a file of that name, and `StoreUnreachable` if it cannot be written.
    """
    if path.exists():
        raise FileInvalid(f"{path} is there already; choose another name, or move it away")
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    except OSError as error:
        raise StoreUnreachable(f"{path} cannot be written ({error.strerror})") from None
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
