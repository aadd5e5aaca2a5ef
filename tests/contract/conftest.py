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
from afterword.store.database.engine import Store
from afterword.store.database.urls import store_url
from servers import Server, running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server: the one that AFTERWORD_TEST_POSTGRES names, else one that runs for this test session."""
    named = os.environ.get("AFTERWORD_TEST_POSTGRES")
    if named:
        yield Server(named)
        return
    # Started by root, the server runs as another user; pytest closes its own folders to others whenever it starts.
    made = tempfile.TemporaryDirectory(prefix="afterword-pg-", ignore_cleanup_errors=True)
    with made as folder, running(Path(folder)) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: Server) -> str:
    """The address of the PostgreSQL server."""
    return postgres_server.url


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


def fresh_postgres(request: pytest.FixtureRequest, *, template: str = "") -> str:
    """Return the address of a new database, a copy of the template where one is named."""
    postgres = request.getfixturevalue("postgres_url")
    name = f"afterword_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {template and f'TEMPLATE {template}'}")
    return _database(postgres, name)


@pytest.fixture
def empty_postgres(request: pytest.FixtureRequest) -> str:
    """The address of a PostgreSQL database without tables."""
    return fresh_postgres(request)


@pytest.fixture
def postgres_store_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty PostgreSQL store with its tables."""
    return fresh_postgres(request, template=request.getfixturevalue("template"))


@pytest.fixture(params=["file", "postgres"])
async def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store with its tables, which several processes can open."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    async with Store(f"sqlite:///{tmp_path}/afterword.db") as made:
        await made.migrate()
    return f"sqlite:///{tmp_path}/afterword.db"


@pytest.fixture(params=["memory", "file", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store with its tables."""
    if request.param == "postgres":
        async with Store(request.getfixturevalue("postgres_store_url")) as opened:
            yield opened
        return
    url = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/afterword.db"
    async with Store(url) as opened:
        await opened.migrate()
        yield opened
