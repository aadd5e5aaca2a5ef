"""Writing files that hold a user's words: only their owner can read them, and they never replace another file.

A file is written in its folder as `.<name>.<16 digits>.part`, and gets its name when it is complete. If the process is
killed before, this file is left behind. The next process that writes a file of the same name removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from afterword.errors import FileInvalid, StoreUnreachable

_SQLITE_SUFFIXES = ("", "-journal", "-wal", "-shm")
"""The suffixes of a database file and of the files that SQLite writes beside it."""


@contextmanager
def open_private_file(path: Path, file: TextIO | None = None) -> Iterator[TextIO]:
    """Open a new file of mode 0600 for writing. It gets its name when it is complete.

    If an open `file` is given, it is emptied and written instead. Raises `FileInvalid` if there is a file of that name,
    and `StoreUnreachable` if it cannot be written.
    """
    if file is not None:
        file.seek(0)
        file.truncate()
        yield file
        return
    with create_file_atomically(path) as partial, partial.open("w", encoding="utf-8") as written:
        yield written
        written.flush()
        os.fsync(written.fileno())


@contextmanager
def create_file_atomically(path: Path) -> Iterator[Path]:
    """Yield the path of an empty file of mode 0600, which is renamed to `path` at the end, or removed after an error.

    Raises `FileInvalid` if there is a file at `path`, at the beginning or at the end, and `StoreUnreachable` if it
    cannot be written.
    """
    if os.path.lexists(path):
        raise _exists_error(path)
    _remove_leftovers(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except OSError as error:
        raise _write_error(path, error) from None
    try:
        with _locked_until_closed(descriptor):
            yield partial
        _give_name(partial, path)
    except OSError as error:
        raise _write_error(path, error) from None
    finally:
        _remove(partial)


@contextmanager
def _locked_until_closed(descriptor: int) -> Iterator[None]:
    """Lock a file that is being written, and close it at the end of the context."""
    try:
        # The lock shows other processes that the file is still being written, so that they do not remove it.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        # Closed before others can open the file: closing a descriptor drops all locks of the process on its file.
        os.close(descriptor)


def _give_name(partial: Path, path: Path) -> None:
    """Give a complete file its name, unless another file has it by now."""
    try:
        os.link(partial, path)
        return
    except FileExistsError:
        raise _exists_error(path) from None
    except OSError:
        pass  # a file system without hard links
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise _exists_error(path) from None
    try:
        partial.replace(path)
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _remove_leftovers(path: Path) -> None:
    """Remove the unfinished files of processes that were killed while they wrote a file of this name."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.part")
    with suppress(OSError):
        for leftover in path.parent.iterdir():
            if name.fullmatch(leftover.name) and _is_leftover(leftover):
                _remove(leftover)


def _is_leftover(partial: Path) -> bool:
    """Return whether this file belongs to the current user and no process is writing it."""
    try:
        descriptor = os.open(partial, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _remove(partial: Path) -> None:
    for suffix in _SQLITE_SUFFIXES:
        partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _write_error(path: Path, error: OSError) -> StoreUnreachable:
    return StoreUnreachable(f"{path} cannot be written ({error.strerror})")


def _exists_error(path: Path) -> FileInvalid:
    return FileInvalid(f"{path} is there already; choose another name, or move it away")
