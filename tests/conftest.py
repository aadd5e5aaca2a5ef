"""Fixtures that every test may use."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from afterword.facts.scopes import Scope
from afterword.store import lookup
from afterword.store.database.engine import Store
from processor_time import ProcessorTime

REPOSITORY = Path(__file__).parent.parent
FAR = datetime(2100, 1, 1, tzinfo=UTC)

Dump = list[tuple[object, ...]]

# A busy machine is no failure, and no run of `make test` differs from the one before it. `make soak` explores.
settings.register_profile(
    "test", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that counts processor time."""
    parser.addoption("--processor-time", action="store_true", help="print the processor time of each file of tests")


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that tests start share what they compile, where the environment has Python write none of it.

    Each of them would spend more time on compiling what it imports than on its work.
    """
    if config.getoption("--processor-time"):
        config.pluginmanager.register(ProcessorTime())
    if sys.dont_write_bytecode:
        compiled = tempfile.TemporaryDirectory(prefix="afterword-compiled-", ignore_cleanup_errors=True)
        config.add_cleanup(compiled.cleanup)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = compiled.name
        sys.dont_write_bytecode, sys.pycache_prefix = False, compiled.name


@pytest.fixture(scope="session")
def repository() -> Path:
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real saved states and scenarios beside the checkout; a test that needs it is skipped without."""
    folder = Path(os.environ.get("AFTERWORD_SHARED", REPOSITORY.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: set AFTERWORD_SHARED to the folder that holds data/ and tools/")
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
