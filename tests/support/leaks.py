"""What a test may leave behind: threads, connections to databases, sockets and opened store files."""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.pool import Pool

LONGEST_END_S = 5.0
"""How long a thread may take to end that was told to."""
_OF_THE_LOOP = "asyncio_"
"""The name of the threads that end with their event loop."""

_connections: dict[int, Any] = {}


def _opened(connection: Any, _record: object) -> None:
    _connections[id(connection)] = connection


def _closed(connection: Any, _record: object = None) -> None:
    _connections.pop(id(connection), None)


event.listen(Pool, "connect", _opened)
event.listen(Pool, "close", _closed)
event.listen(Pool, "close_detached", _closed)


@dataclass(frozen=True, slots=True)
class Resources:
    """What the process uses at a moment."""

    threads: frozenset[threading.Thread]
    connections: frozenset[int]
    files: Counter[str]

    @classmethod
    def now(cls) -> Resources:
        """Return what is used now."""
        threads = frozenset(thread for thread in threading.enumerate() if not thread.name.startswith(_OF_THE_LOOP))
        # A connection to a server that has crashed is closed already, though its pool may not have noticed.
        open_ones = (key for key, connection in _connections.items() if not getattr(connection, "closed", False))
        return cls(threads, frozenset(open_ones), _open_files())

    def leaks(self) -> list[str]:
        """Return what has been added since then and is still used. Waits for threads that are about to end."""
        now = Resources.now()
        for thread in now.threads - self.threads:
            thread.join(LONGEST_END_S)
        now = Resources.now()
        return [
            *(f"thread {thread.name}" for thread in now.threads - self.threads),
            *(f"connection {_connections[key]!r}" for key in now.connections - self.connections),
            *(f"open file {name}" for name in (now.files - self.files).elements()),
        ]


def _open_files() -> Counter[str]:
    """Return the sockets and store files that are open. Nothing where /proc is absent."""
    names: Counter[str] = Counter()
    folder = Path("/proc/self/fd")
    for descriptor in os.listdir(folder) if folder.exists() else []:
        try:
            name = os.readlink(folder / descriptor)
        except OSError:  # it has just been closed
            continue
        if name.startswith("socket:") or ".db" in Path(name).name:
            names[name] += 1
    return names
