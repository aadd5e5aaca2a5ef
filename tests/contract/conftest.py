"""One suite over every database: SQLite in memory, a SQLite file, and PostgreSQL."""

from __future__ import annotations

import asyncio
import inspect
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from afterword.store.database.engine import Store
from leaks import Resources

IN_MEMORY_TOO = frozenset(
    "test_cancelling test_forgetting test_ledger test_live_memory test_meanwhile test_migrations test_processing "
    "test_recorded_meanwhile "
    "test_read_model test_transfer".split()
)
"""A store in memory is SQLite as in a file. Of the other tests, those on it belong to the soak."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave most tests on a store in memory to the soak."""
    for item in items:
        parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        is_here = item.path.parent == Path(__file__).parent
        if is_here and parameters.get("store") == "memory" and item.path.stem not in IN_MEMORY_TOO:
            item.add_marker(pytest.mark.soak)


@pytest.fixture
async def _no_task_left() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before - {asyncio.current_task()} == set()


@pytest.fixture(autouse=True)
def _nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail where a test leaves a task, a thread, a connection or an open store."""
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("_no_task_left")
    before = Resources.now()
    yield
    assert before.leaks() == []


@pytest.fixture(params=["file", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store with its tables, which several processes can open."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store_url"))
    shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "afterword.db")
    return f"sqlite:///{tmp_path}/afterword.db"


@pytest.fixture(params=["memory", "file", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store with its tables."""
    if request.param == "postgres":
        async with Store(request.getfixturevalue("postgres_store_url")) as opened:
            yield opened
        return
    if request.param == "file":
        shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "afterword.db")
        async with Store(f"sqlite:///{tmp_path}/afterword.db") as opened:
            yield opened
        return
    async with Store("sqlite://") as opened:
        await opened.migrate()
        yield opened
