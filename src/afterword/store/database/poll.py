"""Held connections to a PostgreSQL server, one for each running loop, on which only a scope's revision is asked.

Taking a connection from the pool and beginning a transaction on it costs ten times as much as the question. These
cannot write, and every question is a transaction of its own, so none is answered from what was true earlier.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import psycopg

from afterword.facts.scopes import Scope

_QUESTION = "SELECT revision FROM scopes WHERE tenant = %s AND kind = %s AND name = %s"
_READING = "-c default_transaction_read_only=on"


class _Line:
    """One connection; it ends with this object."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection
        self._process = os.getpid()

    def close(self) -> None:
        # A forked child must not touch a connection of its parent, not even to close it.
        if self._process == os.getpid():
            self.connection.pgconn.finish()

    def __del__(self) -> None:
        self.close()


class Poll:
    """Asks for revisions. `None` says to ask another way: the server does not answer here, or not like this."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._arguments = {**arguments, "options": f"{arguments.get('options', '')} {_READING}".strip()}
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, _Line] = WeakKeyDictionary()
        self._process = os.getpid()

    async def revision(self, scope: Scope) -> int | None:
        """Return the revision of a scope, 0 where nothing is kept of it."""
        for _ in range(2):
            line, is_new = await self._line()
            if line is None:
                return None
            try:
                return await self._asked(line, scope)
            except psycopg.Error:
                if is_new:
                    return None
                # The server was started anew, or has closed what was idle for long.
        return None

    def close(self) -> None:
        """Close the connections of the running loop, and those of loops that are closed."""
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        for loop in list(self._lines):
            if loop is running or loop.is_closed():
                self._drop(loop)

    async def _line(self) -> tuple[_Line | None, bool]:
        if self._process != os.getpid():
            self._lines, self._process = WeakKeyDictionary(), os.getpid()
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is not None and not line.connection.closed:
            return line, False
        for other in list(self._lines):
            if other.is_closed():
                self._drop(other)
        try:
            connection = await psycopg.AsyncConnection.connect(**self._arguments, autocommit=True)
        except (psycopg.Error, OSError):
            return None, True
        # Where another task was faster, its line goes on until its question is answered, and ends then.
        self._lines[loop] = line = _Line(connection)
        return line, True

    async def _asked(self, line: _Line, scope: Scope) -> int:
        answered = False
        try:
            cursor = await line.connection.execute(_QUESTION, (scope.tenant, str(scope.kind), scope.id))
            row = await cursor.fetchone()
            answered = True
        finally:
            if not answered:
                # Who was cancelled leaves an answer behind that would be the next one's.
                line.close()
        return int(row[0]) if row else 0

    def _drop(self, loop: asyncio.AbstractEventLoop) -> None:
        line = self._lines.pop(loop, None)
        if line is not None:
            line.close()
