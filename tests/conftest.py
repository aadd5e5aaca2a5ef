"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import create_engine

from afterword.facts.scopes import Scope
from afterword.store import lookup, migrations
from afterword.store.database.engine import Store
from afterword.store.database.urls import store_url
from processor_time import ProcessorTime
from servers import Server, running

REPOSITORY = Path(__file__).parent.parent
FAR = datetime(2100, 1, 1, tzinfo=UTC)
MEMORY_DISK, LEAST_BYTES = Path("/dev/shm"), 2 << 30

Dump = list[tuple[object, ...]]

_unused_databases: list[str] = []

# A busy machine is no failure, and no run of `make test` differs from the one before it. `make soak` explores.
settings.register_profile(
    "test",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("soak", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that counts processor time."""
    parser.addoption("--processor-time", action="store_true", help="print the processor time of each file of tests")


def pytest_configure(config: pytest.Config) -> None:
    """Spare the tests what takes time without testing anything.

    Where the environment has Python write no compiled modules, the processes that tests start share them all the same:
    each would spend more time on compiling what it imports than on its work. No test opens a connection with TLS, so
    no HTTP client reads the certificates of this machine, which takes longer than most requests. No test cuts off the
    power, so none waits for a disk: temporary files lie in memory where there is room. What is imported while tests are
    collected is no garbage, so none is looked for: that takes a third of the time.
    """
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        gc.disable()
    if "TMPDIR" not in os.environ and MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free >= LEAST_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_DISK)
    if config.getoption("--processor-time"):
        config.pluginmanager.register(ProcessorTime())
    certificates = tempfile.TemporaryDirectory(prefix="afterword-certificates-", ignore_cleanup_errors=True)
    config.add_cleanup(certificates.cleanup)
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = certificates.name
    if sys.dont_write_bytecode:
        compiled = tempfile.TemporaryDirectory(prefix="afterword-compiled-", ignore_cleanup_errors=True)
        config.add_cleanup(compiled.cleanup)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled.name
        sys.dont_write_bytecode, sys.pycache_prefix = False, compiled.name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return three workers for two cores: what some tests wait for, such as the end of a process, others use."""
    return max(1, len(os.sched_getaffinity(0)) * 3 // 2) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait for long: at the end nothing would be left to do meanwhile.

    What is begun first stays with one worker. So there is one browser.
    """
    items.sort(key=lambda item: item.get_closest_marker("begun_first") is None)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at what was imported, and collect less often: it stays to the end."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real saved states and scenarios beside the checkout; a test that needs it is skipped without."""
    folder = Path(os.environ.get("AFTERWORD_TEST_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: set AFTERWORD_TEST_SHARED to the folder that holds data/ and tools/")
    return folder


@pytest.fixture(scope="session")
def canonical() -> Callable[[Store, Scope], Awaitable[Dump]]:
    """Everything that a scope holds, without what depends on when and in which order it was learned."""

    async def dump(store: Store, scope: Scope) -> Dump:
        with store.reading() as db:
            facts = lookup.read_facts(db, scope, at=FAR)
        return sorted(
            (
                *(fact.id, fact.kind, fact.subject, fact.attribute, fact.value, fact.statement, fact.status),
                *(fact.valid_from, fact.valid_to, fact.support, fact.assertion_ids, fact.retired_by),
                *(fact.contested_by, tuple((item.session_id, item.turn, item.quote) for item in fact.evidence)),
            )
            for fact in facts
        )

    return dump


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the tables in it, of which tests get a copy."""
    path = tmp_path_factory.mktemp("template") / "afterword.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode=WAL")
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        migrations.upgrade(connection)
    engine.dispose()
    path.chmod(0o600)
    return path


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
    """Return the address of a new database, a copy of the template where one is named.

    The test that makes the next one removes it: each takes 8 MB.
    """
    postgres = request.getfixturevalue("postgres_url")
    name = f"afterword_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        while _unused_databases:
            connection.execute(f"DROP DATABASE {_unused_databases.pop()} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name} {template and f'TEMPLATE {template}'}")
    request.addfinalizer(lambda: _unused_databases.append(name))
    return _database(postgres, name)


@pytest.fixture
def empty_postgres(request: pytest.FixtureRequest) -> str:
    """The address of a PostgreSQL database without tables."""
    return fresh_postgres(request)


@pytest.fixture
def postgres_store_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty PostgreSQL store with its tables."""
    return fresh_postgres(request, template=request.getfixturevalue("template"))
